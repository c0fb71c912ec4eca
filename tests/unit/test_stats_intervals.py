"""Student's t, intervals, stretches, rules of stopping, and tests of new observations: exact cases and slow twins."""

import math
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
from lepaute.stats.intervals import median_rank, prediction_interval
from lepaute.stats.prediction_region import region_tests
from lepaute.stats.robust import medians_of
from lepaute.stats.steps import largest_shift
from lepaute.stats.stopping import Target, assess, next_round
from lepaute.stats.student import student_quantile


def test_a_common_error_moves_each_bound_by_its_square_and_from_40_runs_on_quantiles_are_empirical() -> None:
    low, high = prediction_interval([math.exp(x) for x in (1, 2, 3)], 0.5)
    reach = math.hypot(4.968276, 1.959964 * 0.5)  # Student's half-width of three values, and of the normal error
    assert (math.log(low or 0), math.log(high or 0)) == pytest.approx((2 - reach, 2 + reach), abs=1e-5)
    assert prediction_interval([7.0] * 10, 0.01) == pytest.approx((7 * math.exp(-0.0195996), 7 * math.exp(0.0195996)))
    assert prediction_interval([7.0], 0.01) == (None, None)
    assert prediction_interval([0.0] * 3, 0.01) == (0.0, 0.0)
    many = [math.exp(x) for x in range(100)]
    low, high = prediction_interval(many, 10.0)
    narrow_low, narrow_high = prediction_interval(many)
    assert math.log(low or 0) == pytest.approx(49.5 - math.hypot(49.5 - math.log(narrow_low or 0), 19.59964))
    assert math.log(high or 0) == pytest.approx(49.5 + math.hypot(math.log(narrow_high or 0) - 49.5, 19.59964))
    # positions 0.025 * 41 = 1.025 and 0.975 * 41 = 39.975 among the logarithms 1 .. 40
    low, high = prediction_interval([math.exp(i) for i in range(40, 0, -1)])
    assert (low, high) == pytest.approx((math.exp(1.025), math.exp(39.975)))


@pytest.mark.parametrize("runs", [2, 3, 10, 40])
def test_an_interval_never_reaches_zero_and_that_of_rates_is_that_of_times_inverted(runs: int) -> None:
    times = [0.1 * 10 ** (3 * number / runs) for number in range(runs)]
    low, high = prediction_interval(times)
    assert 0.0 < low < high < math.inf
    assert prediction_interval([5.0 / time for time in times]) == pytest.approx((5.0 / high, 5.0 / low))


def test_times_as_far_apart_as_numbers_can_be_have_finite_bounds() -> None:
    low, high = prediction_interval([1e-300, 1e300])
    assert 0.0 < low < high < math.inf


PROBABILITIES = [1e-10, 1e-6, 0.001, 0.025, 0.1, 0.4, 0.49999, 0.5, 0.6, 0.975, 0.9999]


@pytest.mark.parametrize("degrees", [3, 4.5, 9, 29, 39, 100, 1000, 1e5])
@pytest.mark.parametrize("probability", PROBABILITIES)
def test_quantiles_agree_with_scipys_distribution(degrees: float, probability: float) -> None:
    # Not with its quantiles, which before SciPy 1.13 are off by up to 4e-9: the way to the exact one, as Newton's step.
    t = student_quantile(probability, degrees)
    assert abs(stats.t.cdf(t, degrees) - probability) / stats.t.pdf(t, degrees) <= max(1e-9 * abs(t), 1e-12)


@pytest.mark.parametrize("probability", PROBABILITIES)
def test_quantiles_of_one_and_two_degrees_are_those_of_the_closed_forms(probability: float) -> None:
    one = -1 / math.tan(math.pi * probability)
    two = (2 * probability - 1) / math.sqrt(2 * probability * (1 - probability))
    assert student_quantile(probability, 1) == pytest.approx(one, rel=1e-9, abs=1e-12)
    assert student_quantile(probability, 2) == pytest.approx(two, rel=1e-9, abs=1e-12)


def test_a_stretch_at_the_end_lasts_one_in_the_middle_does_not_and_an_outlier_is_none() -> None:
    x = 0.003 * np.random.default_rng(1).normal(size=30)
    x[24:] += 0.03
    shift = largest_shift(x)
    assert (shift.first, shift.last) in ((24, 30), (0, 24))
    assert shift.lasts
    assert shift.p_value < 0.001
    x = np.zeros(200)
    x[60:90] = 1.0
    shift = largest_shift(x + 0.1 * np.random.default_rng(2).normal(size=200))
    assert not shift.lasts
    assert abs(shift.first - 60) <= 4
    assert abs(shift.last - 90) <= 4
    assert shift.count == 200
    x = 0.003 * np.random.default_rng(3).normal(size=30)
    x[11] += 0.5
    assert largest_shift(x).p_value > 0.05


