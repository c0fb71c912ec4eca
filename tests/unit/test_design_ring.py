"""The design of messages in a ring: conditions are compared at the same sizes, in an order that is none."""

import itertools
from collections import Counter

import pytest

from lepaute.errors import DesignError
from lepaute.measure.design import Design, ring_design
from lepaute.measure.design.columns import RING_CONDITIONS, RING_OPERATIONS
from lepaute.measure.design.messages import PANEL, PRODUCT_ROWS
from lepaute.measure.design.table import parse_design


def rows_of(design: Design) -> list[dict[str, object]]:
    return [dict(row) for row in design]


def test_every_size_of_an_operation_is_in_all_four_conditions_once() -> None:
    rows = rows_of(ring_design(3, ranks=4, sizes=9))
    assert len(rows) == 2 * 4 * 9
    for operation in RING_OPERATIONS:
        mine = [row for row in rows if row["operation"] == operation]
        sizes = {row["size_bytes"] for row in mine}
        assert Counter((row["condition"], row["size_bytes"]) for row in mine) == Counter(
            itertools.product(RING_CONDITIONS, sizes)
        )
        assert len(sizes) == 9


def test_products_are_there_where_the_condition_has_dgemm_and_the_same_for_the_same_size() -> None:
    rows = rows_of(ring_design(3, ranks=2, sizes=9))
    for row in rows:
        height, *panel = (row["m"], row["n"], row["k"])
        if "dgemm" in str(row["condition"]):
            assert panel == [PANEL, PANEL]
            assert PRODUCT_ROWS[0] <= int(str(height)) <= PRODUCT_ROWS[1]
        else:
            assert (height, *panel) == (0, 0, 0)
    heights = {(row["operation"], row["size_bytes"], row["m"]) for row in rows if row["m"]}
    assert len(heights) == 2 * 9


def test_every_rank_begins_ping_pongs_and_none_a_shift() -> None:
    rows = rows_of(ring_design(1, ranks=5, sizes=30))
    assert {row["first"] for row in rows if row["operation"] == "pingpong"} == set(range(5))
    assert {row["first"] for row in rows if row["operation"] == "shift"} == {0}


def test_the_largest_message_is_in_every_condition_of_both_operations() -> None:
    rows = rows_of(ring_design(4, ranks=2, sizes=3, size_range_bytes=(1, 1 << 30)))
    assert sum(row["size_bytes"] == 1 << 30 for row in rows) == len(RING_OPERATIONS) * len(RING_CONDITIONS)
    assert min(int(str(row["size_bytes"])) for row in rows) < 1 << 10


def test_conditions_and_operations_are_mixed_and_a_seed_gives_one_table() -> None:
    design = ring_design(7, ranks=2, sizes=20)
    order = [(row["operation"], row["condition"]) for row in design]
    # Sorted by one of the 8 kinds there would be 8 stretches; in random order 160 rows have about 160 * 7 / 8.
    assert len(list(itertools.groupby(order))) > 110
    assert design.to_csv() == ring_design(7, ranks=2, sizes=20).to_csv() != ring_design(8, ranks=2, sizes=20).to_csv()
    assert parse_design(design.to_csv(), "d.csv") == design


@pytest.mark.parametrize("wrong", [{"ranks": 1}, {"ranks": 2, "sizes": 0}, {"ranks": 2, "conditions": ("busy",)}])
def test_a_ring_that_cannot_be_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(DesignError):
        ring_design(1, **wrong)  # type: ignore[arg-type]
