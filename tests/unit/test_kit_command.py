"""Programs with a limit, built once, behind locks; and tasks on all cores."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest
from support_limits import HANG_S, wait_until, within

from lepaute.errors import EnvironmentProblem
from lepaute.kit import command
from lepaute.kit.builds import built_once
from lepaute.kit.command import AwakeTime, run_command
from lepaute.kit.files import hold_lock
from lepaute.measure.experiment.entries import RunState
from lepaute.measure.experiment.workspace import Workspace
from lepaute.measure.idle_nodes import records_held
from lepaute.measure.nodes import pool
from lepaute.measure.schedulers.types import NodeAddress
from lepaute.measure.verify.seal import held
from lepaute.simulate.tasks import Task, run_tasks
from lepaute.watch.store import open_store


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


#: A build that takes a while and leaves a line for each time it ran; argv: parent, log, seconds.
BUILDER = """
import sys, time
from pathlib import Path
from lepaute.kit.builds import built_once
parent, log, seconds = sys.argv[1:]
def build(folder):
    with open(log, "a") as file:
        file.write("built\\n")
    print("building", flush=True)
    time.sleep(float(seconds))
    (folder / "program").write_text("whole")
print((built_once("demo", ["a"], "program", build, Path(parent)) / "program").read_text())
"""


def start(folder: Path, seconds: float) -> "subprocess.Popen[str]":
    words = [sys.executable, "-c", BUILDER, str(folder / "cache"), str(folder / "log"), str(seconds)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def make(folder: Path) -> None:
    (folder / "program").write_text("x")


def test_two_processes_at_once_build_once(tmp_path: Path) -> None:
    both = [start(tmp_path, 1.0), start(tmp_path, 1.0)]
    printed = [process.communicate(timeout=HANG_S)[0].split()[-1] for process in both]
    assert printed == ["whole", "whole"]
    assert (tmp_path / "log").read_text().split() == ["built"]


def test_what_a_killed_build_left_is_removed_by_the_next(tmp_path: Path) -> None:
    with start(tmp_path, 60.0) as process:
        assert process.stdout.readline() == "building\n"
        os.kill(process.pid, signal.SIGKILL)
    assert len(list((tmp_path / "cache").glob("*.new"))) == 1
    assert start(tmp_path, 0.0).communicate(timeout=HANG_S)[0].split()[-1] == "whole"
    assert not list((tmp_path / "cache").glob("*.new"))


def test_the_same_inputs_are_built_once_and_others_anew(tmp_path: Path) -> None:
    calls: list[Path] = []

    def build(folder: Path) -> None:
        calls.append(folder)
        make(folder)

    folders = [built_once("demo", inputs, "program", build, tmp_path) for inputs in (["a", "b"], ["a", "b"], ["ab"])]
    assert folders[0] == folders[1] != folders[2]
    assert len(calls) == 2
    assert all((folder / "program").is_file() for folder in folders)


def test_a_program_that_was_cut_short_is_built_again(tmp_path: Path) -> None:
    folder = built_once("demo", ["a"], "program", make, tmp_path)
    (folder / "program").write_text("")
    assert built_once("demo", ["a"], "program", make, tmp_path) == folder
    assert (folder / "program").read_text() == "x"
    (folder / "size.txt").unlink()  # as before sizes were kept
    built_once("demo", ["a"], "program", pytest.fail, tmp_path)


def test_a_build_that_fails_leaves_nothing_and_may_be_tried_again(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        make(folder)
        raise EnvironmentProblem("the compiler is missing")

    with pytest.raises(EnvironmentProblem, match="the compiler is missing"):
        built_once("demo", ["a"], "program", fail, tmp_path)
    assert not [path for path in tmp_path.iterdir() if not path.name.endswith(".lock")]
    assert built_once("demo", ["a"], "program", make, tmp_path).is_dir()


def test_something_in_the_way_is_named(tmp_path: Path) -> None:
    built = built_once("demo", ["a"], "program", make, tmp_path)
    (built / "program").rename(built / "other")
    with pytest.raises(EnvironmentProblem, match="is in the way; remove it"):
        built_once("demo", ["a"], "program", make, tmp_path)


def without_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)


def entered(manager: AbstractContextManager[object]) -> None:
    with manager:
        pass


USERS: dict[str, Callable[[Path], object]] = {
    "a run": lambda folder: Workspace.create(folder / "a.zip", RunState()),
    "a store": lambda folder: open_store(folder / "store"),
    "a verification": lambda folder: entered(held(folder / "verification")),
    "tests of idle nodes": lambda folder: entered(records_held(folder / "tests")),
}


@pytest.mark.parametrize("user", USERS)
def test_a_file_system_without_locks_is_not_told_as_another_process(user, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        without_locks(patched)
        with pytest.raises(EnvironmentProblem, match=r"its file system has no locks \(No locks available\)") as told:
            USERS[user](tmp_path)
    assert "another process" not in str(told.value)
    USERS[user](tmp_path)  # nothing is left that would be in the way elsewhere


def test_a_lock_that_another_holds_is_not_taken(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as one, (tmp_path / "lock").open("w") as other:
        assert hold_lock(one, tmp_path, "")
        assert not hold_lock(other, tmp_path, "")
    with (tmp_path / "lock").open("w") as third:
        assert hold_lock(third, tmp_path, "", wait=True)


def test_every_result_comes_under_its_key_whatever_the_order_and_the_share_behind_grows_to_one():
    tasks = [Task(number, float(number % 3), lambda number=number: number * number) for number in range(20)]
    assert run_tasks(tasks) == {number: number * number for number in range(20)}
    shares = []
    run_tasks([Task(number, 1.0, lambda: time.sleep(0.01)) for number in range(6)], shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_a_task_that_runs_counts_by_the_time_it_has_run():
    shares = []

    def seen_on_its_way() -> bool:
        return any(0.0 < share < 0.95 for share in shares)

    run_tasks([Task(0, 10.0, lambda: wait_until(seen_on_its_way, "a share"))], shares.append, clocked=True)
    assert seen_on_its_way()
    assert shares[-1] == 1.0


def test_the_first_failure_is_raised_and_what_has_not_begun_is_dropped():
    begun = []

    def fail():
        raise ValueError("no")

    tasks = [Task("bad", 1000.0, fail)]
    tasks += [
        Task(number, 1.0, lambda number=number: (begun.append(number), time.sleep(0.05))) for number in range(500)
    ]
    with pytest.raises(ValueError, match="no"):
        run_tasks(tasks)
    assert len(begun) < 400


def test_an_interrupt_does_not_wait_for_nodes_that_do_not_answer(tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "CONNECT_S", 3600.0)
    deaf = tmp_path / "deaf"
    deaf.write_text(f"#!/bin/sh\necho $$ >> {tmp_path}/pids\nexec sleep 3600\n")
    deaf.chmod(0o755)
    pids = tmp_path / "pids"

    def interrupt() -> None:
        wait_until(lambda: pids.is_file() and pids.read_text().count("\n") == 2, "both connections")
        # To this thread: what the main thread waits for does not end by itself.
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with within("the end of the connections"), pytest.raises(KeyboardInterrupt):
        pool.Pool([NodeAddress("a"), NodeAddress("b")], python=str(deaf), folder="x").__enter__()
    for pid in pids.read_text().split():
        assert not Path("/proc", pid).exists()
