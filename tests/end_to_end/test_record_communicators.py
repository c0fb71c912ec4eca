"""Recordings of programs with communicators and requests of many kinds."""

from pathlib import Path

import pytest
from oracles.recorded_hpl import library_named
from oracles.recorded_hpl import recorded as record_program
from support_limits import ran

import lepaute as lp
from lepaute.errors import InputError
from lepaute.kit.mpi_library import MpiLibrary
from lepaute.simulate.trace import Trace
from lepaute.simulate.trace.messages import match_messages
from lepaute.simulate.trace.table import BETWEEN_CALLS

pytestmark = pytest.mark.machine

PROGRAM = Path(__file__).parents[1].joinpath("data", "programs", "record_communicators_program.c").read_text()
NEIGHBOURS = Path(__file__).parents[1].joinpath("data", "programs", "record_communicators_neighbours.c").read_text()
DGEMM = "void dgemm_64_(void) {}\n"
FORTRAN = Path(__file__).parents[1].joinpath("data", "programs", "record_communicators_fortran.f90").read_text()
DECLARATIONS = {"mpi": "integer :: r(2)", "mpi_f08": "type(mpi_request) :: r(2)"}


@pytest.fixture(scope="module", params=["openmpi", "mpich"])
def library(request: pytest.FixtureRequest) -> MpiLibrary:
    return library_named(request.param)


def recorded(library: MpiLibrary, folder: Path, *words: str, warnings: tuple[str, ...] = ()) -> Trace:
    """The calls alone: where ranks waited for a core depends on what else runs here."""
    trace, done = record_program(library, folder, *words)
    assert done.returncode == 0, done.stderr
    assert trace.metadata["warnings"] == [*warnings]
    return trace.where(~trace.named(BETWEEN_CALLS))


def test_nonblocking_collectives_communicators_and_long_integers_are_recorded(library, tmp_path):
    (tmp_path / "program.c").write_text(PROGRAM)
    (tmp_path / "dgemm.c").write_text(DGEMM)
    dgemm = tmp_path / "libdgemm64.so"
    library.compile(["-shared", "-fPIC", str(tmp_path / "dgemm.c"), "-o", str(dgemm)], what="building a BLAS")
    words = ["-w", str(tmp_path / "program.c"), str(dgemm), f"-Wl,-rpath,{tmp_path}", "-o", str(tmp_path / "program")]
    library.compile(words, what="building the program")
    trace = recorded(library, tmp_path)
    for rank in (0, 1):
        own = trace.where(trace.rank == rank)
        calls = {own.names[own.name[i]]: i for i in range(len(own))}  # the last of each name
        for name, peer, size in (
            ("MPI_Ibarrier", -1, 0),
            ("MPI_Ibcast", 1, 32),
            ("MPI_Ireduce", 1, 40),
            ("MPI_Iscan", -1, 56),
            ("MPI_Iallgather", -1, 16),
            ("MPI_Ialltoall", -1, 48),
            ("MPI_Igatherv", 0, 24 + 8 * rank),
            ("MPI_Ireduce_scatter_block", -1, 16),
        ):
            row = calls[name]
            assert (own.peer[row], own.tag[row], own.size_bytes[row]) == (peer, -1, size), name
            assert own.completion[row] >= 0, name
        # Nine requests end in one wait, and each of the two others in a call of its own.
        begun = own.where(own.named([name for name in own.names if name.startswith("MPI_I")]) & (own.tag == -1))
        assert [int((begun.completion == each).sum()) for each in sorted(set(begun.completion.tolist()))] == [9, 1, 1]
        assert own.comm[calls["MPI_Ibarrier"]] == 0
        assert own.size_bytes[calls["dgemm_nn"]] == 0
        assert (own.m[calls["dgemm_nn"]], own.k[calls["dgemm_nn"]]) == (3, 3)
    # Two communicators with the same ranks are told apart, on both sides alike; those of a split by their ranks.
    of = {name: set(trace.comm[trace.named(name)].tolist()) for name in ("MPI_Ibcast", "MPI_Iscan", "MPI_Iallreduce")}
    assert len(of["MPI_Ibcast"]) == len(of["MPI_Iscan"]) == 1
    assert of["MPI_Ibcast"] != of["MPI_Iscan"]
    assert len(of["MPI_Iallreduce"]) == 3
    matches = match_messages(trace)
    sizes = [(float(trace.size_bytes[send]), int(trace.comm[send])) for send in matches.send]
    assert sizes == [(8.0, *of["MPI_Iscan"]), (16.0, *of["MPI_Ibcast"])]
    assert trace.comm[matches.send].tolist() == trace.comm[matches.receive].tolist()


