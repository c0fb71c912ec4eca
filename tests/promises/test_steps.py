"""The promises of steps and drifts: rare alarms where nothing changes, and the right date where something does."""

import numpy as np
import pytest
from scipy import stats

from lepaute.measure.experiment.distrust import verdicts
from lepaute.stats import rank_cusum
from lepaute.stats.steps import drift, find_steps

SERIES = 500
COUNT = 60
DATES = np.cumsum(np.random.default_rng(5).exponential(30.0, COUNT))  # irregular


def noise(correlation: float, heavy: bool, series: int = SERIES, count: int = COUNT) -> np.ndarray:
    """Values about 1, shape (series, count): normal, or with the tail of a lognormal, and correlated neighbours."""
    x = rank_cusum.autoregressive(np.random.default_rng(20261121), (series, count), correlation)
    return 1 + 0.01 * (np.exp(x) if heavy else x)


def most(chance: float, series: int = SERIES) -> int:
    """More of `series` than this, each with that chance, happen to one seed in a million."""
    return int(stats.binom.ppf(1 - 1e-6, series, chance))


@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize(("correlation", "chance"), [(0.0, 0.01), (0.3, 0.01), (0.5, 0.01), (0.6, 0.015)])
def test_false_alarms_are_as_rare_as_promised(correlation: float, chance: float, heavy: bool) -> None:
    quiet = noise(correlation, heavy)
    assert sum(bool(find_steps(DATES, row, least_size=0.0).steps) for row in quiet) <= most(chance)
    assert sum(drift(DATES, row, least_size=0.0).significant for row in quiet) <= most(chance)


def test_taking_correlated_values_for_exchangeable_breaks_the_promise() -> None:
    # the range of U against that of series without correlation, as a permutation has it
    table = rank_cusum.null_table(COUNT, 0.0, 5000, 1)
    limit = table[int(0.99 * len(table))]
    alarms = sum(rank_cusum.largest_change(row).spread > limit for row in noise(0.5, False))
    assert alarms > SERIES // 5


@pytest.mark.parametrize("heavy", [False, True])
def test_p_values_are_uniform_or_larger_where_the_correlation_is_known(heavy: bool) -> None:
    spreads = [rank_cusum.largest_change(row).spread for row in noise(0.4, heavy)]
    p = np.array([rank_cusum.p_value(spread, COUNT, 0.4, 1) for spread in spreads])
    for chance in (0.5, 0.1, 0.01):
        assert (p <= chance).sum() <= most(chance)
    assert (p <= 0.1).sum() >= stats.binom.ppf(1e-6, SERIES, 0.1) - SERIES * 0.02  # 200 simulated series: ± 0.02


def test_the_tail_of_p_values_is_that_of_many_more_simulated_series() -> None:
    table = rank_cusum.null_table(COUNT, 0.3, 40_000, 2)
    for chance in (0.003, 0.001, 0.0005):  # 120, 40 and 20 series beyond
        p = rank_cusum.p_value(float(table[round((1 - chance) * len(table))]), COUNT, 0.3, 1)
        assert chance / 2 < p < 2 * chance


@pytest.mark.parametrize(("correlation", "size"), [(0.0, 0.04), (0.0, -0.04), (0.3, 0.06)])
def test_a_planted_step_is_found_with_its_sign_and_date(correlation: float, size: float) -> None:
    # four and six standard deviations after 25 of 60 values
    found = right = extra = 0
    rows = noise(correlation, heavy=False, series=200)
    for row in rows:
        row[25:] *= 1 + size
        steps = find_steps(DATES, row).steps
        found += bool(steps)
        extra += len(steps) > 1
        right += any(
            DATES[22] <= step.after_s < step.before_s <= DATES[28] and step.relative_size * size > 0 for step in steps
        )
    assert found >= 0.9 * len(rows)
    assert right >= 0.9 * found
    assert extra <= most(0.02, len(rows))  # a level and its own false alarms, besides dates that are not quite right


def test_long_series_are_judged_as_well_as_those_that_are_simulated() -> None:
    for correlation in (0.0, 0.6):
        table = rank_cusum.null_table(2 * rank_cusum.LONGEST_SIMULATED, correlation, 500, 2)
        p = [rank_cusum.p_value(float(spread), 2 * rank_cusum.LONGEST_SIMULATED, correlation, 1) for spread in table]
        low, high = stats.binom.ppf([1e-6, 1 - 1e-6], 500, 0.1)
        assert low - 10 <= sum(value <= 0.1 for value in p) <= high + 10  # 200 simulated series: ± 0.02


def test_a_quiet_campaign_is_distrusted_once_in_a_hundred_times_whatever_its_size() -> None:
    campaigns, nodes = 50, 10
    quiet = noise(0.3, heavy=True, series=campaigns * nodes)
    alarms = sum(
        bool(verdicts({str(i): (DATES, row) for i, row in enumerate(rows)}, {}, least_size=0.0))
        for rows in quiet.reshape(campaigns, nodes, COUNT)
    )
    assert alarms <= most(0.01, campaigns)


def test_a_drift_is_called_a_drift() -> None:
    # 10 % in all, ten standard deviations
    rows = noise(0.0, heavy=False, series=200) + 0.1 * (DATES - DATES[0]) / (DATES[-1] - DATES[0])
    assert sum(bool(find_steps(DATES, row).steps) for row in rows) <= most(0.02, len(rows))
    trends = [drift(DATES, row) for row in rows]
    assert all(trend.significant and 0.07 < trend.relative_total < 0.13 for trend in trends)
