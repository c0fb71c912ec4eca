"""A limit of a program counts the time in which it could run."""

import os
import signal
import sys
import threading
from functools import partial
from pathlib import Path

import pytest
from support_limits import wait_until

from lepaute.errors import EnvironmentProblem
from lepaute.kit import command
from lepaute.kit.command import AwakeTime, run_command


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
def test_the_limit_of_a_program_does_not_count_its_suspension(monkeypatch: pytest.MonkeyPatch) -> None:
    script = "import os, signal; print(os.getpid(), flush=True); os.kill(os.getpid(), signal.SIGSTOP); print('on')"
    # By a clock that is quick while the script is suspended, and looked at more often than it is: twice its limit.
    now_s, quick = [0.0], threading.Event()

    def clock() -> float:
        now_s[0] += 0.09 if quick.is_set() else 0.001
        return now_s[0]

    monkeypatch.setattr(command, "_LOOK_EVERY_S", 0.05)
    monkeypatch.setattr(command, "AwakeTime", partial(AwakeTime, clock=clock))

    def go_on() -> None:
        wait_until(suspended_children, "the suspension")
        quick.set()
        wait_until(lambda: now_s[0] > 2.0, "twice the limit")
        quick.clear()
        for number in suspended_children():
            os.kill(number, signal.SIGCONT)

    threading.Thread(target=go_on).start()
    assert run_command([sys.executable, "-c", script], what="the script", timeout_s=1.0).stdout.endswith("on\n")
    assert now_s[0] > 2.0


def suspended_children() -> list[int]:
    found = []
    for folder in filter(str.isdigit, os.listdir("/proc")):
        try:
            state, parent = Path(f"/proc/{folder}/stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state == "T" and int(parent) == os.getpid():
            found.append(int(folder))
    return found
