"""Laws of steps, drifts, stopping, marks and factors: the same data written differently."""

from itertools import pairwise

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import rank_steps as slow

from lepaute.measure.experiment.distrust import Verdict, mark
from lepaute.stats import rank_cusum
from lepaute.stats.steps import drift, find_steps, theil_sen
from lepaute.stats.stopping import Target, assess, next_round
from lepaute.watch.factors.dgemm import TERMS, regression
from lepaute.watch.factors.hardware import steady_window
from lepaute.watch.factors.value import cells_text, differences, stratum_of

seeds = st.integers(0, 2**32 - 1)
# few different values: ties occur
small_series = st.lists(st.integers(1, 9).map(float), min_size=2, max_size=14)
durations = st.lists(st.floats(1e-6, 1e3), max_size=40)


def series(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(30, 70))
    values = 1 + 0.01 * np.abs(rng.normal(size=count))
    values[rng.integers(count) :] *= 1 + rng.uniform(-0.1, 0.1)
    # multiples of 1/4 s: adding a shift is exact
    return np.cumsum(rng.integers(1, 400, count)) / 4, values


@given(small_series)
def test_the_rank_cusum_and_theil_and_sens_slope_are_what_all_pairs_give(values: list[float]) -> None:
    change = rank_cusum.largest_change(np.array(values))
    assert (change.index, change.spread) == slow.largest_change(values)
    dates = [1.5 * i for i in range(len(values))]
    slope, rising = theil_sen(np.array(dates), np.array(values))
    expected, pairs = slow.theil_sen(dates, values)
    assert slope == pytest.approx(expected, abs=1e-12)
    assert rising == pairs


@settings(max_examples=30)
@given(seeds, st.integers(-30, 30), st.integers(-(10**6), 10**6))
def test_neither_the_unit_nor_the_order_of_a_series_matters_and_a_shift_of_dates_shifts_its_steps(seed, power, shift_s):
    dates, values = series(seed)
    here, trend = find_steps(dates, values), drift(dates, values)
    assert find_steps(dates, values * 2.0**power) == here
    assert drift(dates, values * 2.0**power) == drift(dates + shift_s, values) == trend
    assert [(s.after_s + shift_s, s.before_s + shift_s, s.relative_size) for s in here.steps] == [
        (s.after_s, s.before_s, s.relative_size) for s in find_steps(dates + shift_s, values).steps
    ]
    dates = np.floor(dates / 60)  # several values a date
    order = np.random.default_rng(seed).permutation(len(dates))
    assert find_steps(dates[order], values[order]) == find_steps(dates, values)
    assert drift(dates[order], values[order]) == drift(dates, values)


@settings(max_examples=30)
@given(seeds)
def test_steps_are_large_enough_significant_and_in_the_order_of_their_dates(seed: int) -> None:
    dates, values = series(seed)
    steps = find_steps(dates, values, least_size=0.02).steps
    assert all(abs(step.relative_size) >= 0.02 and step.p_value <= 0.01 for step in steps)
    assert all(one.before_s <= other.after_s for one, other in pairwise(steps))
    index = {date: i for i, date in enumerate(dates)}
    assert all(index[step.before_s] == index[step.after_s] + 1 for step in steps)


@given(durations, st.integers(-20, 20), st.sampled_from(["mean", "median"]))
def test_the_unit_of_durations_does_not_matter_to_when_it_stops(values, power, statistic):
    target = Target(relative_half_width=0.3, least=3, most=30, statistic=statistic)  # type: ignore[arg-type]
    one, other = assess(values, target), assess([v * 2.0**power for v in values], target)
    assert (one.reached, one.more, one.used) == (other.reached, other.more, other.used)
    assert one.relative_half_width == pytest.approx(other.relative_half_width, rel=1e-9)


@given(durations, st.booleans())
def test_what_is_said_of_a_level_holds_together(values: list[float], ended: bool) -> None:
    target = Target(relative_half_width=0.3, least=3, most=30)
    progress = assess(values, target, ended=ended)
    assert progress.used <= progress.seen == len(values)
    assert progress.reached == (progress.relative_half_width <= target.relative_half_width)
    assert progress.more >= 0
    if progress.more:
        assert progress.seen + progress.more in target.looks()
    if progress.estimate is not None:
        low, high = progress.interval
        assert low <= progress.estimate <= high


@given(st.lists(durations, max_size=5), st.floats(0, 100))
def test_a_round_keeps_to_its_budget_and_gives_no_level_more_than_it_needs(levels, seconds):
    target = Target(relative_half_width=0.1, least=3, most=30)
    named = dict(enumerate(levels))
    plan = next_round(named, target, seconds=seconds)
    assert plan.keys() == named.keys()
    assert all(0 <= count <= assess(named[key], target).more for key, count in plan.items())
    known = sum(count * sum(named[key]) / len(named[key]) for key, count in plan.items() if named[key])
    assert known <= seconds * (1 + 1e-9)
    assert next_round(named, target) == {key: assess(values, target).more for key, values in named.items()}


@given(
    st.lists(st.tuples(st.floats(0, 100), st.sampled_from("ab")), max_size=20),
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["step", "other user"]), st.integers(0, 99)), max_size=4),
)
def test_marks_are_one_a_row_and_trust_what_no_verdict_speaks_of(rows, spoken):
    found = [Verdict(node, kind, start, start + 1, "") for node, kind, start in spoken]  # type: ignore[arg-type]
    times, nodes = [t for t, _ in rows], [n for _, n in rows]
    marks = mark(times, nodes, found)
    assert len(marks) == len(rows)
    for time_s, node, text in zip(times, nodes, marks, strict=True):
        inside = any(v.node == node and v.start_s < time_s < v.end_s for v in found)
        after = any(v.node == node and v.kind == "step" and v.end_s <= time_s for v in found)
        if inside or after:
            assert text
        if not any(v.node == node and v.start_s <= time_s for v in found):
            assert text == ""
    assert mark(times[::-1], nodes[::-1], found[::-1]) == marks[::-1]


SIZES = st.lists(st.tuples(*[st.integers(1, 2048)] * 3), min_size=1, max_size=30)
CONDITIONS = st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=6)


def cells(sizes: list[tuple[int, int, int]]) -> str:
    return cells_text(pandas.DataFrame(sizes, columns=["m", "n", "k"]), ["m", "n", "k"])


@given(SIZES, st.tuples(*[st.integers(1, 2048)] * 3), st.integers(1, 5), st.randoms(use_true_random=False))
@settings(max_examples=50)
def test_a_size_more_makes_another_stratum_and_neither_order_repetition_nor_type_does(sizes, size, times, random):
    again = sizes * times
    random.shuffle(again)
    assert cells(again) == cells(sizes)
    # one size alone is the same mixture however often it was measured
    assert (cells([*sizes, size]) == cells(sizes)) == (set(sizes) == {size})
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
    m, n, k = np.floor(2048 ** np.random.default_rng(seed).uniform(0.2, 1.0, (3, 60)))
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
