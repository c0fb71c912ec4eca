"""Probes on several cores at once, of messages in a ring, and those that set their conditions themselves."""

import csv
import os
import struct
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from support_limits import HANG_S, ran
from support_probes import Row, read_raw, run_dgemm, run_ring, run_steps, written

import lepaute as lp
from lepaute.measure import probes
from lepaute.measure.design import ring_design, write_design
from lepaute.measure.layout import layout_here
from lepaute.measure.toolchain import C_FLAGS, probe_source

pytestmark = pytest.mark.machine


@pytest.fixture(scope="module")
def pus() -> tuple[int, int]:
    cores = layout_here().cores
    if len(cores) < 2:
        pytest.skip("several cores are wanted")
    return cores[0].pu, cores[1].pu


def _dgemm_design(folder: Path, calls: int) -> Path:
    lines = "".join(f"{number},dgemm,400,400,100\n" for number in range(calls))
    return written(folder / "d.csv", "design_row,kind,m,n,k\n" + lines)


def _steps_design(folder: Path, rows: int) -> Path:
    lines = "".join(f"{number},hpl_step,600,400,32,1,2\n" for number in range(rows))
    return written(folder / "d.csv", "design_row,kind,m,n,nb,chunks,steps\n" + lines)


def _is_designed(kernel: str) -> bool:
    """Pivots, and with them which rows are swapped, differ with the matrix's content; sizes of first touches are drawn
    by each process. All else is the design's.
    """
    return "swp" not in kernel and kernel != "first_touch"


def test_processes_of_the_dgemm_probe_all_make_all_calls(built, pus, tmp_path):
    # More processes than cores, as a made-up layout has them.
    files = run_dgemm(built, _dgemm_design(tmp_path, 100), tmp_path / "raw", *pus, *pus)
    assert len(files) == 4
    tables = [read_raw(path)[1] for path in files]
    assert [{row["rank"] for row in rows} for rows in tables] == [{"0"}, {"1"}, {"2"}, {"3"}]
    assert [{int(row["cpu"]) for row in rows} for rows in tables] == [{pu} for pu in (*pus, *pus)]
    assert all([row["design_row"] for row in rows] == [str(number) for number in range(100)] for rows in tables)


def test_a_process_that_fails_takes_the_others_along_with_one_line(built, pus, tmp_path):
    beyond = max(os.sched_getaffinity(0)) + 500
    words = ["--design", str(_dgemm_design(tmp_path, 2)), "--out", str(tmp_path / "raw"), "--seed", "1"]
    argv = [str(built.dgemm), *words, "--cpus", f"{pus[0]},{beyond},{pus[1]}"]
    done = ran(argv)
    assert done.returncode == 2
    assert done.stderr.startswith(f"probe-dgemm: cannot be bound to core {beyond} (")
    assert done.stderr.count("\n") == 1


def test_a_process_of_two_threads_uses_two_cores(built: probes.Probes, pus: tuple[int, int], tmp_path: Path) -> None:
    (path,) = run_dgemm(built, _dgemm_design(tmp_path, 20), tmp_path / "raw", *pus, threads=2)
    header, rows = read_raw(path)
    assert header["threads"] == "2"
    assert {int(row["cpu"]) for row in rows} == {pus[0]}
    (path,) = run_steps(built, _steps_design(tmp_path, 2), tmp_path / "steps", pus, alone=True, threads=2)
    header, rows = read_raw(path)
    assert (header["threads"], header["grid"]) == ("2", "1x1")
    assert {int(row["cpu"]) for row in rows} == {pus[0]}


def test_ranks_that_are_grids_of_their_own_log_the_same_calls_and_nothing_of_what_they_do_while_waiting(
    built: probes.Probes, pus: tuple[int, int], tmp_path: Path
) -> None:
    design = _steps_design(tmp_path, 4)
    shared = run_steps(built, design, tmp_path / "shared", (*pus, pus[0]), alone=True)
    (alone,) = run_steps(built, design, tmp_path / "alone", pus[:1], alone=True)
    expected = [(row["design_row"], row["kernel"], row["m"], row["n"]) for row in read_raw(alone)[1]]
    for path in shared:
        calls = [(row["design_row"], row["kernel"], row["m"], row["n"]) for row in read_raw(path)[1]]
        assert [call for call in calls if _is_designed(call[1])] == [call for call in expected if _is_designed(call[1])]


