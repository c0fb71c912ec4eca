"""The process of an emulation is watched: what counts as standing still, and what does not."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from lepaute.simulate.smpi.process import Limits, run_watched

#: Tells its number and goes on for a second without a sign of progress.
SILENT = "import os, time; print(os.getpid(), flush=True); time.sleep(1)"


def watched(tmp_path: Path, limits: Limits, on_line=None):
    argv = (sys.executable, "-c", SILENT)
    return run_watched(
        argv, environment={}, folder=tmp_path, limits=limits, progress_file=tmp_path / "p", on_line=on_line
    )


def test_a_process_without_progress_is_stopped(tmp_path: Path) -> None:
    ended = watched(tmp_path, Limits(stall_s=0.3))
    assert ended.stopped is not None
    assert "for 0.3 s it made no MPI call" in ended.stopped


@pytest.mark.slow
@pytest.mark.parametrize("limits", [Limits(stall_s=2.5), Limits(timeout_s=2.5)])
def test_the_time_during_which_it_is_suspended_does_not_count(tmp_path: Path, limits: Limits) -> None:
    # Suspended for 4 s and awake for 1 s: more than the limit together, less than it awake.
    def suspend(line: str) -> None:
        number = int(line)
        os.kill(number, signal.SIGSTOP)
        threading.Thread(target=lambda: (time.sleep(4.0), os.kill(number, signal.SIGCONT))).start()

    ended = watched(tmp_path, limits, suspend)
    assert ended.stopped is None
    assert ended.status == 0
    assert ended.wall_s > 4.0
