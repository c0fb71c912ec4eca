"""The trace of an emulation holds what a recording of the same program holds: every call of MPI, with its sizes."""

import os
import subprocess

import pytest
from oracles.recorded_hpl import MPIRUN, lepaute

from lepaute.errors import EnvironmentProblem
from lepaute.kit.mpi_library import find_library
from lepaute.simulate.smpi.building import compilers
from lepaute.simulate.smpi.library import find_simgrid
from lepaute.trace import Trace, read_trace
from lepaute.trace.breakdown import breakdown_of
from lepaute.trace.compare import compare_traces
from lepaute.trace.messages import match_messages

pytestmark = pytest.mark.machine

PROGRAM = """
#include <mpi.h>
/* A bit of everything that programs do with MPI. */
int main(int argc, char **argv) {
    int rank, ranks, flag = 0, done = 0, at[8];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm row, twin, cart;
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &row);
    MPI_Comm_dup(row, &twin);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &flag, 0, &cart);
    int up = rank ? rank - 1 : MPI_PROC_NULL, down = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    double x[4][1000] = {{0}}, sum = 0, all[64];
    int counts[64], displs[64];
    for (int i = 0; i < ranks; i++) { counts[i] = 1; displs[i] = i; }
    for (int s = 0; s < 3; s++) {
        MPI_Request r[4];
        MPI_Sendrecv(x[0], 1000, MPI_DOUBLE, up, 3, x[1], 1000, MPI_DOUBLE, down, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(x[0], 10, MPI_DOUBLE, 1 - rank % 2, 4, x[1], 10, MPI_DOUBLE, 1 - rank % 2, 4, row,
                     MPI_STATUS_IGNORE);
        MPI_Sendrecv_replace(x[2], 20, MPI_DOUBLE, up, 8, down, 8, cart, MPI_STATUS_IGNORE);
        MPI_Isend(x[0], 30, MPI_DOUBLE, (rank + 1) % ranks, 2, MPI_COMM_WORLD, &r[0]);
        MPI_Request_free(&r[0]);
        MPI_Recv(x[1], 30, MPI_DOUBLE, (rank + ranks - 1) % ranks, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Allreduce(x[0], &sum, 1, MPI_DOUBLE, MPI_SUM, row);
        MPI_Bcast(x[0], 100, MPI_DOUBLE, 1, twin);
        MPI_Reduce(x[0], x[1], 7, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        MPI_Gatherv(x[0], 1, MPI_DOUBLE, all, counts, displs, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        MPI_Alltoall(x[0], 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Irecv(x[1], 1000, MPI_DOUBLE, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &r[0]);
        MPI_Isend(x[0], 500, MPI_DOUBLE, (rank + 1) % ranks, 5, MPI_COMM_WORLD, &r[1]);
        while (!flag) MPI_Test(&r[0], &flag, MPI_STATUS_IGNORE);
        flag = 0;
        MPI_Wait(&r[1], MPI_STATUS_IGNORE);
        MPI_Irecv(x[1], 1000, MPI_DOUBLE, (rank + 1) % ranks, 6, MPI_COMM_WORLD, &r[0]);
        MPI_Isend(x[0], 1000, MPI_DOUBLE, (rank + ranks - 1) % ranks, 6, MPI_COMM_WORLD, &r[1]);
        int left = 2;
        while (left) { MPI_Waitsome(2, r, &done, at, MPI_STATUSES_IGNORE); left -= done; }
        if (rank == 0) for (int i = 1; i < ranks; i++)
                MPI_Recv(x[1], 10, MPI_DOUBLE, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else MPI_Send(x[0], rank, MPI_DOUBLE, 0, 7, MPI_COMM_WORLD);
        MPI_Send(x[0], 5, MPI_DOUBLE, MPI_PROC_NULL, 9, MPI_COMM_WORLD);
        MPI_Recv(x[0], 5, MPI_DOUBLE, MPI_PROC_NULL, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Comm_free(&cart);
    MPI_Comm_free(&twin);
    MPI_Comm_free(&row);
    MPI_Finalize();
    return 0;
}
"""


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