def test_exchanges_of_neighbours_are_recorded_as_messages_and_one_sided_ones_refused_by_name(library, tmp_path):
    (tmp_path / "program.c").write_text(NEIGHBOURS)
    words = ["-w", str(tmp_path / "program.c"), "-o", str(tmp_path / "program")]
    library.compile(words, what="building the program")
    trace = recorded(library, tmp_path)
    names = [trace.names[code] for code in trace.name[trace.rank == 0]]
    assert names[0] == "MPI_Cart_create"
    assert names[1:4] == ["MPI_Dist_graph_create_adjacent", "MPI_Comm_create_group", "MPI_Alltoallw"]
    assert float(trace.size_bytes[trace.named(("MPI_Alltoallw",))][0]) == 12
    assert names[4:] == [
        *(*["MPI_Irecv"] * 4, *["MPI_Isend"] * 4, "MPI_Neighbor_alltoall"),
        *("MPI_Irecv", "MPI_Isend", "MPI_Neighbor_allgatherv"),
    ]
    # Each wait ends what it began; rank 0 and 1 meet once in the grid, where each is its own neighbour twice.
    sent = trace.where(trace.named(("MPI_Isend",)))
    told = list(zip(sent.rank.tolist(), sent.peer.tolist(), sent.size_bytes.tolist(), strict=True))
    assert sorted(told) == [
        *((0, -2, 0.0), (0, 0, 80.0), (0, 0, 80.0), (0, 1, 5.0), (0, 1, 80.0)),
        *((1, -2, 0.0), (1, 0, 6.0), (1, 0, 80.0), (1, 1, 80.0), (1, 1, 80.0)),
    ]
    waits = trace.where(trace.named(("MPI_Neighbor_alltoall", "MPI_Neighbor_allgatherv")))
    assert set(sent.completion.tolist()) == set(waits.completion.tolist())
    assert len(match_messages(trace).send) == 8
    assert lp.predict(lp.TraceReplay(tmp_path / "trace.parquet"), "dahu", runs=1).time_s.mean > 0
    recorded(library, tmp_path, "one-sided")
    with pytest.raises(InputError, match=r"MPI_Win_create, which rank 0 calls at .*, cannot be replayed$"):
        lp.predict(lp.TraceReplay(tmp_path / "trace.parquet"), "dahu", runs=1)


@pytest.mark.parametrize("module", ["mpi", "mpi_f08"])
def test_a_program_in_fortran_is_recorded_as_one_in_c(library: MpiLibrary, module: str, tmp_path: Path) -> None:
    if library.mpifort is None:
        pytest.skip("no Fortran compiler for this library")
    text = FORTRAN.replace("MODULE", module).replace("DECLARATIONS", DECLARATIONS[module])
    (tmp_path / "f.f90").write_text(text)
    argv = [library.mpifort, "-w", "f.f90", "-lopenblas", "-o", "program"]
    built = ran(argv, cwd=tmp_path)
    if built.returncode != 0:
        pytest.skip(built.stderr[-200:])
    trace = recorded(library, tmp_path)
    own = trace.where(trace.rank == 0)
    calls = [
        (own.names[code], int(peer), int(tag), float(size))
        for code, peer, tag, size in zip(own.name, own.peer, own.tag, own.size_bytes, strict=True)
    ]
    assert calls == [
        ("dscal", -1, -1, 0.0), ("MPI_Allreduce", -1, -1, 8.0), ("MPI_Irecv", 1, 7, 800.0), ("MPI_Isend", 1, 7, 400.0),
        ("MPI_Waitall", -1, -1, 800.0), ("MPI_Iallreduce", -1, -1, 80.0), ("MPI_Wait", -1, -1, 80.0),
    ]  # fmt: skip
    assert (own.completion[2:] >= 0).all()


REQUESTS_PROGRAM = Path(__file__).parents[1] / "data" / "programs" / "record_requests_program.c"
PARTS = ("freed", "unrecorded", "many", "outlived", "others", "ends", "full")


