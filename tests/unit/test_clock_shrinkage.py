"""Drifts shrunk together by the probe's C: against a plain counterpart in Python, and in cases that need no numbers."""

from typing import Any

import numpy as np
import pytest
from oracles.clock_shrinkage import shrunk
from support_clocks import Model, shrink


def lines_of(drifts: Any, variances: Any, offsets_ns2: Any) -> list[Model]:
    rows = zip(drifts, variances, offsets_ns2, strict=True)
    return [Model(10**16, 10**16 + 5, drift, offset, variance, 0.0, 700.0) for drift, variance, offset in rows]


@pytest.mark.parametrize("clocks", [1, 2, 3, 15, 200])
@pytest.mark.parametrize("freedom", [1, 2, 3, 28, 1000])
@pytest.mark.parametrize("spread", [0.0, 1e-7, 1e-6, 1e-4])
def test_the_probe_and_python_shrink_to_the_same_numbers(clock_code: Any, clocks: int, freedom: int, spread: float):
    """Errors of clocks that are as unlike each other as chance makes them, and a hundred times as unlike."""
    generator = np.random.default_rng(clocks * 10_000 + freedom)
    for unlike in (0.0, 2.0):
        errors = 4e-7 * np.exp(unlike * generator.normal(size=clocks))
        drifts = generator.normal(0, np.hypot(spread, errors))
        variances = errors**2 * generator.chisquare(freedom, clocks) / freedom
        offsets = 5000.0 * generator.chisquare(5, clocks)
        lines = lines_of(drifts, variances, offsets)
        shrink(clock_code, lines, freedom)
        expected = shrunk(drifts, variances, offsets, freedom)
        assert [line.drift for line in lines] == pytest.approx(expected.drift, rel=1e-7, abs=1e-22)
        assert [line.drift_variance for line in lines] == pytest.approx(expected.drift_variance, rel=1e-7)
        for line, offset in zip(lines, offsets, strict=True):
            unchanged = (line.x0_ns, line.y0_ns, line.variance_ns2, line.covariance_ns, line.bound_ns)
            assert unchanged == (10**16, 10**16 + 5, offset, 0.0, 700.0)


def test_clocks_that_drift_as_little_as_lines_err_are_taken_not_to_drift(clock_code: Any) -> None:
    generator = np.random.default_rng(2)
    lines = lines_of(generator.normal(0, 4e-7, 63), [1.6e-13] * 63, [5000.0] * 63)
    shrink(clock_code, lines, 28)
    # 20 s later less than a nanosecond, beside 8 us of the lines.
    assert max(abs(line.drift) for line in lines) < 5e-11
    # Drifts of half the error of a line would show in sixty-three.
    assert max(line.drift_variance for line in lines) < 1.6e-13 / 4


def test_a_clock_alone_without_drift_is_not_stated_to_be_better_known_than_its_line(clock_code: Any) -> None:
    lines = lines_of([3e-7], [1.6e-13], [5000.0])
    shrink(clock_code, lines, 28)
    assert abs(lines[0].drift) < 5e-11
    assert lines[0].drift_variance > 0.9 * 1.6e-13


@pytest.mark.parametrize("clocks", [1, 3, 63])
def test_drifts_far_beyond_the_errors_of_lines_are_kept(clock_code: Any, clocks: int) -> None:
    drifts = [1e-4 * (-1) ** clock for clock in range(clocks)]
    lines = lines_of(drifts, [1.6e-13] * clocks, [5000.0] * clocks)
    shrink(clock_code, lines, 28)
    assert [line.drift for line in lines] == pytest.approx(drifts, rel=1e-4)
    assert [line.drift_variance for line in lines] == pytest.approx([1.6e-13] * clocks, rel=0.2)


def test_a_slope_that_one_clock_cannot_tell_from_none_is_kept_if_all_others_have_the_like(clock_code: Any) -> None:
    """Two standard errors: taken for chance of one clock, for drift of sixty-three."""
    alone, many = lines_of([8e-7], [1.6e-13], [5000.0]), lines_of([8e-7] * 63, [1.6e-13] * 63, [5000.0] * 63)
    shrink(clock_code, alone, 28)
    shrink(clock_code, many, 28)
    assert abs(alone[0].drift) < 1e-9
    assert min(line.drift for line in many) > 5e-7
