"""A straight line through a series of a machine: whether it drifts, and by how much."""

from dataclasses import dataclass
from functools import lru_cache
from math import inf, sqrt

import numpy as np
from scipy.special import stdtr

from lepaute.stats.expanding import Floats
from lepaute.stats.level_shift import independent_values
from lepaute.stats.student import SD_OF_MAD
from lepaute.watch.proposals.watched_series import WatchedSeries

#: So many effects of the days have a mean that is the season.
SEASON_VALUES = 15


@dataclass(frozen=True, slots=True)
class Line:
    """A straight line through a series, its slope by the second, with the error of autocorrelated values."""

    slope: float
    error: float
    degrees_of_freedom: float
    p_value: float


def line_of(series: WatchedSeries, *, beside_season: bool = True, values: "Floats | None" = None) -> Line:
    """By least squares on winsorized values, beside what is proportional to the season unless that is known.

    values : these winsorized values, where they are known
    The season is the mean of SEASON_VALUES effects of the days: a machine that responds more to it than others drifts
    while it lasts, and while it is itself a line, nothing can be told about a drift.
    """
    x, t = winsorized(series.relative) if values is None else values, series.started_s
    time, season = t - t.mean(), smoothed(series.common)
    power = float((season**2).sum()) if beside_season else 0.0
    # what of time and values the season does not explain
    alone = time - (float(season @ time) / power) * season if power > 0 else time
    rest = x - x.mean()
    rest = rest - (float(season @ rest) / power) * season if power > 0 else rest
    information = float((alone**2).sum())
    independent = independent_values(len(x), series.least_correlation)
    freedom = independent - 3
    if freedom < 1 or information <= 1e-9 * float((time**2).sum()):
        return Line(0.0, inf, 1.0, 1.0)
    slope = float(alone @ rest) / information
    rest = rest - slope * alone
    # of n values that say as much as n' independent ones, with three parameters taken off
    variance = float((rest**2).sum()) / (len(x) * (1 - 3 / independent))
    error = sqrt(variance / information * len(x) / independent)
    p = 2 * float(stdtr(freedom, -abs(slope) / error)) if error > 0 else float(slope == 0)
    return Line(slope, error, freedom, p)


def smoothed(common: "Floats") -> "Floats":
    """Means of SEASON_VALUES neighbours, fewer at both ends, around 0."""
    means = np.convolve(common, np.ones(min(SEASON_VALUES, len(common))), "same") / _neighbours(len(common))
    return np.asarray(means - means.mean())


@lru_cache(maxsize=256)
def _neighbours(count: int) -> "Floats":
    """Of so many values, how many each such mean is of."""
    return np.convolve(np.ones(count), np.ones(min(SEASON_VALUES, count)), "same")


def winsorized(x: "Floats") -> "Floats":
    """Spikes say nothing about a response; of each row, shape (..., n)."""
    middle = np.median(x, axis=-1, keepdims=True)
    reach = 3 * SD_OF_MAD * np.median(np.abs(x - middle), axis=-1, keepdims=True)
    return np.asarray(np.clip(x, middle - reach, middle + reach))
