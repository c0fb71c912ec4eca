"""Steps, drifts and the variogram of a series, worked out by hand; and a sudden change of all machines."""

import math
from math import inf

import numpy as np
import pytest
from support.fleets import BEGIN_S, DAY_S, fleet_values
from support.null_streams import autoregressive

from lepaute.stats import rank_cusum, variogram
from lepaute.stats.rank_cusum import cautious_correlation, correlations, ordered_series
from lepaute.stats.steps import drift, find_steps
from lepaute.watch.proposals.platform_events import propose
from lepaute.watch.proposals.watched_series import sudden_changes, sudden_evidence, sudden_p_value


def noise(count: int, seed: int = 1, sd: float = 0.003) -> np.ndarray:
    return 1 + sd * np.random.default_rng(seed).normal(size=count)


def test_a_correlation_is_found_with_and_without_a_step() -> None:
    series = rank_cusum.autoregressive(np.random.default_rng(3), (1, 4000), 0.5)[0]
    for _ in range(2):
        # standard deviations 2 and 1 / root 4000 = 0.03 and 0.016; ranks and trimming add as much as the first
        assert correlations(series) == (pytest.approx(0.5, abs=0.15), pytest.approx(0.5, abs=0.08))
        assert 0.45 <= cautious_correlation(series) <= 0.65
        series[2000:] += 20
    assert correlations(np.ones(20)) == (0, 0)


def test_a_step_is_found_between_the_samples_where_it_happened() -> None:
    values = noise(60)
    values[25:] *= 1.062
    result = find_steps(np.arange(60) * 30.0, values)
    assert result.note is None
    (step,) = result.steps
    assert (step.after_s, step.before_s) == (24 * 30.0, 25 * 30.0)
    assert step.relative_size == pytest.approx(0.062, abs=0.003)  # medians of 25 values of sd 0.003: 0.0008 each
    assert step.p_value < 0.001


def test_a_step_without_noise_is_found_outliers_and_small_ones_are_none() -> None:
    (step,) = find_steps(range(60), [1.0] * 30 + [2.0] * 30).steps
    assert (step.after_s, step.before_s, step.relative_size) == (29, 30, 1)
    values = noise(80)
    values[[3, 17, 18, 40, 77, 78, 79]] *= 10
    assert find_steps(range(80), values).steps == ()
    values = noise(2000, sd=0.001)
    values[1000:] *= 1.004
    assert find_steps(range(2000), values).steps == ()
    assert len(find_steps(range(2000), values, least_size=0.002).steps) == 1


def test_a_drift_is_no_step_and_one_on_top_of_it_is_found_with_its_own_size() -> None:
    values = noise(100) * (1 + 0.001 * np.arange(100))
    assert find_steps(range(100), values).steps == ()
    trend = drift(np.arange(100) * 36.0, values)  # an hour, 10 % up
    assert trend.significant
    assert trend.relative_per_hour == pytest.approx(0.1 / 1.05, rel=0.03)  # relative to the median, 1.05
    assert "slower gradually" in str(trend)
    values = noise(120) * (1 + 0.0003 * np.arange(120))
    values[70:] += 0.08
    (step,) = find_steps(range(120), values).steps
    assert step.before_s == 70
    # 0.0003 a sample for the 60 samples between the middles of both sides, 1.8 %, must not be in it
    assert step.relative_size == pytest.approx(0.08, abs=0.006)


def test_short_series_say_that_they_are_too_short() -> None:
    seven = find_steps(range(7), [1.0, 1, 1, 1, 2, 2, 2])
    assert seven.steps == ()
    assert seven.note == "too few values for a step: 7 dates, at least 8 are needed"
    # 8 values: two levels of 4 come about once in 35 times without any correlation
    assert "not be significant among 8 values" in (find_steps(range(8), [1.0, 2] * 4).note or "")
    assert find_steps([], []).note is not None
    short = drift(range(7), range(1, 8))
    assert not short.significant
    assert str(short) == "too few values for a drift: 7 dates, at least 8 are needed"


def test_values_of_equal_dates_become_their_median() -> None:
    dates, values = ordered_series([2.0, 1.0, 2.0, 2.0], [5.0, 1.0, 9.0, 6.0])
    assert dates.tolist() == [1, 2]
    assert values.tolist() == [1, 6]


def test_the_p_value_of_a_drift_is_mann_and_kendalls() -> None:
    # 10 rising values: S = 45, variance 10 · 9 · 25 / 18 = 125 times (1 + rho) / (1 - rho). The slope leaves nothing;
    # rho is what caution adds to 0: 1.5 / root 10 + 2 / 10 = 0.674 is more than 2 / root 10 = 0.632, rounded to 0.65
    z = 44 / math.sqrt(125 * 1.65 / 0.35)
    assert drift(range(10), range(1, 11)).p_value == pytest.approx(math.erfc(z / math.sqrt(2)))


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_large_change_a_dozen_values_before_the_end_is_found_at_its_place(sign: int) -> None:
    values = np.random.default_rng(1).normal(size=70)
    values[58:] += 20 * sign
    (evidence,) = sudden_evidence(values[None])
    assert sudden_p_value(evidence) < 1e-5
    assert sudden_changes(values, evidence, 1e-3) == [58]


