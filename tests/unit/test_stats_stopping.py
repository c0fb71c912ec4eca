"""When to stop: intervals, looks and rounds with answers worked out by hand."""

import math

import pytest
from scipy import stats

from lepaute.stats.intervals import median_rank
from lepaute.stats.stopping import Target, assess, next_round

THREE = Target(relative_half_width=0.25, least=3, most=3)  # a single look: the plain 95 % interval
WIDE = [1.0, 3.0] * 10  # 20 values, mean 2, sd 1.026
NARROW = [0.999, 1.001] * 10


@pytest.mark.parametrize("count", [2, 7, 50, 333, 1000, 20_000])
@pytest.mark.parametrize("miss", [0.5, 0.05, 0.0167, 1e-6])
def test_the_rank_agrees_with_scipy(count: int, miss: float) -> None:
    rank = median_rank(count, miss)
    assert rank == 0 or 2 * stats.binom.cdf(rank - 1, count, 0.5) <= miss * (1 + 1e-9)
    assert 2 * stats.binom.cdf(rank, count, 0.5) > miss * (1 - 1e-9)


def test_the_interval_of_a_mean_is_students() -> None:
    # mean 10, sd 1, t(2, 0.975) = 4.30265: half-width 4.30265 / sqrt(3) = 2.48414
    progress = assess([9.0, 10.0, 11.0], THREE)
    assert (progress.estimate, progress.interval) == (10, pytest.approx((7.51586, 12.48414), rel=1e-5))
    assert progress.relative_half_width == pytest.approx(0.248414, rel=1e-5)
    assert progress.reached
    assert progress.more == 0
    assert str(progress) == "mean ± 24.8 % (95 % confidence, 3 values), the target of 25 % is reached"


def test_the_interval_of_a_geometric_mean_is_that_of_the_logarithms() -> None:
    target = Target(relative_half_width=0.25, least=3, most=3, statistic="geometric mean")
    progress = assess([math.exp(-1), 1.0, math.e], target)
    assert progress.estimate == pytest.approx(1)
    assert progress.interval == pytest.approx((math.exp(-2.48414), math.exp(2.48414)), rel=1e-4)
    assert not progress.reached


def test_the_interval_of_a_median_is_between_ordered_values() -> None:
    progress = assess([float(v) for v in range(10, 0, -1)], Target(statistic="median", least=10, most=10))
    assert (progress.estimate, progress.interval) == (5.5, (2, 9))


def test_below_the_least_number_there_is_no_interval() -> None:
    for seen in (0, 1, 19):
        progress = assess(NARROW[:seen], Target())
        assert progress.interval == (None, None)
        assert not progress.reached
        assert progress.more == 20 - seen
    assert str(assess([], Target())) == "no interval from 0 values, the first look is at 20"


def test_when_the_budget_has_ended_all_values_count() -> None:
    # 25 values: the scheduled look is at the first 20, the last look at all
    durations = [*WIDE, 2.0, 2.0, 2.0, 2.0, 2.0]
    assert assess(durations, Target()).used == 20
    assert assess(durations, Target(), ended=True).used == 25
    assert assess([1.0, 2.0], Target(), ended=True).interval.low is not None
    assert assess([1.0], Target(), ended=True).interval == (None, None)


def test_what_is_still_needed_is_up_to_the_look_at_which_it_will_be_narrow_enough() -> None:
    # sd/mean 0.513; t about 2.4 at a miss of 0.05 / 3: 0.1 needs (2.4 · 0.513 / 0.1)² = 152 values, the look at 153 has
    # t(152) = 2.418 and needs 153.9, so it is the next one, 230
    assert Target(relative_half_width=0.1).looks()[5:7] == (153, 230)
    assert assess(WIDE, Target(relative_half_width=0.1)).more == 230 - 20
    assert assess(WIDE, Target(relative_half_width=0.11)).more == 153 - 20
    assert assess(WIDE, Target(relative_half_width=0.001)).more == 1000 - 20  # out of reach: as many as there may be


def test_nothing_is_relative_to_a_mean_of_zero() -> None:
    progress = assess([0.0] * 20, Target())
    assert progress.relative_half_width == math.inf
    assert not progress.reached
    assert progress.more == 10
    assert "no relative width" in str(progress)


def test_at_the_most_it_ends_whether_or_not_the_target_is_reached() -> None:
    progress = assess(WIDE, Target(least=10, most=20))
    assert (progress.reached, progress.more) == (False, 0)


def test_a_budget_goes_to_those_furthest_from_their_target_first() -> None:
    levels = {"wide": WIDE, "wider": [0.1, 3.9] * 10, "new": []}
    target = Target(relative_half_width=0.1)
    assert next_round(levels, target, observations=15) == {"wide": 0, "wider": 0, "new": 15}
    assert next_round(levels, target, observations=100) == {"wide": 0, "wider": 80, "new": 20}
    assert next_round(levels, target, observations=0) == dict.fromkeys(levels, 0)


def test_a_budget_in_seconds_counts_the_mean_duration_of_each_level() -> None:
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
