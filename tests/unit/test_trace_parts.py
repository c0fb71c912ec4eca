"""Traces read in parts: the same calls, and the same replay, as of those that are read at once."""

import random
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
