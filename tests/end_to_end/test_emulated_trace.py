"""The trace of an emulation holds what a recording of the same program holds: every call of MPI, with its sizes."""

import os
import subprocess
from pathlib import Path

import pytest
from oracles.recorded_hpl import MPIRUN, lepaute

from lepaute.errors import EnvironmentProblem
from lepaute.kit.mpi_library import find_library
from lepaute.simulate.smpi.building import compilers
from lepaute.simulate.smpi.library import find_simgrid
from lepaute.simulate.trace import Trace, read_trace
from lepaute.simulate.trace.breakdown import breakdown_of
from lepaute.simulate.trace.compare import compare_traces
from lepaute.simulate.trace.messages import match_messages

pytestmark = pytest.mark.machine

PROGRAM = Path(__file__).parents[1].joinpath("data", "programs", "emulated_trace_program.c").read_text()


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trace, Trace]:
    """A recording and an emulation of the program on four ranks."""
    try:
        mpicc = find_library().mpicc
        find_simgrid()
    except EnvironmentProblem as problem:
        pytest.skip(str(problem))
    folder = tmp_path_factory.mktemp("both")
    (folder / "program.c").write_text(PROGRAM)
    subprocess.run([mpicc, "-w", "program.c", "-o", "real"], cwd=folder, check=True)
    path = {"PATH": f"{compilers()}:{os.environ['PATH']}"}
    subprocess.run(["mpicc", "-w", "program.c", "-o", "emulated"], cwd=folder, check=True, env=os.environ | path)
    recorded = lepaute("record", "-o", "real.parquet", "--", *MPIRUN, "4", "./real", folder=folder)
    assert recorded.returncode == 0, recorded.stderr
    options = ("-p", "dahu", "-np", "4", "--trace", "e.parquet", "--perfetto", "e.json.gz", "--binary", "./emulated")
    emulated = lepaute("emulate", *options, folder=folder)
    assert emulated.returncode == 0, emulated.stderr
    assert (folder / "e.json.gz").read_bytes().startswith(b"\x1f\x8b")
    return read_trace(folder / "real.parquet"), read_trace(folder / "e.parquet")


def test_no_difference_remains(traces: tuple[Trace, Trace]) -> None:
    found = compare_traces(*traces)
    assert found.first == ()
    assert found.first_size == ()
    assert found.one_side == ()
    # Of each round and rank at an end of the line one of each MPI_Sendrecv, of every rank a send and a receive.
    assert found.nobody == (3 * (2 * 2 + 4 * 2), 3 * (2 * 2 + 4 * 2))


def test_every_message_has_both_ends_and_their_waits(traces: tuple[Trace, Trace]) -> None:
    recorded, emulated = (match_messages(trace) for trace in traces)
    assert len(recorded.send) == len(emulated.send) == 3 * (3 + 4 + 3 + 4 + 4 + 4 + 3)
    for matches in (recorded, emulated):
        assert (matches.end >= 0).all()
        assert (matches.sent < 0).sum() == 3 * 4  # those whose request was freed


def test_waiting_at_collective_operations_is_told_of_all_groups(traces: tuple[Trace, Trace]) -> None:
    for trace in traces:
        found = breakdown_of(trace)
        assert found.unknown == ()
        halves = set(trace.comm[trace.named(["MPI_Allreduce"])].tolist())
        assert len(halves) == 2
        assert min(halves) > 0
        assert set(trace.comm[trace.named(["MPI_Barrier"])].tolist()) == {0}


def test_nodes_have_the_numbers_of_the_platform(traces: tuple[Trace, Trace]) -> None:
    _, emulated = traces
    assert emulated.metadata["nodes"] == [0] * 4
    assert emulated.metadata["first_node"] == 1
