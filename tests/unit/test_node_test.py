"""The parts of a node test: what is measured, in which order, and what a user may set."""

import subprocess
import sys
from pathlib import Path

import pytest
from support_limits import HANG_S, ran

from lepaute.errors import InputError
from lepaute.measure import node_test_disk
from lepaute.measure.layout import Core, Layout
from lepaute.measure.node_test import (
    QUICK,
    Parameters,
    memory_rows,
    neighbours,
    node_test_design,
    numa_threads,
)
from lepaute.measure.raw_files import rows_of
from lepaute.watch.factors.dgemm import TERMS


def blocks_of(order_seed: int, seed: int = 1) -> list[list[tuple[object, ...]]]:
    design = node_test_design(seed, QUICK, order_seed)
    return [[row[1:4] for row in design.rows if row[4] == block] for block in range(QUICK.most_blocks)]


def test_blocks_have_the_same_sizes_in_other_orders() -> None:
    first, second = blocks_of(5)
    assert first != second
    assert sorted(map(str, first)) == sorted(map(str, second))
    assert len(set(first)) > len(TERMS)
    # The order is drawn by its own seed; the sizes are those of every test with that seed.
    other, _ = blocks_of(6)
    assert other != first
    assert set(other) == set(first)
    assert set(blocks_of(5, seed=2)[0]) != set(first)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"warmup": "1"}, "there is no parameter warmup; known: warm_up_s"),
        ({"warm_up_s": "long"}, "warm_up_s is 'long'"),
        ({"dgemm_s": "-1"}, "dgemm_s"),
        ({"dgemm_s": "nan"}, "dgemm_s"),
        ({"quick": "perhaps"}, "quick"),
    ],
)
def test_parameters_that_cannot_be_are_refused(given: dict[str, object], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        Parameters.of(given)


def test_all_cores_of_a_numa_node_read_at_once_each_by_one_hardware_thread() -> None:
    cores = [Core(number, 2 * number, number // 4, number // 2, number // 4, (2 * number,)) for number in range(8)]
    assert numa_threads(Layout(tuple(cores), "test")) == {0: [0, 2], 1: [4, 6], 2: [8, 10], 3: [12, 14]}
    assert len(memory_rows(1, quick=True).rows) < len(memory_rows(1, quick=False).rows)


def test_each_node_is_in_two_pairs_with_its_neighbours() -> None:
    assert neighbours(["a"]) == []
    assert neighbours(["a", "b"]) == [("a", "b")]
    assert neighbours(["a", "b", "c"]) == [("a", "b"), ("b", "c"), ("c", "a")]


def test_the_disk_script_writes_and_reads_and_leaves_nothing(tmp_path: Path) -> None:
    words = [sys.executable, node_test_disk.__file__, str(tmp_path), "2", str(8 << 20), "10"]
    done = ran(words, check=True)
    rows = rows_of(done.stdout)
    assert [row["operation"] for row in rows] == ["write", "read"] * 2
    assert {row["size_bytes"] for row in rows} == {str(8 << 20)}
    assert all(float(row["duration_s"]) > 0 for row in rows)
    assert list(tmp_path.iterdir()) == []
    failed = subprocess.run([*words[:2], "/nowhere", *words[3:]], capture_output=True, check=False, timeout=HANG_S)
    assert failed.returncode != 0
