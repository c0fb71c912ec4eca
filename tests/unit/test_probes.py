"""The probes do what HPL does: the counts and sizes of their calls follow from HPL's algorithm, not from a past run."""

import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from support_hpl_counts import BY_LENGTH, BY_VOLUME, GLUE, UNIT_S, counted_runs, simulated
from support_limits import HANG_S, ran, within
from support_probes import Row, read_raw, run_dgemm, run_p2p, run_steps, written

from lepaute.errors import EnvironmentProblem
from lepaute.kit import command
from lepaute.kit.mpi_launcher import binding_works, find_launcher
from lepaute.measure import probes, toolchain
from lepaute.measure.hpl_source import build_hpl
from lepaute.simulate.apps.hpl.hpl_out import read_hpl_results
from lepaute.simulate.apps.hpl.parameters import Hpl

pytestmark = pytest.mark.machine

NB = 32
PHASES = {"pdfact", "pdupdate", "pdtrsv"}


def _core() -> int:
    return min(os.sched_getaffinity(0))


def _step_design(path: Path, *rows: tuple[int, int, int, int]) -> Path:
    """A design of (m, n, chunks, steps)."""
    lines = [f"{i},hpl_step,{m},{n},{NB},{chunks},{steps}\n" for i, (m, n, chunks, steps) in enumerate(rows)]
    return written(path, "#@generator=test\ndesign_row,kind,m,n,nb,chunks,steps\n" + "".join(lines))


def _sizes(rows: list[Row], kernel: str) -> list[tuple[int, int, int]]:
    return [(int(row["m"]), int(row["n"]), int(row["k"])) for row in rows if row["kernel"] == kernel]


