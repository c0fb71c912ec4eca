"""Tests by formulas and slow twins: new observations against earlier ones, and two samples in blocks."""

from itertools import combinations, product
from math import inf

import numpy as np
import pytest
from oracles.chew import slow_tests
from scipy import stats
from support_region import region_test

from lepaute.stats import aligned_ranks
from lepaute.stats.aligned_ranks import aligned_rank_test, aligned_shift, least_p_of
from lepaute.stats.expanding import expanding_moments
from lepaute.stats.prediction_region import region_tests


def test_one_value_against_four_is_what_the_formula_gives_by_hand() -> None:
    # mean 3, s² = 10/3, n = 4: t = 4 / 5 (7 - 3)² / (10/3) = 3.84, that is Student's 1.9596 with 3 degrees of freedom
    found = region_test([1.0, 2.0, 4.0, 5.0], [7.0], confidence=0.95)
    assert found.statistic == pytest.approx(3.84)
    assert found.p_value == pytest.approx(2 * stats.t.sf(np.sqrt(3.84), 3))
    assert (found.n, found.r, found.p, found.direction, found.missing) == (4, 1, 1, 1, 0)
    # (9.3): 3 ± s sqrt(5/4 F(0.95; 1, 3)) with F = 10.128
    assert found.low == pytest.approx(3 - np.sqrt(10 / 3 * 5 / 4 * 10.12796), rel=1e-6)
    assert found.high == pytest.approx(3 + np.sqrt(10 / 3 * 5 / 4 * 10.12796), rel=1e-6)


def test_several_new_values_are_a_t_test_whose_variance_is_that_of_the_earlier_ones() -> None:
    found = region_test([1.0, 2.0, 4.0, 5.0], [1.0, 0.0, -1.0])
    assert (found.statistic, found.direction) == (pytest.approx(4 * 3 / 7 * 9 / (10 / 3)), -1)


def test_the_end_of_the_interval_is_where_p_is_the_level() -> None:
    reference = [10.0, 10.1, 9.8, 10.05, 9.9]
    end = region_test(reference, [0.0], confidence=0.9999).high
    assert end is not None
    assert region_test(reference, [end]).p_value == pytest.approx(1e-4)


def test_several_variables_have_neither_direction_nor_interval() -> None:
    found = region_test(np.random.default_rng(1).normal(size=(9, 3)), np.full((1, 3), 0.5))
    assert (found.direction, found.low, found.high) == (0, None, None)
    assert found.p_value is not None


def test_a_singular_covariance_is_one_that_needs_more_observations() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(10, 3))
    x[:, 2] = x[:, 0] - 2 * x[:, 1]
    assert region_test(x, x[:1]).missing == 1
    assert region_test(np.full(5, 7.1), [9.0]).missing == 1  # all alike: no variance
    assert region_test(np.array([0.1 + 0.2, 0.3, 0.3, 0.3]), [0.4]).missing == 1  # but for rounding
    # nearly the same, in units that differ by 1e15, is not singular
    x[:, 2] += 1e-3 * rng.normal(size=10)
    scaled = x * [1.0, 1e-9, 1e6]
    assert region_test(scaled, scaled[:1] + 1.0).missing == 0


def test_units_and_rotations_do_not_matter() -> None:
    rng = np.random.default_rng(5)
    x, new = rng.normal(size=(12, 3)), rng.normal(size=(2, 3))
    mixed = rng.normal(size=(3, 3)) * [1e-12, 1.0, 1e9]
    centre = np.array([1e-9, 1e3, 1e12])
    plain, other = region_test(x, new), region_test(x @ mixed + centre, new @ mixed + centre)
    assert other.statistic == pytest.approx(plain.statistic, rel=1e-6)


@pytest.mark.parametrize("p", [1, 3, 8])
@pytest.mark.parametrize("r", [1, 2, 5])
def test_expanding_reference_sets_give_what_one_test_after_the_other_gives(p: int, r: int) -> None:
    rng = np.random.default_rng((p, r))
    lengths = (1, 4, 30, 47)
    series = rng.permutation(np.repeat(np.arange(len(lengths)) * 7 + 3, lengths))
    # mean 1e6 times the spread: sums of squares would be left with few digits
    x = 1e6 + rng.normal(size=(len(series), p))
    kept = rng.random(len(series)) > 0.15
    moments = expanding_moments(x, series, kept, r)
    found = region_tests(moments.window_mean, moments.mean, moments.scatter, moments.n, moments.n - 1, r, 0.99)
    made = 0
    for number in np.unique(series):
        rows = np.flatnonzero(series == number)
        for row, slow in zip(rows, slow_tests(x[rows], list(kept[rows]), r), strict=True):
            assert (slow is None) == (found.missing[row] > 0)
            if slow is not None:
                made += 1
                assert found.n[row] == slow.n
                assert found.statistic[row] == pytest.approx(slow.t, rel=1e-5)
                assert found.p_value[row] == pytest.approx(slow.p_value, rel=1e-4)
    assert made > 30


