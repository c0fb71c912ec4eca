"""The probes that set their conditions themselves: what operands hold, and which way memory is read."""

import csv
import os
import struct
import subprocess
from pathlib import Path

import pytest
from support_limits import HANG_S, ran

import lepaute as lp
from lepaute.measure.toolchain import C_FLAGS, probe_source

pytestmark = pytest.mark.machine

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


# ---- content ---------------------------------------------------------------------------------------------------------


def test_masked_numbers_are_random_ones_whose_low_bits_are_zero(fill: Path) -> None:
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


def test_constant_and_sequential_content_are_what_they_say(fill: Path) -> None:
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


# ---- memory ----------------------------------------------------------------------------------------------------------


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
