"""The probes of collective operations and of clocks, with clocks made from the one of this machine."""

import os
import signal
from pathlib import Path

import pandas
import pytest
from long_tests import long_but
from support_limits import HANG_S, ran, wait_until
from support_mpi_probes import CLOCKS, MpiProbe
from support_mpi_probes import COLLECTIVES as SOURCES

from lepaute.kit.mpi_launcher import MPICH
from lepaute.measure.comparison.cases import NONBLOCKING, OPERATIONS, PERSISTENT, REDUCTIONS, forms_of
from lepaute.measure.toolchain import C_FLAGS

pytestmark = pytest.mark.machine

COLUMNS = "design_row,operation,form,size_bytes,calls,synchronisation,compute_ns,window_ns"
QUICK_RUNS = (("openmpi", 1), ("openmpi", 2), ("openmpi", 3), ("mpich", 1), ("mpich", 2))
QUICK = ("--clock-method", "SKaMPI", "--warm-up", "1")


@pytest.fixture(scope="module", params=["openmpi", "mpich"])
def probe(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> MpiProbe:
    return MpiProbe(request.param, SOURCES, tmp_path_factory.mktemp("collectives"))


@pytest.fixture(scope="module")
def open_mpi(tmp_path_factory: pytest.TempPathFactory) -> MpiProbe:
    return MpiProbe("openmpi", SOURCES, tmp_path_factory.mktemp("collectives"))


def design(folder: Path, *rows: str) -> tuple[str, ...]:
    """The options of a run with these rows, numbered."""
    path = folder / "design.csv"
    path.write_text("\n".join([COLUMNS, *(f"{number},{row}" for number, row in enumerate(rows))]) + "\n")
    return "--design", str(path), "--out", str(folder / "raw")


def calls_of(folder: Path, ranks: int, kind: str = "") -> pandas.DataFrame:
    """The rows of all ranks."""
    return pandas.concat(pandas.read_csv(folder / f"raw{kind}.r{rank}", comment="#") for rank in range(ranks))


@pytest.mark.parametrize(
    ("probe", "ranks"),  # three ranks of MPICH on two processors wait for each other by turns: 26 s of CPU time
    long_but([(family, ranks) for family in ("openmpi", "mpich") for ranks in (1, 2, 3)], *QUICK_RUNS),
    indirect=["probe"],
)
def test_every_operation_is_right_in_every_form_and_has_a_row_for_each_call_on_each_rank(probe, ranks, tmp_path):
    """A wrong result ends the program, so that a status of 0 says that all were right; 24 bytes: whole doubles.

    MPICH 4.0.2 ends with "Invalid communicator" where three ranks start a persistent MPI_Scatter twice.
    """
    lacking = ("Scatter", PERSISTENT) if probe.library.family == MPICH and ranks > 2 else None
    rows = [
        f"{operation},{form},{size},3,MPI_Barrier,0,0"
        for operation in OPERATIONS
        for form in forms_of(operation)
        for size in ((0, 24) if operation in REDUCTIONS else (0, 13, 24))
        if (operation, form) != lacking
    ]
    done = probe.run(ranks, *design(tmp_path, *rows), *QUICK)
    assert done.returncode == 0, done.stderr
    calls = calls_of(tmp_path, ranks)
    assert len(calls) == len(rows) * ranks * (3 + 1)
    assert (calls["start_ns"] <= calls["returned_ns"]).all()
    assert (calls["returned_ns"] <= calls["end_ns"]).all()
    waited = calls["form"].isin([NONBLOCKING, PERSISTENT])
    assert (calls[~waited]["returned_ns"] == calls[~waited]["end_ns"]).all()


@pytest.mark.parametrize(
    ("datatype", "op"),
    [("MPI_FLOAT", "MPI_PROD"), ("MPI_LONG", "MPI_LAND"), ("MPI_INT8_T", "MPI_SUM"), ("MPI_BYTE", "MPI_BXOR")],
)
def test_reductions_are_right_for_their_datatype_and_operator_from_any_root(open_mpi, datatype, op, tmp_path):
    rows = [
        f"{operation},{form},40,2,MPI_Barrier,0,0"
        for operation in (*REDUCTIONS, "Bcast", "Gather", "Scatter", "Gatherv", "Scatterv")
        for form in forms_of(operation)
    ]
    words = ("--datatype", datatype, "--op", op, "--root", "2")
    done = open_mpi.run(3, *design(tmp_path, *rows), *QUICK, *words)
    assert done.returncode == 0, done.stderr
    head = (tmp_path / "raw.r0").read_text()
    assert f"#@reductions={op} of {datatype}\n" in head
    assert "#@root=2\n" in head


def test_ranks_come_together_by_every_method_and_windows_grow(open_mpi: MpiProbe, tmp_path: Path) -> None:
    methods = ("MPI_Barrier", "dissemination", "double", "window", "round-time")
    rows = [f"Allreduce,blocking,64,40,{method},0,{1 if method in methods[3:] else 0}" for method in methods]
    done = open_mpi.run(2, *design(tmp_path, *rows), "--clock-method", "SKaMPI", "--warm-up", "10")
    assert done.returncode == 0, done.stderr
    calls = calls_of(tmp_path, 2)
    assert (calls[calls["synchronisation"].isin(methods[:3])]["marks"] == 0).all()
    windows = calls.query("synchronisation == 'window'")
    # No call fits into a nanosecond: the calls to warm up are marked, and kept; the window of the others is longer.
    assert (windows.query("call < 0").groupby("call")["marks"].max() > 0).all()
    assert windows.query("call < 0")["window_ns"].eq(1).all()
    assert windows.query("call >= 0")["window_ns"].gt(1).all()


def test_a_nonblocking_call_is_started_worked_beside_and_waited_for(open_mpi: MpiProbe, tmp_path: Path) -> None:
    rows = [f"Allreduce,{form},64,20,MPI_Barrier,200000,0" for form in ("nonblocking", "overlapped", "persistent")]
    done = open_mpi.run(2, *design(tmp_path, *rows), *QUICK)
    assert done.returncode == 0, done.stderr
    calls = calls_of(tmp_path, 2)
    assert calls["form"].nunique() == 3
    assert (calls["end_ns"] - calls["returned_ns"] >= 200_000).all()


def test_every_rank_leaves_the_models_of_its_clock(open_mpi: MpiProbe, tmp_path: Path) -> None:
    rows = ("Barrier,blocking,0,3,MPI_Barrier,0,0", "Barrier,blocking,0,3,MPI_Barrier,0,0")
    done = open_mpi.run(2, *design(tmp_path, *rows), "--clock-method", "SKaMPI", "--resync-s", "0")
    assert done.returncode == 0, done.stderr
    models = calls_of(tmp_path, 2, ".clocks")
    assert models.query("rank == 0")["before_row"].astype(str).tolist() == ["0", "1", "end"]
    other = models.query("rank == 1")
    # One clock for both: times that are equal but for what messages leave open.
    assert ((other["y0_ns"] - other["x0_ns"]).abs() <= other["bound_ns"] + 3 * other["variance_ns2"] ** 0.5).all()


@pytest.mark.parametrize(
    ("call", "arguments", "wrong", "row", "said"),
    [
        ("Allgather(const void *s, int n, MPI_Datatype t, void *r, int m, MPI_Datatype u, MPI_Comm c)",
         "s, n, t, r, m, u, c", "((char *)r)[0] ^= 1;", "Allgather,blocking,8", "Allgather of 8 bytes"),
        ("Recv(void *b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Status *s)",
         "b, n, t, from, tag, c, s", "if (n == 77) ((char *)b)[76] ^= 1;", "PingPong,blocking,77",
         "PingPong of 77 bytes"),
    ],
)  # fmt: skip
def test_a_library_that_gives_wrong_results_is_not_measured(open_mpi, tmp_path, call, arguments, wrong, row, said):
    source, shim = tmp_path / "shim.c", tmp_path / "shim.so"
    inside = f"int status = PMPI_{call.partition('(')[0]}({arguments}); {wrong} return status;"
    source.write_text(f"#include <mpi.h>\nint MPI_{call} {{ {inside} }}\n")
    open_mpi.library.compile([*C_FLAGS, "-shared", "-fPIC", str(source), "-o", str(shim)], what="building the shim")
    rows = (f"{each},2,MPI_Barrier,0,0" for each in ("Bcast,blocking,8", row))
    done = open_mpi.run(2, *design(tmp_path, *rows), *QUICK, environment={"LD_PRELOAD": str(shim)})
    assert done.returncode != 0
    assert f"{said} on 2 ranks gave a wrong result" in done.stderr


def test_a_rank_that_is_killed_takes_no_finished_batch_along(open_mpi: MpiProbe, tmp_path: Path) -> None:
    # Few calls in the first batch: two ranks that share a processor take a time slice for each.
    rows = ("Barrier,blocking,0,300,MPI_Barrier,0,0", "Barrier,blocking,0,1000000,double,0,0")
    with open_mpi.start(2, *design(tmp_path, *rows), *QUICK) as process:
        raw = [tmp_path / f"raw.r{rank}" for rank in range(2)]
        wait_until(lambda: all(at.is_file() and at.read_text().count("\n0,") >= 301 for at in raw), "the first batch")
        listed = ran(["pgrep", "-f", str(open_mpi.path)], check=True)
        ranks = [int(pid) for pid in listed.stdout.split() if int(pid) != process.pid]
        os.kill(ranks[-1], signal.SIGKILL)
        process.communicate(timeout=HANG_S)
    assert process.returncode != 0
    for path in raw:
        assert path.read_text().count("\n0,") == 301


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("Bcst,blocking,8,3,MPI_Barrier,0,0", "operation is Bcst; choose one of none, Barrier, Bcast"),
        ("Bcast,lazy,8,3,MPI_Barrier,0,0", "form is lazy; with this library Bcast is measured blocking, nonblocking"),
        ("none,nonblocking,8,3,MPI_Barrier,0,0", "form is nonblocking; with this library none is measured blocking"),
        ("PingPong,nonblocking,8,3,MPI_Barrier,0,0", "form is nonblocking; with this library PingPong is measured"),
        ("Bcast,blocking,8,3,gong,0,0", "synchronisation is gong; choose MPI_Barrier"),
        ("Bcast,blocking,8,3,window,0,0", "window_ns is 0; window needs the length of the first window"),
        ("Bcast,blocking,-1,3,MPI_Barrier,0,0", "size_bytes"),
        ("Scan,blocking,12,3,MPI_Barrier,0,0", "size_bytes is 12; Scan reduces whole counts of MPI_DOUBLE, of 8 bytes"),
    ],
)
def test_a_wrong_design_is_one_line_and_status_2(open_mpi: MpiProbe, row: str, message: str, tmp_path: Path) -> None:
    done = open_mpi.run(2, *design(tmp_path, row))
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "raw.r0").exists()


