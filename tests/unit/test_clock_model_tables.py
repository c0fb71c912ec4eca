"""Global times and exit skews from the models that probes write, against the probe's own C and against brute force."""

from typing import Any

import numpy as np
import pytest
from support_clocks import Model

from lepaute.stats.clock_models import ClockModels, exit_skew, quantile, spread


def perfect(offsets_ns: Any, drifts: Any, *, variance_ns2: Any = 0.0, bound_ns: Any = 0.0) -> ClockModels:
    """Models of clocks that are offset, and gain, when rank 0's shows 0."""
    offsets = np.asarray(offsets_ns, dtype=np.int64)
    zero = np.zeros(offsets.shape)
    return ClockModels(offsets, np.zeros_like(offsets), np.asarray(drifts), variance_ns2 + zero, zero, zero, bound_ns)


def test_times_and_deviations_are_those_of_the_probe(clock_code: Any) -> None:
    """A machine that has run for a year: 3e16 ns, which a double does not hold."""
    generator = np.random.default_rng(1)
    for _ in range(200):
        x0, y0 = (int(value) for value in generator.integers(-(3 * 10**16), 3 * 10**16, 2))
        drift, deviation, drift_deviation = generator.uniform(-1e-4, 1e-4), 10.0, 1e-8
        covariance = generator.uniform(-1, 1) * deviation * drift_deviation
        numbers = (x0, y0, drift, deviation**2, drift_deviation**2, covariance, 7.0)
        x = x0 + int(generator.integers(-(10**11), 10**11))
        in_c, here = Model(*numbers), ClockModels(*numbers)
        assert abs(int(here.at(x)) - clock_code.lep_clock_at(in_c, x)) <= 1  # halves are rounded otherwise
        assert float(here.deviation_ns(x)) == pytest.approx(clock_code.lep_clock_deviation_ns(in_c, x), rel=1e-9)


def test_the_skew_of_perfect_clocks_is_exact() -> None:
    """Starts at 0, 40 and 15 us by true time on clocks apart by seconds and drifting: 40 us, and no doubt."""
    truth = 10**9 + np.array([0, 40_000, 15_000])
    offsets, drifts = np.array([0, 5 * 10**9, -3 * 10**9]), np.array([0.0, 1e-4, -1e-4])
    readings = offsets + np.rint(truth / (1 + drifts)).astype(np.int64)
    seen = exit_skew(readings[None, :], perfect(offsets, drifts))
    assert seen.spread_ns == pytest.approx([40_000], abs=2)
    assert seen.low_ns == pytest.approx(seen.spread_ns)
    assert seen.high_ns == pytest.approx(seen.spread_ns)


def test_the_interval_of_a_spread_is_what_the_errors_allow() -> None:
    """Against every corner and many inner points of the box of true times: none outside, and both ends reached."""
    generator = np.random.default_rng(2)
    for _ in range(100):
        count = int(generator.integers(2, 5))
        times, half = generator.integers(-50, 50, count), generator.integers(0, 40, count).astype(float)
        seen = spread(times, half)
        steps = np.meshgrid(*([np.linspace(-1, 1, 9)] * count))
        box = times + np.stack([axis.ravel() for axis in steps], axis=-1) * half
        spreads = box.max(axis=-1) - box.min(axis=-1)
        assert seen.low_ns <= seen.spread_ns <= seen.high_ns
        assert seen.low_ns <= spreads.min() + 1e-9
        assert seen.high_ns == pytest.approx(spreads.max())
        assert spreads.min() - seen.low_ns <= half.max() / 4 + 1e-9  # the grid's step


@pytest.mark.parametrize("ranks", [2, 4, 16])
def test_skew_intervals_hold_the_truth_in_at_least_95_of_100(ranks: int) -> None:
    """Clock errors drawn anew for each synchronisation; one error for all its calls. Bonferroni may hold more."""
    generator = np.random.default_rng(3)
    trials, held = 2000, 0
    deviations = np.where(np.arange(ranks) == 0, 0.0, 200.0)
    for _ in range(trials):
        truth = generator.integers(0, 500, ranks)
        errors = np.rint(generator.normal(0, 1, ranks) * deviations).astype(np.int64)
        models = perfect(np.zeros(ranks, dtype=np.int64), np.zeros(ranks), variance_ns2=deviations**2)
        seen = exit_skew((truth + errors)[None, :], models)
        held += int(seen.low_ns[0] <= truth.max() - truth.min() <= seen.high_ns[0])
    assert held / trials >= 0.95 - 0.015


def test_the_bound_widens_and_more_ranks_need_more_deviations() -> None:
    models = perfect(np.array([0, 0]), np.zeros(2), bound_ns=np.array([0.0, 300.0]))
    seen = exit_skew(np.array([[0, 1000]]), models)
    assert (seen.low_ns[0], seen.spread_ns[0], seen.high_ns[0]) == (700, 1000, 1300)
    assert quantile(2) == pytest.approx(1.96, abs=1e-3)
    assert quantile(16) > quantile(4) > quantile(2)