def test_one_rank_makes_the_calls_that_hpl_makes(built: probes.Probes, tmp_path: Path) -> None:
    m, n, chunks, steps = 200, 230, 2, 2
    design = _step_design(tmp_path / "d.csv", (m, n, chunks, steps))
    files = run_steps(built, design, tmp_path / "raw", cpus=[_core()])
    header, rows = read_raw(files[0])
    assert [path.name for path in files] == ["raw.r0"]
    assert (header["grid"], header["generator"]) == ("1x1", "probe-hpl-steps")
    assert float(header["clock_cost_s"]) > 0
    for step in range(steps):
        now = [row for row in rows if int(row["position"]) == step]
        count = Counter(row["kernel"] for row in now)
        # Each column: one pivot search, one scaling, one swap, two rows copied. The recursion halves the panel down
        # to leaves of two columns (NBMIN = NDIV = 2): NB/2 leaves with one dgemv, NB/2 - 1 inner nodes.
        assert {name: count[name] for name in ("idamax", "dscal", "dlocswp", "dcopy")} == {
            "idamax": NB, "dscal": NB, "dlocswp": NB, "dcopy": 2 * NB,
        }  # fmt: skip
        assert count["dgemv"] == NB // 2
        updates = chunks + 1
        # The right-looking recursion updates after each half, the last one too, where no column is left.
        for kernel in ("dtrsm", "dgemm"):
            widths = [0 in size for size in _sizes(now, kernel)]
            assert (widths.count(True), widths.count(False)) == (NB // 2 - 1, NB // 2 - 1)
        assert count["dgemm_nn"] == count["dtrsm_left"] == count["dlaswp00N"] == count["pdupdate"] == updates
        assert count["pdfact"] == 1
        # Below the panel m - (step + 1) NB rows are left; n counts no right-hand side, HPL carries it as a column.
        below, right = m - (step + 1) * NB, n + 1 - (step + 1) * NB
        assert _sizes(now, "pdfact") == [(m - step * NB, NB, 0)]
        expected = [(below, NB, NB)] * chunks + [(below, right - chunks * NB, NB)]
        assert _sizes(now, "pdupdate") == expected
        assert _sizes(now, "dgemm_nn") == expected
        assert _sizes(now, "dtrsm_left") == [(NB, width, NB) for _, width, _ in expected]


def test_the_triangular_solve_at_the_end_of_a_row_applies_each_entry_above_the_diagonal_once(built, tmp_path):
    m, n, steps = 200, 230, 2
    design = _step_design(tmp_path / "d.csv", (m, n, 0, steps))
    _, rows = read_raw(run_steps(built, design, tmp_path / "raw", cpus=[_core()])[0])
    assert {int(row["position"]) for row in rows} == set(range(steps + 1))
    solve = [row for row in rows if int(row["position"]) == steps]
    assert {row["kernel"] for row in solve} == {"pdtrsv", "dtrsv", "dgemv", "daxpy"}
    order = min(m, n)
    assert _sizes(solve, "pdtrsv") == [(order, order, 0)]
    # From the last block upwards: the last one is what NB leaves over.
    blocks = [order % NB] + [NB] * (order // NB)
    assert _sizes(solve, "dtrsv") == [(0, block, 0) for block in blocks]
    applied = sum(height * width for height, width, _ in _sizes(solve, "dgemv"))
    assert 2 * applied == order**2 - sum(block**2 for block in blocks)
    assert _sizes(solve, "daxpy") == [(0, length * NB, 0) for length in (1, 2, 3, 4)]


def test_every_kernel_runs_inside_a_phase_and_not_beyond_its_time(built: probes.Probes, tmp_path: Path) -> None:
    steps = {"0": 3, "1": 1}
    design = _step_design(tmp_path / "d.csv", (300, 300, 1, steps["0"]), (128, 400, 0, steps["1"]))
    _, rows = read_raw(run_steps(built, design, tmp_path / "raw", cpus=[_core()])[0])
    phases = [row for row in rows if row["kernel"] in PHASES]
    # A factorisation and two updates a step, or one where there are no chunks; a solve a row.
    assert len(phases) == 3 * 3 + 2 + len(steps)
    # The sums of messages after the solve are timed apart.
    apart = [row for row in rows if row["kernel"] == "daxpy" and int(row["position"]) == steps[row["design_row"]]]
    assert len(apart) == 4 * len(steps)
    # Memory is touched first before the first row.
    assert {row["design_row"] for row in rows if row["kernel"] == "first_touch"} == {"0"}
    kernels = [row for row in rows if row["kernel"] not in (*PHASES, "first_touch") and row not in apart]
    tick_s = 2e-9  # both columns are rounded to a nanosecond

    def inside(row: Row, phase: Row) -> bool:
        start, end = float(row["start_s"]), float(row["start_s"]) + float(row["duration_s"])
        first = float(phase["start_s"])
        return first - tick_s <= start and end <= first + float(phase["duration_s"]) + tick_s

    assert all(any(inside(row, phase) for phase in phases) for row in kernels)
    assert sum(float(row["duration_s"]) for row in kernels) <= sum(float(row["duration_s"]) for row in phases)


def test_two_ranks_share_the_rows_and_call_the_transposed_swaps(built, two_cores, tmp_path):
    m, n = 256, 200
    files = run_steps(built, _step_design(tmp_path / "d.csv", (m, n, 0, 2)), tmp_path / "raw", cpus=two_cores)
    by_rank = [read_raw(path)[1] for path in files]
    assert [{row["rank"] for row in rows} for rows in by_rank] == [{"0"}, {"1"}]
    assert [{int(row["cpu"]) for row in rows} for rows in by_rank] == [{two_cores[0]}, {two_cores[1]}]
    for step in range(2):
        # Blocks of NB rows go round: 256 rows are four blocks each; the owner of the panel has one block less below.
        now = [[row for row in rows if int(row["position"]) == step] for rows in by_rank]
        below = [_sizes(rows, "pdupdate")[0][0] for rows in now]
        assert sum(below) == m - (step + 1) * NB
        owner, other = now[step % 2], now[1 - step % 2]
        names = [{row["kernel"] for row in rows} for rows in (owner, other)]
        assert {"dlaswp01T", "dlaswp03T", "dlatcpy"} <= names[0]
        assert {"dlaswp02N", "dlaswp04T"} <= names[1]
        assert not {"dlaswp00N", "dgemm_nn", "dtrsm_left"} & (names[0] | names[1])
        # U is held transposed: the triangle is on its right, and the product takes U transposed.
        for rows, height in zip(now, below, strict=True):
            width = _sizes(rows, "pdupdate")[0][1]
            assert [size for size in _sizes(rows, "dgemm") if size[2] == NB] == [(height, width, NB)]
            assert [size for size in _sizes(rows, "dtrsm") if size[2] == NB] == [(width, NB, NB)]


@pytest.mark.parametrize("rfact", ["left", "crout", "right"])
@pytest.mark.parametrize("pfact", ["left", "crout", "right"])
def test_each_factorisation_searches_one_pivot_a_column(built, tmp_path, pfact, rfact):
    design = _step_design(tmp_path / "d.csv", (100, 100, 0, 1))
    options = ("--pfact", pfact, "--rfact", rfact, "--nbmin", "8")
    files = run_steps(built, design, tmp_path / "raw", cpus=[_core()], options=options)
    # Position 1 is the solve at the end, which calls dtrsv whatever the factorisation.
    count = Counter(row["kernel"] for row in read_raw(files[0])[1] if row["position"] == "0")
    assert count["idamax"] == count["dscal"] == count["dlocswp"] == NB
    # What the variants differ in: the right-looking leaf updates by dger, the left-looking one solves by dtrsv.
    assert (count["dger"] > 0, count["dtrsv"] > 0) == (pfact == "right", pfact == "left")


#: L1, U, swap: every form of each, with both of the others'.
FORMS = [
    (l1, u, swap)
    for l1 in ("transposed", "no-transposed")
    for u in ("transposed", "no-transposed")
    for swap in ("binary-exchange", "spread-roll")
]
#: PFACT, RFACT, NBMIN, NDIV of each of the forms: every level with every other.
FACTORISATIONS = [
    *(("right", "left", 4, 2), ("left", "crout", 8, 3), ("crout", "right", 1, 2), ("right", "crout", 8, 2)),
    *(("left", "right", 2, 3), ("crout", "left", 4, 2), ("right", "right", 2, 3), ("left", "left", 4, 2)),
]


@pytest.mark.parametrize(("form", "factorisation"), list(zip(FORMS, FACTORISATIONS, strict=True)))
def test_all_steps_of_a_matrix_call_the_kernels_of_hpl_as_often_and_on_the_same_sizes(
    built: probes.Probes,
    two_cores: tuple[int, int],
    tmp_path: Path,
    form: tuple[str, str, str],
    factorisation: tuple[str, str, int, int],
) -> None:
    # The engine counts as the real program does (golden/test_hpl_counts.py).
    names = ("l1", "u", "swap", "pfact", "rfact", "nbmin", "ndiv")
    options = dict(zip(names, (*form, *factorisation), strict=True))
    hpl = Hpl(n=192, nb=24, p=2, q=1, depth=0, **options)
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    header, counted = _counted_steps(built, hpl, two_cores, tmp_path, words)
    assert set(words[1::2]) <= {item.partition("=")[2] for item in header["hpl_options"].split()}
    uses = {name: use for name, use in simulated(hpl).kernels.items() if use.calls and name not in GLUE}
    # Which rows are swapped is drawn: as many calls, for as many rows on average.
    assert {name: calls for name, (calls, _) in counted.items()} == {name: use.calls for name, use in uses.items()}
    for name, (_, work) in counted.items():
        if not name.startswith("dlaswp"):
            assert work == pytest.approx(uses[name].time_s / UNIT_S, rel=1e-9), name


def test_all_steps_of_a_matrix_count_as_the_recorded_run_of_the_real_program(built, two_cores, tmp_path):
    run = next(run for run in counted_runs() if run.series == "columns" and (run.hpl.n, run.hpl.p) == (192, 2))
    _, counted = _counted_steps(built, run.hpl, two_cores, tmp_path, ())
    assert {name: calls for name, (calls, _) in counted.items()} == {
        name: calls for name, (calls, _) in run.kernels.items()
    }
    moved = {name for name in counted if name.startswith("dlaswp")}  # which depends on the matrix
    assert {name: counted[name] for name in set(counted) - moved} == {
        name: run.kernels[name] for name in set(run.kernels) - moved
    }


def _counted_steps(
    built: probes.Probes, hpl: Hpl, cores: tuple[int, int], folder: Path, options: Sequence[str]
) -> tuple[dict[str, str], dict[str, tuple[int, int]]]:
    """Header, and calls and work of each kernel over both ranks, of the steps that factor a matrix and solve it."""
    design = folder / "d.csv"
    row = f"0,hpl_step,{hpl.n},{hpl.n},{hpl.nb},0,{hpl.n // hpl.nb}\n"
    written(design, "#@generator=test\ndesign_row,kind,m,n,nb,chunks,steps\n" + row)
    files = run_steps(built, design, folder / "raw", cpus=cores, options=options)
    counted: dict[str, tuple[int, int]] = {}
    for path in files:
        header, rows = read_raw(path)
        # Timed apart: the sums of messages after the solve, and the copies that ranks beyond a power of two make.
        apart = max(index for index, row in enumerate(rows) if row["kernel"] == "pdtrsv")
        for row in rows[:apart]:
            name, m, n, k = row["kernel"], int(row["m"]), int(row["n"]), int(row["k"])
            work = n if name in BY_LENGTH else m * n * k if name in BY_VOLUME else m * n
            if name in PHASES | {"dlaswp05N", "dlaswp05T", "dcopy_contiguous"} or work == 0:
                continue
            calls, total = counted.get(name, (0, 0))
            counted[name] = calls + 1, total + work
    return header, counted


def test_ranks_that_a_power_of_two_leaves_over_are_stood_for_by_a_copy_timed_apart(built, two_cores, tmp_path):
    design = _step_design(tmp_path / "d.csv", (256, 300, 1, 2))
    for name, u in (("dlaswp05T", "transposed"), ("dlaswp05N", "no-transposed")):
        for path in run_steps(built, design, tmp_path / "raw", cpus=two_cores, options=("--u", u)):
            _, rows = read_raw(path)
            updates = _sizes(rows, "pdupdate")
            copies = _sizes(rows, name)
            assert [n for _, n, _ in copies] == [n for _, n, _ in updates]
            assert all(1 <= m <= NB for m, _, _ in copies)


def test_every_blas_symbol_that_hpl_calls_is_wrapped() -> None:
    library = build_hpl() / "libhpl.a"
    symbols = ran(["nm", "-u", str(library)], check=True).stdout.split()
    called = {symbol for symbol in symbols if symbol.startswith("cblas_")}
    assert "cblas_dgemm" in called
    assert called <= set(probes.WRAPPED_SYMBOLS)


def test_the_dgemm_probe_times_each_row_once_and_in_order(built: probes.Probes, tmp_path: Path) -> None:
    shapes = [(300, 200, 128), (1, 1, 1), (64, 1000, 32)]
    lines = "".join(f"{i},dgemm,{m},{n},{k}\n" for i, (m, n, k) in enumerate(shapes))
    design = written(tmp_path / "d.csv", "design_row,kind,m,n,k\n" + lines)
    header, rows = read_raw(run_dgemm(built, design, tmp_path / "raw", _core())[0])
    assert header["warmup_calls"] == "5"
    assert "OpenBLAS" in header["blas_config"]
    assert header["blas_core"]
    assert [(row["design_row"], *_sizes([row], "dgemm")[0]) for row in rows] == [
        (str(i), *shape) for i, shape in enumerate(shapes)
    ]
    starts = [float(row["start_s"]) for row in rows]
    assert starts == sorted(starts)
    # No core reaches 1 Tflop/s in double precision: a duration below that bound would be one of nothing computed.
    assert float(rows[0]["duration_s"]) > 2 * 300 * 200 * 128 / 1e12


def test_each_operation_is_reported_by_the_ranks_that_time_it(built, two_cores, tmp_path):
    operations = ["recv", "isend", "pingpong", "exchange", "iprobe", "test", "wtime"]
    reporters = {"recv": {"1"}, "isend": {"0"}, "pingpong": {"0"}}
    todo = [(name, size) for size in (0, 8, 10_000, 1 << 20) for name in operations]
    lines = "".join(f"{i},{name},{size}\n" for i, (name, size) in enumerate(todo))
    design = written(tmp_path / "d.csv", "design_row,operation,size_bytes\n" + lines)
    files = run_p2p(built, design, tmp_path / "raw", cpus=two_cores)
    rows = [row for path in files for row in read_raw(path)[1]]
    for number, (name, size) in enumerate(todo):
        mine = [row for row in rows if row["design_row"] == str(number)]
        assert {(row["operation"], row["size_bytes"]) for row in mine} == {(name, str(size))}
        assert {row["rank"] for row in mine} == reporters.get(name, {"0", "1"})


@pytest.mark.parametrize("buffers", ["cold", "warm"])
def test_a_large_message_takes_the_time_that_its_bytes_need(built, two_cores, tmp_path, buffers):
    lines = "".join(f"{i},pingpong,{8 if i % 2 else 4 << 20}\n" for i in range(14))
    design = written(tmp_path / "d.csv", "design_row,operation,size_bytes\n" + lines)
    files = run_p2p(built, design, tmp_path / "raw", cpus=two_cores, options=("--buffers", buffers))
    header, rows = read_raw(files[0])
    assert header["buffers"] == buffers
    # 8 MiB there and back: no memory moves that at 1 TB/s. A small one may take longer where others compute.
    assert min(float(row["duration_s"]) for row in rows if row["size_bytes"] == str(4 << 20)) > 8e-6


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ("0,hpl_step,100,63,32,0,2\n", ":2: n is 63; 2 steps and 0 chunks of nb = 32 columns want n >= 64"),
        ("0,hpl_step,63,100,32,0,2\n", ":2: m is 63; 2 steps of nb = 32 want m >= 64"),
        ("0,hpl_step,64,64,32,0,2\n1,hpl_step,x,64,32,0,2\n", ":3: m is 'x'; it wants an integer from 1"),
        ("0,dgemm,64,64,32,0,2\n", ":2: kind is 'dgemm'; probe-hpl-steps runs hpl_step"),
        ("0,hpl_step,64,64\n", ":2: has 4 cells, the header has 7"),
        ("", ": has no design rows"),
    ],
)
def test_a_bad_design_is_refused_with_file_and_line(built, tmp_path, rows, complaint):
    design = written(tmp_path / "d.csv", "design_row,kind,m,n,nb,chunks,steps\n" + rows)
    # Without mpirun, which takes seconds to report a failure: MPI starts a single rank by itself.
    argv = [str(built.hpl_steps), "--design", str(design), "--out", str(tmp_path / "raw"), "--seed", "1"]
    result = ran(argv)
    assert result.returncode == 2
    # MPI and what it loads may write lines of their own before.
    told = [line for line in result.stderr.splitlines() if line.startswith("probe-")]
    assert len(told) == 1
    assert told[0].startswith(f"probe-hpl-steps: {design}{complaint}")


