"""Laws of the general designs, over random factors."""

import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lepaute.errors import DesignError
from lepaute.measure.design import (
    blocks,
    fractional,
    full_factorial,
    latin_hypercube,
    log_uniform,
    log_uniform_product,
    mix,
    sample,
    uniform,
    uniform_product,
)
from lepaute.measure.design.columns import is_text
from lepaute.measure.design.factors import factors_of
from lepaute.measure.design.grammar import factor_text, parse_factor
from lepaute.measure.design.sizes import Draws
from lepaute.measure.design.table import parse_design

seeds = st.integers(0, 2**64 - 1)
names = st.from_regex(r"[a-z][a-z_]{0,6}", fullmatch=True).filter(lambda name: name not in {"block", "kind"})
whole = st.integers(-(2**63), 2**63 - 1)
real = st.floats(allow_nan=False, allow_infinity=False)
text = st.text(max_size=12).filter(is_text)
levels = st.one_of(*(st.lists(kind, min_size=1, max_size=4, unique=True) for kind in (whole, real, text)))
small_factors = st.dictionaries(names, levels, min_size=1, max_size=4)


@st.composite
def laws(draw: st.DrawFn) -> Any:
    kind = draw(st.sampled_from(["whole", "real", "log whole", "log real", "levels"]))
    if kind == "levels":
        return draw(levels)
    if kind == "whole":
        return uniform(*sorted(draw(st.tuples(whole, whole))))
    if kind == "real":
        return uniform(*sorted(map(float, draw(st.tuples(real, real)))))
    bounds = sorted(draw(st.tuples(st.integers(1, 2**63 - 1), st.integers(1, 2**63 - 1))))
    return log_uniform(*bounds) if kind == "log whole" else log_uniform(float(bounds[0]), float(bounds[1]))


any_factors = st.dictionaries(names, laws(), min_size=1, max_size=5)


@pytest.mark.slow
@settings(max_examples=60)
@given(any_factors, st.integers(1, 12), st.integers(1, 3), st.none() | st.integers(1, 3), seeds)
def test_what_is_written_is_read_back_with_the_same_types(factors, count, replications, number, seed):
    for make in (sample, latin_hypercube):
        design = make(factors, count=count, replications=replications, blocks=number, seed=seed)
        again = parse_design(design.to_csv(), "text")
        assert again == design
        assert [[type(v) for v in row] for row in again.rows] == [[type(v) for v in row] for row in design.rows]
        assert (
            design.to_csv() == make(factors, count=count, replications=replications, blocks=number, seed=seed).to_csv()
        )


@given(small_factors, st.integers(1, 3), seeds)
def test_every_combination_occurs_as_often_as_replications_say(factors, replications, seed):
    design = full_factorial(factors, replications=replications, seed=seed)
    counts = Counter(design.rows)
    # -0.0 and 0.0 are one key of a dict, and so are levels that differ by nothing else
    distinct = math.prod(len(set(given)) for given in factors.values())
    assert len(counts) == distinct
    assert set(counts.values()) == {replications}
    assert parse_design(design.to_csv(), "text") == design


@given(small_factors, st.integers(1, 3), st.integers(1, 4), seeds)
def test_each_block_holds_each_treatment_and_blocks_come_one_after_the_other(factors, replications, number, seed):
    whole_design = full_factorial(factors, replications=replications, seed=seed)
    for design in (
        full_factorial(factors, replications=replications, blocks=number, seed=seed),
        blocks(whole_design, count=number, seed=seed),
    ):
        assert design.columns[0] == "block"
        size = len(whole_design)
        for block in range(number):
            rows = design.rows[block * size : (block + 1) * size]
            assert {row[0] for row in rows} == {block}
            assert Counter(row[1:] for row in rows) == Counter(whole_design.rows)


@given(any_factors, seeds, st.randoms(use_true_random=False))
def test_the_order_in_which_factors_are_listed_changes_the_columns_alone(factors, seed, shuffler):
    keys = list(factors)
    shuffler.shuffle(keys)
    other = {key: factors[key] for key in keys}
    for make in (sample, latin_hypercube):
        assert list(make(factors, count=5, seed=seed)) == list(make(other, count=5, seed=seed))


@given(seeds, st.lists(st.integers()))
def test_a_shuffle_is_a_permutation(seed: int, items: list[int]) -> None:
    assert sorted(Draws(seed, "x").shuffled(items)) == sorted(items)


@given(seeds, st.integers(1, 2**64))
def test_draws_stay_below_their_bound(seed: int, bound: int) -> None:
    draws = Draws(seed)
    assert all(0 <= draws.below(bound) < bound for _ in range(5))


