"""General designs: known fractions, mixes, blocks, summaries, and what is refused."""

from collections import Counter

import pytest

import lepaute as lp
from lepaute.errors import DesignError
from lepaute.measure.design import fraction
from lepaute.measure.design.summary import summary_of


def two_levels(count: int) -> dict[str, list[int]]:
    return {name: [-1, 1] for name in "abcdefghijk"[:count]}


@pytest.mark.parametrize(
    ("factors", "runs", "resolution"),
    # The table of fractions by factors and runs in Box, Hunter and Hunter, Statistics for Experimenters.
    [
        *[(3, 4, "III"), (4, 8, "IV"), (5, 16, "V"), (5, 8, "III"), (6, 16, "IV"), (6, 32, "VI"), (7, 8, "III")],
        *[(7, 16, "IV"), (7, 32, "IV"), (7, 64, "VII"), (8, 16, "IV"), (8, 64, "V"), (9, 16, "III"), (9, 32, "IV")],
    ],
)
def test_the_search_finds_the_resolution_of_the_published_table(factors: int, runs: int, resolution: str) -> None:
    design = lp.design.fractional(two_levels(factors), count=runs, seed=1)
    assert len(set(design.rows)) == runs
    assert design.header["resolution"] == resolution


@pytest.mark.parametrize(("factors", "runs"), [(11, 32), (8, 16)])
def test_more_factors_than_can_be_searched_still_keep_main_effects_clear_of_pairs(monkeypatch, factors, runs):
    monkeypatch.setattr(fraction, "_MAX_WORDS", 30_000)  # 330 sets of 16 words would be searched for 8 factors
    assert lp.design.fractional(two_levels(factors), count=runs, seed=1).header["resolution"] == "IV"


def test_a_search_that_would_take_too_long_says_what_to_give() -> None:
    factors = {f"f{i:02}": [0, 1] for i in range(30)}
    with pytest.raises(DesignError, match="would take too long to search; name them, such as f29=f00"):
        lp.design.fractional(factors, count=2**18, seed=1)


def test_aliases_of_the_half_fraction_of_four_factors_are_the_textbook_ones() -> None:
    design = lp.design.fractional(two_levels(4), generators=["d=a*b*c"], replications=2, seed=1)
    # I = abcd: main effects with interactions of three, pairs with the pairs that remain
    assert design.header["defining_relation"] == "I=a*b*c*d"
    assert design.header["aliases"] == "a*b=c*d; a*c=b*d; b*c=a*d"
    assert design.header["fraction"] == "1/2"
    assert all(row["d"] == row["a"] * row["b"] * row["c"] for row in design)  # type: ignore[operator]
    assert set(Counter(design.rows).values()) == {2}


def test_a_negative_generator_gives_the_other_half() -> None:
    plus = lp.design.fractional(two_levels(3), generators=["c=a*b"], seed=1)
    minus = lp.design.fractional(two_levels(3), generators=["c=-a*b"], seed=1)
    assert not set(plus.rows) & set(minus.rows)
    assert minus.header["defining_relation"] == "I=-a*b*c"
    assert minus.header["aliases"] == "a=-b*c; b=-a*c; c=-a*b"


def test_nine_runs_of_four_factors_with_three_levels_are_an_orthogonal_array() -> None:
    factors = {name: [0, 1, 2] for name in "abcd"}
    design = lp.design.fractional(factors, count=9, seed=1)  # Taguchi's L9 exists: the search reaches it for this seed
    assert design.header["pair_imbalance"] == "0"
    for one in "abcd":
        for two in "abcd":
            if one < two:
                assert set(Counter((row[one], row[two]) for row in design).values()) == {1}


def test_whole_numbers_become_real_where_another_part_has_real_ones() -> None:
    whole = lp.design.full_factorial({"x": [1, 2]}, seed=1)
    real = lp.design.full_factorial({"x": [0.5]}, seed=1)
    assert sorted(lp.design.mix(whole, real, seed=1).column("x")) == [0.5, 1.0, 2.0]  # type: ignore[type-var]
    with pytest.raises(DesignError, match="x has texts in one design and numbers in another"):
        lp.design.mix(whole, lp.design.full_factorial({"x": ["a"]}, seed=1), seed=1)


def test_a_summary_counts_treatments_replications_and_incomplete_blocks() -> None:
    design = lp.design.full_factorial({"a": [1, 2], "op": ["x", "y", "z"]}, replications=2, blocks=3, seed=1)
    summary = summary_of(design)
    assert (summary.treatments, summary.replications, summary.blocks, summary.complete) == (6, (2, 2), 3, True)
    torn = lp.design.Design(design.header, design.columns, design.rows[:-1])
    assert summary_of(torn).complete is False
    assert summary_of(torn).replications == (1, 2)
    assert summary_of(lp.design.Design(design.header, design.columns, ())).treatments == 0
