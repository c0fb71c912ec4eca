"""Drifts of clocks, shrunk together, are never worse than the better of "offset only" and "line".

The settings were fixed before any of these numbers was seen (docs/design/decisions/clocks_and_comparisons.md).
"""

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from support_clocks import Double, Int64, Model, shrink

pytestmark = [pytest.mark.slow, pytest.mark.long]

DRIFTS_PPM = (0.0, 0.1, 0.2, 0.4, 0.8, 1.0, 2.0, 4.0, 10.0, 50.0)
SPACING_NS, LATER_NS = 20_000_000, 20_000_000_000


def late(generator: np.random.Generator, shape: Any) -> Any:
    """Exponential times, one in a hundred fifty times as long."""
    return generator.exponential(size=shape) * np.where(generator.random(shape) < 0.01, 50, 1)


NOISES = {
    "normal": (400.0, lambda generator, shape: 400 * generator.standard_normal(shape)),
    "noisy": (4000.0, lambda generator, shape: 4000 * generator.standard_normal(shape)),
    "heavy tails": (300.0, lambda generator, shape: 300 * late(generator, shape) - 300 * late(generator, shape)),
}
# Standard errors that chance exceeds less than once in a million times.
SURE = 4.75


@dataclass
class Errors:
    """Of offsets, ns, 20 s after the last point, and the deviations stated for the shrunken; (populations, clocks)."""

    offset_only: Any
    line: Any
    shrunken: Any
    deviation: Any

    def ratio(self) -> tuple[float, float]:
        """Root mean square of the shrunken over that of the better of the others, and its jackknife error."""
        squares = np.stack([np.mean(each**2, axis=1) for each in (self.offset_only, self.line, self.shrunken)])
        means = squares.mean(axis=1)
        without = (squares.sum(axis=1)[:, None] - squares) / (squares.shape[1] - 1)
        better = int(np.argmin(means[:2]))
        ratios = np.sqrt(without[2] / without[better])
        error = np.sqrt((len(ratios) - 1) * np.mean((ratios - ratios.mean()) ** 2))
        return float(np.sqrt(means[2] / means[better])), float(error)

    def held(self) -> float:
        """Share of errors within 1.96 deviations, and what chance may have taken from it: as clocks of a population err
        together, by the scatter of populations.
        """
        shares = np.mean(np.abs(self.shrunken) <= 1.96 * self.deviation, axis=1)
        return float(shares.mean() + SURE * shares.std(ddof=1) / np.sqrt(len(shares)))


def fit(clock_code: Any, x: Any, seen: Any, deviations: Any) -> Model:
    def doubles(values: Any) -> Any:
        return values.ctypes.data_as(ctypes.POINTER(Double))

    bounds = np.full(len(x), 700.0)
    whole = x.ctypes.data_as(ctypes.POINTER(Int64))
    model: Model = clock_code.lep_clock_fitted(
        whole, doubles(seen), doubles(deviations), doubles(bounds), len(x), 1, 1.0
    )
    return model


def simulate(clock_code: Any, noise: str, points: int, drifts: Any, populations: int, clocks: int, seed: int) -> Errors:
    """drifts(generator, shape) of the clocks; offsets are 0 where a clock shows 0."""
    generator = np.random.default_rng(seed)
    scale, scatter = NOISES[noise]
    x = np.arange(points, dtype=np.int64) * SPACING_NS
    then = x[-1] + LATER_NS
    truth = drifts(generator, (populations, clocks))
    seen = truth[..., None] * x + scatter(generator, (populations, clocks, points))
    deviations = scale * np.sqrt(generator.chisquare(9, seen.shape) / 9)  # as of ten exchanges
    errors = np.empty((4, populations, clocks))
    for i in range(populations):
        lines = [fit(clock_code, x, seen[i, j], deviations[i, j]) for j in range(clocks)]
        offsets = np.array([line.y0_ns - line.x0_ns for line in lines])
        since = then - np.array([line.x0_ns for line in lines])
        errors[0, i] = offsets - truth[i] * then
        errors[1, i] = errors[0, i] + [line.drift for line in lines] * since
        shrink(clock_code, lines, points - 2)
        errors[2, i] = errors[0, i] + [line.drift for line in lines] * since
        errors[3, i] = [clock_code.lep_clock_deviation_ns(line, int(then)) for line in lines]
    return Errors(*errors)


def normal(ppm: float) -> Any:
    return lambda generator, shape: 1e-6 * ppm * generator.standard_normal(shape)


@pytest.mark.parametrize("ppm", DRIFTS_PPM)
@pytest.mark.parametrize("points", [30, 5])
@pytest.mark.parametrize("noise", NOISES)
def test_sixty_three_clocks_are_as_well_known_as_by_the_better_of_offset_and_line(clock_code, noise, points, ppm):
    """Root mean square errors at most 1.05 times as large; 1.96 deviations hold 93 of 100 errors."""
    errors = simulate(clock_code, noise, points, normal(ppm), 100, 63, seed=int(10 * ppm) + points)
    ratio, error = errors.ratio()
    assert ratio + SURE * error <= 1.05
    assert errors.held() >= 0.93


@pytest.mark.parametrize("ppm", [0.4, 1.0, 10.0])
def test_clocks_that_all_drift_alike_are_no_worse_off(clock_code: Any, ppm: float) -> None:
    """A rank 0 whose clock is the odd one out: one drift for all, of one sign."""
    errors = simulate(clock_code, "normal", 30, lambda _, shape: np.full(shape, 1e-6 * ppm), 100, 63, seed=7)
    ratio, error = errors.ratio()
    assert ratio + SURE * error <= 1.05


@pytest.mark.parametrize("ppm", [0.0, 0.4, 1.0, 2.0, 4.0, 10.0, 50.0])
@pytest.mark.parametrize("noise", NOISES)
def test_a_clock_alone_is_at_most_three_and_a_half_times_worse_off(clock_code: Any, noise: str, ppm: float) -> None:
    """No rule has less than 1.99 times for all drifts; its intervals hold all the same."""
    errors = simulate(clock_code, noise, 30, normal(ppm), 3000, 1, seed=int(10 * ppm) + 1)
    ratio, error = errors.ratio()
    assert ratio + SURE * error <= (1.05 if ppm <= 0.4 else 3.5)
    assert errors.held() >= 0.93
