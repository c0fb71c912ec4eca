"""Tests nodes in turn while they are idle: a round looks at the batch system, ends what is in others' way, submits.

Each test that was submitted has a small file beside its archive: what became of it is never forgotten.
"""

import dataclasses
import json
import random
import shutil
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self, get_args

from lepaute.errors import ArchiveError, EnvironmentProblem, InputError, LepauteError
from lepaute.kit.documents import read_json, read_text
from lepaute.kit.files import hold_lock, not_written, write_atomic
from lepaute.kit.json_values import from_json
from lepaute.kit.node_sets import check_node_name
from lepaute.measure.archive import Archive
from lepaute.measure.archive.metadata import COMPLETE
from lepaute.measure.schedulers.types import BatchSystem

#: done: its archive is complete and in the store; not stored: it is not in the store yet; failed: it ended without a
#: complete one; cancelled: by us, since the node was wanted, or on request; not started: the node was taken before.
Outcome = Literal["submitted", "done", "not stored", "failed", "cancelled", "not started"]
SUFFIX = ".test.json"
_MAX_BYTES = 65_536
#: A test that failed is not repeated at once: the next one would fail as well, and other nodes would wait.
RETRY_S = 6 * 3600.0
#: A test that has not started after so long, on a node that was idle, has lost it to somebody.
START_S = 60.0
#: A job ends some time after its archive is there, or after it was cancelled.
_POLL_S = 5.0
_MAX_REASON = 300


@dataclass(frozen=True, slots=True)
class SubmittedTest:
    """job: id of the batch system; submitted_s, ended_s: since the epoch, ended_s when we saw that it had ended."""

    node: str
    job: str
    scheduler: str
    submitted_s: float
    folder: Path
    name: str
    outcome: str = "submitted"  # an Outcome
    reason: str = ""
    ended_s: float | None = None

    @property
    def archive(self) -> Path:
        return self.folder / f"{self.name}.zip"

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    def ended(self, outcome: Outcome, reason: str, now_s: float) -> Self:
        return dataclasses.replace(self, outcome=outcome, reason=reason[:_MAX_REASON], ended_s=now_s)

    def save(self) -> None:
        plain = dataclasses.asdict(self)
        del plain["folder"], plain["name"]
        write_atomic(self.folder / f"{self.name}{SUFFIX}", json.dumps(plain, indent=2) + "\n")


def submitted_tests(folder: Path) -> list[SubmittedTest]:
    """All records of a folder, the earliest first; raises InputError for a file that is none."""
    return sorted([_record(path) for path in sorted(folder.glob(f"*{SUFFIX}"))], key=lambda record: record.submitted_s)


def _record(path: Path) -> SubmittedTest:
    plain = read_json(read_text(path, "a record of a node test", _MAX_BYTES), str(path))
    here = {"folder": path.parent, "name": path.name.removesuffix(SUFFIX)}
    record = from_json(SubmittedTest, {**plain, **here} if isinstance(plain, dict) else plain, str(path))
    if record.outcome not in get_args(Outcome):
        raise InputError(f"{path}: outcome is {record.outcome[:40]!r}; it is not a record of a node test")
    check_node_name(record.node)
    return record


@dataclass(frozen=True, slots=True)
class NodeHistory:
    """last_s : when the node's last successful job began, None: never; requested_s : since when a run is asked for."""

    last_s: float | None = None
    requested_s: float | None = None


def due_nodes(
    nodes: Collection[str],
    histories: Mapping[str, NodeHistory],
    records: Sequence[SubmittedTest],
    every_s: float,
    now_s: float,
    seed: int,
) -> list[str]:
    """The nodes to test, the most urgent first; nodes that are as urgent in random order.

    A node is due `every_s` after its last result began, or once a run of it is requested. After a test that failed it
    is not due for RETRY_S, and while a test of it has not ended, not at all.
    """
    shuffled = sorted(nodes)
    random.Random(seed).shuffle(shuffled)
    latest = {record.node: record for record in records}  # of several the last
    due = []
    for node in shuffled:
        history, record = histories.get(node, NodeHistory()), latest.get(node)
        last_s = history.last_s
        if record is not None:
            if record.outcome == "submitted":
                continue
            if record.outcome == "failed" and now_s < (record.ended_s or 0.0) + RETRY_S:
                continue
            if record.outcome in ("done", "not stored"):
                last_s = max(last_s or 0.0, record.submitted_s)
        requested_s = history.requested_s
        if requested_s is not None and (last_s is None or last_s < requested_s):
            due.append(((0, requested_s), node))
        elif last_s is None or last_s + every_s <= now_s:
            due.append(((1, last_s or 0.0), node))
    return [node for _, node in sorted(due, key=lambda one: one[0])]


