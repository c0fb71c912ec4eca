"""The ring probe does what the design says: who speaks to whom, and what the ranks do besides."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from support_probes import Row, read_raw, run_ring

from lepaute.measure import probes
from lepaute.measure.design import ring_design, write_design

pytestmark = pytest.mark.machine


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
