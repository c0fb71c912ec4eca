"""Replayed collective operations that do not block, and messages of several communicators."""

from pathlib import Path
from typing import Any

import pytest
from oracles.replays import LARGE, NOTHING, call, replayed, write

import lepaute as lp
from lepaute.errors import InputError
from lepaute.simulate.trace.messages import BLOCKING_OF

RANKS = 5


def run_s(path: Path, rows: list[dict[str, Any]], platform: Any = "dahu", **more: Any) -> float:
    """What the rows take beside a second of own code before each."""
    last_s = max(sum(row["rank"] == rank for row in rows) for rank in range(RANKS))
    return replayed(write(path, rows, mpi="MPICH"), platform, **more).time_s.mean - last_s


@pytest.mark.parametrize("name", sorted(BLOCKING_OF))
def test_one_that_is_waited_for_at_once_takes_as_long_as_the_blocking_one(name: str, tmp_path: Path) -> None:
    """By the rules of MPICH, which are the same for both. Trees send by MPI_Isend, whose CPU time is another one."""
    rooted = name.endswith(("cast", "educe", "gather", "gatherv", "scatter", "scatterv")) and "all" not in name
    more = {"size_bytes": LARGE, "comm": 0, "peer": 2 if rooted and "reduce_scatter" not in name else -1}
    ranks = range(4)
    blocking = [call(rank, BLOCKING_OF[name][4:], **more, start_s=1.0) for rank in ranks]
    begun = [call(rank, name[4:], **more, start_s=1.0, completion=1) for rank in ranks]
    waits = [call(rank, "Wait", start_s=1.0, completion=1) for rank in ranks]
    expected = replayed(write(tmp_path / "one.parquet", blocking, mpi="MPICH")).time_s.mean - 1.0
    found = replayed(write(tmp_path / "two.parquet", [*begun, *waits], mpi="MPICH")).time_s.mean - 1.0
    assert found == pytest.approx(expected, rel=0.03 if rooted else 1e-9)
    assert expected > (0.0 if name == "MPI_Ibarrier" else 1e-5)


def test_what_goes_on_while_a_rank_computes_is_what_the_platform_says_of_progress(tmp_path: Path) -> None:
    more: dict[str, Any] = {"size_bytes": LARGE, "comm": 0}
    alone_s = run_s(tmp_path / "a", [call(rank, "Allreduce", **more) for rank in range(RANKS)])
    begun = [call(rank, "Iallreduce", **more, completion=1) for rank in range(RANKS)]
    rows = [*begun, *(call(rank, "Wait", completion=1) for rank in range(RANKS))]
    dahu = lp.load_platform("dahu")
    found = {
        progress: run_s(tmp_path / "b", rows, lp.override(dahu, {"network.progress": progress}))
        for progress in ("background", "calls")
    }
    assert 0.0 < found["background"] < 0.1 * alone_s  # the CPU time of the library's calls
    # The first messages are sent when it begins; each step after them waits for the rank to be in a call.
    assert 0.3 * alone_s < found["calls"] < 1.1 * alone_s


def test_those_of_two_communicators_may_begin_in_any_order(tmp_path: Path) -> None:
    rows = []
    for rank in range(RANKS):
        first, second = (1, 2) if rank % 2 else (2, 1)
        rows += [call(rank, "Iallreduce", comm=comm, size_bytes=8.0 * comm, completion=1) for comm in (first, second)]
        rows.append(call(rank, "Waitall", completion=1))
    assert 0.0 <= run_s(tmp_path / "run.parquet", rows) < 1e-3
    one = [row | {"comm": 1} for row in rows]  # in one communicator they have an order
    with pytest.raises(InputError, match="nonblocking allreduce of 16 bytes"):
        run_s(tmp_path / "run.parquet", [row | {"size_bytes": 8.0 * (1 + (row["rank"] == 0))} for row in one[:4]])


def test_a_blocking_operation_is_none_that_does_not_block(tmp_path: Path) -> None:
    rows = [call(rank, "Ibarrier" if rank else "Barrier", comm=0, completion=rank or -1) for rank in range(RANKS)]
    with pytest.raises(InputError, match=r"rank 1 calls nonblocking barrier .* where rank 0 calls barrier"):
        run_s(tmp_path / "run.parquet", rows)


def test_one_that_nobody_waits_for_and_one_of_two_parts(tmp_path: Path) -> None:
    never = [call(rank, "Ibarrier", comm=0) for rank in range(RANKS)]
    assert run_s(tmp_path / "never.parquet", never) == pytest.approx(0.0, abs=1e-9)
    parts = [call(rank, "Ireduce_scatter", comm=0, size_bytes=LARGE, completion=1) for rank in range(RANKS)]
    waits = [call(rank, "Wait", completion=1) for rank in range(RANKS)]
    calls = lp.override(lp.load_platform("dahu"), {"network.progress": "calls"})
    found = run_s(tmp_path / "parts.parquet", [*parts, *waits], calls, collectives="openmpi")  # reduces, then scatters
    assert found > run_s(tmp_path / "never.parquet", never) + 1e-5


def test_messages_of_one_tag_are_told_apart_by_their_communicators(tmp_path: Path) -> None:
    """The second is received first. Without communicators, the first receive would get the first message."""
    sends = [call(0, "Isend", 1, LARGE, comm=1, completion=1), call(0, "Isend", 1, 8.0, comm=2, completion=1)]
    receives = [call(1, "Recv", 0, comm=2), call(1, "Recv", 0, comm=1)]
    rows = [*sends, call(0, "Waitall", completion=1), *receives]
    for known, sizes in ((True, [8.0, LARGE]), (False, [LARGE, 8.0])):
        path = write(tmp_path / "run.parquet", [row if known else row | {"comm": -1} for row in rows])
        trace = lp.predict(lp.TraceReplay(path), "dahu", runs=1, layers=NOTHING, trace=lp.TraceRequest()).trace
        assert trace.size_bytes[trace.named("MPI_Recv")].tolist() == sizes
    with pytest.raises(InputError, match="rank 1 waits for a message from rank 0"):
        replayed(write(tmp_path / "run.parquet", [row | {"comm": 2} if row["rank"] == 0 else row for row in rows]))