@pytest.fixture(scope="module")
def library_of_requests(library: MpiLibrary, tmp_path_factory: pytest.TempPathFactory) -> tuple[MpiLibrary, Path]:
    """A library, and the folder with the program."""
    folder = tmp_path_factory.mktemp("requests")
    library.compile(["-w", str(REQUESTS_PROGRAM), "-o", str(folder / "program")], what="building the program")
    return library, folder


def recorded_requests(library_of_requests: tuple[MpiLibrary, Path], part: str) -> Trace:
    short = ("not complete: 2 receives too small for what was sent",) if part == "ends" else ()
    return recorded(*library_of_requests, str(PARTS.index(part)), warnings=short)


def rows(trace: Trace, *names: str) -> list[tuple[int, int, int, float]]:
    """Rank, peer, tag and bytes."""
    chosen = trace.where(trace.named(names))
    columns = (chosen.rank, chosen.peer, chosen.tag, chosen.size_bytes)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_a_wait_is_of_its_own_request_after_others_were_freed(library_of_requests: tuple[MpiLibrary, Path]) -> None:
    trace = recorded_requests(library_of_requests, "freed")
    assert set(rows(trace, "MPI_Wait")) == {(0, 1, 7, 64.0), (1, 0, 7, 64.0)}
    assert trace.named(["MPI_Request_free"]).sum() == 100
    sends = trace.where(trace.named(["MPI_Isend"]))
    assert (sends.completion[sends.tag >= 1000] == -1).all()
    assert (sends.completion[sends.tag == 7] >= 0).all()


def test_requests_are_followed_while_nothing_is_recorded(library_of_requests: tuple[MpiLibrary, Path]) -> None:
    trace = recorded_requests(
        library_of_requests, "unrecorded"
    )  # also: without the warning that ranks did not come to their end
    assert set(rows(trace, "MPI_Wait")) == {(0, 1, 7, 64.0), (1, 0, 7, 64.0)}
    posts = trace.where(trace.named(["MPI_Isend", "MPI_Irecv"]))
    assert len(posts) == 80
    assert posts.tag.min() >= 1000
    assert (posts.completion == -1).all()


def test_a_wait_for_any_number_of_requests_ends_them_all(library_of_requests: tuple[MpiLibrary, Path]) -> None:
    trace = recorded_requests(library_of_requests, "many")
    total = 2.0 * sum(i % 64 for i in range(300))
    assert [size for *_, size in rows(trace, "MPI_Waitall")] == [total, total]
    assert set(rows(trace, "MPI_Wait")) == {(0, 1, 999, 64.0), (1, 0, 999, 64.0)}
    receives = trace.where(trace.named(["MPI_Irecv"]))
    assert (receives.peer == 1 - receives.rank).all()
    matches = match_messages(trace)
    assert len(matches.send) == 602
    assert (matches.end >= 0).all()


def test_a_receive_may_outlive_its_communicator_or_be_cancelled(library_of_requests: tuple[MpiLibrary, Path]) -> None:
    trace = recorded_requests(library_of_requests, "outlived")
    ends = [(0, 1, 5, 4.0), (0, -2, 6, 0.0), (1, 0, 5, 4.0), (1, -2, 6, 0.0)]
    assert rows(trace, "MPI_Wait") == ends
    assert rows(trace, "MPI_Irecv") == [(*end[:3], 64.0 if end[1] >= 0 else 0.0) for end in ends]
    assert len(match_messages(trace).send) == 2


def test_matched_probes_replacing_exchanges_and_new_communicators_are_recorded(library_of_requests):
    trace = recorded_requests(library_of_requests, "others")
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


def test_every_way_to_end_a_request_says_what_came(library_of_requests: tuple[MpiLibrary, Path]) -> None:
    trace = recorded_requests(library_of_requests, "ends")
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


def test_a_recording_that_finds_no_room_says_how_much_is_missing(library_of_requests: tuple[MpiLibrary, Path]) -> None:
    trace, done = record_program(*library_of_requests, str(PARTS.index("full")), ranks=1)
    assert len(trace) == 1 << 16
    calls = int((~trace.named(BETWEEN_CALLS)).sum())
    assert trace.metadata["warnings"] == [f"{100_000 - calls} calls found no room and are missing"]
    assert done.stderr.count("no room for further calls (File too large); they are missing") == 1
    assert done.stderr.count("lepaute record:") == 1
