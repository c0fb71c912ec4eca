"""How long a test waits before it says that something hangs.

No test measures speed: what takes a second here may take a minute on another machine, or on this one when it is busy.
A bound is there to end what would never end by itself, at least 60 s and ten times what it takes on two cores of 2026.
What is fast, or takes little memory, is measured in `benchmarks/`.
"""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

#: Wall-clock time of a process or an event; nothing but a calibration takes more than 45 s.
HANG_S = 600.0
#: Of a whole calibration, of which the longest takes 165 s.
CALIBRATION_HANG_S = 1800.0
#: CPU time of a computation.
HANG_CPU_S = 60.0


def wait_until(condition: Callable[[], object], what: str, limit_s: float = HANG_S) -> None:
    """Returns when the condition holds. Raises TimeoutError, with what it waited for, when it does not in time."""
    deadline_s = time.monotonic() + limit_s
    pause_s = 0.005
    while not condition():
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"{what}: not within {limit_s:g} s")
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, 0.1)


def ran(argv: Sequence[str | Path], *, check: bool = False, **options: Any) -> "subprocess.CompletedProcess[str]":
    """A program that was run to its end, with what it printed; one that hangs is stopped."""
    limited = {"timeout": HANG_S, **options}
    return subprocess.run(argv, capture_output=True, text=True, check=check, **limited)


def within(what: str, limit_s: float = HANG_S) -> AbstractContextManager[None]:
    """Fails the test when what it holds waits for longer."""
    return _ended_by(signal.SIGALRM, signal.ITIMER_REAL, f"{what}: not within {limit_s:g} s", limit_s)


def within_cpu(what: str, limit_s: float = HANG_CPU_S) -> AbstractContextManager[None]:
    """Fails the test when this process computes for longer; other load on the machine does not count."""
    return _ended_by(signal.SIGPROF, signal.ITIMER_PROF, f"{what}: more than {limit_s:g} s of CPU time", limit_s)


@contextmanager
def _ended_by(number: signal.Signals, timer: int, message: str, limit_s: float) -> Iterator[None]:
    """A hang in compiled code cannot be ended so; pytest's `faulthandler_timeout` shows where it is."""

    def end(_number: int, _frame: FrameType | None) -> None:
        pytest.fail(message)  # no Exception, which the code under test might catch

    before = signal.signal(number, end)
    signal.setitimer(timer, limit_s, limit_s)  # again, where the code under test goes on all the same
    try:
        yield
    finally:
        signal.setitimer(timer, 0)
        signal.signal(number, before)


def most(chance: float, count: int) -> int:
    """More of `count` than this, each with that chance, happen to one seed in a million."""
    from scipy import stats

    return int(stats.binom.ppf(1 - 1e-6, count, chance))
