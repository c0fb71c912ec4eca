"""A limit of a program counts the time in which it could run."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from lepaute.errors import EnvironmentProblem
from lepaute.kit.awake import AwakeTime
from lepaute.kit.command import run_command


def test_time_counts_up_to_the_longest_look_and_not_while_the_other_one_is_suspended() -> None:
    now = [100.0]
    awake = AwakeTime(2.0, clock=lambda: now[0])
    now[0] += 1.5
    assert awake.look() == 1.5
    now[0] += 300.0  # this process was suspended
    assert awake.look() == 3.5
    now[0] += 1.0
    assert awake.look(suspended=True) == 3.5
    now[0] += 1.0
    assert awake.look() == 4.5


def test_a_program_that_runs_longer_than_its_limit_is_stopped() -> None:
    with pytest.raises(EnvironmentProblem, match=r"the nap did not finish within 0\.3 s"):
        run_command(["sleep", "60"], what="the nap", timeout_s=0.3)


@pytest.mark.slow
def test_the_limit_of_a_program_does_not_count_its_suspension() -> None:
    script = "import os, signal; print(os.getpid(), flush=True); os.kill(os.getpid(), signal.SIGSTOP); print('on')"
    parent = os.getpid()

    def go_on() -> None:
        time.sleep(6.0)
        for folder in filter(str.isdigit, os.listdir("/proc")):
            try:
                state, its_parent = Path(f"/proc/{folder}/stat").read_text().rpartition(")")[2].split()[:2]
            except OSError:
                continue
            if state == "T" and int(its_parent) == parent:
                os.kill(int(folder), signal.SIGCONT)

    threading.Thread(target=go_on).start()
    record = run_command([sys.executable, "-c", script], what="the script", timeout_s=4.0)
    assert record.stdout.endswith("on\n")
    assert record.duration_s > 5.0
