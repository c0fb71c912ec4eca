"""Probes of kernels on several cores at once: together from the first call to the last, a raw file for each."""

import os
from pathlib import Path

import pytest
from support_limits import ran
from support_probes import read_raw, run_dgemm, run_steps, written

from lepaute.measure import probes
from lepaute.measure.layout import layout_here

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
