"""`lepaute record` on real programs: HPL, whose calls follow from its algorithm, and a small one made for it."""

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy
import pytest
from long_tests import long_but
from oracles.recorded_hpl import MPIRUN, lepaute, library_named, recorded_hpl
from support_limits import HANG_S, ran, wait_until

from lepaute.simulate import Hpl
from lepaute.simulate.trace import Trace, read_trace
from lepaute.simulate.trace.breakdown import breakdown_of, split
from lepaute.simulate.trace.compare import compare_traces
from lepaute.simulate.trace.messages import match_messages
from lepaute.simulate.trace.table import CATEGORIES, KERNEL, PHASE

pytestmark = pytest.mark.machine


@pytest.fixture(scope="module")
def mpicc() -> Path:
    return library_named().mpicc


@pytest.mark.slow
@pytest.mark.long
def test_a_cache_of_any_name_serves(mpicc: Path, tmp_path: Path) -> None:
    """LD_PRELOAD, by which the recorder gets into a program, knows neither blanks nor colons nor quotes."""
    odd = tmp_path / "a b:c'd\"e"
    odd.mkdir()
    (odd / "tmp").mkdir()
    source, program, trace = tmp_path / "program.c", odd / "program", tmp_path / "t.parquet"
    source.write_text(
        "#include <mpi.h>\nint main(void) { MPI_Init(0, 0); MPI_Barrier(MPI_COMM_WORLD); MPI_Finalize(); }\n"
    )
    subprocess.run([mpicc, source, "-o", program], check=True)
    folders = {"LEPAUTE_HOME": str(odd / "home"), "TMPDIR": str(odd / "tmp")}
    result = lepaute("record", "--force", "-o", trace, "--", *MPIRUN, "1", program, folder=tmp_path, **folders)
    assert result.returncode == 0, result.stderr
    assert "ld.so" not in result.stderr
    assert read_trace(trace).named(["MPI_Barrier"]).sum() == 1
    assert list((odd / "tmp").iterdir()) == []


COLUMN = Hpl(n=600, nb=64, p=2, q=1)
ROW = Hpl(n=600, nb=64, p=1, q=2)


@pytest.fixture(scope="module")
def column(mpicc: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Trace, float]:
    return recorded_hpl(COLUMN, tmp_path_factory.mktemp("column"))


@pytest.fixture(scope="module")
def row(mpicc: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Trace, float]:
    return recorded_hpl(ROW, tmp_path_factory.mktemp("row"))


def count(trace: Trace, *names: str) -> int:
    return int(trace.named(names).sum())


def traced(folder: Path, *words: str | Path, **environment: str) -> Trace:
    done = lepaute("record", "--force", *words, folder=folder, **environment)
    assert done.returncode == 0, done.stderr
    return read_trace(folder / "trace.parquet")


def test_a_process_column_sends_what_the_algorithm_says(column: tuple[Trace, float]) -> None:
    trace, _ = column
    # Each column of the matrix: both ranks exchange their candidate for the pivot (P log2 P = 2 messages). Each of the
    # ceil(600 / 64) = 10 panels: one message each way that swaps rows, unless no row has to move; then the solution:
    # a message for each block, to the rank that has the next one, and its copies.
    sends = trace.where(trace.named(["MPI_Send"]))
    pivots = sends.where(
        numpy.isin(sends.size_bytes, [8 * (jb + 4) for jb in (64, 24)] + [8 * (2 * jb + 4) for jb in (64, 24)])
    )
    assert len(pivots) == 2 * COLUMN.n
    assert 0 < len(sends) - len(pivots) <= 2 * 10 + 2 * 10 + 4


def test_a_process_row_sends_each_panel_once(row: tuple[Trace, float]) -> None:
    trace, _ = row
    panels = [8 * ((600 - 64 * step) * jb + jb + 1) for step in range(10) for jb in [min(64, 600 - 64 * step)]]
    sends = trace.where(trace.named(["MPI_Send"]) & (trace.size_bytes > 8 * 600))
    assert sorted(sends.size_bytes.tolist(), reverse=True) == [size for size in panels if size > 8 * 600]


@pytest.mark.parametrize("which", ["column", "row"])
def test_every_send_is_received_by_its_partner_with_its_size(which: str, request: pytest.FixtureRequest) -> None:
    trace, _ = request.getfixturevalue(which)
    matches = match_messages(trace)
    assert len(matches.send) == count(trace, "MPI_Send") == count(trace, "MPI_Recv", "MPI_Irecv")
    assert (trace.size_bytes[matches.send] == trace.size_bytes[matches.receive]).all()
    assert (matches.end >= 0).all()
    # Ranks of one machine read the same clock: nothing is received before it is sent.
    assert (trace.end_s[matches.end] > trace.start_s[matches.send]).all()
    assert count(trace, "MPI_Irecv") == count(trace, "MPI_Wait")


