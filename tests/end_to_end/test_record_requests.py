"""Requests of real MPI programs, however they end: no row of a recording says what belongs to another request."""

import subprocess
from pathlib import Path

import pytest
from oracles.recorded_hpl import lepaute

from lepaute.errors import EnvironmentProblem
from lepaute.kit.mpi_library import MpiLibrary, find_library
from lepaute.trace import Trace, read_trace
from lepaute.trace.messages import match_messages

pytestmark = pytest.mark.machine

PROGRAM = """
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { MANY = 600 };
static char out[64], in[MANY][64];
static int rank, other;
static MPI_Request r[MANY];

static void freed(void) {
    for (int i = 0; i < 50; i++) {
        MPI_Isend(out, 8, MPI_CHAR, other, 1000 + i, MPI_COMM_WORLD, r);
        MPI_Request_free(r);
        MPI_Recv(in, 8, MPI_CHAR, other, 1000 + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < 20; i++) {
        MPI_Irecv(in, 64, MPI_CHAR, other, 7, MPI_COMM_WORLD, r);
        MPI_Isend(out, 64, MPI_CHAR, other, 7, MPI_COMM_WORLD, r + 1);
        MPI_Wait(r, MPI_STATUS_IGNORE);
        MPI_Wait(r + 1, MPI_STATUS_IGNORE);
    }
}

static void unrecorded(void) {
    for (int i = 0; i < 20; i++) {
        MPI_Irecv(in, 8, MPI_CHAR, other, 1000 + i, MPI_COMM_WORLD, r);
        MPI_Isend(out, 8, MPI_CHAR, other, 1000 + i, MPI_COMM_WORLD, r + 1);
        MPI_Pcontrol(0);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE); /* posted in the trace, ended outside */
        MPI_Irecv(in, 64, MPI_CHAR, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, r);
        MPI_Isend(out, 64, MPI_CHAR, other, 7, MPI_COMM_WORLD, r + 1);
        MPI_Pcontrol(1);
        MPI_Wait(r, MPI_STATUS_IGNORE); /* and the other way round */
        MPI_Wait(r + 1, MPI_STATUS_IGNORE);
    }
    MPI_Pcontrol(0); /* to the end */
}

static void many(void) {
    for (int i = 0; i < MANY / 2; i++) {
        MPI_Irecv(in[i], 64, MPI_CHAR, MPI_ANY_SOURCE, i, MPI_COMM_WORLD, r + i);
        MPI_Isend(out, i % 64, MPI_CHAR, other, i, MPI_COMM_WORLD, r + MANY / 2 + i);
    }
    MPI_Waitall(MANY, r, MPI_STATUSES_IGNORE);
    MPI_Irecv(in, 64, MPI_CHAR, other, 999, MPI_COMM_WORLD, r);
    MPI_Send(out, 64, MPI_CHAR, other, 999, MPI_COMM_WORLD);
    MPI_Wait(r, MPI_STATUS_IGNORE);
}

static void outlived(void) {
    MPI_Comm turned;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
    MPI_Irecv(in, 64, MPI_CHAR, MPI_ANY_SOURCE, 5, turned, r);
    MPI_Send(out, 4, MPI_CHAR, rank, 5, turned); /* whom the world calls `other` */
    MPI_Comm_free(&turned);
    MPI_Wait(r, MPI_STATUS_IGNORE);
    MPI_Irecv(in, 64, MPI_CHAR, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, r);
    MPI_Cancel(r);
    MPI_Wait(r, MPI_STATUS_IGNORE);
}

static void others(void) {
    MPI_Comm line, node, both;
    MPI_Message message;
    int sizes[] = {2}, wraps[] = {0}, found = 0;
    MPI_Cart_create(MPI_COMM_WORLD, 1, sizes, wraps, 0, &line);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, other, 9, &both);
    MPI_Sendrecv_replace(in, 16, MPI_CHAR, other, 1, other, 1, line, MPI_STATUS_IGNORE);
    MPI_Isend(out, 32, MPI_CHAR, other, 3, line, r);
    MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, line, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(in, 64, MPI_CHAR, &message, MPI_STATUS_IGNORE);
    MPI_Isend(out, 48, MPI_CHAR, other, 4, line, r + 1);
    while (!found)
        MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, line, &found, &message, MPI_STATUS_IGNORE);
    MPI_Imrecv(in, 64, MPI_CHAR, &message, r + 2);
    MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
}

static void ends(void) {
    int index, flag = 0, done, indices[2];
    MPI_Comm grid, row;
    MPI_Request again[2];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Send_init(out, 8, MPI_CHAR, other, 50, MPI_COMM_WORLD, again);
    MPI_Recv_init(in, 64, MPI_CHAR, other, 50, MPI_COMM_WORLD, again + 1);
    for (int i = 0; i < 3; i++) {
        MPI_Startall(2, again);
        MPI_Waitall(2, again, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(again);
    MPI_Request_free(again + 1);
    MPI_Irecv(in, 2, MPI_CHAR, other, 60, MPI_COMM_WORLD, r); /* too short: the wait fails */
    MPI_Send(out, 8, MPI_CHAR, other, 60, MPI_COMM_WORLD);
    MPI_Wait(r, MPI_STATUS_IGNORE);
    for (int i = 0; i < 6; i++) { /* each way to end one, after all of the above */
        MPI_Irecv(in, 64, MPI_CHAR, other, 70 + i, MPI_COMM_WORLD, r);
        MPI_Send(out, 10 + i, MPI_CHAR, other, 70 + i, MPI_COMM_WORLD);
        flag = done = 0;
        if (i == 0)
            MPI_Waitany(1, r, &index, MPI_STATUS_IGNORE);
        if (i == 1)
            MPI_Waitsome(1, r, &done, indices, MPI_STATUSES_IGNORE);
        while (i == 2 && !flag)
            MPI_Testany(1, r, &index, &flag, MPI_STATUS_IGNORE);
        while (i == 3 && !done)
            MPI_Testsome(1, r, &done, indices, MPI_STATUSES_IGNORE);
        while (i == 4 && !flag)
            MPI_Testall(1, r, &flag, MPI_STATUSES_IGNORE);
        while (i == 5 && !flag)
            MPI_Test(r, &flag, MPI_STATUS_IGNORE);
    }
    int sizes[] = {1, 2}, wraps[] = {0, 0}, keep[] = {0, 1};
    MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, wraps, 0, &grid);
    MPI_Cart_sub(grid, keep, &row);
    MPI_Sendrecv(out, 5, MPI_CHAR, other, 80, in, 64, MPI_CHAR, other, 80, row, MPI_STATUS_IGNORE);
}

static void full(void) {
    struct rlimit limit = {3 << 20, 3 << 20}; /* one piece of the file is made in MPI_Init, of 2 MiB */
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    for (int i = 0; i < 100000; i++)
        MPI_Barrier(MPI_COMM_SELF);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    other = 1 - rank;
    void (*parts[])(void) = {freed, unrecorded, many, outlived, others, ends, full};
    parts[atoi(argv[1])]();
    MPI_Finalize();
    return 0;
}
"""
PARTS = ("freed", "unrecorded", "many", "outlived", "others", "ends", "full")


