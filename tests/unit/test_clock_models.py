"""Models of clocks by clocks: joined models against clocks whose offsets and drifts are known."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support_clocks import Exchange, Model, line_through, offset_of

SECOND = 1_000_000_000
times = st.integers(-20 * 365 * 86400 * SECOND, 20 * 365 * 86400 * SECOND)
spans = st.integers(-3600 * SECOND, 3600 * SECOND)
drifts = st.floats(-2e-4, 2e-4)


def truth(model: Model, x_ns: Fraction) -> Fraction:
    """The affine map, exactly."""
    return model.y0_ns + (1 + Fraction(model.drift)) * (x_ns - model.x0_ns)


@given(x0=times, y0=times, drift=drifts, span=spans)
def test_a_model_gives_the_reference_s_time_to_the_nanosecond(clock_code, x0, y0, drift, span):
    model = Model(x0, y0, drift)
    assert abs(clock_code.lep_clock_at(model, x0 + span) - truth(model, Fraction(x0 + span))) <= 1


def test_three_clocks_joined_tell_the_first_one_s_time(clock_code: Any) -> None:
    """The case in which equation 1 and algorithm 4 of the paper disagree: both models have slopes and intercepts."""
    # Clocks by true time t: c1 = t, c2 = 1.0001 t + 5 s, c3 = 0.9999 t - 3 s. By hand: t = (c2 - 5 s) / 1.0001, and
    # c2 = 1.0001 (c3 + 3 s) / 0.9999 + 5 s.
    of_2 = Model(5 * SECOND, 0, 1 / 1.0001 - 1)
    of_3 = Model(-3 * SECOND, 5 * SECOND, 1.0001 / 0.9999 - 1)
    joined = clock_code.lep_clock_joined(of_3, of_2)
    for t in (0, 1, 1000):
        c3 = round(0.9999 * t * SECOND) - 3 * SECOND
        assert abs(clock_code.lep_clock_at(joined, c3) - t * SECOND) <= 2


def test_errors_of_a_joined_model_are_those_of_its_parts(clock_code: Any) -> None:
    """Errors drawn for both models, their composition against the variance that the joined model states."""
    generator = np.random.default_rng(1)
    inner = Model(0, SECOND, 3e-5, 100.0**2, 1e-7**2, 0.3 * 100 * 1e-7, 500.0)
    outer = Model(4 * SECOND, 4 * SECOND, -2e-5, 300.0**2, 2e-7**2, -0.5 * 300 * 2e-7, 700.0)
    joined = clock_code.lep_clock_joined(inner, outer)
    errors = []
    for model in (inner, outer):
        covariance = [[model.variance_ns2, model.covariance_ns], [model.covariance_ns, model.drift_variance]]
        errors.append(generator.multivariate_normal((0, 0), covariance, 20000).T)
    for x in (0, 5 * SECOND, -20 * SECOND):
        seen = errors[0][0] + errors[0][1] * x
        seen = seen + errors[1][0] + errors[1][1] * (SECOND + x - 4 * SECOND)
        assert clock_code.lep_clock_deviation_ns(joined, x) == pytest.approx(seen.std(), rel=0.02)
    assert joined.bound_ns == 1200.0


def test_a_line_through_points_of_a_clock_is_that_clock(clock_code: Any) -> None:
    points = 20
    x = [7 * 10**17 + i * 20_000_000 for i in range(points)]
    offsets = [123_456_789 + 4e-5 * (value - x[0]) for value in x]
    model = line_through(clock_code, x, offsets, [0.0] * points)
    assert model.drift == pytest.approx(4e-5, rel=1e-6)
    later = x[0] + 3600 * SECOND
    assert abs(clock_code.lep_clock_at(model, later) - (later + 123_456_789 + 4e-5 * 3600 * SECOND)) < 200


def test_a_point_of_a_moment_when_nobody_answered_moves_the_line_little(clock_code: Any) -> None:
    x = [i * 20_000_000 for i in range(20)]
    offsets = [1000.0 + 4e-5 * value for value in x]
    offsets[-1] += 5e6
    deviations = [100.0] * 19 + [5e6]
    assert line_through(clock_code, x, offsets, deviations).drift == pytest.approx(4e-5, rel=1e-3)


def test_points_whose_messages_all_waited_in_one_direction_move_the_line_little(clock_code: Any) -> None:
    """Alike exchanges, so that their scatter shows nothing: their round trips are longer than those of the others."""
    x = [i * 20_000_000 for i in range(20)]
    offsets = [1000.0 + 4e-5 * value for value in x]
    bounds = [700.0] * 20
    for late in (0, 1, 2):
        offsets[late] += 1e6
        bounds[late] += 1e6
    model = line_through(clock_code, x, offsets, [100.0] * 20, bounds)
    assert (model.drift, model.bound_ns) == (pytest.approx(4e-5, rel=1e-3), 700.0)
    # Without the round trips the three points would turn it by far: 1 ms at one end of 0.4 s.
    assert abs(line_through(clock_code, x, offsets, [100.0] * 20).drift - 4e-5) > 1e-3


def test_one_point_is_an_offset_with_the_drift_known_before(clock_code: Any) -> None:
    model = line_through(clock_code, [1000], [-500.0], [10.0], [30.0], drift_variance_before=1e-10)
    assert (model.x0_ns, model.y0_ns, model.drift) == (1000, 500, 0.0)
    assert (model.variance_ns2, model.drift_variance, model.bound_ns) == (100.0, 1e-10, 30.0)


@pytest.mark.parametrize("method", ["bounds", "shortest", "median"])
def test_asymmetric_latencies_stay_within_the_bound_and_not_within_the_deviation(clock_code: Any, method: str) -> None:
    generator = np.random.default_rng(2)
    exchanges = []
    for i in range(100):
        there, back = 700 + generator.exponential(50), 2700 + generator.exponential(50)
        exchanges.append(Exchange(i * 10_000, round(i * 10_000 + there), round(i * 10_000 + there + back)))
    offset = offset_of(clock_code, method, (Exchange * 100)(*exchanges))
    # Half of the difference of 2000 ns is what nobody can see.
    assert offset.offset_ns == pytest.approx(-1000, abs=60)
    assert offset.bound_ns > 1000
    assert offset.deviation_ns < 60
