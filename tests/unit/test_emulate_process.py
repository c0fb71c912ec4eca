"""The process of an emulation is watched: what counts as standing still, and what does not."""

import os
import signal
import sys
import threading
from functools import partial
from pathlib import Path

import pytest
from support_limits import HANG_S, wait_until

from lepaute.simulate.smpi import process
from lepaute.simulate.smpi.process import Limits, run_watched

#: Tells its number and goes on for some seconds without a sign of progress.
SILENT = "import os, sys, time; print(os.getpid(), flush=True); time.sleep(float(sys.argv[1]))"


def watched(tmp_path: Path, limits: Limits, goes_on_s: float, on_line=None):
    argv = (sys.executable, "-c", SILENT, str(goes_on_s))
    return run_watched(
        argv, environment={}, folder=tmp_path, limits=limits, progress_file=tmp_path / "p", on_line=on_line
    )


def test_a_process_without_progress_is_stopped(tmp_path: Path) -> None:
    ended = watched(tmp_path, Limits(stall_s=0.3), HANG_S)
    assert "for 0.3 s it made no MPI call" in ended.stopped


def test_progress_however_slow_is_no_stall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # By a clock that goes on by ten seconds with each sign of progress, and only then.
    progress, now_s = tmp_path / "p", [0.0]
    program = "import sys, time; [(open(sys.argv[1], 'w').write(f'{n} {n}'), time.sleep(0.01)) for n in range(30)]"

    def clock() -> float:
        seen = progress.read_text().split() if progress.exists() else []
        now_s[0] = 10.0 * float(seen[0]) if seen else now_s[0]
        return now_s[0]

    monkeypatch.setattr(process, "AwakeTime", partial(process.AwakeTime, clock=clock))
    ended = run_watched(
        (sys.executable, "-c", program, str(progress)),
        environment={},
        folder=tmp_path,
        limits=Limits(stall_s=15.0),
        progress_file=progress,
    )
    assert (ended.stopped, ended.status) == (None, 0)
    assert now_s[0] > 15.0


@pytest.mark.slow
@pytest.mark.parametrize("limits", [Limits(stall_s=30.0), Limits(timeout_s=30.0)])
def test_the_time_during_which_it_is_suspended_does_not_count(tmp_path, limits, monkeypatch):
    # By a clock that is quick while it is suspended: for a minute, and awake for less than its limit.
    now_s, quick = [0.0], threading.Event()

    def clock() -> float:
        now_s[0] += 1.9 if quick.is_set() else 0.01
        return now_s[0]

    monkeypatch.setattr(process, "AwakeTime", partial(process.AwakeTime, clock=clock))

    def go_on(number: int) -> None:
        wait_until(lambda: now_s[0] > 60.0, "a minute")
        quick.clear()
        os.kill(number, signal.SIGCONT)

    def suspend(line: str) -> None:
        os.kill(int(line), signal.SIGSTOP)
        quick.set()
        threading.Thread(target=go_on, args=(int(line),)).start()

    ended = watched(tmp_path, limits, 0.2, suspend)
    assert ended.stopped is None
    assert ended.status == 0
    assert now_s[0] > 60.0
