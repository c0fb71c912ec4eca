"""Independent pieces of work on all cores, the longest first, with progress; and how long they will take."""

import os
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

TELL_EVERY_S = 0.2
ALMOST = 0.95  # of a running task, however far it says it is

KeyT = TypeVar("KeyT", bound=Hashable)
ResultT = TypeVar("ResultT")


class TaskProgress(Protocol):
    """How far a task has come, for other threads."""

    def share_done(self) -> float:
        """From 0 to 1; never less than before."""
        ...

    def cancel(self) -> None:
        """The task, or what of it has not been done yet, ends soon."""
        ...


@dataclass(frozen=True, slots=True)
class Task(Generic[KeyT, ResultT]):
    """Work to be done; `cost` is how long it will take, in seconds or in any one unit."""

    key: KeyT
    cost: float
    work: Callable[[], ResultT]
    progress: TaskProgress | None = None


def run_tasks(
    tasks: Sequence[Task[KeyT, ResultT]],
    progress: Callable[[float], None] | None = None,
    *,
    clocked: bool = False,
) -> dict[KeyT, ResultT]:
    """The result of each task by its key. The first exception of a task, or an interrupt, ends all.

    What has not begun then is dropped; what runs is cancelled, or goes on to its end in the background where it has no
    progress.

    progress : called in this thread with the share of the cost behind, from 0 to 1
    clocked : costs are seconds, so that running tasks that do not tell how far they are count by the time they have run
    """
    began_s: dict[KeyT, float] = {}  # of running tasks; written by the threads that work
    progress_of = {task.key: task.progress for task in tasks}
    share_of = {task.key: task.cost for task in tasks}
    total = sum(share_of.values()) or 1.0

    def run(task: Task[KeyT, ResultT]) -> ResultT:
        began_s[task.key] = time.perf_counter()
        return task.work()

    def share_done(key: KeyT, now_s: float) -> float:
        known = progress_of[key]
        if known is not None:
            return min(ALMOST, known.share_done())
        return min(ALMOST, (now_s - began_s[key]) / max(share_of[key], 1e-9)) if clocked else 0.0

    results: dict[KeyT, ResultT] = {}
    pool = ThreadPoolExecutor(max(1, min(len(tasks), len(os.sched_getaffinity(0)))))
    try:
        # A long task that starts last leaves the other cores idle at the end.
        order = sorted(tasks, key=lambda task: -task.cost)
        key_of: dict[Future[ResultT], KeyT] = {pool.submit(run, task): task.key for task in order}
        pending = set(key_of)
        while pending:
            done, pending = wait(pending, TELL_EVERY_S if progress else None, FIRST_COMPLETED)
            for future in done:
                results[key_of[future]] = future.result()
            if progress is not None:
                behind = sum(share_of[key] for key in results)
                now_s = time.perf_counter()
                begun = [key for key in list(began_s) if key not in results]
                behind += sum(share_of[key] * share_done(key, now_s) for key in begun)
                progress(min(1.0, behind / total))
    finally:
        for key, known in progress_of.items():
            if known is not None and key not in results:
                known.cancel()
        # Not waiting: where all went well there is nothing to wait for, and an interrupt is answered at once.
        pool.shutdown(wait=False, cancel_futures=True)
    return results


WORTH_TELLING_S = 5.0  # an estimate of less is not printed
WORTH_MEASURING_S = 0.3  # of a rough estimate: below it, nothing is measured
ROUGH_EVENT_S = 1e-7  # of an event, before anything is measured
MEASURED_EVENTS = 200_000  # of the run that is measured for an estimate, about


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def estimated_wall_s(run_s: Sequence[float], runs: float, cores: int) -> float:
    """Seconds for all runs on `cores` cores: no less than the mean load, no less than the longest run."""
    return max(sum(run_s) * runs / cores, *run_s)


def by_some_iterations(
    applications: Sequence[Any], runs: int, cores: int, measure: Callable[[Any, Any], float]
) -> list[float] | None:
    """`Application.estimated_run_s` of applications whose field `iterations` counts what takes the same time each."""
    if sum(one.events for one in applications) * ROUGH_EVENT_S * runs / cores < WORTH_MEASURING_S:
        return None
    times_s = []
    for one in applications:
        iterations = max(1, min(one.iterations, int(MEASURED_EVENTS * one.iterations / one.events)))
        times_s.append(measure(replace(one, iterations=iterations), one) * one.iterations / iterations)
    return times_s
