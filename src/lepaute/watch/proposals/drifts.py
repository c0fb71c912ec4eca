"""A straight line through a series of a machine: whether it drifts, and by how much."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf

import numpy as np
from scipy.special import stdtr

from lepaute.stats.expanding import Floats
from lepaute.stats.level_shift import independent_values
from lepaute.stats.student import SD_OF_MAD
from lepaute.watch.proposals.watched_series import WatchedSeries

#: So many effects of the days have a mean that is the season.
SEASON_VALUES = 15


@dataclass(frozen=True, slots=True)
class Lines:
    """Straight lines through series, the slopes by the second, with the errors of autocorrelated values.

    Each of shape (series,), degrees of freedom of all.
    """

    slope: Floats
    error: Floats
    degrees_of_freedom: float
    p_value: Floats


def lines_of(series: Sequence[WatchedSeries], *, beside_season: bool = True, values: "Floats | None" = None) -> Lines:
    """By least squares on winsorized values, beside what is proportional to the season unless that is known.

    series : of equal length and correlation; values : these winsorized values, where they are known
    The season is the mean of SEASON_VALUES effects of the days: a machine that responds more to it than others drifts
    while it lasts, and while it is itself a line, nothing can be told about a drift.
    """
    x = winsorized(np.stack([one.relative for one in series])) if values is None else values
    t = np.stack([one.started_s for one in series])
    count = x.shape[1]
    time, season = t - t.mean(axis=1, keepdims=True), smoothed(np.stack([one.common for one in series]))
    power = (season**2).sum(axis=1) * beside_season

    def without_season(values: Floats) -> Floats:
        share = np.divide((season * values).sum(axis=1), power, out=np.zeros(len(values)), where=power > 0)
        return np.asarray(values - share[:, None] * season)

    alone, rest = without_season(time), without_season(x - x.mean(axis=1, keepdims=True))
    information = (alone**2).sum(axis=1)
    independent = independent_values(count, series[0].least_correlation)
    freedom = independent - 3
    known = information > 1e-9 * (time**2).sum(axis=1)
    if freedom < 1 or not known.any():
        return Lines(np.zeros(len(x)), np.full(len(x), inf), 1.0, np.ones(len(x)))
    slope = np.divide((alone * rest).sum(axis=1), information, out=np.zeros(len(x)), where=known)
    rest = rest - slope[:, None] * alone
    # of n values that say as much as n' independent ones, with three parameters taken off
    variance = (rest**2).sum(axis=1) / (count * (1 - 3 / independent))
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.where(known, np.sqrt(variance / information * count / independent), inf)
        p = np.where(error > 0, 2 * stdtr(freedom, -np.abs(slope) / error), slope == 0)
    return Lines(slope, error, freedom, np.where(known, p, 1.0))


def smoothed(common: "Floats") -> "Floats":
    """Means of SEASON_VALUES neighbours of each row, fewer at both ends, around 0; shape (..., n)."""
    count = common.shape[-1]
    width = min(SEASON_VALUES, count)
    around = np.zeros((*common.shape[:-1], count + width - 1))
    around[..., width // 2 : width // 2 + count] = common
    means = np.lib.stride_tricks.sliding_window_view(around, width, axis=-1).sum(axis=-1) / _neighbours(count)
    return np.asarray(means - means.mean(axis=-1, keepdims=True))


@lru_cache(maxsize=256)
def _neighbours(count: int) -> "Floats":
    """Of so many values, how many each such mean is of."""
    return np.convolve(np.ones(count), np.ones(min(SEASON_VALUES, count)), "same")


def winsorized(x: "Floats") -> "Floats":
    """Spikes say nothing about a response; of each row, shape (..., n)."""
    middle = np.median(x, axis=-1, keepdims=True)
    reach = 3 * SD_OF_MAD * np.median(np.abs(x - middle), axis=-1, keepdims=True)
    return np.asarray(np.clip(x, middle - reach, middle + reach))
