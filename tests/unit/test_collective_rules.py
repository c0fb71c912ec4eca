"""Algorithms of collective operations by the rules of MPI libraries, in replays."""

from itertools import product
from pathlib import Path

import pytest
from oracles.replays import LARGE, call, write

import lepaute as lp
from lepaute import _core
from lepaute.simulate.apps.replay.calls import CALLS
from lepaute.simulate.apps.replay.collectives import LIBRARIES, parts_of
from lepaute.simulate.trace.messages import COLLECTIVES

#: Operation, bytes, members, library; whether it blocks; and the parts of the source.
RULES = [
    (("bcast", 50.0, 6, "openmpi"), True, [("bcast", 50.0, "binary")]),
    (("bcast", 2e6, 16, "openmpi"), True, [("scatter", 125e3, "binomial"), ("allgather", 125e3, "recursive-doubling")]),
    (("bcast", 1e5, 12, "mpich"), True, [("scatter", 1e5 / 12, "binomial"), ("allgather", 1e5 / 12, "ring")]),
    (("bcast", 1e5, 12, "openmpi"), False, [("bcast", 1e5, "chains")]),
    (("allreduce", 8.0, 16, "openmpi"), True, [("allreduce", 8.0, "recursive-doubling")]),  # shorter than its ring
    (("allreduce", 1024.0, 200, "openmpi"), True, [("reduce", 1024.0, "near-first"), ("bcast", 1024.0, "binary")]),
    (("allreduce", 1024.0, 16, "mpich"), True, [("allreduce", 1024.0, "rabenseifner")]),
    (("allgatherv", 100.0, 4, "openmpi"), True, [("gather", 100.0, "linear"), ("bcast", 400.0, "binary")]),
    (("alltoall", 100.0, 6, "openmpi"), True, [("alltoall", 100.0, "linear-posted")]),
    (("alltoall", 1e4, 1000, "openmpi"), True, [("alltoall", 1e4, "pairwise")]),
    (("reduce_scatter_block", 6400.0, 64, "openmpi"), True, [("reduce_scatter", 100.0, "butterfly")]),
    (("barrier", 0.0, 6, "openmpi"), True, [("barrier", 0.0, "linear")]),
]


@pytest.mark.parametrize(("call", "blocks", "parts"), RULES, ids=[f"{each[0]}" for each in RULES])
def test_the_algorithms_are_those_of_the_librarys_sources(
    call: tuple[str, float, int, str], blocks: bool, parts: list[tuple[str, float, str]]
) -> None:
    assert [part[:3] for part in parts_of(*call, blocks=blocks)] == parts


@pytest.mark.parametrize("library", LIBRARIES)
def test_any_call_is_one_or_two_operations_that_the_core_has(library: str) -> None:
    codes = {call.code for name, call in CALLS.items() if name in COLLECTIVES}
    for code, size, exponent, blocks in product(codes, (0.0, 8.0, 5000.0, 1e5, 1e7), range(1, 14), (True, False)):
        parts = parts_of(code, size, 2**exponent + exponent % 2, library, blocks=blocks)
        assert 1 <= len(parts) <= 2
        for part in parts:
            _core.ProgramOp(part.code, part.algorithm, 0, 0, 0, part.size_bytes, part.segment_bytes, part.fan_out, 0)


@pytest.mark.parametrize("mpi", ["", "Intel(R) MPI Library 2021.12", "Open MPI v3.1.6", "MPICH Version: 3.4"])
def test_runs_of_a_library_that_is_not_known_take_turns(mpi: str, tmp_path: Path) -> None:
    rows = [call(rank, name, comm=0, size_bytes=LARGE, peer=0) for rank in range(4) for name in ("Bcast", "Reduce")]
    path = write(tmp_path / "run.parquet", rows, mpi=mpi)
    drawn, off, *known = (
        lp.predict(lp.TraceReplay(path, **more), "dahu", runs=2, layers=layers)
        for more, layers in (
            *(({}, lp.Layers.only(*names)) for names in (("collectives",), ())),
            *(({"collectives": library}, lp.Layers.only("collectives")) for library in LIBRARIES),
        )
    )
    assert [run.time_s for run in drawn.run_list] == [each.run_list[0].time_s for each in known]
    assert off.run_list[1].time_s == known[0].run_list[1].time_s != known[1].run_list[1].time_s
    text = "MPI_Bcast, MPI_Reduce by algorithms of Open MPI and MPICH"
    assert text in "".join(drawn.warnings)
    assert text not in "".join(known[0].warnings)