@pytest.mark.slow
@pytest.mark.parametrize("draw", ["normal", "standard_cauchy"])
def test_values_without_order_are_called_ordered_at_the_promised_rate(draw: str) -> None:
    rng = np.random.default_rng(4)
    found = [largest_shift(getattr(rng, draw)(size=25), seed=each) for each in range(400)]
    alarms = sum(shift is not None and shift.p_value <= 0.02 for shift in found)
    assert alarms <= stats.binom.ppf(1 - 1e-4, 400, 0.02)


THREE = Target(relative_half_width=0.25, least=3, most=3)  # a single look: the plain 95 % interval
WIDE = [1.0, 3.0] * 10  # 20 values, mean 2, sd 1.026
NARROW = [0.999, 1.001] * 10


@pytest.mark.parametrize("count", [2, 7, 50, 333, 1000, 20_000])
@pytest.mark.parametrize("miss", [0.5, 0.05, 0.0167, 1e-6])
def test_the_rank_agrees_with_scipy(count: int, miss: float) -> None:
    rank = median_rank(count, miss)
    assert rank == 0 or 2 * stats.binom.cdf(rank - 1, count, 0.5) <= miss * (1 + 1e-9)
    assert 2 * stats.binom.cdf(rank, count, 0.5) > miss * (1 - 1e-9)


def test_the_interval_of_a_mean_is_students_and_that_of_a_median_is_between_ordered_values() -> None:
    # mean 10, sd 1, t(2, 0.975) = 4.30265: half-width 4.30265 / sqrt(3) = 2.48414
    progress = assess([9.0, 10.0, 11.0], THREE)
    assert (progress.estimate, progress.interval) == (10, pytest.approx((7.51586, 12.48414), rel=1e-5))
    assert progress.relative_half_width == pytest.approx(0.248414, rel=1e-5)
    assert progress.reached
    assert progress.more == 0
    assert str(progress) == "mean ± 24.8 % (95 % confidence, 3 values), the target of 25 % is reached"
    target = Target(relative_half_width=0.25, least=3, most=3, statistic="geometric mean")
    progress = assess([math.exp(-1), 1.0, math.e], target)
    assert progress.estimate == pytest.approx(1)
    assert progress.interval == pytest.approx((math.exp(-2.48414), math.exp(2.48414)), rel=1e-4)
    assert not progress.reached
    progress = assess([float(v) for v in range(10, 0, -1)], Target(statistic="median", least=10, most=10))
    assert (progress.estimate, progress.interval) == (5.5, (2, 9))


def test_below_the_least_number_there_is_no_interval_and_when_the_budget_has_ended_all_count() -> None:
    for seen in (0, 1, 19):
        progress = assess(NARROW[:seen], Target())
        assert progress.interval == (None, None)
        assert not progress.reached
        assert progress.more == 20 - seen
    assert str(assess([], Target())) == "no interval from 0 values, the first look is at 20"
    # 25 values: the scheduled look is at the first 20, the last look at all
    durations = [*WIDE, 2.0, 2.0, 2.0, 2.0, 2.0]
    assert assess(durations, Target()).used == 20
    assert assess(durations, Target(), ended=True).used == 25
    assert assess([1.0, 2.0], Target(), ended=True).interval.low is not None
    assert assess([1.0], Target(), ended=True).interval == (None, None)


def test_what_is_still_needed_is_up_to_the_look_that_is_narrow_enough_or_the_most() -> None:
    # sd/mean 0.513; t about 2.4 at a miss of 0.05 / 3: 0.1 needs (2.4 · 0.513 / 0.1)² = 152 values, the look at 153 has
    # t(152) = 2.418 and needs 153.9, so it is the next one, 230
    assert Target(relative_half_width=0.1).looks()[5:7] == (153, 230)
    assert assess(WIDE, Target(relative_half_width=0.1)).more == 230 - 20
    assert assess(WIDE, Target(relative_half_width=0.11)).more == 153 - 20
    assert assess(WIDE, Target(relative_half_width=0.001)).more == 1000 - 20  # out of reach: as many as there may be
    progress = assess([0.0] * 20, Target())
    assert progress.relative_half_width == math.inf
    assert not progress.reached
    assert progress.more == 10
    assert "no relative width" in str(progress)
    progress = assess(WIDE, Target(least=10, most=20))
    assert (progress.reached, progress.more) == (False, 0)