@pytest.fixture(scope="module", params=["openmpi", "mpich"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[MpiLibrary, Path]:
    """A library, and the folder with the program."""
    try:
        found = find_library(request.param)
    except EnvironmentProblem as problem:
        pytest.skip(str(problem))
    folder = tmp_path_factory.mktemp("requests")
    (folder / "program.c").write_text(PROGRAM)
    found.compile(["-w", str(folder / "program.c"), "-o", str(folder / "program")], what="building the program")
    return found, folder


def recorded(
    library: tuple[MpiLibrary, Path], part: str, ranks: int = 2
) -> "tuple[Trace, subprocess.CompletedProcess[str]]":
    found, folder = library
    assert found.launcher is not None
    oversubscribe = ("--oversubscribe",) if found.family == "openmpi" else ()
    argv = (str(found.launcher.path), *oversubscribe, "-np", str(ranks), "./program", str(PARTS.index(part)))
    done = lepaute("record", "--force", "--", *argv, folder=folder)
    assert done.returncode == 0, done.stderr
    trace = read_trace(folder / "trace.parquet")
    if part != "full":
        assert trace.metadata["warnings"] == []
    return trace, done


def rows(trace: Trace, *names: str) -> list[tuple[int, int, int, float]]:
    """Rank, peer, tag and bytes."""
    chosen = trace.where(trace.named(names))
    columns = (chosen.rank, chosen.peer, chosen.tag, chosen.size_bytes)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_a_wait_is_of_its_own_request_after_others_were_freed(library: tuple[MpiLibrary, Path]) -> None:
    trace, _ = recorded(library, "freed")
    assert set(rows(trace, "MPI_Wait")) == {(0, 1, 7, 64.0), (1, 0, 7, 64.0)}
    assert trace.named(["MPI_Request_free"]).sum() == 100
    sends = trace.where(trace.named(["MPI_Isend"]))
    assert (sends.completion[sends.tag >= 1000] == -1).all()
    assert (sends.completion[sends.tag == 7] >= 0).all()


def test_requests_are_followed_while_nothing_is_recorded(library: tuple[MpiLibrary, Path]) -> None:
    trace, _ = recorded(library, "unrecorded")  # also: without the warning that ranks did not come to their end
    assert set(rows(trace, "MPI_Wait")) == {(0, 1, 7, 64.0), (1, 0, 7, 64.0)}
    posts = trace.where(trace.named(["MPI_Isend", "MPI_Irecv"]))
    assert len(posts) == 80
    assert posts.tag.min() >= 1000
    assert (posts.completion == -1).all()


def test_a_wait_for_any_number_of_requests_ends_them_all(library: tuple[MpiLibrary, Path]) -> None:
    trace, _ = recorded(library, "many")
    total = 2.0 * sum(i % 64 for i in range(300))
    assert [size for *_, size in rows(trace, "MPI_Waitall")] == [total, total]
    assert set(rows(trace, "MPI_Wait")) == {(0, 1, 999, 64.0), (1, 0, 999, 64.0)}
    receives = trace.where(trace.named(["MPI_Irecv"]))
    assert (receives.peer == 1 - receives.rank).all()
    matches = match_messages(trace)
    assert len(matches.send) == 602
    assert (matches.end >= 0).all()


def test_a_receive_may_outlive_its_communicator_or_be_cancelled(library: tuple[MpiLibrary, Path]) -> None:
    trace, _ = recorded(library, "outlived")
    ends = [(0, 1, 5, 4.0), (0, -2, 6, 0.0), (1, 0, 5, 4.0), (1, -2, 6, 0.0)]
    assert rows(trace, "MPI_Wait") == ends
    assert rows(trace, "MPI_Irecv") == [(*one[:3], 64.0 if one[1] >= 0 else 0.0) for one in ends]
    assert len(match_messages(trace).send) == 2


def test_matched_probes_replacing_exchanges_and_new_communicators_are_recorded(library):
    trace, _ = recorded(library, "others")
    for name in ("MPI_Cart_create", "MPI_Comm_split_type", "MPI_Intercomm_create"):
        assert trace.named([name]).sum() == 2, name
    pair = [(0, 1), (1, 0)]
    for name, tag, size in (
        ("MPI_Sendrecv_replace", 1, 16.0),
        ("MPI_Sendrecv_arrival", 1, 16.0),
        ("MPI_Mprobe", 3, 32.0),
        ("MPI_Mrecv", 3, 32.0),
        ("MPI_Imrecv", 4, 48.0),
    ):
        assert rows(trace, name) == [(*ranks, tag, size) for ranks in pair], name
    matches = match_messages(trace)
    assert len(matches.send) == 6
    assert (matches.end >= 0).all()


def test_every_way_to_end_a_request_says_what_came(library: tuple[MpiLibrary, Path]) -> None:
    trace, _ = recorded(library, "ends")
    ways = ("MPI_Waitany", "MPI_Waitsome", "MPI_Testany", "MPI_Testsome", "MPI_Testall", "MPI_Test")
    for i, name in enumerate(ways):
        tags = () if name in ("MPI_Waitsome", "MPI_Testsome") else (70 + i,)  # those two end several
        for rank in (0, 1):
            (row,) = [row for row in rows(trace, name) if row[0] == rank and row[3] > 0]  # not of tests in vain
            assert row[3] == 10 + i, name
            assert row[1:3] == (1 - rank, *tags) or not tags, name
    waits = rows(trace, "MPI_Wait")
    assert [(rank, tag) for rank, _, tag, _ in waits] == [(0, 60), (1, 60)]
    for rank, peer in ((0, 1), (1, 0)):
        assert (rank, peer, 80, 5.0) in rows(trace, "MPI_Sendrecv")
    receives = trace.where(trace.named(["MPI_Irecv"]))
    assert (receives.completion[receives.tag >= 70] >= 0).all()
    # Each start of a persistent request is a row, and a wait ends it.
    for name, size in (("MPI_Isend", 8.0), ("MPI_Irecv", 64.0)):
        starts = trace.where(trace.named([name]) & (trace.tag == 50))
        assert (
            list(zip(starts.rank, starts.peer, starts.size_bytes, strict=True))
            == [(0, 1, size)] * 3 + [(1, 0, size)] * 3
        )
        assert (starts.completion >= 0).all()
        assert len(set(zip(starts.rank, starts.completion, strict=True))) == 6


def test_a_recording_that_finds_no_room_says_how_much_is_missing(library: tuple[MpiLibrary, Path]) -> None:
    trace, done = recorded(library, "full", ranks=1)
    assert len(trace) == 1 << 16
    assert trace.metadata["warnings"] == [f"{100_000 - (1 << 16)} calls found no room and are missing"]
    assert done.stderr.count("no room for further calls (File too large); they are missing") == 1
    assert done.stderr.count("lepaute record:") == 1