def test_a_failure_under_mpirun_tells_the_probe_s_own_complaint(built: probes.Probes, tmp_path: Path) -> None:
    design = written(tmp_path / "d.csv", "design_row,kind,m,n,nb,chunks,steps\n")
    with pytest.raises(EnvironmentProblem) as caught:
        run_steps(built, design, tmp_path / "raw", cpus=[_core()])
    assert str(caught.value) == (
        f"the HPL step probe failed (exit status 2): probe-hpl-steps: {design}: has no design rows"
    )


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--colour", "red"], "unknown option '--colour'; --help lists those that exist"),
        (["--design"], "option --design wants a value"),
        (["--design", "x"], "option --out is missing"),
        (["--design", "x", "--out", "y", "--cpu", "0", "--seed", "1x"], "option --seed is '1x'"),
        (["--design", "x", "--design", "x"], "option --design is given twice"),
        (["--design", "/nowhere/d", "--out", "y", "--cpu", "0", "--seed", "1"], "/nowhere/d: cannot be read"),
    ],
)
def test_a_wrong_option_is_one_line_and_status_2(built: probes.Probes, arguments: list[str], complaint: str) -> None:
    result = ran([str(built.dgemm), *arguments])
    assert result.returncode == 2
    assert result.stderr.startswith(f"probe-dgemm: {complaint}")
    assert result.stderr.count("\n") == 1


