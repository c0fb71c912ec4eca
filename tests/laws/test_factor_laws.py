"""Laws of factors: what a rate, a coefficient and a stratum do not depend on, and what they follow."""

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lepaute.watch.factors.dgemm import TERMS, regression
from lepaute.watch.factors.hardware import steady_window
from lepaute.watch.factors.value import cells_text, differences, stratum_of

SIZES = st.lists(st.tuples(*[st.integers(1, 2048)] * 3), min_size=1, max_size=30)
CONDITIONS = st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=6)


def cells(sizes: list[tuple[int, int, int]]) -> str:
    return cells_text(pandas.DataFrame(sizes, columns=["m", "n", "k"]), ["m", "n", "k"])


@given(SIZES, st.integers(1, 5), st.randoms(use_true_random=False))
@settings(max_examples=50)
def test_neither_order_nor_repetition_of_all_sizes_makes_another_stratum(sizes, times, random):
    again = sizes * times
    random.shuffle(again)
    assert cells(again) == cells(sizes)


@given(SIZES, st.tuples(*[st.integers(1, 2048)] * 3))
@settings(max_examples=50)
def test_a_size_more_makes_another_stratum_unless_it_is_the_only_one(sizes, size):
    # one size alone is the same mixture however often it was measured
    assert (cells([*sizes, size]) == cells(sizes)) == (set(sizes) == {size})


@given(SIZES)
@settings(max_examples=50)
def test_a_column_of_whole_numbers_read_as_floats_is_the_same(sizes):
    frame = pandas.DataFrame(sizes, columns=["m", "n", "k"])
    assert cells_text(frame.astype(float), ["m", "n", "k"]) == cells_text(frame, ["m", "n", "k"])


def test_cells_of_any_kind_are_told_apart_and_missing_ones_are_alike():
    # "design.csv" is read with pandas' own integers and texts, tables of observations may hold lists
    cell = {
        "whole": pandas.array([1, None, 3], "Int64"),
        "real": [1.5, np.nan, 2.0],
        "text": pandas.array(["a", None, "b"], "string"),
        "list": [[1, 2], None, np.array([1, 3])],
        "flag": pandas.array([True, None, False], "boolean"),
    }
    frame = pandas.DataFrame(cell)
    for name in cell:
        assert cells_text(frame, [name]).startswith("3 of ")
        assert cells_text(frame.iloc[[0, 1, 1]], [name]) == cells_text(frame.iloc[[1, 0, 1]], [name])
    assert cells_text(frame, list(cell)).startswith("3 of whole 1 to 3, real 1.5 to 2")
    assert cells_text(frame.assign(whole=[1.0, np.nan, 3.0]), ["whole"]) == cells_text(frame, ["whole"])


@given(CONDITIONS, CONDITIONS)
def test_strata_differ_exactly_where_a_condition_does_and_each_is_named(a, b):
    lines = differences(a, b)
    assert (stratum_of(a) == stratum_of(b)) == (a == b) == (not lines)
    assert len(lines) == sum(a.get(name) != b.get(name) for name in {*a, *b})


@given(st.floats(0.0, 1e6))
def test_the_window_is_inside_the_test_and_minutes_2_to_4_where_it_lasts_so_long(duration_s):
    start_s, end_s, _ = steady_window(duration_s)
    assert 0 <= start_s <= end_s <= max(duration_s, 0.0)
    assert ((start_s, end_s) == (120.0, 240.0)) == (duration_s >= 240.0)


@given(st.lists(st.floats(-1.0, 1.0), min_size=8, max_size=8), st.integers(0, 2**31), st.floats(0.1, 10.0))
@settings(max_examples=50)
def test_any_eight_coefficients_come_back_and_scale_with_the_durations(shares, seed, factor):
    rng = np.random.default_rng(seed)
    m, n, k = np.floor(2048 ** rng.uniform(0.2, 1.0, (3, 60)))
    term = {"mnk": m * n * k, "mn": m * n, "mk": m * k, "nk": n * k, "1": np.ones(60), "m": m, "n": n, "k": k}
    true = {name: share * 1e-3 / term[name].max() for name, share in zip(TERMS, shares, strict=True)}
    duration = sum(true[name] * term[name] for name in TERMS)
    found = regression(m, n, k, duration)
    scaled = regression(m, n, k, factor * duration)
    for name in TERMS:  # to what the largest calls would show, a millionth of a millisecond
        assert found.mean[name] * term[name].max() == pytest.approx(true[name] * term[name].max(), abs=1e-9)
        assert scaled.mean[name] * term[name].max() == pytest.approx(factor * true[name] * term[name].max(), abs=1e-8)
    assert found.residual == {}  # no size has two calls


@given(st.integers(2, 6), st.integers(0, 2**31))
@settings(max_examples=30)
def test_calls_of_a_size_count_as_their_mean(repetitions, seed):
    rng = np.random.default_rng(seed)
    m, n, k = np.floor(2048 ** rng.uniform(0.2, 1.0, (3, 40)))
    duration = 1e-11 * m * n * k * (1 + 0.1 * rng.normal(size=(repetitions, 40)))
    many = regression(*(np.tile(letter, repetitions) for letter in (m, n, k)), duration.ravel())
    means = regression(m, n, k, duration.mean(axis=0))
    for name in TERMS:
        assert many.mean[name] == pytest.approx(means.mean[name], rel=1e-6, abs=1e-13)
    assert set(many.residual) == set(TERMS)