def test_a_spread_of_a_billionth_of_the_mean_keeps_its_digits() -> None:
    z = np.random.default_rng(6).normal(size=50)
    x = (1e9 + np.round(z * 2**10) / 2**10)[:, None]  # exact in binary, so that only the update can lose digits
    series, kept = np.zeros(50, np.int64), np.ones(50, np.bool_)
    moments = expanding_moments(x, series, kept)
    exact = np.var(x[:49, 0] - 1e9, ddof=1) * 48
    assert moments.scatter[49, 0, 0] == pytest.approx(exact, rel=1e-6)


def two(first, second):
    return np.concatenate([first, second]), np.repeat([False, True], [len(first), len(second)])


def test_with_one_block_it_is_the_test_of_mann_and_whitney() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=12), rng.normal(size=9) + 0.7
    values, second = two(x, y)
    seen = aligned_rank_test(values, second, np.zeros(21))
    for p, alternative in ((seen.two_sided, "two-sided"), (seen.higher, "greater"), (seen.lower, "less")):
        assert p == pytest.approx(stats.mannwhitneyu(y, x, alternative=alternative, method="exact").pvalue)
    shift = aligned_shift(values, second, np.zeros(21))
    assert shift.estimate == pytest.approx(np.median(np.subtract.outer(y, x)), abs=1e-9)


@pytest.mark.parametrize("ties", [False, True])
def test_the_distribution_in_blocks_is_that_of_all_arrangements(ties: bool) -> None:
    rng = np.random.default_rng(2)
    sizes, chosen = (4, 3, 5), (2, 1, 3)
    blocks = np.repeat(np.arange(3), sizes)
    values = rng.normal(size=12) + 10 * blocks
    if ties:
        values = np.round(values)
    second = np.concatenate([np.arange(n) < k for n, k in zip(sizes, chosen, strict=True)])
    aligned = np.concatenate([values[blocks == b] - np.median(values[blocks == b]) for b in range(3)])
    ranks = stats.rankdata(aligned)
    starts = np.cumsum([0, *sizes])[:-1]
    sums = [
        sum(ranks[start + place] for start, places in zip(starts, choice, strict=True) for place in places)
        for choice in product(*(combinations(range(n), k) for n, k in zip(sizes, chosen, strict=True)))
    ]
    seen = ranks[second].sum()
    test = aligned_rank_test(values, second, blocks)
    assert test.higher == pytest.approx(np.mean(np.array(sums) >= seen - 1e-9))
    assert test.lower == pytest.approx(np.mean(np.array(sums) <= seen + 1e-9))
    assert test.two_sided == pytest.approx(min(1, 2 * min(test.higher, test.lower)))


def test_what_blocks_have_in_common_is_taken_off() -> None:
    rng = np.random.default_rng(3)
    blocks = np.repeat(np.arange(12), 2)
    second = np.tile([False, True], 12)
    values = rng.normal(scale=0.01, size=24) + 5 * rng.normal(size=12)[blocks] + 0.05 * second
    assert aligned_rank_test(values, second, blocks).two_sided < 0.001
    assert aligned_rank_test(values, second, np.zeros(24)).two_sided > 0.2
    shift = aligned_shift(values, second, blocks)
    assert shift.low < 0.05 < shift.high
    assert shift.high - shift.low < 0.03


def test_the_normal_approximation_is_close_where_the_exact_distribution_takes_too_long(monkeypatch) -> None:
    rng = np.random.default_rng(4)
    values, second = two(rng.normal(size=25), rng.normal(size=25) + 0.4)
    blocks = np.tile(np.arange(5), 10)
    exact = aligned_rank_test(values, second, blocks)
    monkeypatch.setattr(aligned_ranks, "MAX_ADDITIONS", 0)
    normal = aligned_rank_test(values, second, blocks)
    assert normal.two_sided == pytest.approx(exact.two_sided, rel=0.1)
    assert (normal.lower, normal.higher) == pytest.approx((exact.lower, exact.higher), rel=0.1)


def test_what_cannot_be_compared_says_nothing() -> None:
    alone = aligned_rank_test([1.0, 2.0], [False, True], ["a", "b"])
    assert alone.two_sided == least_p_of([False, True], ["a", "b"]) == 1.0
    nothing = aligned_shift([1.0, 2.0], [False, True], ["a", "b"])
    assert (nothing.low, nothing.high) == (-inf, inf)
    few = aligned_rank_test([1.0, 2.0, 3.0, 4.0], [False, False, True, True], np.zeros(4))
    assert few.two_sided == least_p_of([False, False, True, True], np.zeros(4)) == pytest.approx(1 / 3)
    assert aligned_shift([1.0, 2.0, 3.0, 4.0], [False, False, True, True], np.zeros(4)).low == -inf
    assert aligned_rank_test(np.ones(8), np.arange(8) < 4, np.zeros(8)).two_sided == 1.0