@dataclass(frozen=True, slots=True)
class Settings:
    """nodes: to test, None: all of the partition; words: the experiment and its options, as of `lepaute run`."""

    folder: Path
    words: tuple[str, ...]
    nodes: tuple[str, ...] | None = None
    at_a_time: int = 1
    every_s: float = 7 * 86_400.0
    walltime_s: int = 1800


@dataclass(slots=True)
class NodeTests:
    """histories: of the nodes by the store, asked anew after each result; on_archive: takes a complete archive in.

    say: called with each event in words
    on_archive raises InputError or ArchiveError if the archive cannot be taken; the test counts as failed then.
    Where the store is away or full, it raises EnvironmentProblem or OSError; the archive is offered again in each
    round, of this run and of later ones.
    touched: names of the tests that were submitted or ended in this run, whatever the clock does
    """

    batch: BatchSystem
    settings: Settings
    histories: Callable[[], Mapping[str, NodeHistory]]
    on_archive: Callable[[Path], None]
    say: Callable[[str], None]
    records: list[SubmittedTest] = field(default_factory=list)
    touched: set[str] = field(default_factory=set)
    _known: Mapping[str, NodeHistory] | None = None
    _outdated: bool = False

    def run(self, lasting_s: float, poll_s: float = _POLL_S) -> None:
        """Rounds until no node is due, or for so long; then waits for the tests that run.

        Raises EnvironmentProblem if the batch system no longer answers. However it ends, it leaves no test behind.
        """
        deadline_s = time.monotonic() + lasting_s
        try:
            while self.round(time.time(), submit=time.monotonic() < deadline_s):
                time.sleep(poll_s)
        except BaseException:
            self.cancel_all("lepaute watch run was ended", time.time())
            raise

    def round(self, now_s: float, *, submit: bool = True) -> bool:
        """One look; whether there is anything left to do or to wait for."""
        self._close_ended(now_s)
        for record in self.kept():
            self._judge(record, now_s)
        waiting = self.batch.waiting()
        for job in waiting:  # tests in the way of others' jobs: on the nodes that a job names, or the youngest ones
            tests = [record for record in reversed(self.open()) if not job.nodes or record.node in job.nodes]
            for record in tests[: job.count]:
                self._cancel(record, f"job {job.job} waits for nodes", now_s)
        due: list[str] = []
        if submit:
            idle = self.idle()
            due = self.due(idle, now_s)
            taken = {node for job in waiting for node in job.nodes}
            if all(job.nodes for job in waiting):
                free = [node for node in due if idle[node] and node not in taken]
                for node in free[: max(0, self.settings.at_a_time - len(self.open()))]:
                    self._submit(node, now_s)
        return bool(self.open() or due or (submit and self.kept()))

    def due(self, nodes: Collection[str], now_s: float) -> list[str]:
        """Nodes that are to be tested, in their order."""
        return due_nodes(nodes, self._stored(), self.records, self.settings.every_s, now_s, seed=len(self.records))

    def last_result_s(self, node: str) -> float | None:
        """When the latest successful job of a node began, as the store says; None: never."""
        return self._stored().get(node, NodeHistory()).last_s

    def late(self, nodes: Collection[str], limit_s: float, now_s: float) -> list[str]:
        """Nodes that have had no result for longer than this; one without any, since tests are made here."""
        since_s = min((record.submitted_s for record in self.records), default=now_s)
        return [node for node in nodes if now_s - (self.last_result_s(node) or since_s) > limit_s]

    def open(self) -> list[SubmittedTest]:
        """The tests that have not ended, as far as we know."""
        return [record for record in self.records if record.outcome == "submitted"]

    def kept(self) -> list[SubmittedTest]:
        return [record for record in self.records if record.outcome == "not stored"]

    def cancel_all(self, reason: str, now_s: float) -> None:
        """Cancels all tests, also where that cannot be written down."""
        for record in self.open():
            try:
                self._cancel(record, reason, now_s)
            except (LepauteError, OSError) as problem:
                self.say(f"{record.node}: cancelled, but not recorded: {problem}")

    def idle(self) -> dict[str, bool]:
        """The nodes to test, and whether each is idle; raises InputError for a node that is none."""
        idle, wanted = self.batch.idle(), self.settings.nodes
        if wanted is None:
            return idle
        if unknown := [node for node in wanted if node not in idle]:
            raise InputError(f"{unknown[0]} is no node of the batch system, or not in this partition")
        return {node: idle[node] for node in wanted}

    def _stored(self) -> Mapping[str, NodeHistory]:
        if self._known is None or self._outdated:
            try:
                self._known, self._outdated = self.histories(), False
            except (EnvironmentProblem, InputError) as problem:
                if self._known is None or not _is_transient(problem):
                    raise
        return self._known

    def _close_ended(self, now_s: float) -> None:
        states = self.batch.states({record.job for record in self.open()})
        for record in self.open():
            state = states.get(record.job)
            if state is None:
                self._judge(record, now_s)
            elif state == "pending" and now_s > record.submitted_s + START_S:
                self._cancel(record, "its node was not idle any more", now_s, started=False)

    def _judge(self, record: SubmittedTest, now_s: float) -> None:
        """Writes down what became of a test whose job has ended."""
        if not record.archive.exists():
            text = _last_line(record.log) if record.log.exists() else "its job ended before it began"
            self._replace(record.ended("failed", text or "it left no archive, and its log is empty", now_s))
            return
        try:
            about = Archive.open(record.archive).about
        except (ArchiveError, InputError) as problem:
            self._replace(record.ended("failed", str(problem), now_s))
            return
        if about.outcome == COMPLETE:
            self._take(record, now_s)
        else:
            self._replace(record.ended("failed", about.cause or about.outcome, now_s))

    def _take(self, record: SubmittedTest, now_s: float) -> None:
        """Gives a complete archive to the store, or keeps it for the next round."""
        try:
            self.on_archive(record.archive)
        except (ArchiveError, InputError, EnvironmentProblem, OSError) as problem:
            reason = str(problem)[:_MAX_REASON]
            if not _is_transient(problem):
                self._replace(record.ended("failed", reason, now_s))
            elif (record.outcome, record.reason) != ("not stored", reason):
                self._replace(record.ended("not stored", reason, now_s))
            return
        self._outdated = True
        self._replace(record.ended("done", "", now_s))

    def _cancel(self, record: SubmittedTest, reason: str, now_s: float, *, started: bool = True) -> None:
        # Written down first: a job that is cancelled and not recorded would count as failed. What it has archived by
        # now is for the next run to take.
        outcome: Outcome = "not stored" if record.archive.exists() else "cancelled" if started else "not started"
        try:
            self._replace(record.ended(outcome, reason, now_s))
        finally:
            try:
                self.batch.cancel(record.job)
            except EnvironmentProblem as problem:
                self.say(f"{record.node}: {problem}")

    def _submit(self, node: str, now_s: float) -> None:
        name = f"{node}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now_s))}"
        while any(one.name == name for one in self.records):  # a clock that was set back
            name += "-again"
        record = SubmittedTest(node, "", self.batch.scheduler, now_s, self.settings.folder, name)
        self.touched.add(name)
        words = [sys.executable, "-m", "lepaute.cli.main", "run", *self.settings.words]
        words += [f"--scheduler={self.batch.scheduler}", f"--output={record.archive}", "--quiet"]
        try:
            job = self.batch.submit(node, words, record.log, self.settings.walltime_s)
        except EnvironmentProblem as problem:
            failed = record.ended("failed", str(problem), now_s)
            failed.save()
            self.records.append(failed)
            self.say(f"{node}: {failed.reason}")
            return
        submitted = dataclasses.replace(record, job=job)
        self.records.append(submitted)
        try:
            submitted.save()
        except BaseException:
            self.batch.cancel(job)
            raise
        self.say(f"{node}: job {job} submitted")

    def _replace(self, record: SubmittedTest) -> None:
        index = next(at for at, one in enumerate(self.records) if one.name == record.name)
        self.records[index] = record
        self.touched.add(record.name)
        record.save()
        self.say(f"{record.node}: {record.outcome}{f': {record.reason}' if record.reason else ''}")


