"""Traces in OTF2: what is written, and what is read as Score-P and a recording write it."""

from os import mkfifo
from pathlib import Path
from typing import Any

import pytest
from oracles.replays import recorded, replayed
from oracles.trace_events import check_events
from oracles.traces_by_hand import call, hpl_like, rows, trace
from support_own import Mixed

import lepaute as lp
from lepaute.errors import EnvironmentProblem, InputError
from lepaute.simulate.trace import Trace
from lepaute.simulate.trace.breakdown import OWN_CODE, breakdown_of
from lepaute.simulate.trace.messages import BLOCKING_OF, COLLECTIVES, CREATIONS
from lepaute.simulate.trace.otf2_reader import NO_ROOT, collective_bytes, convert, size_of
from lepaute.simulate.trace.table import NOBODY, PHASE
from lepaute.simulate.trace.viewers import _brackets, write_otf2

otf2 = pytest.importorskip("otf2")
pytest.importorskip("otf2.writer")


class Written:
    """An archive of two ranks, whose calls are written as a tool does: inside main, a millisecond each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.context = otf2.writer.open(str(folder), timer_resolution=1000)
        self.writer = self.context.__enter__()
        self.definitions = self.writer.definitions
        mpi, groups = otf2.Paradigm.MPI, otf2.GroupType
        node = self.definitions.system_tree_node("node 1")
        self.places = [
            self.definitions.location(
                f"thread {rank}", group=self.definitions.location_group(f"rank {rank}", system_tree_parent=node)
            )
            for rank in range(2)
        ]
        self.definitions.group("all", group_type=groups.COMM_LOCATIONS, paradigm=mpi, members=tuple(self.places))

        def comm(name: str, members: tuple[int, ...], kind: Any) -> Any:
            places = tuple(self.places[member] for member in members)
            group = self.definitions.group(name, group_type=kind, paradigm=mpi, members=places)
            return self.definitions.comm(name, group=group)

        self.world = comm("MPI_COMM_WORLD", (0, 1), groups.COMM_GROUP)
        self.turned = comm("turned", (1, 0), groups.COMM_GROUP)
        self.self = comm("MPI_COMM_SELF", (), groups.COMM_SELF)
        self.regions: dict[str, Any] = {}
        self.events = [self.writer.event_writer_from_location(place) for place in self.places]
        self.time = [0, 0]
        for rank in range(2):
            self.enter(rank, "main")

    def region(self, name: str) -> Any:
        if name not in self.regions:
            self.regions[name] = self.definitions.region(name)
        return self.regions[name]

    def enter(self, rank: int, name: str, at: int | None = None) -> None:
        self.time[rank] = self.time[rank] if at is None else at
        self.events[rank].enter(self.time[rank], self.region(name))

    def leave(self, rank: int, name: str) -> None:
        self.time[rank] += 1
        self.events[rank].leave(self.time[rank], self.region(name))

    def call(self, rank: int, name: str, *events: tuple[Any, ...], at: int | None = None) -> None:
        """A call of a millisecond, with events: the method of the writer, and its arguments."""
        self.enter(rank, name, at)
        for method, *arguments in events:
            getattr(self.events[rank], method)(self.time[rank], *arguments)
        self.leave(rank, name)

    def read(self) -> Trace:
        for rank in range(2):
            self.leave(rank, "main")
        self.context.__exit__(None, None, None)
        self.trace = convert(self.folder)
        return self.trace.where(~self.trace.of(PHASE))


def test_messages_requests_and_collective_operations_are_those_of_their_regions(tmp_path: Path) -> None:
    made = Written(tmp_path / "archive")
    for rank in range(2):
        made.call(rank, "MPI_Init", at=10)
        made.call(rank, "MPI_Comm_rank")
    made.enter(0, "solve")
    made.call(0, "MPI_Isend", ("mpi_isend", 1, made.world, 7, 800, 5), at=20)
    made.call(0, "MPI_Test", ("mpi_request_test", 5))
    made.call(0, "MPI_Wait", ("mpi_isend_complete", 5))
    made.leave(0, "solve")
    made.call(0, "MPI_Send", ("mpi_send", 0, made.turned, 3, 16))  # number 0 of that communicator is rank 1
    made.call(0, "MPI_Send")
    made.call(0, "MPI_Ibarrier", ("non_blocking_collective_request", 6))
    barrier = otf2.CollectiveOp.BARRIER
    made.call(0, "MPI_Wait", ("non_blocking_collective_complete", barrier, made.self, NO_ROOT, 0, 0, 6))
    made.call(1, "MPI_Startall", ("mpi_irecv_request", 1), ("mpi_irecv_request", 2), at=15)
    received = ("mpi_irecv", 0, made.world, 7, 800, 1)
    made.call(1, "MPI_Waitall", received, ("mpi_request_cancelled", 2))
    made.call(1, "MPI_Recv", ("mpi_recv", 1, made.turned, 3, 16))
    made.call(1, "MPI_Sendrecv", ("mpi_send", 0, made.self, 1, 8), ("mpi_recv", 0, made.self, 1, 8), at=40)
    for rank in range(2):
        sent = (64, 32) if rank == 0 else (0, 32)
        end = ("mpi_collective_end", otf2.CollectiveOp.BCAST, made.turned, 1, *sent)
        made.call(rank, "MPI_Bcast", ("mpi_collective_begin",), end, at=50)
        made.call(rank, "MPI_Finalize", at=60)
    found = made.read()
    assert rows(found, 0) == [
        ("Isend", 1, 7, 800.0, 0), ("Test", -1, -1, 0.0, -1), ("Wait", -1, -1, 0.0, -1), ("Send", 1, 3, 16.0, 1),
        ("Send", NOBODY, -1, 0.0, -1), ("Ibarrier", -1, -1, 0.0, 3), ("Wait", -1, -1, 0.0, -1),
        ("Bcast", 0, -1, 32.0, 1),
    ]  # fmt: skip
    assert rows(found, 1) == [
        ("Irecv", 0, 7, 800.0, 0), ("Irecv", NOBODY, -1, 0.0, -1), ("Waitall", -1, -1, 0.0, -1),
        ("Recv", 0, 3, 16.0, 1), ("Sendrecv", 1, 1, 8.0, 4),
        ("Sendrecv_arrival", 1, 1, 8.0, 4), ("Bcast", 0, -1, 32.0, 1),
    ]  # fmt: skip
    own = found.where(found.rank == 0)
    assert own.completion[0] == own.completion[2] >= 0 > own.completion[1]
    assert (own.start_s[0], own.duration_s[0]) == pytest.approx((0.020, 0.001))
    assert (found.metadata["begins_s"][0], found.metadata["ends_s"][0]) == pytest.approx((0.011, 0.060))
    assert found.metadata["hosts"] == ["node 1"]
    regions = made.trace.where(made.trace.of(PHASE) & (made.trace.rank == 0))
    assert [regions.names[code] for code in regions.name] == ["main", "solve"]
    # The first from MPI_Init to MPI_Finalize, the other around three calls.
    assert [*regions.start_s, *regions.end_s] == pytest.approx([0.011, 0.012, 0.060, 0.024])


@pytest.mark.parametrize("members", [1, 2, 5])
def test_bytes_of_score_p_and_sizes_are_each_others_inverse(members: int) -> None:
    for name in sorted((COLLECTIVES | set(BLOCKING_OF)) - CREATIONS - {"MPI_Barrier", "MPI_Ibarrier"}):
        for me in range(members):
            told = collective_bytes(name, 24.0, members, me, me == 0)
            whole = 0.0 if name in ("MPI_Exscan", "MPI_Iexscan") and members == 1 else 24.0
            assert size_of(name, *told, members, me, me == 0) == whole, (name, me)


def test_an_archive_of_a_recording_is_replayed_as_the_recording(tmp_path: Path) -> None:
    write_otf2(recorded(tmp_path / "run.parquet", Mixed(in_parts=True)).trace, tmp_path / "archive")
    recorded_s = replayed(tmp_path / "run.parquet").time_s.mean
    path = tmp_path / "archive"
    assert replayed(path).time_s.mean == pytest.approx(recorded_s, rel=5e-3)  # nanoseconds, and computing in gaps
    assert len(lp.read_trace(path)) == len(lp.read_trace(path / "traces.otf2"))


def cut(made: Written) -> None:
    made.enter(0, "MPI_Barrier")
    made.leave = lambda *_: None  # type: ignore[method-assign]


def beside(made: Written) -> None:
    """A call of another thread of rank 0."""
    second = made.definitions.location("second", group=made.places[0].group)
    made.writer.event_writer_from_location(second).enter(0, made.region("MPI_Recv()"))


@pytest.mark.parametrize("gap", ["flush", "off"])
def test_regions_may_have_parentheses_and_gaps_are_no_computing(gap: str, tmp_path: Path) -> None:
    made = Written(tmp_path / "archive")
    for rank, events in enumerate(made.events):
        made.call(rank, "MPI_Init()", at=10)
        made.call(rank, "MPI_Barrier()", ("mpi_collective_end", otf2.CollectiveOp.BARRIER, made.world, NO_ROOT, 0, 0))
        if gap == "flush":
            events.buffer_flush(30, 530)
        else:
            events.measurement_on_off(30, otf2.MeasurementMode.OFF)
            events.measurement_on_off(530, otf2.MeasurementMode.ON)
        made.call(rank, "MPI_Finalize()", at=600)
    (warning,) = made.read().metadata["warnings"]
    assert warning.endswith(": 2 gaps, 1.00 s in all, taken off computing")
    check_events(tmp_path / "archive", lp.read_trace(tmp_path / "archive"))
    assert replayed(tmp_path / "archive").time_s.mean == pytest.approx(0.600 - 0.011 - 0.001 - 0.500, rel=0.01)
    shares = breakdown_of(lp.read_trace(tmp_path / "archive")).by_rank_s.sum(axis=0)
    assert shares[OWN_CODE] == pytest.approx(2 * 0.088)


def test_a_waitall_that_does_not_say_what_it_ended_has_ended_all(tmp_path: Path) -> None:
    made = Written(tmp_path / "archive")
    made.call(0, "MPI_Isend", ("mpi_isend", 1, made.world, 7, 800, 5))
    made.call(0, "MPI_Waitall")
    made.call(1, "MPI_Irecv", ("mpi_irecv_request", 1))
    made.call(1, "MPI_Waitall")
    found = made.read()
    assert (found.completion >= 0).all()
    assert found.metadata["warnings"][0].startswith("2 requests ended by MPI_Waitall, which does not say so")


def test_an_archive_whose_files_are_pipes_or_lack_events_is_refused(tmp_path: Path) -> None:
    made = Written(tmp_path / "archive")
    made.call(0, "MPI_Barrier")
    made.places[0]._number_of_events_written += 7
    with pytest.raises(InputError, match=r"has \d+ of \d+ events of 'thread 0': truncated"):
        made.read()
    file = next((tmp_path / "archive" / "traces").glob("*.evt"))
    file.unlink()
    mkfifo(file)
    with pytest.raises(InputError, match=r"\.evt: is a pipe"):
        lp.read_trace(tmp_path / "archive")


@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        (
            lambda made: made.call(0, "MPI_Wait", ("mpi_isend_complete", 9)),
            "rank 0: MPI_Wait ends request 9, which is not open",
        ),
        (
            lambda made: made.call(1, "MPI_Send", ("mpi_send", 2, made.world, 3, 16)),
            "rank 1: MPI_Send: no rank 2 in 'MPI_COMM_WORLD'",
        ),
        (
            lambda made: made.call(0, "MPI_Mrecv", ("mpi_mrecv", 3, 16)),
            "rank 0: MPI_Mrecv: matched probes are not read",
        ),
        (
            lambda made: made.call(1, "MPI_Neighbor_alltoall"),
            "rank 1: MPI_Neighbor_alltoall: an archive does not tell of which neighbours",
        ),
        (cut, "rank 0 is in MPI_Barrier at the end: truncated"),
        (
            lambda made: made.events[0].mpi_send(0, 1, made.world, 3, 16),
            "rank 0: MpiSend at 0 outside of a call of MPI",
        ),
        (
            lambda made: made.call(0, "MPI_Send", ("mpi_irecv_request", 1)),
            "rank 0: MPI_Send has 1 of MpiIrecvRequest, which it does not do",
        ),
        (lambda made: made.leave(0, "MPI_Send"), "rank 0: leaves MPI_Send at 1.00 ms, which it did not enter"),
        (beside, "rank 0: MPI_Recv on 'second': MPI is read of one thread of a rank"),
    ],
)
def test_what_cannot_be_is_one_line_with_the_rank(fault, complaint, tmp_path):
    made = Written(tmp_path / "archive")
    fault(made)
    with pytest.raises(InputError) as raised:
        made.read()
    assert str(raised.value) == f"{tmp_path / 'archive' / 'traces.otf2'}: {complaint}"


def test_calls_that_cannot_be_replayed_are_kept_and_refused(tmp_path: Path) -> None:
    made = Written(tmp_path / "archive")
    made.call(0, "MPI_Put")
    made.call(0, "MPI_Bcast")
    assert [row[0] for row in rows(made.read(), 0)] == ["Put", "Bcast"]
    with pytest.raises(InputError, match="MPI_Put, which rank 0 calls at 0, cannot be replayed"):
        replayed(tmp_path / "archive")


def test_files_that_are_no_archive_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "traces.otf2").write_bytes(b"nothing" * 20)
    with pytest.raises(InputError, match=r"traces\.otf2: cannot be read: "):
        lp.read_trace(tmp_path)
    write_otf2(trace(call(0, "MPI_Barrier", 0.0, 1.0, comm=0)), tmp_path / "archive")
    (tmp_path / "archive" / "traces" / "0.evt").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"traces\.otf2: cannot be read: "):
        lp.read_trace(tmp_path / "archive")
    monkeypatch.setitem(__import__("sys").modules, "otf2", None)
    with pytest.raises(EnvironmentProblem, match=r"needs otf2.*: pip install 'lepaute\[otf2\]'"):
        lp.read_trace(tmp_path / "archive")


def test_brackets_of_any_trace_are_closed_and_never_go_back() -> None:
    made = hpl_like(ranks=3, steps=5)
    for rank in made.ranks:
        open_rows, last = [], 0
        for row, begins, at in _brackets(made, (made.rank == rank).nonzero()[0]):
            assert at >= last
            last = at
            if begins:
                open_rows.append(row)
            else:
                assert open_rows.pop() == row
        assert open_rows == []


def test_the_reader_of_otf2_finds_calls_messages_and_communicators(tmp_path: Path) -> None:
    reader = pytest.importorskip("otf2.reader")
    made = trace(
        call(0, "MPI_Isend", 1.0, 0.5, peer=1, tag=7, size_bytes=800, completion=1),
        call(0, "MPI_Waitall", 2.0, 0.5, completion=1),
        call(0, "MPI_Bcast", 3.0, 0.5, peer=0, comm=1, size_bytes=16),
        call(1, "MPI_Irecv", 0.0, 0.5, peer=0, tag=7, size_bytes=900, completion=1),
        call(1, "MPI_Waitall", 1.0, 1.5, completion=1),
        call(1, "MPI_Bcast", 2.5, 1.0, peer=0, comm=1, size_bytes=16),
        call(2, "dgemm", 0.0, 2.0, m=1, n=1, k=1),
        nodes=[0, 0, 1],
        first_node=5,
        source="simulation",
    )
    count = write_otf2(made, tmp_path / "archive")
    with pytest.raises(InputError, match="exists"):
        write_otf2(made, tmp_path / "archive")
    events = []
    with reader.open(str(tmp_path / "archive" / "traces.otf2")) as archive:
        groups = {location.group.system_tree_parent.name for location in archive.definitions.locations}
        for location, event in archive.events:
            events.append((location.name, type(event).__name__, event))
        assert groups == {"node 5", "node 6"}
    assert len(events) == count
    (sent,) = [one for one in events if one[1] == "MpiIsend"]
    (received,) = [one for one in events if one[1] == "MpiIrecv"]
    ended = [(one[0], one[2].time) for one in events if one[1] == "MpiIsendComplete"]
    assert ended == [("rank 0", 2_500_000_000)]
    place, _, event = sent
    assert (place, event.receiver, event.msg_tag, event.msg_length, event.time) == ("rank 0", 1, 7, 800, 10**9)
    assert (received[0], received[2].sender, received[2].time) == ("rank 1", 0, 2_500_000_000)
    ends = [one[2] for one in events if one[1] == "MpiCollectiveEnd"]
    assert {end.collective_op for end in ends} == {otf2.CollectiveOp.BCAST}
    as_score_p = [(0, 16, 0), (32, 16, 0)]
    assert sorted((end.size_sent, end.size_received, end.root) for end in ends) == as_score_p
