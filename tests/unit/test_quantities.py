"""Numbers, ranges and sizes as people type them: one spelling in all commands."""

import pytest

from lepaute.errors import InputError
from lepaute.kit.quantities import box_of, count, grid_of, numbers_of, size_of, span_of


@pytest.mark.parametrize(
    ("text", "value"),
    [("20000", 20000), ("20k", 20000), ("1.5M", 1_500_000), ("1e6", 10**6), ("4Ki", 4096), ("2g", 2 * 10**9)],
)
def test_whole_numbers_have_suffixes(text: str, value: int) -> None:
    assert count(text, "n") == value


@pytest.mark.parametrize("text", ["", "k", "1.5", "x", "1kk", "1 M M", "inf", "nan"])
def test_what_is_not_a_whole_number_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="it is a whole number such as 20000 or 20k"):
        count(text, "n")


@pytest.mark.parametrize(
    ("text", "size"), [("1", 1), ("64K", 65536), ("64Ki", 65536), ("1M", 1 << 20), ("1gi", 1 << 30)]
)
def test_bytes_are_counted_in_powers_of_1024(text: str, size: int) -> None:
    assert size_of(text, "--fold") == size


def test_ranges_and_products_are_spelt_the_same_everywhere() -> None:
    assert numbers_of("0,5-7", "--ranks") == (0, 5, 6, 7)
    assert span_of("10-12", "--steps") == span_of("10:12", "--steps") == (10, 12)
    assert span_of("7", "--steps") == (7, 7)
    assert grid_of("8x4") == (8, 4)
    assert box_of("1kx2x3", "cells") == (1000, 2, 3)
    for wrong in ("7-5", "a", "1-"):
        with pytest.raises(InputError, match="--steps is"):
            span_of(wrong, "--steps")