@contextmanager
def records_held(folder: Path) -> Iterator[list[SubmittedTest]]:
    """The records of a folder, while no other process schedules tests there; it is made if missing, and goes if empty.

    Raises InputError if one does, or the folder cannot be made.
    """
    try:
        is_new = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("a")
    except OSError as problem:
        raise InputError(not_written(folder, problem, "name another folder (--archives)")) from None
    with lock:
        if not hold_lock(lock, folder, "name another folder (--archives)"):
            raise InputError(f"{folder}: another `lepaute watch run` is at work there; wait until it ends")
        try:
            yield submitted_tests(folder)
        finally:
            if is_new and [path.name for path in folder.iterdir()] == [".lock"]:
                shutil.rmtree(folder, ignore_errors=True)


def _is_transient(problem: Exception) -> bool:
    """Whether it may pass (store unreachable, disk full): what is refused for good has no OSError behind it."""
    return isinstance(problem, EnvironmentProblem | OSError) or isinstance(problem.__context__, OSError)


def _last_line(log: Path) -> str:
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - 4096))
            lines = stream.read().decode(errors="replace").splitlines()
    except OSError as problem:
        return f"its log cannot be read ({problem.strerror})"
    return next((" ".join(line.split())[:_MAX_REASON] for line in reversed(lines) if line.strip()), "")