def test_ranks_take_turns_in_writing_rows(built: probes.Probes, pus: tuple[int, int], tmp_path: Path) -> None:
    files = run_steps(built, _steps_design(tmp_path, 4), tmp_path / "raw", pus, ("--every", "2"))
    calls = [[row for row in read_raw(path)[1] if row["kernel"] != "first_touch"] for path in files]
    assert [{row["design_row"] for row in rows} for rows in calls] == [{"0", "2"}, {"1", "3"}]


def run_design(
    built: probes.Probes, folder: Path, cpus: Sequence[int], *options: str
) -> tuple[list[dict[str, str]], list[Row]]:
    write_design(ring_design(5, ranks=len(cpus), sizes=4, size_range_bytes=(1, 1 << 20)), folder / "d.csv")
    raw = [read_raw(path) for path in run_ring(built, folder / "d.csv", folder / "raw", cpus, options)]
    return [header for header, _ in raw], [row for _, rows in raw for row in rows]


def calls_of(rows: list[Row], role: str, operation: str, condition: str) -> set[str]:
    return {
        row["call"]
        for row in rows
        if (row["role"], row["operation"], row["condition"]) == (role, operation, condition)
    }  # fmt: skip


def test_ranks_poll_and_compute_where_the_condition_says_so_and_nowhere_else(built, two_cores, tmp_path):
    _, rows = run_design(built, tmp_path, two_cores)
    plain = {"exchange", "send", "recv"}
    shift = {"exchange", "isend", "recv", "wait"}
    for role in ("first", "second"):
        assert calls_of(rows, role, "pingpong", "idle") == plain
        assert calls_of(rows, role, "pingpong", "dgemm") == plain  # two ranks leave nobody to compute
        assert calls_of(rows, role, "pingpong", "iprobe") == plain | {"iprobe"}
        assert {"iprobe"} <= calls_of(rows, role, "pingpong", "iprobe+dgemm") - plain <= {"iprobe", "dgemm"}
    assert calls_of(rows, "all", "shift", "idle") == shift
    assert calls_of(rows, "all", "shift", "dgemm") == shift | {"dgemm"}
    assert calls_of(rows, "all", "shift", "iprobe") == shift | {"iprobe"}
    assert {"iprobe"} <= calls_of(rows, "all", "shift", "iprobe+dgemm") - shift <= {"iprobe", "dgemm"}


def test_each_wait_that_polls_ends_with_one_look_that_finds_the_message(built, two_cores, tmp_path):
    _, rows = run_design(built, tmp_path, two_cores)
    waits = Counter(
        (row["design_row"], row["rank"]) for row in rows if row["call"] == "recv" and "iprobe" in row["condition"]
    )
    assert Counter((row["design_row"], row["rank"]) for row in rows if row["found"] == "1") == waits
    assert set(waits.values()) == {1}
    for row in rows:
        if row["call"] == "exchange":
            kept = sum(
                other["call"] == "iprobe" and (other["design_row"], other["rank"]) == (row["design_row"], row["rank"])
                for other in rows
            )
            assert int(row["polls"]) >= kept  # those beyond the first that found nothing are counted only


def test_the_calls_of_an_exchange_lie_within_it(built, two_cores, tmp_path):
    _, rows = run_design(built, tmp_path, two_cores)
    whole = {(row["design_row"], row["rank"]): row for row in rows if row["call"] == "exchange"}
    tick_s = 2e-9  # both columns are rounded to a nanosecond
    for row in rows:
        around = whole[row["design_row"], row["rank"]]
        start, first = float(row["start_s"]), float(around["start_s"])
        assert first - tick_s <= start
        assert start + float(row["duration_s"]) <= first + float(around["duration_s"]) + tick_s


