"""A stretch that differs from the rest: where it is, and how often there seems to be one where there is none."""

import numpy as np
import pytest
from scipy import stats

from lepaute.stats.steps import largest_shift


def test_the_last_fifth_of_thirty_values_is_found() -> None:
    rng = np.random.default_rng(1)
    x = 0.003 * rng.normal(size=30)
    x[24:] += 0.03
    shift = largest_shift(x)
    assert (shift.first, shift.last) in ((24, 30), (0, 24))
    assert shift.lasts
    assert shift.p_value < 0.001


def test_a_stretch_in_the_middle_does_not_last() -> None:
    x = np.zeros(200)
    x[60:90] = 1.0
    shift = largest_shift(x + 0.1 * np.random.default_rng(2).normal(size=200))
    assert not shift.lasts
    assert abs(shift.first - 60) <= 4
    assert abs(shift.last - 90) <= 4
    assert shift.count == 200


def test_a_single_outlier_is_no_stretch() -> None:
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
