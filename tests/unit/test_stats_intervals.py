"""The prediction interval, exact cases."""

import math

import pytest

from lepaute.stats.intervals import prediction_interval


def test_a_common_error_moves_each_bound_by_its_square() -> None:
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


def test_few_runs_have_students_prediction_interval_of_their_logarithms() -> None:
    # logarithms 1, 2, 3: mean 2, sd 1, t(2, 0.975) = 4.302653, sqrt(1 + 1/3) = 1.154701: half width 4.968276
    low, high = prediction_interval([math.exp(x) for x in (1, 2, 3)])
    assert low == pytest.approx(math.exp(2 - 4.968276), rel=1e-6)
    assert high == pytest.approx(math.exp(2 + 4.968276), rel=1e-6)


def test_from_40_runs_on_the_quantiles_are_empirical() -> None:
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
