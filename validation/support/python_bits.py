"""Digests of what a prediction computes in Python, for same_bits.py: a line for each kind of number.

python python_bits.py
"""

import hashlib
from collections.abc import Iterator

from lepaute import _core
from lepaute.simulate.machine.population import drawn_scales
from lepaute.simulate.platform import load_platform
from lepaute.simulate.platform.population import population_of
from lepaute.simulate.platform.schema import Drift
from lepaute.stats.intervals import prediction_interval

SAMPLES, RUNS, NODES = 5000, 10, 2000


def intervals(common_sd: float) -> Iterator[float]:
    """Bounds of prediction intervals of drawn samples."""
    normals = _core.normals(1, 2, SAMPLES, RUNS)
    for first in range(0, len(normals), RUNS):
        interval = prediction_interval([10.0 + 0.3 * normal for normal in normals[first : first + RUNS]], common_sd)
        yield from (interval.low or 0.0, interval.high or 0.0)


def scales() -> Iterator[float]:
    """Factors of the days of hypothetical nodes."""
    population = population_of(load_platform("dahu-2019-04"))
    nothing = tuple(tuple(0.01 * (row == column) for column in population.terms) for row in population.terms)
    population = population.model_copy(update={"covariance_log_scale": nothing})
    for scale in drawn_scales(population, None, NODES, 2, 1):
        yield from scale


def drifts() -> Iterator[float]:
    """Effects of the day at lags of a second to a month."""
    for number in range(1, 2000):
        drift = Drift(slope_per_s=1e-9 * number, range_s=97.0 * number, span_s=600.0, common_relative_sd=1e-3)
        yield drift.day_relative_sd(2e-3, 1300.0 * number)


def digest(values: Iterator[float]) -> str:
    return hashlib.sha256("\n".join(value.hex() for value in values).encode()).hexdigest()[:16]


if __name__ == "__main__":
    print("intervals", digest(intervals(0.0)))
    print("intervals with a sampling error", digest(intervals(0.003)))
    print("scales of days", digest(scales()))
    print("drifts", digest(drifts()))
