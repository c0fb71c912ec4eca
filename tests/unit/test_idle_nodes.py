"""Scheduling tests of nodes: who is next, who has to make way, and what became of each; on a batch system made up."""

from collections.abc import Collection, Sequence
from pathlib import Path

import pytest
from support_store import small_archive

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.measure.idle_nodes import (
    RETRY_S,
    START_S,
    NodeHistory,
    NodeTests,
    Settings,
    SubmittedTest,
    due_nodes,
    records_held,
    submitted_tests,
)
from lepaute.measure.schedulers.types import BatchSystem, JobState, WaitingJob

DAY_S = 86_400.0
NOW_S = 1_795_000_000.0


class MadeUp(BatchSystem):
    """Nodes n1 to n4; jobs start at once on a node that is free."""

    scheduler = "slurm"

    def __init__(self) -> None:
        self.free = {f"n{number}": True for number in range(1, 5)}
        self.jobs: dict[str, tuple[str, JobState]] = {}
        self.others: list[WaitingJob] = []
        self.submitted: list[str] = []
        self.cancelled: list[str] = []
        self.refuses = False

    def idle(self) -> dict[str, bool]:
        used = {node for node, _ in self.jobs.values()}
        return {node: free and node not in used for node, free in self.free.items()}

    def waiting(self) -> list[WaitingJob]:
        return self.others

    def states(self, jobs: Collection[str]) -> dict[str, JobState]:
        return {job: state for job, (_, state) in self.jobs.items() if job in jobs}

    def submit(self, node: str, words: Sequence[str], log: Path, walltime_s: int) -> str:  # noqa: ARG002
        if self.refuses:
            raise EnvironmentProblem("sbatch: error: invalid account")
        job = str(len(self.submitted) + 1)
        self.submitted.append(node)
        self.jobs[job] = (node, "running")
        return job

    def cancel(self, job: str) -> None:
        self.cancelled.append(job)
        del self.jobs[job]

    def end(self, job: str) -> None:
        del self.jobs[job]


def made(
    folder: Path, batch: MadeUp, histories: dict[str, NodeHistory] | None = None, at_a_time: int = 1
) -> tuple[NodeTests, list[str]]:
    said: list[str] = []
    settings = Settings(folder, ("test",), at_a_time=at_a_time)
    return NodeTests(batch, settings, lambda: histories or {}, lambda _archive: None, said.append), said


def record(node: str, outcome: str, submitted_s: float, ended_s: float | None = None) -> SubmittedTest:
    return SubmittedTest(node, "1", "slurm", submitted_s, Path(), f"{node}-{submitted_s}", outcome, "", ended_s)  # type: ignore[arg-type]


@pytest.fixture
def batch() -> MadeUp:
    return MadeUp()


def test_requested_nodes_come_first_then_those_never_measured_then_the_oldest() -> None:
    histories = {
        "n1": NodeHistory(NOW_S - 8 * DAY_S),
        "n2": NodeHistory(NOW_S - 20 * DAY_S),
        "n3": NodeHistory(NOW_S - DAY_S),
        "n4": NodeHistory(NOW_S - DAY_S, requested_s=NOW_S - 60.0),
        "n6": NodeHistory(NOW_S - DAY_S, requested_s=NOW_S - 2 * DAY_S),
    }
    nodes = ["n1", "n2", "n3", "n4", "n5", "n6"]
    assert due_nodes(nodes, histories, [], 7 * DAY_S, NOW_S, seed=1) == ["n4", "n5", "n2", "n1"]


def test_a_failed_test_is_not_repeated_at_once_and_a_cancelled_one_is() -> None:
    failed, cancelled = record("n1", "failed", NOW_S, NOW_S), record("n2", "cancelled", NOW_S, NOW_S)
    records = [failed, cancelled, record("n3", "submitted", NOW_S), record("n4", "done", NOW_S)]
    nodes = ["n1", "n2", "n3", "n4"]
    assert due_nodes(nodes, {}, records, 7 * DAY_S, NOW_S + 1, seed=1) == ["n2"]
    assert set(due_nodes(nodes, {}, records, 7 * DAY_S, NOW_S + RETRY_S + 1, seed=1)) == {"n1", "n2"}


def test_only_idle_nodes_are_tested_and_so_many_at_a_time(tmp_path, batch):
    batch.free["n2"] = False
    tests, _ = made(tmp_path, batch, at_a_time=2)
    tests.round(NOW_S)
    assert len(batch.jobs) == 2
    assert tests.round(NOW_S + 1)
    assert len(batch.jobs) == 2
    batch.end("1")
    tests.round(NOW_S + 2)
    assert sorted(batch.submitted) == ["n1", "n3", "n4"]
    # Its job left neither a log nor an archive.
    assert [each.outcome for each in tests.records] == ["failed", "submitted", "submitted"]
    assert "before it began" in tests.records[0].reason


def test_a_job_that_waits_for_nodes_ends_the_youngest_tests_and_none_is_submitted_meanwhile(tmp_path, batch):
    tests, said = made(tmp_path, batch, at_a_time=3)
    tests.round(NOW_S)
    assert len(batch.submitted) == 3
    batch.others = [WaitingJob("77", count=2)]
    tests.round(NOW_S + 5)
    assert batch.cancelled == ["3", "2"]
    tests.round(NOW_S + 10)
    tests.round(NOW_S + 15)
    assert len(batch.submitted) == 3
    assert said[-1].endswith("cancelled: job 77 waits for nodes")
    batch.others = []
    tests.round(NOW_S + 20)
    assert len(batch.jobs) == 3 or len(batch.submitted) > 3