def test_a_budget_goes_to_those_furthest_from_their_target_and_counts_the_mean_duration_of_each() -> None:
    levels = {"wide": WIDE, "wider": [0.1, 3.9] * 10, "new": []}
    target, costs_s = Target(relative_half_width=0.1), dict.fromkeys(levels, 1.0)
    assert next_round(levels, target, seconds=15, costs_s=costs_s) == {"wide": 0, "wider": 0, "new": 15}
    assert next_round(levels, target, seconds=100, costs_s=costs_s) == {"wide": 0, "wider": 80, "new": 20}
    assert next_round(levels, target, seconds=0, costs_s=costs_s) == dict.fromkeys(levels, 0)
    # 2 s an observation: 9 s are four of them
    assert next_round({"wide": WIDE}, Target(), seconds=9.0) == {"wide": 4}
    # 0.3 s at 0.1 s each are three, whatever the rounding of 0.3 / 0.1
    assert next_round({"a": [0.1, 0.1]}, Target(), seconds=0.3) == {"a": 3}


def test_looks_grow_by_half_up_to_the_most() -> None:
    assert Target(least=20, most=100).looks() == (20, 30, 45, 68, 100)
    assert Target(least=2, most=5).looks() == (2, 3, 4, 5)
    assert Target(least=7, most=7).looks() == (7,)


def test_a_round_gives_each_level_what_it_needs() -> None:
    levels = {"wide": WIDE, "narrow": NARROW, "new": []}
    assert next_round(levels, Target(relative_half_width=0.1)) == {"wide": 210, "narrow": 0, "new": 20}


def test_one_value_or_several_against_four_are_what_the_formula_gives_by_hand() -> None:
    # mean 3, s² = 10/3, n = 4: t = 4 / 5 (7 - 3)² / (10/3) = 3.84, that is Student's 1.9596 with 3 degrees of freedom
    found = region_test([1.0, 2.0, 4.0, 5.0], [7.0], confidence=0.95)
    assert found.statistic == pytest.approx(3.84)
    assert found.p_value == pytest.approx(2 * stats.t.sf(np.sqrt(3.84), 3))
    assert (found.n, found.r, found.p, found.direction, found.missing) == (4, 1, 1, 1, 0)
    # (9.3): 3 ± s sqrt(5/4 F(0.95; 1, 3)) with F = 10.128
    assert found.low == pytest.approx(3 - np.sqrt(10 / 3 * 5 / 4 * 10.12796), rel=1e-6)
    assert found.high == pytest.approx(3 + np.sqrt(10 / 3 * 5 / 4 * 10.12796), rel=1e-6)
    found = region_test([1.0, 2.0, 4.0, 5.0], [1.0, 0.0, -1.0])
    assert (found.statistic, found.direction) == (pytest.approx(4 * 3 / 7 * 9 / (10 / 3)), -1)
    found = region_test(np.random.default_rng(1).normal(size=(9, 3)), np.full((1, 3), 0.5))
    assert (found.direction, found.low, found.high) == (0, None, None)
    assert found.p_value is not None


def test_the_end_of_the_interval_is_where_p_is_the_level_and_a_singular_covariance_needs_more() -> None:
    reference = [10.0, 10.1, 9.8, 10.05, 9.9]
    end = region_test(reference, [0.0], confidence=0.9999).high
    assert end is not None
    assert region_test(reference, [end]).p_value == pytest.approx(1e-4)
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
    moments, chosen = expanding_moments(x, series, kept, r), rng.random(len(series)) < 0.3
    of_chosen = expanding_moments(x, series, kept, r, chosen=chosen)
    for name in ("n", "mean", "scatter", "window_mean", "window"):
        np.testing.assert_array_equal(getattr(of_chosen, name), getattr(moments, name)[chosen])
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


def test_medians_of_members_are_those_of_numpy() -> None:
    rng = np.random.default_rng(53)
    members = rng.permutation(np.repeat(np.arange(20), rng.integers(1, 9, 20)))
    values = rng.normal(size=len(members)).round(1)
    assert medians_of(members, values).tolist() == [np.median(values[members == one]) for one in range(20)]


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
