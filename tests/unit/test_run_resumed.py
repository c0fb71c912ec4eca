"""A run that goes on with what it began with, how far one has come, and how one ends."""

import errno
import json
import os
import shlex
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from support_limits import HANG_S
from support_nodes import local_nodes

from lepaute.cli.run import resume_command
from lepaute.errors import InputError, SimulationError
from lepaute.measure.experiment.entries import RunState
from lepaute.measure.experiment.job import Job
from lepaute.measure.experiment.machine import Machine
from lepaute.measure.experiment.options import Options, new_name
from lepaute.measure.experiment.record import Record
from lepaute.measure.experiment.workspace import Workspace, folder_of, latest_workspace
from lepaute.measure.nodes.channel import NodeRefused
from lepaute.measure.schedulers import Allocation, NodeAddress, Request
from lepaute.measure.shipped import shipped_experiments
from lepaute.simulate import Hpl, predict
from lepaute.simulate.conditions import Conditions
from lepaute.simulate.native import Native
from lepaute.simulate.platform import load_platform
from lepaute.simulate.tasks import Task, run_tasks


class Quiet(Job):
    monitor_period_s = 0


def begun(options: Options, *, resume: bool = False) -> Job:
    job = Quiet(options, say=lambda _line: None)
    job.begin(resume)
    return job


def test_the_command_to_go_on_with_names_the_same_nodes_and_settings(tmp_path: Path) -> None:
    options = Options(
        archive=Path("x y.zip"),
        scheduler="ssh",
        request=Request(nodes="node[1-4]", ssh_config=tmp_path / "config", walltime_s=90.5),
        installation=Path("site.yaml"),
        parameters={"password": "opensesame"},
        script=Path("e.py"),
        python="python3.11",
        monitor_period_s=0.5,
    )
    words = shlex.split(resume_command(options))
    assert words[:6] == ["lepaute", "run", "e.py", "--resume", "-o", "x y.zip"]
    assert set(words[6:]) == {
        "--nodes=node[1-4]", f"--ssh-config={tmp_path / 'config'}", "--walltime=91", "--install=site.yaml",
        "--python=python3.11", "--monitor=0.5",
    }  # fmt: skip


def test_what_differs_from_the_beginning_is_told_and_not_what_does_not(tmp_path: Path) -> None:
    archive = tmp_path / "x.zip"
    begun(Options(archive=archive, seed=5, parameters={"a": "1"}, control={"turbo": False})).close()
    same = begun(Options(archive=archive, control={"turbo": False}), resume=True)
    assert same.workspace.state.warnings == []
    same.close()
    other = begun(Options(archive=archive, seed=6, parameters={"a": "2"}, warm_up_s=3.0), resume=True)
    told = " | ".join(other.workspace.state.warnings)
    other.close()
    assert (other.seed, other.parameters) == (5, {"a": "1"})
    for what in ("seed 5", "the new value of a is ignored", "warm_up_s 3.0", "control {}"):
        assert what in told


def test_going_on_with_other_nodes_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = Options(archive=tmp_path / "x.zip")

    def nodes(*names: str) -> None:
        class There:
            def acquire(self, _request: object, _tell: object) -> Allocation:
                return Allocation(tuple(map(NodeAddress, names)))

        monkeypatch.setattr("lepaute.measure.experiment.job.scheduler", lambda _name: There())

    for resume, names, warnings in ((False, ("n1", "n2"), 0), (True, ("n1",), 0), (True, ("n1", "laptop"), 1)):
        nodes(*names)
        job = begun(options, resume=resume)
        job.acquire()
        told = job.workspace.state.warnings
        job.workspace.save()
        job.close()
        assert len(told) == warnings, told
    assert "laptop" in told[0]


def test_the_run_of_a_script_is_not_taken_for_that_of_another_whose_name_goes_on(tmp_path: Path) -> None:
    folder_of(tmp_path / new_name("sort-large")).mkdir()
    with pytest.raises(InputError, match=r"no run of sort\.py"):
        latest_workspace(tmp_path, "sort")
    own = folder_of(tmp_path / new_name("sort"))
    own.mkdir()
    assert latest_workspace(tmp_path, "sort") == own


def test_a_shipped_experiment_is_resumed_by_its_name() -> None:
    script = shipped_experiments()["memory"]
    words = shlex.split(resume_command(Options(archive=Path("m.zip"), script=script)))
    assert words == ["lepaute", "run", "memory", "--resume", "-o", "m.zip"]


SECONDS = Hpl(n=60_000, p=8, q=8)  # of which some tenths pass


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("hpl", [Hpl(n=1000, p=2, q=3), Hpl(n=128, p=1, q=1), Hpl(n=200_000, p=4, q=8, depth=0)])
def test_the_share_done_grows_from_nothing_to_nearly_all(hpl: Hpl, sampled: bool) -> None:
    behaviour = hpl.on()
    steps = round(behaviour.simulated_share("sampled" if sampled else "full") * hpl.steps)
    shares = [behaviour.share_done(begun, sampled=sampled) for begun in range(0, hpl.ranks * steps + 1, 7)]
    shares.append(behaviour.share_done(hpl.ranks * steps, sampled=sampled))
    assert shares == sorted(shares)
    assert shares[0] == 0.0
    assert 0.4 < shares[-1] <= 1.0  # all steps have begun; half of the last, and the solve, are left


def test_progress_moves_within_one_run_ends_at_one_and_counts_each_step_of_each_rank(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lepaute.simulate.tasks.TELL_EVERY_S", 0.01)
    shares: list[float] = []
    predict(SECONDS, load_platform("dahu"), runs=1, fidelity="full", progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert sum(0.05 < share < 0.95 for share in shares) >= 3
    simulator = Native().on(Conditions(load_platform("dahu")))
    progress = simulator.progress_of(SECONDS)
    simulator.run(SECONDS, 1, first=True, progress=progress)
    assert progress.core.begun_steps == SECONDS.steps * SECONDS.ranks


def test_a_cancelled_run_ends_at_once() -> None:
    hpl = Hpl(n=2_000_000, p=16, q=16)  # minutes
    simulator = Native().on(Conditions(load_platform("dahu"), fidelity="full"))
    progress = simulator.progress_of(hpl)
    threading.Timer(0.2, progress.cancel).start()
    with pytest.raises(SimulationError, match="cancelled"):
        simulator.run(hpl, 1, first=True, progress=progress)


class Endless:
    """A task that ends when it is cancelled."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()

    def share_done(self) -> float:
        return 0.5

    def cancel(self) -> None:
        self.cancelled.set()


def test_an_interrupt_cancels_what_runs() -> None:
    endless = Endless()
    ended = threading.Event()

    def work() -> None:
        if endless.cancelled.wait(HANG_S):
            ended.set()

    def interrupt(share: float) -> None:
        assert share == 0.5
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_tasks([Task("endless", 1.0, work, endless)], interrupt)
    assert ended.wait(HANG_S)


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
