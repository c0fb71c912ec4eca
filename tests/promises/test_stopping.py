"""The promise of a measurement that ends when its interval is narrow: it holds the truth as often as it says."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from lepaute.stats.stopping import Target, assess, next_round

TRIALS = 1000
SEED = 20261121
#: Coverage of 95 % in 1000 trials: more misses than this happen to one seed in a million.
MAX_MISSES = int(stats.binom.ppf(1 - 1e-6, TRIALS, 0.05))  # 86

Draw = Callable[[np.random.Generator, int], np.ndarray]
MIXED = (0.7, 1.0, 0.02, 1.2, 0.02)  # share, mean and sd of the first mode; mean and sd of the second


def normal(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.normal(1.0, 0.08, count)


def lognormal(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.lognormal(0.0, 0.15, count)


def half_normal(rng: np.random.Generator, count: int) -> np.ndarray:
    return 1 + 0.15 * np.abs(rng.normal(size=count))


def bimodal(rng: np.random.Generator, count: int) -> np.ndarray:
    share, one, sd, other, other_sd = MIXED
    return np.where(rng.random(count) < share, rng.normal(one, sd, count), rng.normal(other, other_sd, count))


def bimodal_median() -> float:
    share, one, sd, other, other_sd = MIXED
    # P(X <= x) = 1/2, by bisection
    low, high = one, other
    for _ in range(60):
        x = (low + high) / 2
        below = share * stats.norm.cdf(x, one, sd) + (1 - share) * stats.norm.cdf(x, other, other_sd)
        low, high = (x, high) if below < 0.5 else (low, x)
    return low


# distribution -> (true mean, true median, standard deviation)
TRUTH: dict[Draw, tuple[float, float, float]] = {
    normal: (1.0, 1.0, 0.08),
    lognormal: (math.exp(0.15**2 / 2), 1.0, math.exp(0.15**2 / 2) * math.sqrt(math.expm1(0.15**2))),
    half_normal: (
        1 + 0.15 * math.sqrt(2 / math.pi),
        1 + 0.15 * stats.norm.ppf(0.75),
        0.15 * math.sqrt(1 - 2 / math.pi),
    ),
    bimodal: (1.06, bimodal_median(), math.sqrt(0.02**2 + 0.7 * 0.3 * 0.2**2)),
}


def measured(draw: Draw, truth: float, target: Target, trials: int = TRIALS) -> tuple[int, float]:
    """(intervals that miss the truth, mean number of observations), each measurement going on until it ends itself."""
    rng = np.random.default_rng(SEED)
    misses, observations = 0, 0
    for _ in range(trials):
        values: list[float] = []
        while more := next_round({"level": values}, target)["level"]:
            values += draw(rng, more).tolist()
        progress = assess(values, target)
        assert progress.reached
        misses += not progress.interval.low <= truth <= progress.interval.high
        observations += len(values)
    return misses, observations / trials


@pytest.mark.parametrize("draw", TRUTH)
@pytest.mark.parametrize("width", [0.02, 0.05])
def test_the_last_interval_of_a_mean_holds_it_95_times_in_a_hundred(draw: Draw, width: float) -> None:
    assert measured(draw, TRUTH[draw][0], Target(relative_half_width=width))[0] <= MAX_MISSES


@pytest.mark.parametrize("draw", TRUTH)
def test_the_last_interval_of_a_median_holds_it_95_times_in_a_hundred(draw: Draw) -> None:
    target = Target(relative_half_width=0.03, statistic="median", most=3000)
    assert measured(draw, TRUTH[draw][1], target, TRIALS // 2)[0] <= stats.binom.ppf(1 - 1e-6, TRIALS // 2, 0.05)


def test_the_last_interval_of_a_geometric_mean_holds_it_95_times_in_a_hundred() -> None:
    assert measured(lognormal, 1.0, Target(statistic="geometric mean"))[0] <= MAX_MISSES


@pytest.mark.parametrize("draw", TRUTH)
def test_it_stops_within_a_factor_of_what_a_known_spread_would_need(draw: Draw) -> None:
    mean, _, sd = TRUTH[draw]
    known = (1.96 * sd / mean / 0.02) ** 2  # 61 to 217, well above the least
    _, observations = measured(draw, mean, Target(), TRIALS // 2)
    # 1.5 for the wider interval; the steps between sizes cost from nothing to another 1.5, as the size needed falls
    assert known < observations < 1.5 * 1.5 * known


def test_all_looks_together_hold_the_median_where_anything_may_end_the_measurement() -> None:
    # the worst end: as soon as an interval misses. 160 very skewed values, looks at 20, 30, 45, 68, 102, 153, 160
    rng = np.random.default_rng(SEED)
    target = Target(statistic="median", ended_by="anything", most=160)
    misses = 0
    for _ in range(TRIALS):
        values = rng.lognormal(0.0, 2.0, 160).tolist()
        intervals = [assess(values[:size], target).interval for size in target.looks()]
        intervals.append(assess(values[:77], target, ended=True).interval)
        misses += any(not low <= 1.0 <= high for low, high in intervals)
    assert misses <= MAX_MISSES
