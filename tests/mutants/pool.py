"""Mutants read in processes with bounds of memory and time: a crash, or a hang, is counted and survived."""

import multiprocessing
import os
import resource
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from support_limits import HANG_CPU_S, HANG_S

from mutants.readers import Outcome

#: Above what the process has when it begins.
MAX_MEMORY_BYTES = 1 << 30
SLOW, CRASHED = "slow", "crashed"
#: What readers import, which reserves room for itself: before the processes are started, whose memory is bounded.
LIBRARIES = ("pandas", "pyarrow.csv", "pyarrow.parquet", "scipy.stats")

#: (first, count) -> outcomes of these numbers.
Source = Callable[[int, int], Iterator[Outcome]]


@dataclass
class _Worker:
    source: Source
    most_cpu_s: float
    next: int
    end: int
    connection: Connection
    process: Any
    since_s: float = field(default_factory=time.monotonic)


def read_all(
    sources: dict[str, Source], counts: dict[str, int], processes: int = 2, most_cpu_s: float = HANG_CPU_S
) -> Iterator[tuple[str, Outcome]]:
    """The outcomes of so many mutants of each source, in no order; at most so many processes at a time.

    most_cpu_s: that one mutant may take; one that waits has HANG_S
    """
    for library in LIBRARIES:
        import_module(library)
    import_module("pyarrow").allocate_buffer(1)  # Arrow reserves a gibibyte of addresses with its first byte
    waiting = [
        (name, first, min(first + share, count))
        for name, count in counts.items()
        for share in [-(-count // processes)]
        for first in range(0, count, share)
    ]
    running: dict[Connection, tuple[str, _Worker]] = {}
    while waiting or running:
        while waiting and len(running) < processes:
            name, first, end = waiting.pop(0)
            worker = _started(sources[name], most_cpu_s, first, end)
            running[worker.connection] = (name, worker)
        ready = wait(list(running), timeout=1.0)
        for connection in ready:
            name, worker = running[connection]  # type: ignore[index]
            try:
                outcome: Outcome = connection.recv()  # type: ignore[union-attr]
            except EOFError:
                worker.process.join()
                del running[connection]  # type: ignore[arg-type]
                if worker.next < worker.end:
                    yield name, _ended(worker)
                    if worker.next + 1 < worker.end:
                        waiting.insert(0, (name, worker.next + 1, worker.end))
                continue
            worker.next, worker.since_s = outcome.number + 1, time.monotonic()
            yield name, outcome
        for _, worker in running.values():
            if time.monotonic() - worker.since_s > HANG_S:
                worker.process.kill()


def _started(source: Source, most_cpu_s: float, first: int, end: int) -> _Worker:
    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(source, most_cpu_s, first, end, sending), daemon=True)
    process.start()
    sending.close()
    return _Worker(source, most_cpu_s, first, end, receiving, process)


def _ended(worker: _Worker) -> Outcome:
    """Of the mutant during which a process ended."""
    status = worker.process.exitcode or 0
    if status in (-signal.SIGPROF, -signal.SIGKILL):
        return Outcome(worker.next, "?", SLOW, f"took more than {worker.most_cpu_s:g} s")
    return Outcome(worker.next, "?", CRASHED, f"the process ended with {status}")


def _work(source: Source, most_cpu_s: float, first: int, end: int, sending: Connection) -> None:
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    _limit(most_cpu_s, MAX_MEMORY_BYTES)
    for outcome in source(first, end - first):
        signal.setitimer(signal.ITIMER_PROF, most_cpu_s)
        sending.send(outcome)
    signal.setitimer(signal.ITIMER_PROF, 0)
    sending.close()


def _limit(most_cpu_s: float, more_bytes: int) -> None:
    """Ends the process after so much CPU time from now; memory beyond what it has now is bounded."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * os.sysconf("SC_PAGE_SIZE") + more_bytes, resource.RLIM_INFINITY))
    signal.setitimer(signal.ITIMER_PROF, most_cpu_s)
