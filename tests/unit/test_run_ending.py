"""How a run ends when something goes wrong on the way out, or beside the main thread."""

import errno
import json
import os
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from support_limits import HANG_S
from support_nodes import local_nodes

from lepaute.measure.experiment.entries import RunState
from lepaute.measure.experiment.job import Job
from lepaute.measure.experiment.machine import Machine
from lepaute.measure.experiment.options import Options
from lepaute.measure.experiment.record import Record
from lepaute.measure.experiment.workspace import Workspace
from lepaute.measure.nodes.channel import NodeRefused


@pytest.fixture
def record(tmp_path: Path):
    workspace = Workspace.create(tmp_path / "x.zip", RunState())
    yield Record(workspace, say=lambda _line: None)
    workspace.close()


def test_a_step_on_the_way_out_that_is_refused_is_told_and_stops_no_other(record: Record, tmp_path: Path) -> None:
    steps = []

    class Refusing:
        def record_clocks(self) -> None:
            raise NodeRefused("n: no answer within 30 s")

        def stop_monitoring(self) -> None:
            raise NodeRefused("n: no monitor")

        def undo(self) -> None:
            steps.append("undo")

    job = Job(Options(archive=tmp_path / "x.zip"))
    job.record_of_run, job.machine = record, Refusing()
    job._nodes = SimpleNamespace(channels=["n"])
    job.release_machine()
    assert steps == ["undo"]
    assert len(record.workspace.state.warnings) == 2


def test_what_one_node_refuses_to_undo_is_told_and_the_others_tell_what_they_did(record: Record) -> None:
    with local_nodes(["good", "bad"], f"lepaute-test-{os.urandom(4).hex()}") as nodes:
        machine = Machine(nodes, record, 0.0)
        ask = nodes["bad"].channels[0].ask

        def asks_for_nonsense(message, *more, **named):
            return ask({**message, "what": "nonsense"}, *more, **named)

        nodes["bad"].channels[0].ask = asks_for_nonsense
        machine.undo()
    (warning,) = record.workspace.state.warnings
    assert "not undone" in warning
    assert "bad" in warning


def test_a_sample_that_the_disk_refuses_does_not_cost_the_node(record: Record) -> None:
    lost: list[tuple[str, str]] = []
    with local_nodes(["n"], f"lepaute-test-{os.urandom(4).hex()}", lost) as nodes:
        machine = Machine(nodes, record, 0.0)

        refused = threading.Event()

        def refuse(_row: object) -> None:
            refused.set()
            raise OSError(errno.ENOSPC, "No space left on device")

        record.workspace.journal("monitoring/n").add = refuse
        machine.start_monitoring(0.05)
        assert refused.wait(HANG_S)
        nodes.run("true")
        machine.stop_monitoring()
    assert not lost
    assert "No space left" in record.workspace.state.warnings[0]


def test_a_state_that_changes_while_it_is_saved_is_saved_whole(record: Record) -> None:
    workspace = record.workspace
    problems: list[Exception] = []

    def save() -> None:
        try:
            for _ in range(60):
                workspace.save()
        except Exception as problem:  # noqa: BLE001 - a thread's own
            problems.append(problem)

    savers = [threading.Thread(target=save) for _ in range(2)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for saver in savers:
            saver.start()
        number = 0
        while any(saver.is_alive() for saver in savers):
            number += 1
            workspace.state.more[f"k{number % 500}"] = number
            workspace.state.warnings.append(f"w{number}")
            if number % 500 == 0:
                workspace.state.more.clear()
                workspace.state.warnings.clear()
    finally:
        sys.setswitchinterval(interval)
        for saver in savers:
            saver.join()
    assert not problems
    assert isinstance(json.loads((workspace.folder / "state.json").read_text()), dict)