def test_a_ring_over_nodes_goes_from_node_to_node_and_others_stand_by(built, two_cores, tmp_path):
    # Four ranks on two cores, as if two nodes had two each.
    headers, rows = run_design(built, tmp_path, [*two_cores, *two_cores], "--ranks-per-node", "2")
    assert [header["place"] for header in headers] == ["0", "2", "1", "3"]
    rank_of = {int(header["place"]): header["rank"] for header in headers}
    speaking = {(row["design_row"], row["role"]): row for row in rows if row["call"] == "exchange"}
    pairs = set()
    for (number, role), row in speaking.items():
        if role == "first":
            first, second = int(row["first"]), speaking[number, "second"]
            assert (row["rank"], second["rank"]) == (rank_of[first], rank_of[(first + 1) % 4])
            pairs.add((int(row["rank"]) // 2, int(second["rank"]) // 2))
    assert all(one != other for one, other in pairs)  # always another node
    bystanders = [row for row in rows if row["role"] == "bystander"]
    assert calls_of(bystanders, "bystander", "pingpong", "dgemm") == {"dgemm"}
    assert calls_of(bystanders, "bystander", "pingpong", "iprobe") == {"iprobe"}
    assert calls_of(bystanders, "bystander", "pingpong", "iprobe+dgemm") == {"iprobe", "dgemm"}
    assert calls_of(bystanders, "bystander", "pingpong", "idle") == set()


FILL = Path(__file__).parents[1].joinpath("data", "programs", "probe_conditions_fill.c").read_text()


def compiled(folder: Path, name: str, sources: list[str], libraries: tuple[str, ...] = ()) -> Path:
    program = folder / name
    paths = [source if "/" in source else str(probe_source() / source) for source in sources]
    argv = ["gcc", *C_FLAGS, "-Werror", f"-I{probe_source()}", *paths, *libraries, "-lm", "-o", str(program)]
    try:
        ran(argv, check=True)
    except FileNotFoundError:
        pytest.skip("there is no gcc")
    return program


@pytest.fixture(scope="module")
def memory_probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sources = ["probe_memory.c", "memory_read.c", "probe_common.c"]
    return compiled(tmp_path_factory.mktemp("memory"), "probe-memory", sources)


@pytest.fixture(scope="module")
def dgemm_probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sources = ["probe_dgemm.c", "content.c", "kernel_log.c", "probe_common.c"]
    return compiled(tmp_path_factory.mktemp("dgemm"), "probe-dgemm", sources, ("-lopenblas",))


@pytest.fixture(scope="module")
def fill(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fill")
    (folder / "fill.c").write_text(FILL)
    return compiled(folder, "fill", [str(folder / "fill.c"), "content.c", "probe_common.c"])


def filled(fill: Path, content: str) -> tuple[float, ...]:
    result = subprocess.run([str(fill), content], capture_output=True, check=True, timeout=HANG_S)
    return struct.unpack("1000d", result.stdout)


def run(program: Path, design: str, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    (folder / "d.csv").write_text(design)
    core = str(min(os.sched_getaffinity(0)))
    words = ["--design", str(folder / "d.csv"), "--out", str(folder / "raw.csv"), "--seed", "1", *more]
    words += [] if "--cpu" in more else ["--cpu", core]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return ran([str(program), *words], env=environment)


def raw_rows(folder: Path) -> list[dict[str, str]]:
    lines = (folder / "raw.csv").read_text().splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def test_masked_numbers_are_random_ones_whose_low_bits_are_zero_and_other_content_is_what_it_says(fill: Path) -> None:
    random = filled(fill, "random")
    assert min(random) >= -0.5
    assert max(random) < 0.5
    assert len(set(random)) == 1000
    assert filled(fill, "masked:0") == random
    for bits in (10, 40, 52):
        masked = filled(fill, f"masked:{bits}")
        # As multiples of 2^-53 above -0.5, each is the random one rounded down to a multiple of 2^bits.
        units = [round((value + 0.5) * 2**53) for value in masked]
        assert units == [round((value + 0.5) * 2**53) >> bits << bits for value in random]
    assert set(filled(fill, "masked:53")) == {-0.5}
    assert set(filled(fill, "constant")) == {0.5}
    assert set(filled(fill, "constant:0.987")) == {0.987}
    sequence = filled(fill, "sequential")
    assert list(sequence) == sorted(set(sequence))
    assert (sequence[0], sequence[-1]) == (-0.5, pytest.approx(0.5))


@pytest.mark.parametrize("content", ["", "zeros", "masked", "masked:54", "masked:1.5", "masked:-1", "constant:nan",
                                     "constant:1x", "random:3", "sequential:1", "randomly"])  # fmt: skip
def test_what_is_no_content_is_refused(fill: Path, content: str) -> None:
    assert subprocess.run([str(fill), content], capture_output=True, check=False, timeout=HANG_S).returncode == 3


def test_dgemm_is_timed_under_each_condition_once_and_in_order(dgemm_probe: Path, tmp_path: Path) -> None:
    contents = ["random", "constant", "sequential", "masked:40"]
    design = lp.design.content_design(3, sizes=[(60, 50, 40), (200, 100, 64)], contents=contents, warm=[0, 1])
    result = run(dgemm_probe, design.to_csv(), tmp_path, "--max-bytes", "80000000")
    assert result.returncode == 0, result.stderr
    seen = [(row["kernel"], *(int(row[size]) for size in "mnk"), row["content"], int(row["warm"]))
            for row in raw_rows(tmp_path)]  # fmt: skip
    assert seen == [tuple(row) for row in design.rows]
    starts = [float(row["start_s"]) for row in raw_rows(tmp_path)]
    assert starts == sorted(starts)


def test_calls_before_the_first_row_stay_inside_pools_however_small_these_are(dgemm_probe, tmp_path):
    design = lp.design.content_design(3, sizes=[(4, 4, 4)], contents=["random", "constant", "masked:40"])
    result = run(dgemm_probe, design.to_csv(), tmp_path, "--max-bytes", "1048576")
    assert result.returncode == 2
    assert "do not fit into --max-bytes 1048576" in result.stderr
    result = run(dgemm_probe, design.to_csv(), tmp_path, "--max-bytes", "1048576", "--warmup-calls", "0")
    assert result.returncode == 0, result.stderr


def test_without_conditions_the_raw_file_has_no_columns_of_them(dgemm_probe: Path, tmp_path: Path) -> None:
    design = "design_row,kind,m,n,k\n0,dgemm,30,20,10\n"
    assert run(dgemm_probe, design, tmp_path, "--cpu", "any", "--warmup-calls", "0").returncode == 0
    (row,) = raw_rows(tmp_path)
    assert "content" not in row
    assert "warm" not in row
    assert int(row["cpu"]) in os.sched_getaffinity(0)  # not bound: where the scheduler had it


def test_every_combination_of_the_memory_design_is_read_as_asked(memory_probe: Path, tmp_path: Path) -> None:
    design = lp.design.memory_design(
        2, sizes_bytes=[1024, 5000, 70_000], strides=[1, 3], element_bytes=[4, 8, 16], unrolls=[1, 8],
        allocations=2, fresh=True, batch_bytes=[1, 200_000],
    )  # fmt: skip
    result = run(memory_probe, design.to_csv(), tmp_path, "--warmup-ms", "1")
    assert result.returncode == 0, result.stderr
    rows = raw_rows(tmp_path)
    assert len(rows) == len(design) == 3 * 2 * 3 * 2 * 3 * 2
    for row, wanted in zip(rows, design, strict=True):
        assert all(int(row[name]) == wanted[name] for name in design.columns)
        elements = wanted["size_bytes"] // (wanted["stride"] * wanted["element_bytes"])
        pass_bytes = elements * wanted["element_bytes"]
        assert int(row["read_bytes"]) == int(row["passes"]) * pass_bytes
        assert 0 <= int(row["read_bytes"]) - wanted["batch_bytes"] < pass_bytes
        # Memory holds bytes of 1: an odd sum needs an odd number of elements of an odd sum, over all passes and the
        # untimed one. That all were read, and none twice, is seen so.
        words = elements * (wanted["element_bytes"] // 8 or 1)
        assert int(row["parity"]) == words * (int(row["passes"]) + 1) % 2
    places = {int(row["page"]) for row in rows if int(row["allocation"]) >= 0}
    assert len(places) > 10  # drawn anew for every row


@pytest.mark.parametrize(
    ("cells", "complaint"),
    [
        ("dgemm,3,2,1,zeros,0", ":2: content is 'zeros'; it is random, constant"),
        ("dgemm,3,2,1,random,2", ":2: warm is '2'; it wants an integer from 0 to 1"),
        ("1024,1,5,1,0", ":2: element_bytes 5 unrolled 1 times is not there; widths are 4, 8, 16"),
        ("1024,1,8,2,0", ":2: element_bytes 8 unrolled 2 times is not there"),
        ("64,16,8,1,0", ":2: a stride of 16 elements of 8 bytes is longer than the buffer of 64 bytes"),
        ("1024,0,8,1,0", ":2: stride is '0'; it wants an integer from 1"),
        ("1024,1,8,1,-2", ":2: allocation is '-2'; it wants an integer from -1 to 63"),
        ("900000000,1,8,1,3", "4 blocks of 1800 MB do not fit into --max-bytes 4294967296"),
    ],
)
def test_a_bad_row_is_refused_in_one_line(dgemm_probe, memory_probe, tmp_path, cells, complaint):
    of_dgemm = cells.startswith("dgemm")
    columns = "kind,m,n,k,content,warm" if of_dgemm else "size_bytes,stride,element_bytes,unroll,allocation"
    result = run(dgemm_probe if of_dgemm else memory_probe, f"design_row,{columns}\n0,{cells}\n", tmp_path)
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert complaint in result.stderr
