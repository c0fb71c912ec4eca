"""Independent pieces of work on all cores, the longest first, with progress."""

import os
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

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


@dataclass(slots=True)
class Running(Generic[KeyT]):
    """Which tasks have begun, and when; written by the threads that work."""

    began_s: dict[KeyT, float] = field(default_factory=dict)


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
    running: Running[KeyT] = Running()
    progress_of = {task.key: task.progress for task in tasks}
    share_of = {task.key: task.cost for task in tasks}
    total = sum(share_of.values()) or 1.0

    def run(task: Task[KeyT, ResultT]) -> ResultT:
        running.began_s[task.key] = time.perf_counter()
        return task.work()

    def share_done(key: KeyT, now_s: float) -> float:
        known = progress_of[key]
        if known is not None:
            return min(ALMOST, known.share_done())
        return min(ALMOST, (now_s - running.began_s[key]) / max(share_of[key], 1e-9)) if clocked else 0.0

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
                begun = [key for key in list(running.began_s) if key not in results]
                behind += sum(share_of[key] * share_done(key, now_s) for key in begun)
                progress(min(1.0, behind / total))
    finally:
        for key, known in progress_of.items():
            if known is not None and key not in results:
                known.cancel()
        # Not waiting: where all went well there is nothing to wait for, and an interrupt is answered at once.
        pool.shutdown(wait=False, cancel_futures=True)
    return results