def test_a_test_that_does_not_start_since_somebody_was_faster_is_taken_back(tmp_path, batch):
    tests, _ = made(tmp_path, batch)
    tests.round(NOW_S)
    batch.jobs["1"] = (batch.submitted[0], "pending")
    tests.round(NOW_S + START_S - 1)
    assert batch.cancelled == []
    tests.round(NOW_S + START_S + 1)
    assert batch.cancelled == ["1"]
    assert tests.records[0].outcome == "not started"


def test_a_job_without_an_archive_failed_and_its_log_says_why(tmp_path, batch):
    tests, _ = made(tmp_path, batch)
    tests.round(NOW_S)
    tests.records[0].log.write_text("starting\nlepaute: there is no room on the device\n\n")
    batch.end("1")
    tests.round(NOW_S + 5)
    assert tests.records[0].outcome == "failed"
    assert tests.records[0].reason == "lepaute: there is no room on the device"
    kept = submitted_tests(tmp_path)
    assert kept == tests.records[: len(kept)]


def test_a_refused_submission_is_recorded_and_the_next_node_is_not_stopped_by_it(tmp_path, batch):
    batch.refuses = True
    tests, said = made(tmp_path, batch)
    for at in range(4):
        tests.round(NOW_S + at)
    assert {each.node for each in tests.records} == set(batch.free)
    assert not tests.round(NOW_S + 5)
    assert "invalid account" in said[0]


def test_an_archive_that_the_store_cannot_take_is_kept_and_offered_again(tmp_path, batch):
    """By a store that is away, then by one whose disk is full; the next run takes it."""
    tests, said = made(tmp_path, batch)
    problems: list[Exception] = [EnvironmentProblem("no connection"), OSError(28, "No space left on device")]
    taken: list[Path] = []

    def take(archive: Path) -> None:
        if problems:
            raise problems[0]
        taken.append(archive)

    tests.on_archive = take
    tests.round(NOW_S)
    (first,) = tests.open()
    small_archive(first.archive, 1)
    batch.end(first.job)
    tests.round(NOW_S + 1)
    assert [(one.outcome, one.reason) for one in tests.kept()] == [("not stored", "no connection")]
    assert first.node not in tests.due(batch.idle(), NOW_S + 2)
    problems.pop(0)
    tests.round(NOW_S + 2)
    assert "No space left" in tests.kept()[0].reason
    problems.pop(0)
    later, _ = made(tmp_path, batch)
    later.on_archive, later.records = take, submitted_tests(tmp_path)
    assert [one.node for one in later.kept()] == [first.node]
    later.round(NOW_S + 3, submit=False)
    assert taken == [first.archive]
    assert next(test for test in submitted_tests(tmp_path) if test.name == first.name).outcome == "done"
    assert later.touched >= {first.name}
    assert any("not stored" in line for line in said)


def test_a_test_that_has_ended_when_the_command_does_is_not_cancelled(tmp_path, batch):
    tests, _ = made(tmp_path, batch)
    tests.round(NOW_S)
    (only,) = tests.open()
    small_archive(only.archive, 1)
    tests.cancel_all("the end", NOW_S + 1)
    assert [test.outcome for test in submitted_tests(tmp_path)] == ["not stored"]


def test_a_clock_that_is_set_back_overwrites_no_record(tmp_path, batch):
    batch.free = {"n1": True}
    tests, _ = made(tmp_path, batch)
    for _ in range(2):
        tests.round(NOW_S)
        (only,) = tests.open()
        tests._replace(only.ended("cancelled", "a user's job", NOW_S))
        batch.jobs.clear()
    assert len(submitted_tests(tmp_path)) == len(tests.touched) == 2


def test_the_end_of_the_command_cancels_what_runs(tmp_path, monkeypatch, batch):
    tests, _ = made(tmp_path, batch, at_a_time=2)

    def interrupted(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tests.run(lasting_s=60.0)
    assert batch.jobs == {}
    assert {test.outcome for test in submitted_tests(tmp_path)} == {"cancelled"}


def test_tests_are_cancelled_also_where_that_cannot_be_recorded(tmp_path, batch):
    folder = tmp_path / "records"
    folder.mkdir()
    tests, said = made(folder, batch, at_a_time=2)
    tests.round(NOW_S)
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    tests.cancel_all("the end", NOW_S + 1)
    assert batch.jobs == {}
    assert sum("not recorded" in each for each in said) == 2


def test_nodes_without_a_result_are_reported_after_the_limit(tmp_path, batch):
    tests, _ = made(tmp_path, batch, {"n1": NodeHistory(NOW_S - 3 * DAY_S), "n2": NodeHistory(NOW_S)})
    assert tests.late(batch.free, 2 * DAY_S, NOW_S) == ["n1"]
    tests.records.append(record("n1", "cancelled", NOW_S - 2.5 * DAY_S))
    assert tests.late(batch.free, 2 * DAY_S, NOW_S) == ["n1", "n3", "n4"]


def test_two_commands_do_not_share_a_folder(tmp_path: Path) -> None:
    with records_held(tmp_path) as records:
        assert records == []
        with pytest.raises(InputError, match="another"), records_held(tmp_path):
            pass
    (tmp_path / "file").write_text("")
    with records_held(tmp_path / "unused"), records_held(tmp_path / "used"):
        (tmp_path / "used" / "n1.json").touch()
    assert [(tmp_path / name).exists() for name in ("unused", "used")] == [False, True]
    with pytest.raises(InputError, match="name another folder"), records_held(tmp_path / "file"):
        pass