METHODS = ("SKaMPI", "Netgauge", "JK", "HCA", "HCA2", "HCA3")


class Program(MpiProbe):
    """probe-clocks of one library."""

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name, ("probe_clocks.c", *CLOCKS), folder)

    def errors(self, folder: Path, ranks: int, *options: str) -> pandas.DataFrame:
        done = self.run(ranks, "--out", str(folder / "errors.csv"), *options)
        assert done.returncode == 0, done.stderr
        return pandas.read_csv(folder / "errors.csv", comment="#")


@pytest.fixture(scope="module")
def open_mpi_here(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program("openmpi", tmp_path_factory.mktemp("clocks"))


FEW = ("--points", "5", "--exchanges-a-point", "3", "--exchanges", "10", "--spacing-s", "0.001")


@pytest.mark.parametrize("ranks", long_but([1, 2, 3, 6, 7], 2, 3, 7))
def test_every_method_finds_clocks_a_second_apart_on_any_number_of_ranks(open_mpi_here, ranks, tmp_path):
    """Two cores: ranks wait for their turns by milliseconds, which the bound of an offset covers."""
    rows = open_mpi_here.errors(tmp_path, ranks, "--made", "1", "--after-s", "0", "--drift", "1e-6", *FEW)
    assert len(rows) == ranks * len(METHODS)
    assert (rows[rows["rank"] == 0]["error_ns"] == 0).all()
    others = rows[rows["rank"] > 0]
    assert (others["true_offset_ns"].abs() > 1e5).all()
    direct = others[others["method"] == "SKaMPI"]
    # The bound of an offset holds whatever the latencies; 1 ppm of the seconds that the ranks after it have taken.
    # What slopes are worth, which ranks that wait for a processor make wrong, says the simulation (test_clock_methods).
    assert (direct["error_ns"].abs() <= direct["bound_ns"] + 1e-6 * 1e9 * 60).all()


@pytest.mark.parametrize("clock", ["MPI_Wtime", "clock_gettime", "rdtscp:estimated"])
def test_each_clock_is_read_in_nanoseconds(open_mpi_here: Program, clock: str, tmp_path: Path) -> None:
    if clock.startswith("rdtscp") and "constant_tsc" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor's time-stamp counter is not constant")
    rows = open_mpi_here.errors(tmp_path, 1, "--clock", clock, "--methods", "SKaMPI", "--after-s", "0")
    header = (tmp_path / "errors.csv").read_text()
    assert f"#@clock_source={clock}" in header
    resolution_ns = int(header.split("#@clock_resolution_ns=")[1].split()[0])
    assert resolution_ns >= 1
    assert len(rows) == 1