def test_a_program_that_takes_too_long_is_ended_with_its_children(tmp_path: Path) -> None:
    # The child leaves the group of its parent, as the ranks of mpirun do, and ignores the request to end.
    child = "trap '' TERM; echo $$ > pid; exec sleep 3600"
    script = f'set -m; sh -c "{child.replace("$", chr(92) + "$")}" & wait'
    with (
        within("the end of both"),
        pytest.raises(EnvironmentProblem, match="the sleeper did not finish within 2 s and was stopped"),
    ):
        command.run_command(["bash", "-c", script], what="the sleeper", timeout_s=2.0, folder=tmp_path)
    pid = int((tmp_path / "pid").read_text())
    status = Path(f"/proc/{pid}/stat")
    # Gone, or a zombie that init has not collected yet.
    assert not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z"


def test_a_failure_shows_the_program_s_own_line_and_not_mpirun_s() -> None:
    noise = "-----\nPrimary job terminated normally, but 1 process returned\na non-zero exit code.\n-----\n"
    assert command.complaint_of("", f"{noise}probe-p2p: no such file\n{noise}") == "probe-p2p: no such file"


def test_more_ranks_than_cores_are_refused() -> None:
    allowed = os.sched_getaffinity(0)
    with pytest.raises(EnvironmentProblem, match=f"{len(allowed) + 1} ranks need"):
        toolchain.start_here(len(allowed) + 1)
    with pytest.raises(EnvironmentProblem, match="do not give 1 ranks a core each"):
        toolchain.start_here(1, [max(allowed) + 1])


