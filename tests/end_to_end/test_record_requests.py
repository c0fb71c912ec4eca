"""Requests of real MPI programs, however they end: no row of a recording says what belongs to another request."""

import subprocess
from pathlib import Path

import pytest
from oracles.recorded_hpl import lepaute

from lepaute.errors import EnvironmentProblem
from lepaute.kit.mpi_library import MpiLibrary, find_library
from lepaute.simulate.trace import Trace, read_trace
from lepaute.simulate.trace.messages import match_messages

pytestmark = pytest.mark.machine

PROGRAM = Path(__file__).parents[1].joinpath("data", "programs", "record_requests_program.c").read_text()
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
    assert rows(trace, "MPI_Irecv") == [(*end[:3], 64.0 if end[1] >= 0 else 0.0) for end in ends]
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
