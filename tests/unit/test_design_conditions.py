"""Conditions as factors of a design: every call under every combination, and what no probe knows is refused."""

import collections
from pathlib import Path

import pytest

import lepaute as lp
from lepaute.cli.main import main
from lepaute.errors import DesignError
from lepaute.measure.design import read_design
from lepaute.measure.design.memory import hierarchy_sizes


def test_every_call_occurs_under_every_combination_in_an_order_of_its_own() -> None:
    plain = lp.design.dgemm_design(1, products=3, product_range=(1e3, 1e6), most=(500, 500, 500))
    contents = ["random", "masked:40", "constant"]
    design = lp.design.with_conditions(plain, contents=contents, warm=[0, 1], replications=2, seed=4)
    counted = collections.Counter(design.rows)
    expected = collections.Counter(
        {(*row, content, warm): 2 * many for row, many in collections.Counter(plain.rows).items()
         for content in contents for warm in (0, 1)}
    )  # fmt: skip
    assert counted == expected
    assert list(design.rows) != sorted(design.rows)
    again = lp.design.with_conditions(plain, contents=contents, warm=[0, 1], replications=2, seed=4)
    assert design.to_csv() == again.to_csv()
    assert design.to_csv() != lp.design.with_conditions(plain, contents=contents, warm=[0, 1], seed=5).to_csv()


def test_the_command_crosses_its_calls_with_the_conditions(tmp_path: Path) -> None:
    words = "--products 2 --highest 1e5 --max-n 300 --content random,constant:1.5,sequential,masked:0 --warm 0,1"
    assert main(["design", "dgemm", *words.split(), "-o", str(tmp_path / "d.csv")]) == 0
    design = read_design(tmp_path / "d.csv")
    assert design.columns == ("kind", "m", "n", "k", "content", "warm")
    assert set(design.column("content")) == {"random", "constant:1.5", "sequential", "masked:0"}
    assert len(design) % 8 == 0


def test_conditions_belong_to_dgemm() -> None:
    with pytest.raises(DesignError, match="conditions belong to dgemm, and the design has operation,size_bytes"):
        lp.design.with_conditions(lp.design.p2p_design(1), contents=["random"], seed=1)


def test_the_memory_design_has_allocations_of_its_own_and_batches_where_they_are_asked_for() -> None:
    sizes = hierarchy_sizes(1024, 8192)
    assert (sizes[0], sizes[-1]) == (1024, 8192)
    assert len(sizes) == 13
    assert all(size % 64 == 0 for size in sizes)
    options = {"strides": [1, 8], "element_bytes": [8], "unrolls": [8], "allocations": 2, "fresh": True}
    design = lp.design.memory_design(1, sizes_bytes=sizes, batch_bytes=[1 << 16, 1 << 20], blocks=3, **options)
    assert len(design) == 13 * 2 * 3 * 2 * 3
    assert set(design.column("allocation")) == {-1, 0, 1}
    assert set(design.column("batch_bytes")) == {1 << 16, 1 << 20}
    by_block = [[row for row in design.rows if row[0] == block] for block in range(3)]
    assert {frozenset(row[1:] for row in rows) for rows in by_block} == {frozenset(row[1:] for row in by_block[0])}
    assert by_block[0] != sorted(by_block[0])
    assert "batch_bytes" not in lp.design.memory_design(1, sizes_bytes=[1024]).columns
    with pytest.raises(DesignError, match="64 <= least < most"):
        hierarchy_sizes(4096, 1024)