def test_the_kernel_set_and_one_thread_a_rank_are_in_the_environment() -> None:
    start = toolchain.start_here(1, [_core()], coretype="Haswell")
    assert start.argv[-2:] == ("-np", "1")
    assert start.environment["OPENBLAS_CORETYPE"] == "Haswell"
    assert start.environment["OPENBLAS_NUM_THREADS"] == "1"
    assert "OPENBLAS_CORETYPE" not in toolchain.start_here(1, [_core()]).environment


def test_the_driver_reports_a_run_whose_residual_hpl_accepts(built, two_cores, tmp_path):
    values = [8, 1, 300, 1, NB, 0, 1, 1, 2, 16.0, 1, 1, 1, 2, 1, 2, 1, 2, 1, 2, 1, 1, 0, NB, 0, 0, 1, 8]
    written(tmp_path / "HPL.dat", ("HPL\ntest\nHPL.out\n" + "".join(f"{value}\n" for value in values)))
    start = toolchain.start_here(2, two_cores)
    argv = [*start.argv, str(build_hpl() / "xhpl-lepaute")]
    record = command.run_command(argv, what="HPL", timeout_s=HANG_S, environment=start.environment, folder=tmp_path)
    lines = [json.loads(line) for line in record.stdout.splitlines() if line.startswith("{")]
    assert len(lines) == 1
    result = lines[0]
    assert [result[key] for key in ("n", "nb", "p", "q")] == [300, NB, 1, 2]
    assert [rank["rank"] for rank in result["ranks"]] == [0, 1]
    assert [rank["cpu"] for rank in result["ranks"]] == list(two_cores) or not binding_works(find_launcher())
    assert result["time_s"] == max(rank["wall_s"] for rank in result["ranks"])
    flop = 2 / 3 * 300**3 + 3 / 2 * 300**2
    assert result["gflops"] == pytest.approx(flop / result["time_s"] / 1e9, rel=1e-6)
    # HPL's own report.
    assert "1 tests completed and passed residual checks" in (tmp_path / "HPL.out").read_text()
    (printed,) = read_hpl_results(tmp_path / "HPL.out", {})
    assert (printed.hpl.n, printed.hpl.nb, printed.hpl.q) == (300, NB, 2)
    assert printed.time_s >= result["time_s"] - 0.006  # of hundredths, by another timer around the same call and more


def test_the_driver_refuses_to_run_without_its_input(tmp_path: Path) -> None:
    start = toolchain.start_here(1, [_core()])
    argv = [*start.argv, str(build_hpl() / "xhpl-lepaute")]
    with pytest.raises(EnvironmentProblem, match=r"xhpl-lepaute: .* neither an HPL\.dat nor an hpccinf\.txt"):
        command.run_command(argv, what="HPL", timeout_s=HANG_S, environment=start.environment, folder=tmp_path)
