"""Independent pieces of work on all cores, the longest first, with progress; and how long they will take."""

import contextlib
import os
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Generic, Protocol, TypeVar

TELL_EVERY_S = 0.2
ALMOST = 0.95  # of a running task, however far it says it is

KeyT = TypeVar("KeyT", bound=Hashable)
ResultT = TypeVar("ResultT")


class TaskProgress(Protocol):
    """How far a task has come, for other threads."""

    def share_done(self) -> float:
        """From 0 to 1; never less than before."""

    def cancel(self) -> None:
        """The task, or what of it has not been done yet, ends soon."""


@dataclass(frozen=True, slots=True)
class Task(Generic[KeyT, ResultT]):
    """Work to be done; `cost` is how long it will take, in seconds or in any one unit."""

    key: KeyT
    cost: float
    work: Callable[[], ResultT]
    progress: TaskProgress | None = None


def run_tasks(
    tasks: Sequence[Task[KeyT, ResultT]], progress: Callable[[float], None] | None = None, *, clocked: bool = False
) -> dict[KeyT, ResultT]:
    """The result of each task by its key. The first exception of a task, or an interrupt, ends all.

    What has not begun then is dropped; what runs is cancelled, or goes on in the background where it has no progress.

    progress : called in this thread with the share of the cost behind, from 0 to 1
    clocked : costs are seconds, so that running tasks that do not tell how far they are count by the time they have run
    """
    total = sum(task.cost for task in tasks) or 1.0
    # A long task that starts last leaves the other cores idle at the end.
    waiting = deque(sorted(tasks, key=lambda task: -task.cost))
    running: dict[KeyT, tuple[Task[KeyT, ResultT], float]] = {}  # and when it began
    ended: SimpleQueue[tuple[Task[KeyT, ResultT], Any, BaseException | None]] = SimpleQueue()

    def work() -> None:
        while waiting:
            try:
                task = waiting.popleft()
            except IndexError:  # another thread has it
                return
            running[task.key] = (task, time.perf_counter())
            try:
                ended.put((task, task.work(), None))
            except BaseException as error:  # noqa: BLE001 - whatever it is, who waits gets it
                ended.put((task, None, error))

    results: dict[KeyT, ResultT] = {}
    behind = 0.0
    try:
        for _ in range(min(len(tasks), available_cores())):
            Thread(target=work).start()
        while len(results) < len(tasks):
            with contextlib.suppress(Empty):
                task, result, error = ended.get(timeout=TELL_EVERY_S if progress else None)
                del running[task.key]
                if error is not None:
                    raise error
                results[task.key] = result
                behind += task.cost
            if progress is not None:
                started = list(running.values())
                under_way = sum(task.cost * _fraction_done(task, began_s, clocked=clocked) for task, began_s in started)
                progress(min(1.0, (behind + under_way) / total))
    finally:
        # Not waiting: where all went well there is nothing to wait for, and an interrupt is answered at once.
        waiting.clear()
        for task in tasks:
            if task.progress is not None and task.key not in results:
                task.progress.cancel()
    return results


def _fraction_done(task: Task[Any, Any], began_s: float, *, clocked: bool) -> float:
    if task.progress is not None:
        return min(ALMOST, task.progress.share_done())
    return min(ALMOST, (time.perf_counter() - began_s) / max(task.cost, 1e-9)) if clocked else 0.0


WORTH_TELLING_S = 5.0  # an estimate of less is not printed
WORTH_MEASURING_S = 0.3  # of a rough estimate: below it, nothing is measured
ROUGH_EVENT_S = 1e-7  # of an event, before anything is measured
MEASURED_EVENTS = 200_000  # of the run that is measured for an estimate, about
LOAD_MEASURED_S = 0.2


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def slowdown(cores: int) -> float:
    """How many times as long as its CPU time work on so many cores takes now: more than 1 where others compute too."""

    def times_s(_: int) -> tuple[float, float]:
        began_s, began_cpu_s, content = time.perf_counter(), time.thread_time(), bytes(1 << 18)
        while (spent_s := time.perf_counter() - began_s) < LOAD_MEASURED_S:
            sha256(content)  # without the lock of Python
        return spent_s, time.thread_time() - began_cpu_s

    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(cores) as pool:
        spent_s, cpu_s = map(sum, zip(*pool.map(times_s, range(cores)), strict=True))
    return max(1.0, spent_s / cpu_s)


def estimated_wall_s(run_s: Sequence[float], runs: float, cores: int) -> float:
    """Seconds for all runs on `cores` cores: no less than the mean load, no less than the longest run."""
    return max(sum(run_s) * runs / cores, *run_s)