@pytest.mark.parametrize("which", ["column", "row"])
def test_calls_of_a_rank_follow_each_other_inside_the_time_of_the_solver(which, request):
    trace, solver_s = request.getfixturevalue(which)
    assert trace.start_s.min() >= 0
    for rank in (0, 1):
        own = trace.where(trace.rank == rank)
        # A rank that is kept from its core may begin later than the other: the solver's time is that of a rank.
        assert own.end_s.max() - own.start_s.min() <= solver_s
        calls = own.where(own.kind != PHASE)
        assert (calls.start_s[1:] >= calls.end_s[:-1] - 1e-9).all()
        assert calls.duration_s[calls.kind == KERNEL].sum() <= solver_s
    found = breakdown_of(trace)
    numpy.testing.assert_allclose(found.by_rank_s.sum(axis=1), trace.end_s.max(), rtol=1e-6)


def test_the_kernels_of_the_panels_are_those_of_the_algorithm(column: tuple[Trace, float]) -> None:
    trace, _ = column
    # Every column is searched for its pivot and scaled, and its pivot row swapped in on both ranks.
    assert count(trace, "idamax") <= 2 * COLUMN.n
    assert count(trace, "dscal") <= 2 * COLUMN.n
    assert count(trace, "dlocswp") == 2 * COLUMN.n
    updates = trace.where(trace.named(["dgemm"]) & (trace.k == 64))
    # The trailing matrix after the first panel: 536 rows over two ranks, 537 columns with the right-hand side.
    assert updates.m.max() <= 320
    assert updates.n.max() == 537
    phases = trace.where(trace.kind == PHASE)
    steps = {name: Counter(phases.step[phases.named([name])].tolist()) for name in ("pdfact", "pdupdate")}
    assert steps["pdfact"] == dict.fromkeys(range(10), 2)
    assert set(steps["pdupdate"]) == set(range(10))
    assert phases.named(["pdtrsv"]).sum() == 2


@pytest.mark.parametrize(
    "hpl", long_but([COLUMN, ROW, Hpl(n=300, nb=32, p=2, q=2, depth=0, swap="spread-roll", bcast="long")], COLUMN)
)
def test_two_recordings_of_the_same_hpl_make_the_same_calls(request, mpicc: Path, hpl: Hpl, tmp_path: Path) -> None:
    first, _ = request.getfixturevalue("column") if hpl is COLUMN else recorded_hpl(hpl, tmp_path)
    second, _ = recorded_hpl(hpl, tmp_path)
    found = compare_traces(first, second)
    assert found.same_sizes, (found.first, found.first_size)


