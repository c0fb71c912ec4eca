"""General designs: known fractions, mixes, blocks, summaries, and what is refused."""

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import qmc
from support_limits import HANG_S

import lepaute as lp
from lepaute.errors import DesignError
from lepaute.measure.design import fraction
from lepaute.measure.design.factors import MOST_LEVELS
from lepaute.measure.design.sizes import Draws
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
    monkeypatch.setattr(fraction, "_MOST_WORDS", 30_000)  # 330 sets of 16 words would be searched for 8 factors
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


def test_the_search_for_a_balanced_subset_does_better_than_a_shuffle(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [2, 3, 4, 3]
    searched = fraction.balanced_subset(sizes, 24, Draws(1))
    monkeypatch.setattr(fraction, "_MOST_SWAPS", 0)
    shuffled = fraction.balanced_subset(sizes, 24, Draws(1))
    assert fraction.imbalance_of(searched, sizes) < fraction.imbalance_of(shuffled, sizes)
    assert len(set(searched)) == 24


def test_a_latin_hypercube_is_more_even_than_plain_ones() -> None:
    factors = {"x": lp.design.uniform(0.0, 1.0), "y": lp.design.uniform(0.0, 1.0)}

    def unevenness(design: Any) -> float:
        return float(qmc.discrepancy(np.array(design.rows), method="CD"))

    ours = [unevenness(lp.design.latin_hypercube(factors, count=20, seed=seed)) for seed in range(20)]
    plain = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        cells = np.array([rng.permutation(20), rng.permutation(20)]).T
        plain.append(float(qmc.discrepancy((cells + rng.random((20, 2))) / 20, method="CD")))
    assert np.mean(ours) < 0.8 * np.mean(plain)


def test_blocks_of_a_mix_stay_together_and_kinds_are_shuffled_within() -> None:
    send = lp.design.full_factorial({"operation": ["send"], "size_bytes": [1, 2, 4, 8]}, blocks=3, seed=1)
    barrier = lp.design.full_factorial({"operation": ["barrier"], "ranks": [2, 4]}, blocks=3, seed=2)
    mixed = lp.design.mix(send, barrier, seed=3)
    assert mixed.column("block") == [0] * 6 + [1] * 6 + [2] * 6
    for block in range(3):
        assert Counter(row["operation"] for row in mixed if row["block"] == block) == {"send": 4, "barrier": 2}
    assert mixed.header["part.1.seed"] == "2"
    # 3 blocks in which all sends come before the barriers: once in 15^3 seeds
    assert [row["operation"] for row in mixed] != (["send"] * 4 + ["barrier"] * 2) * 3


def test_each_block_has_an_order_of_its_own() -> None:
    design = lp.design.full_factorial({"a": list(range(24))}, blocks=3, seed=1)
    orders = {tuple(row["a"] for row in design if row["block"] == block) for block in range(3)}
    assert len(orders) == 3  # two of three equal: once in 24!/3 seeds
    assert tuple(range(24)) not in orders


def test_fixed_tuples_are_mixed_into_drawn_ones() -> None:
    drawn = lp.design.latin_hypercube(
        {("m", "n", "k"): lp.design.log_uniform_product(1e3, 1e9, most=(8000, 8000, 2048))}, count=20, seed=1
    )
    fixed = lp.design.full_factorial({("m", "n", "k"): [(2000, 2000, 128), (500, 500, 128)]}, replications=3, seed=1)
    mixed = lp.design.mix(drawn, fixed, seed=1)
    assert mixed.columns == ("m", "n", "k")
    assert Counter(mixed.rows)[2000, 2000, 128] == 3
    assert len(mixed) == 26


def test_whole_numbers_become_real_where_another_part_has_real_ones() -> None:
    whole = lp.design.full_factorial({"x": [1, 2]}, seed=1)
    real = lp.design.full_factorial({"x": [0.5]}, seed=1)
    assert sorted(lp.design.mix(whole, real, seed=1).column("x")) == [0.5, 1.0, 2.0]  # type: ignore[type-var]
    with pytest.raises(DesignError, match="x has texts in one design and numbers in another"):
        lp.design.mix(whole, lp.design.full_factorial({"x": ["a"]}, seed=1), seed=1)


def test_numbers_of_numpy_are_taken_as_they_are_meant() -> None:
    design = lp.design.full_factorial(
        {"n": np.array([1, 2]), "x": np.linspace(0.0, 1.0, 3), "s": np.array(["a", "b"])}, seed=1
    )
    assert design.header["columns"] == "n:int,x:real,s:text"
    assert {type(value) for row in design.rows for value in row} == {int, float, str}


def test_blocks_of_a_mix_hold_every_treatment_though_some_more_often() -> None:
    often = lp.design.full_factorial({"a": [1, 2]}, replications=10, blocks=3, seed=1)
    once = lp.design.full_factorial({"b": [1, 2, 3]}, blocks=3, seed=1)
    summary = summary_of(lp.design.mix(often, once, seed=1))
    assert (summary.treatments, summary.replications, summary.complete) == (5, (1, 10), True)


def test_a_summary_counts_treatments_replications_and_incomplete_blocks() -> None:
    design = lp.design.full_factorial({"a": [1, 2], "op": ["x", "y", "z"]}, replications=2, blocks=3, seed=1)
    summary = summary_of(design)
    assert (summary.treatments, summary.replications, summary.blocks, summary.complete) == (6, (2, 2), 3, True)
    torn = lp.design.Design(design.header, design.columns, design.rows[:-1])
    assert summary_of(torn).complete is False
    assert summary_of(torn).replications == (1, 2)
    assert summary_of(lp.design.Design(design.header, design.columns, ())).treatments == 0


def test_the_memory_design_holds_every_combination_and_collective_every_operation() -> None:
    memory = lp.design.memory_design(1, sizes_bytes=[1024, 4096], replications=2)
    assert len(memory) == 2 * 5 * 3 * 2 * 4 * 2
    assert summary_of(memory).replications == (2, 2)
    collective = lp.design.collective_design(1, sizes_bytes=[1, 1024], ranks=[2, 4], replications=5)
    assert len(collective) == (7 * 2 * 2 + 2) * 5
    assert {row["size_bytes"] for row in collective if row["operation"] == "barrier"} == {None}
    with pytest.raises(DesignError, match="unknown collective operation bcats; known are bcast"):
        lp.design.collective_design(1, operations=["bcats"])


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ({}, "no factors"),
        ({"a": []}, "a has 0 levels"),
        ({"a": {1, 2}}, "give them in a list, which has an order"),
        ({"a": "send"}, "give them in a list"),
        ({"a": [1, "x"]}, "are numbers and texts; give them all as texts"),
        ({"a": [True, False]}, "for true and false, 1 and 0 or words"),
        ({"a": [None]}, "a level of a is None"),
        ({"a": [float("nan")]}, "a level of a is nan"),
        ({"a": [2**63]}, "whole numbers of 64 bits"),
        ({"a": [1, 1]}, "is given twice; use replications"),
        ({"a": range(MOST_LEVELS + 1)}, "has 1000001 levels"),
        ({("a", "b"): [(1, 2), (3,)]}, "has not 2 values"),
        ({("a", "b"): lp.design.uniform(1, 2)}, "2 names for 1 values"),
        ({"a": [1], ("a", "b"): [(1, 2)]}, "two factors are named a"),
        ({"size bytes": [1]}, "a factor cannot be named 'size bytes'"),
        ({3: [1]}, "a factor is named '3'"),
        ({"a": lp.design.uniform(1, 9)}, "a is a distribution; combinations need levels"),
        ({f"f{i}": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] for i in range(9)}, "1000000000 rows are too many"),
    ],
)
def test_factors_that_cannot_be_are_refused_with_what_to_do(factors: Any, message: str) -> None:
    with pytest.raises(DesignError) as caught:
        lp.design.full_factorial(factors, seed=1)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("argument", "values"),
    [("seed", (-1, True, 1.5, "1", None, 2**64)), ("replications", (0, 1.5)), ("blocks", (0, True))],
)
def test_seed_replications_and_blocks_are_whole_numbers(argument: str, values: Any) -> None:
    for value in values:
        with pytest.raises(DesignError, match="the seed is" if argument == "seed" else "give a whole number >= 1"):
            lp.design.full_factorial({"a": [1, 2]}, **{"seed": 1, argument: value})


def test_the_package_is_reached_from_lepaute_and_loads_nothing_heavy_for_a_factorial(tmp_path: Path) -> None:
    program = (
        "import sys, lepaute as lp\n"
        "assert 'lepaute.measure.design' not in sys.modules\n"
        "lp.design.full_factorial({'a': [1, 2]}, seed=1).to_csv()\n"
        "assert not {'scipy', 'pandas', 'matplotlib'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=HANG_S)
