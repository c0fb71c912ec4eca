"""The variogram of a series: closed forms against sums over dates, and what too little data says."""

from math import inf

import numpy as np
import pytest

from lepaute.stats.variogram import (
    PRIOR_RELATIVE_SD,
    fit_variogram,
    growth,
    mean_growth,
    variance_after,
    variance_between,
)


@pytest.mark.parametrize("range_s", [inf, 40.0, 3.0])
@pytest.mark.parametrize("lag_s", [0.0, 10.0, 4000.0])
def test_the_variance_after_a_span_is_that_of_many_dates_in_it(range_s, lag_s):
    slope, span = 1e-6, 120.0
    dates = (np.arange(2000) + 0.5) / 2000 * span
    to_value = np.mean([growth(slope, range_s, span - t + lag_s) for t in dates])
    few = dates[::10]
    within = np.mean([[growth(slope, range_s, abs(a - b)) for a in few] for b in few])
    assert mean_growth(slope, range_s, span) == pytest.approx(within, rel=1e-3)
    assert variance_after(slope, range_s, span, lag_s) == pytest.approx(2 * to_value - within, rel=1e-3)


def test_a_random_walk_of_known_steps_has_a_third_of_the_span_behind_it():
    # Var(w(T) - mean of w over [0, L]) = s^2 (T - L + L/3) for a random walk of variance s^2 a second; slope = s^2 / 2.
    assert variance_after(0.5e-6, inf, 120.0, 60.0) == pytest.approx(1e-6 * (60.0 + 40.0))


def test_blocks_hold_the_drift_between_them():
    rng = np.random.default_rng(1)
    dates = np.arange(30) * 4.0
    walks = np.cumsum(rng.normal(size=(4000, 30)) * np.sqrt(4e-6), axis=1)
    seen = walks.reshape(4000, 5, 6).mean(axis=2).var(axis=1, ddof=1).mean()
    assert variance_between(0.5e-6, inf, dates.reshape(5, 6)) == pytest.approx(seen, rel=0.05)


def test_the_order_of_dates_and_the_level_of_a_series_do_not_matter():
    rng = np.random.default_rng(2)
    t = np.sort(rng.uniform(0, 100, 25))
    z = 0.01 * rng.normal(size=25)
    order = rng.permutation(25)
    first, second = fit_variogram([(t, z)]), fit_variogram([(t[order], z[order] + 5.0)])
    assert first.slope_per_s == pytest.approx(second.slope_per_s, rel=1e-6)
    assert first.nugget == pytest.approx(second.nugget, rel=1e-6)


def test_two_machines_share_a_variogram_but_no_clock():
    rng = np.random.default_rng(3)
    t, z = np.arange(20.0), 0.01 * rng.normal(size=20)
    both = fit_variogram([(t, z), (t + 1e9, z + 3.0)])
    assert (both.span_s, both.values) == (19.0, 40)


def test_single_interruptions_are_no_wandering_and_hide_none():
    rng = np.random.default_rng(5)
    t = np.arange(30) * 4.0
    noise = 0.003 * rng.normal(size=30)
    walk = noise + np.cumsum(0.004 * rng.normal(size=30))
    spikes = np.zeros(30)
    spikes[[3, 11, 12, 20]] = 0.2
    for z in (noise, walk):
        plain, hit = fit_variogram([(t, z)]), fit_variogram([(t, z + spikes)])
        # Taken for errors, spikes of 20 % would make the nugget 100 times as large.
        assert plain.growth(120.0) / 5.0 < hit.growth(120.0) < plain.growth(120.0) * 5.0
        assert hit.nugget < plain.nugget * 3.0


def test_values_that_scatter_alone_show_no_more_wandering_than_is_known_of_machines():
    """Errors of 3 %: a machine that walks by 3 % in two minutes cannot be excluded, and is no reason to expect one."""
    found = []
    for seed in range(40):
        z = 0.03 * np.random.default_rng(seed).normal(size=25)
        found.append((2.0 * fit_variogram([(np.arange(25) * 4.0, z)]).growth(100.0)) ** 0.5)
    assert np.median(found) < 1.5 * PRIOR_RELATIVE_SD
