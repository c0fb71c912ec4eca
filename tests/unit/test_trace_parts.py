"""Traces read in parts: the same calls and replay as of those read at once; and what every trace must satisfy."""

import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from oracles.replays import call, replayed, write

from lepaute.errors import InputError
from lepaute.simulate.trace import read_trace
from lepaute.simulate.trace import reading as trace_parts
from lepaute.simulate.trace.reading import TraceParts
from lepaute.simulate.trace.table import NUMBERS

RANKS = 7


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of ranks with different numbers of calls, in groups of five rows, some of which hold several ranks."""
    draws, rows = random.Random(3), []
    for _ in range(20):
        sender, receiver = draws.sample(range(RANKS), 2)
        rows += [call(sender, "Send", receiver, 8.0 * draws.randrange(9)), call(receiver, "Recv", sender)]
        if draws.random() < 0.5:
            rows += [call(rank, "Iallreduce", comm=0, size_bytes=8.0, completion=1) for rank in range(RANKS)]
            rows += [call(rank, "Wait", completion=1) for rank in range(RANKS)]
            rows += [call(rank, "Alltoallv", comm=1, size_bytes=40.0 * rank) for rank in range(1, RANKS)]
    return grouped(write(tmp_path / "run.parquet", rows), 5)


def grouped(path: Path, rows: int, order: Any = None) -> Path:
    table = pq.read_table(path)
    pq.write_table(table if order is None else table.take(order), path, row_group_size=rows)
    return path


@pytest.fixture
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_parts, "PART_ROWS", 12)


@pytest.mark.usefixtures("short_parts")
def test_parts_hold_whole_ranks_and_together_all_calls(path: Path) -> None:
    parts, whole = list(TraceParts(path)), read_trace(path)
    assert len(parts) > 3
    ranks = [rank for part in parts for rank in sorted(set(part.rank.tolist()))]
    assert ranks == sorted(set(whole.rank.tolist()))
    for name, _, _ in NUMBERS:
        joined = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(joined, getattr(whole, name), err_msg=name)
    names = [part.names[code] for part in parts for code in part.name]
    assert names == [whole.names[code] for code in whole.name]
    assert parts[0].metadata == whole.metadata


def test_a_replay_in_parts_takes_exactly_as_long(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    at_once = replayed(path).time_s.mean
    monkeypatch.setattr(trace_parts, "PART_ROWS", 12)
    copy = tmp_path / "copy.parquet"
    copy.write_bytes(path.read_bytes())
    assert replayed(copy).time_s.mean == at_once


@pytest.mark.usefixtures("short_parts")
def test_a_message_that_lacks_a_side_is_named_whatever_part_it_is_in(path: Path) -> None:
    trace = read_trace(path)
    lost = np.flatnonzero(trace.named("MPI_Recv"))[-1]
    grouped(path, 5, np.delete(np.arange(len(trace)), lost))
    with pytest.raises(InputError, match=rf"sends a message to rank {trace.rank[lost]}, tag 0, in MPI_Send at "):
        replayed(path)


@pytest.mark.usefixtures("short_parts")
def test_ranks_out_of_order_are_read_at_once_and_refused_where_they_are_too_many(path, monkeypatch):
    rows = len(read_trace(path))
    grouped(path, 5, np.arange(rows)[::-1])
    (part,) = TraceParts(path)
    assert len(part) == rows
    monkeypatch.setattr(trace_parts, "MAX_TRACE_BYTES", (rows - 1) * trace_parts.ROW_BYTES)
    with pytest.raises(InputError, match="not in the order of their ranks"):
        list(TraceParts(path))
    grouped(path, 5, np.arange(rows)[::-1])
    monkeypatch.setattr(trace_parts, "MAX_TRACE_BYTES", 6 * trace_parts.ROW_BYTES)
    with pytest.raises(InputError, match="has more than 6 calls, which is more than can be held at once"):
        list(TraceParts(path))


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ([call(0, "Send", 55, 8.0)], "MPI_Send of rank 0 at 1.00 s: its peer is 55, and the trace has 2 ranks"),
        ([call(0, "Ibcast", 55, 8.0, comm=0)], "its root is 55, and the trace has 2 ranks"),
        ([call(0, "Send", 1, 80.0), call(1, "Recv", 0, 8.0)], "72 bytes more are sent with this tag than are received"),
        ([call(rank, "Bcast", rank, 8.0, comm=0) for rank in range(2)], "has the root 1, where another has 0"),
        ([call(rank, "Bcast", 0, 8.0 + rank, comm=0) for rank in range(2)], "has the bytes 9, where another has 8"),
        (
            [call(0, "Barrier", comm=0), call(1, "Bcast", 0, comm=0)],
            "MPI_Bcast of rank 1 at 1.00 s: call 1 of the rank in its communicator has the routine MPI_Bcast, where",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(rows: list[dict[str, Any]], complaint: str, tmp_path: Path) -> None:
    path = write(tmp_path / "run.parquet", [*rows, call(1, "Test")], whole=True)
    with pytest.raises(InputError, match=re.escape(complaint)):
        replayed(path)
    if "bytes more" in complaint:  # a program may go on after MPI_ERR_TRUNCATE
        assert read_trace(path).metadata["warnings"] == ["not complete: 1 receive too small for what was sent"]
        return
    with pytest.raises(InputError, match=re.escape(complaint)):
        read_trace(path)


def test_what_lacks_its_other_side_is_counted_and_left_out_where_the_run_ended(tmp_path: Path) -> None:
    rows = [
        call(0, "Send", 1, 8.0), call(1, "Recv", 0, 8.0), call(0, "Send", 1, 8.0),
        call(0, "Isend", 1, 8.0, completion=4), call(0, "Barrier", comm=0),
        call(1, "Irecv", 0, 8.0, tag=9, completion=1), call(1, "Recv", 0, 8.0, tag=8),
    ]  # fmt: skip
    path = write(tmp_path / "run.parquet", rows, whole=True)
    (line,) = read_trace(path).metadata["warnings"]
    told = "2 sends without a receive, 2 receives without a send, 2 requests that no call ends, 1 collective operation"
    assert line == f"not complete: {told} that not all its ranks call"
    with pytest.raises(InputError, match="rank 1 waits for a message from rank 0, tag 9"):
        replayed(path)
    ended = write(tmp_path / "ended.parquet", rows, whole=True, ended_by="a signal", warnings=["the run ended"])
    found = replayed(ended)
    assert found.warnings[0] == "the run ended (the recording)"
    assert any(text == f"{line}: left out of the replay" for text in found.warnings)


def test_a_rank_takes_no_memory_that_its_recording_has_no_calls_for(tmp_path: Path) -> None:
    rows = [call(0, "Send", 1, 8.0), call(1 << 20, "Recv", 0)]
    with pytest.raises(InputError, match="1048577 ranks, and 2 calls: most of them are missing"):
        replayed(write(tmp_path / "run.parquet", rows))