def test_the_second_system_of_an_input_file_can_be_recorded(mpicc: Path, tmp_path: Path) -> None:
    recorded_hpl(Hpl(n=200, nb=32, p=2, q=1), tmp_path)
    text = (tmp_path / "HPL.dat").read_text().splitlines()
    at = next(i for i, line in enumerate(text) if line.endswith(" N"))
    text[at - 1 : at + 1] = ["2            number of problem sizes", "200 300      N"]
    (tmp_path / "HPL.dat").write_text("\n".join(text) + "\n")
    command = (*MPIRUN, "2", "xhpl-lepaute")
    done = lepaute("record", "--force", "--solve", "2", "-o", "s.parquet", "--", *command, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    trace = read_trace(tmp_path / "s.parquet")
    assert trace.metadata["parameters"]["n"] == 300
    assert count(trace, "dlocswp") == 2 * 300
    missing = lepaute("record", "--force", "--solve", "3", "-o", "x.parquet", "--", *command, folder=tmp_path)
    assert missing.returncode == 2
    assert missing.stderr.splitlines()[-1] == "lepaute: --solve is 3; the program solved 2 systems"


PROGRAMS = Path(__file__).parents[1] / "data" / "programs"


@pytest.fixture(scope="module")
def ring(mpicc: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ring")
    built = ran([mpicc, "-w", PROGRAMS / "record_ring.c", "-lopenblas", "-o", folder / "ring"])
    if built.returncode != 0:
        pytest.skip(f"no BLAS here: {built.stderr[-200:]}")
    return folder / "ring"


def test_ranks_sizes_and_names_are_those_of_the_program(ring: Path, tmp_path: Path) -> None:
    trace = traced(tmp_path, "--", *MPIRUN, "3", ring)
    assert trace.metadata["application"] == "ring"

    def of(name: str) -> Trace:
        return trace.where(trace.named([name]))

    # The communicator is turned around: its next rank is the one before in MPI_COMM_WORLD.
    sends = of("MPI_Isend")
    assert len(sends) == 30
    assert (sends.peer == (sends.rank - 1) % 3).all()
    assert set(sends.size_bytes.tolist()) == {80}  # 5 pairs of doubles, gaps not counted
    assert (sends.tag == 3).all()
    receives, waits = of("MPI_Irecv"), of("MPI_Wait")
    # From anyone, who is known from the wait.
    assert (receives.peer == (receives.rank + 1) % 3).all()
    assert set(receives.size_bytes.tolist()) == {400}
    assert (waits.peer == (waits.rank + 1) % 3).all()  # and the wait knows who it was, and what came
    assert set(waits.size_bytes.tolist()) == {80}
    assert set(of("MPI_Waitall").size_bytes.tolist()) == {80}
    arrivals = of("MPI_Sendrecv_arrival")
    assert (arrivals.peer == (arrivals.rank + 1) % 3).all()
    assert set(arrivals.size_bytes.tolist()) == {28}
    assert set(of("MPI_Allreduce").size_bytes.tolist()) == {8}
    assert set(of("MPI_Bcast").peer.tolist()) == {2}  # rank 0 of the turned communicator
    scales = of("dscal")
    assert len(scales) == 30
    assert set(scales.n.tolist()) == {100}
    assert (scales.kind == KERNEL).all()
    matches = match_messages(trace)
    assert len(matches.send) == 60
    assert {trace.names[code] for code in trace.name[matches.end]} == {"MPI_Wait", "MPI_Sendrecv"}
    assert {trace.names[code] for code in trace.name[matches.sent]} == {"MPI_Waitall", "MPI_Sendrecv"}
    assert set(of("MPI_Allreduce").comm.tolist()) == {1}  # all ranks, but another communicator


def test_a_breakdown_tells_own_code_and_waiting_for_a_rank_that_comes_late(mpicc: Path, tmp_path: Path) -> None:
    subprocess.run([mpicc, "-w", PROGRAMS / "record_late_comer.c", "-o", tmp_path / "late"], check=True)
    trace = traced(tmp_path, "--", *MPIRUN, "3", tmp_path / "late")
    found = breakdown_of(trace)
    assert found.by_rank_s[0, CATEGORIES.index("own_code")] > 0.5  # it sleeps
    # At the reduction of the two, rank 1 waits until rank 0 comes.
    parts, _waited_for = split(trace)
    first, second = ((trace.rank == rank) & trace.named(["MPI_Allreduce"]) for rank in (0, 1))
    behind_s = max(0.0, trace.start_s[first][0] - trace.start_s[second][0])
    assert parts[second][0, CATEGORIES.index("late")] == min(behind_s, trace.duration_s[second][0])
    assert set(trace.comm[trace.named(["MPI_Allreduce"])].tolist()) == {1, 2}
    assert found.unknown == ()
    # What goes to MPI_PROC_NULL or comes from there is nothing.
    nobody = trace.peer == -2
    assert trace.size_bytes[nobody].sum() == 0
    assert {trace.names[code] for code in trace.name[nobody]} == {
        *("MPI_Irecv", "MPI_Isend", "MPI_Sendrecv", "MPI_Sendrecv_arrival")
    }
    sent = trace.named(["MPI_Isend", "MPI_Sendrecv"])
    assert trace.size_bytes[sent].sum() == 800 * (4 + 2)


def test_successive_looks_are_a_row_that_tells_their_number(ring: Path, tmp_path: Path) -> None:
    merged = traced(tmp_path, "--", *MPIRUN, "2", ring)
    probes = merged.where(merged.named(["MPI_Iprobe"]))
    assert probes.n.sum() == 2 * 10 * 1000
    assert len(probes) < 2000
    assert count(traced(tmp_path, "--every-call", "--", *MPIRUN, "2", ring), "MPI_Iprobe") == 2 * 10 * 1000


def test_clocks_that_differ_are_brought_together(ring: Path, tmp_path: Path) -> None:
    # The clock of rank r is put ahead by r million seconds, and the recorder takes each rank for a machine of its own.
    shift = {"LEPAUTE_RECORD_TEST_SHIFT_NS": "1000000000000000"}
    argv = ("mpirun", "--oversubscribe", "-x", "LEPAUTE_RECORD_TEST_SHIFT_NS", "-np", "3", ring)
    trace = traced(tmp_path, "--", *argv, **shift)
    error_s = trace.metadata["clock_error_s"]
    assert 0 < error_s < 5e5  # of the million seconds by which neighbours differ
    reductions = trace.where(trace.named(["MPI_Allreduce"]))
    by_rank = [reductions.where(reductions.rank == rank) for rank in range(3)]
    last_in = numpy.max([one.start_s for one in by_rank], axis=0)
    for one in by_rank:  # nobody leaves a reduction before everybody has come
        assert (one.end_s >= last_in - 2 * error_s).all()


def test_several_programs_of_one_command_are_recorded_together(ring: Path, tmp_path: Path) -> None:
    assert traced(tmp_path, "--", *MPIRUN, "1", ring, ":", "-np", "2", ring).ranks == [0, 1, 2]


def test_a_program_without_a_launcher_is_recorded(ring: Path, tmp_path: Path) -> None:
    trace = traced(tmp_path, "--", ring)
    assert trace.ranks == [0]
    assert trace.metadata["application"] == "ring"
    assert count(trace, "dscal") == 10


def test_the_status_of_a_program_that_fails_is_1_and_its_trace_is_kept(ring: Path, tmp_path: Path) -> None:
    done = lepaute("record", "--force", "--", *MPIRUN, "2", ring, "7", folder=tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "lepaute: the program failed (exit status 7)"
    assert count(read_trace(tmp_path / "trace.parquet"), "dscal") == 20


def test_a_program_that_is_killed_leaves_what_it_did(ring: Path, tmp_path: Path) -> None:
    done = lepaute("record", "--force", "--", *MPIRUN, "2", ring, "dies", folder=tmp_path)
    assert done.returncode == 1
    assert " did not come to MPI_Finalize, the first is rank " in done.stderr
    assert count(read_trace(tmp_path / "trace.parquet"), "dscal") >= 10
    assert [path.name for path in tmp_path.iterdir()] == ["trace.parquet"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("record",), r"missing argument '-- mpirun \.\.\. PROGRAM'.*"),
        (("record", "--", "no-such-mpirun"), r"no-such-mpirun: no such program.*"),
        (("record", "-o", "none/t.parquet", "--", "mpirun", "true"), r".*there is no folder none; create it first"),
        (("record", "--mpicc", "no-such-cc", "--", "mpirun", "true"), r"--mpicc no-such-cc: not found; give the"),
        (("record", "--dat", "HPL.dat", "--", "mpirun", "true"), r"--dat is for the program xhpl-lepaute.*"),
        (("record", "--", "mpirun", "-np", "1", "xhpl-lepaute"), r"HPL\.dat: No such file or directory; .*"),
        (("record", "--", "mpirun", "-np", "1", "true"), r"the program left no recording: it did not call MPI_Init.*"),
        (("record", "--", "mpirun", "-np", "1", "false"), r"the program ended with exit status 1 before MPI_Init.*"),
    ],
)
def test_what_cannot_be_recorded_is_refused_in_one_line(mpicc, tmp_path, arguments, complaint):
    done = lepaute(*arguments, folder=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    last = [line for line in done.stderr.splitlines() if line.startswith("lepaute: ")]
    assert len(last) == 1
    assert re.match("lepaute: " + complaint, last[0]), last
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_recording_leaves_no_process_and_no_folder(mpicc: Path, tmp_path: Path) -> None:
    import signal

    consent = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    mark = f"317.{os.getpid()}"
    process = subprocess.Popen(
        [sys.executable, "-m", "lepaute.cli.main", "record", "--", "mpirun", "-np", "1", "sleep", mark],
        env={**os.environ, **consent},
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )

    def running() -> bool:
        return subprocess.run(["pgrep", "-f", f"^sleep {mark}"], capture_output=True, check=False).returncode == 0

    wait_until(running, "the recorded program")
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=HANG_S)
    assert process.returncode == 130
    assert told.splitlines()[-1] == "lepaute: interrupted"
    assert not running()
    assert list(tmp_path.iterdir()) == []


def test_a_program_of_another_library_is_recorded_with_its_own_launcher_and_refused_with_another(mpicc, tmp_path):
    mpich = library_named("mpich")
    (tmp_path / "p.c").write_text(
        "#include <mpi.h>\nint main(int c, char **v) { MPI_Init(&c, &v); MPI_Barrier(MPI_COMM_WORLD); "
        "return MPI_Finalize(); }\n"
    )
    mpich.compile([str(tmp_path / "p.c"), "-o", str(tmp_path / "p")], what="building the program")
    assert count(traced(tmp_path, "--", mpich.launcher.path, "-np", "2", "./p"), "MPI_Barrier") == 2
    done = lepaute("record", "--force", "--", *MPIRUN, "2", "./p", folder=tmp_path)
    assert done.returncode == 2
    assert "p is linked to MPICH, and" in done.stderr
