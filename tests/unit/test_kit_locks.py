"""Locks keep others out, and a file system without them is told as what it is."""

import errno
import fcntl
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from lepaute.errors import EnvironmentProblem
from lepaute.kit.files import hold_lock
from lepaute.measure.experiment.entries import RunState
from lepaute.measure.experiment.workspace import Workspace
from lepaute.measure.idle_nodes import records_held
from lepaute.measure.node_agent.control_journal import NodeLock
from lepaute.measure.verify.seal import held
from lepaute.watch.store import open_store


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


def test_an_interrupted_run_is_not_told_as_running_where_there_are_no_locks(tmp_path, monkeypatch):
    Workspace.create(tmp_path / "a.zip", RunState()).close()
    without_locks(monkeypatch)
    with pytest.raises(EnvironmentProblem, match="has no locks"):
        Workspace.reopen(tmp_path / "a.work")
    assert (tmp_path / "a.work" / "state.json").is_file()


def test_a_node_whose_lock_cannot_be_had_is_an_error_and_leaves_no_descriptor(tmp_path, monkeypatch):
    without_locks(monkeypatch)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="No locks"):
        NodeLock(tmp_path / "lock").acquire()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_lock_that_another_holds_is_not_taken(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as one, (tmp_path / "lock").open("w") as other:
        assert hold_lock(one, tmp_path, "")
        assert not hold_lock(other, tmp_path, "")
    with (tmp_path / "lock").open("w") as third:
        assert hold_lock(third, tmp_path, "", wait=True)
