"""Traces in OTF2: what brackets become of rows, and, where the package is installed, what its own reader finds."""

from pathlib import Path

import pytest
from oracles.traces_by_hand import call, hpl_like, trace

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.simulate.trace.viewers import _brackets, write_otf2


def test_brackets_stand_one_inside_the_other_in_the_order_of_time() -> None:
    made = trace(
        call(0, "pdupdate", 0.0, 3.0),
        call(0, "dgemm", 0.0, 1.0, m=1, n=1, k=1),
        call(0, "dgemm", 1.0, 2.5, m=1, n=1, k=1),  # ends after the phase
        call(0, "MPI_Barrier", 4.0, 0.0),
    )
    found = list(_brackets(made, range(len(made))))
    names = [(made.names[made.name[row]], begins, at / 1e9) for row, begins, at in found]
    assert names == [
        ("pdupdate", True, 0.0), ("dgemm", True, 0.0), ("dgemm", False, 1.0), ("dgemm", True, 1.0),
        ("dgemm", False, 3.0), ("pdupdate", False, 3.0), ("MPI_Barrier", True, 4.0), ("MPI_Barrier", False, 4.0),
    ]  # fmt: skip


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


def test_without_the_package_its_name_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "otf2", None)
    with pytest.raises(EnvironmentProblem, match=r"needs otf2.*: pip install 'lepaute\[otf2\]'"):
        write_otf2(hpl_like(ranks=2, steps=1), tmp_path / "archive")
    assert list(tmp_path.iterdir()) == []


def test_the_reader_of_otf2_finds_calls_messages_and_communicators(tmp_path: Path) -> None:
    otf2 = pytest.importorskip("otf2")
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
    assert (sent[0], sent[2].receiver, sent[2].msg_tag, sent[2].msg_length, sent[2].time) == (
        "rank 0",
        1,
        7,
        800,
        10**9,
    )
    assert (received[0], received[2].sender, received[2].time) == ("rank 1", 0, 2_500_000_000)
    ends = [one[2] for one in events if one[1] == "MpiCollectiveEnd"]
    assert {end.collective_op for end in ends} == {otf2.CollectiveOp.BCAST}
    assert sorted((end.size_sent, end.size_received, end.root) for end in ends) == [
        (0, 16, 0),
        (32, 16, 0),
    ]  # as Score-P
