"""Probes of kernels on several cores at once, and of messages in a ring."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from support_limits import ran
from support_probes import Row, read_raw, run_dgemm, run_ring, run_steps, written

from lepaute.measure import probes
from lepaute.measure.design import ring_design, write_design
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


def run_design(
    built: probes.Probes, folder: Path, cpus: Sequence[int], *options: str
) -> tuple[list[dict[str, str]], list[Row]]:
    design = ring_design(5, ranks=len(cpus), sizes=4, size_range_bytes=(1, 1 << 20))
    write_design(design, folder / "d.csv")
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