def test_a_spike_a_season_and_equal_values_are_none() -> None:
    rng = np.random.default_rng(3)
    spike = rng.normal(size=80)
    spike[40] += 1000
    season = 4 * np.sin(2 * np.pi * np.arange(365) / 365) + 2 * autoregressive(rng.normal(size=(1, 365)), 0.6)[0]
    for values in (spike, season, np.ones(50)):
        (evidence,) = sudden_evidence(values[None])
        assert sudden_p_value(evidence) > 1e-3
        assert sudden_changes(values, evidence, 1e-3) == []


@pytest.mark.slow
def test_an_upgrade_of_all_nodes_ten_days_ago_is_one_event() -> None:
    z = np.random.default_rng(4).normal(size=(32, 70))
    z += 2 * autoregressive(np.random.default_rng(5).normal(size=(1, 70)), 0.6)  # warm days, for all
    z[:, 60:] -= 40  # 20 %
    (event,) = propose(fleet_values(z))
    assert len(event.machines) == 32
    assert BEGIN_S + 59 * DAY_S <= event.after_s < BEGIN_S + 60 * DAY_S <= event.before_s < BEGIN_S + 61 * DAY_S


@pytest.mark.parametrize("range_s", [inf, 40.0, 3.0])
@pytest.mark.parametrize("lag_s", [0.0, 10.0, 4000.0])
def test_the_variance_after_a_span_is_that_of_many_dates_in_it(range_s, lag_s):
    slope, span = 1e-6, 120.0
    dates = (np.arange(2000) + 0.5) / 2000 * span
    to_value = np.mean([variogram.growth(slope, range_s, span - t + lag_s) for t in dates])
    few = dates[::10]
    within = np.mean([[variogram.growth(slope, range_s, abs(a - b)) for a in few] for b in few])
    assert variogram.mean_growth(slope, range_s, span) == pytest.approx(within, rel=1e-3)
    assert variogram.variance_after(slope, range_s, span, lag_s) == pytest.approx(2 * to_value - within, rel=1e-3)


def test_a_random_walk_of_known_steps_has_a_third_of_the_span_behind_it():
    # Var(w(T) - mean of w over [0, L]) = s^2 (T - L + L/3) for a random walk of variance s^2 a second; slope = s^2 / 2.
    assert variogram.variance_after(0.5e-6, inf, 120.0, 60.0) == pytest.approx(1e-6 * (60.0 + 40.0))


def test_blocks_hold_the_drift_between_them():
    rng = np.random.default_rng(1)
    dates = np.arange(30) * 4.0
    walks = np.cumsum(rng.normal(size=(4000, 30)) * np.sqrt(4e-6), axis=1)
    seen = walks.reshape(4000, 5, 6).mean(axis=2).var(axis=1, ddof=1).mean()
    assert variogram.variance_between(0.5e-6, inf, dates.reshape(5, 6)) == pytest.approx(seen, rel=0.05)


def test_the_order_of_dates_and_the_level_of_a_series_do_not_matter():
    rng = np.random.default_rng(2)
    t = np.sort(rng.uniform(0, 100, 25))
    z = 0.01 * rng.normal(size=25)
    order = rng.permutation(25)
    first, second = variogram.fit_variogram([(t, z)]), variogram.fit_variogram([(t[order], z[order] + 5.0)])
    assert first.slope_per_s == pytest.approx(second.slope_per_s, rel=1e-6)
    assert first.nugget == pytest.approx(second.nugget, rel=1e-6)


def test_two_machines_share_a_variogram_but_no_clock():
    rng = np.random.default_rng(3)
    t, z = np.arange(20.0), 0.01 * rng.normal(size=20)
    both = variogram.fit_variogram([(t, z), (t + 1e9, z + 3.0)])
    assert (both.span_s, both.values) == (19.0, 40)


def test_single_interruptions_are_no_wandering_and_hide_none():
    rng = np.random.default_rng(5)
    t = np.arange(30) * 4.0
    noise = 0.003 * rng.normal(size=30)
    walk = noise + np.cumsum(0.004 * rng.normal(size=30))
    spikes = np.zeros(30)
    spikes[[3, 11, 12, 20]] = 0.2
    for z in (noise, walk):
        plain, hit = variogram.fit_variogram([(t, z)]), variogram.fit_variogram([(t, z + spikes)])
        # Taken for errors, spikes of 20 % would make the nugget 100 times as large.
        of_plain, of_hit = (variogram.growth(each.slope_per_s, each.range_s, 120.0) for each in (plain, hit))
        assert of_plain / 5.0 < of_hit < of_plain * 5.0
        assert hit.nugget < plain.nugget * 3.0


def test_values_that_scatter_alone_show_no_more_wandering_than_is_known_of_machines():
    """Errors of 3 %: a machine that walks by 3 % in two minutes cannot be excluded, and is no reason to expect one."""
    found = []
    for seed in range(40):
        z = 0.03 * np.random.default_rng(seed).normal(size=25)
        model = variogram.fit_variogram([(np.arange(25) * 4.0, z)])
        found.append((2.0 * variogram.growth(model.slope_per_s, model.range_s, 100.0)) ** 0.5)
    assert np.median(found) < 1.5 * variogram.PRIOR_RELATIVE_SD