@settings(max_examples=60)
@given(st.integers(1, 40), seeds, st.integers(1, 7))
@example(33, 3593, 1)  # log10(y) / 6 is 17.9999994 / 33
def test_a_latin_hypercube_has_one_row_in_each_stratum_of_each_factor(count: int, seed: int, level_count: int) -> None:
    factors = {
        "x": uniform(0.0, 1.0),
        "y": log_uniform(1.0, 1e6),
        "n": uniform(0, 1000 * count - 1),
        "op": [f"op{i}" for i in range(level_count)],
    }
    design = latin_hypercube(factors, count=count, seed=seed)

    def one_in_each(positions: list[float]) -> bool:
        # Twelve digits are kept: a position at either edge of a stratum may lie that little outside.
        return all(-1e-6 <= p * count - k <= 1 + 1e-6 for k, p in enumerate(sorted(positions)))

    assert one_in_each([float(x) for x in design.column("x")])  # type: ignore[arg-type]
    assert one_in_each([math.log10(float(y)) / 6 for y in design.column("y")])  # type: ignore[arg-type]
    assert sorted(int(n) // 1000 for n in design.column("n")) == list(range(count))  # type: ignore[arg-type]
    counts = Counter(design.column("op"))
    assert max(counts.values()) - min(counts.get(f"op{i}", 0) for i in range(level_count)) <= 1


@settings(max_examples=60)
@given(seeds, st.lists(st.integers(30, 4000), min_size=2, max_size=5), st.booleans(), st.integers(1, 8))
def test_products_are_spread_and_within_a_tenth_of_their_targets(seed, most, logarithmic, count):
    low, high = 100.0, max(200.0, 0.1 * math.prod(most))
    make = log_uniform_product if logarithmic else uniform_product
    key = tuple(f"n{i}" for i in range(len(most)))
    design = latin_hypercube({key: make(low, high, most=most)}, count=count, seed=seed)
    reached = sorted(math.prod(row) for row in design.rows)  # type: ignore[type-var]
    for row in design.rows:
        assert all(1 <= n <= bound for n, bound in zip(row, most, strict=True))  # type: ignore[operator]
    for stratum, product in enumerate(reached):
        shares = stratum / count, (stratum + 1) / count
        if logarithmic:
            bounds = [low * (high / low) ** share for share in shares]
        else:
            bounds = [low + (high - low) * share for share in shares]
        # Sorting pairs the i-th product with the i-th stratum: both orders are of values within a tenth.
        assert bounds[0] * 0.9 * (1 - 1e-9) <= product <= bounds[1] * 1.1 * (1 + 1e-9)  # type: ignore[operator]


@settings(max_examples=40)
@given(small_factors, small_factors, seeds)
def test_a_mix_keeps_every_row_of_its_parts_and_leaves_foreign_factors_empty(one, two, seed):
    first = full_factorial({f"a_{name}": given for name, given in one.items()}, seed=1)
    second = full_factorial({f"b_{name}": given for name, given in two.items()}, seed=2)
    mixed = mix(first, second, kinds=["one", "two"], seed=seed)
    assert parse_design(mixed.to_csv(), "text") == mixed
    for kind, part in (("one", first), ("two", second)):
        rows = [row for row in mixed if row["kind"] == kind]
        assert Counter(tuple(row[name] for name in part.columns) for row in rows) == Counter(part.rows)
        for row in rows:
            assert all(value is None for name, value in row.items() if name not in {"kind", *part.columns})


@settings(max_examples=40)
@given(st.integers(3, 7), st.data(), seeds)
def test_a_regular_fraction_is_orthogonal_and_its_words_multiply_to_one(count, data, seed):
    runs = data.draw(st.sampled_from([2**b for b in range(2, count) if 2**b > count]))
    keys = [f"f{i}" for i in range(count)]
    design = fractional({key: [-1, 1] for key in keys}, count=runs, seed=seed)
    assert len(set(design.rows)) == runs
    for i in range(count):
        for j in range(i):
            assert sum(row[i] * row[j] for row in design.rows) == 0  # type: ignore[operator, misc]
    for word in design.header["defining_relation"].split("=")[1:]:
        columns = word.split("*")
        assert {math.prod(row[c] for c in columns) for row in design} == {1}  # type: ignore[type-var]


@settings(max_examples=10)
@given(st.lists(st.integers(2, 4), min_size=1, max_size=3), st.data(), seeds)
def test_a_balanced_subset_has_every_level_equally_often(sizes: list[int], data: st.DataObject, seed: int) -> None:
    sizes = [*sizes, 3]  # not two levels everywhere, which would be a regular fraction
    runs = data.draw(st.integers(max(sizes), min(math.prod(sizes), 20)))
    factors: dict[Any, Any] = {f"f{i}": list(range(size)) for i, size in enumerate(sizes)}
    design = fractional(factors, count=runs, seed=seed)
    assert design.header["method"] == "balanced"
    for name, given_levels in factors.items():
        counts = Counter(design.column(name))
        assert max(counts.values()) - min(counts[level] for level in given_levels) <= 1


@given(any_factors)
def test_a_factor_comes_back_from_its_text(factors: dict[str, Any]) -> None:
    for key, factor in factors_of(factors).items():
        assert parse_factor(factor_text(key, factor)) == (key, factor)


@given(st.lists(st.tuples(text, whole, real), min_size=1, max_size=4, unique_by=lambda row: row[:2]))
def test_tuples_come_back_from_their_text(rows: list[tuple[str, int, float]]) -> None:
    ((key, factor),) = factors_of({("a", "b", "c"): rows}).items()
    assert parse_factor(factor_text(key, factor)) == (key, factor)


@settings(max_examples=200)
@example(",\x1f=0")
@given(st.text(max_size=40) | st.from_regex(r"[a-z,]{1,4}=[a-z]{0,18}:?[0-9eE.,:;\"+kMGi-]{0,20}", fullmatch=True))
def test_any_text_is_a_factor_or_a_design_error(given_text: str) -> None:
    try:
        names_of, factor = parse_factor(given_text)
        message = str(len(sample({names_of: factor}, count=2, seed=1)))
    except DesignError as problem:
        message = str(problem)
    assert message.isprintable()
