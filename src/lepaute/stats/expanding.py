"""Moments of reference sets that grow: for each value of a series, the mean and scatter of those before it.

Welford's update (Technometrics 4, 1962), for vectors as in Chan, Golub & LeVeque (The American Statistician 37, 1983),
a step for all series at once: sums of squares less the square of the sum cancel where the spread is 1e-8 of the mean.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lepaute.errors import InputError

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ExpandingMoments:
    """A row for each value, or each that is chosen, in the order given.

    n           : values of the reference set, shape (rows,); 0 or below: so many less one are missing to the first one
    mean        : of the reference set, shape (rows, p); 0 if n < 1
    scatter     : its sum of products of deviations, (n - 1) S, shape (rows, p, p); 0 if n < 2
    window_mean : of the r values tested, shape (rows, p); NaN if there are fewer
    window      : rows of the values tested, the value itself first, shape (rows, r); -1 if there are fewer
    """

    n: Integers
    mean: Floats
    scatter: Floats
    window_mean: Floats
    window: Integers


def expanding_moments(
    values: Floats,
    series: Integers,
    kept: Booleans,
    r: int = 1,
    most: Integers | None = None,
    chosen: Booleans | None = None,
) -> ExpandingMoments:
    """The window of each value, itself and the r - 1 kept ones before it, and the kept ones before that window.

    values : finite, shape (rows, p), in the order of time in each series
    series : its number, shape (rows,)
    kept   : False for what never enters a reference set or the window of another value, shape (rows,)
    most   : values of each reference set at most, the first ones of its series, shape (rows,); all by default
    chosen : those that get a row, shape (rows,); all by default
    Raises InputError for r < 1 and for values that are not finite.
    """
    if r < 1:
        raise InputError(f"a window has {r} values; it needs at least 1")
    if not np.isfinite(values).all():
        raise InputError("there are values that are not finite; leave them out")
    rows, p = values.shape
    in_order = (np.diff(series) >= 0).all()
    order = np.arange(rows) if in_order else np.argsort(series, kind="stable")
    number = np.cumsum(np.diff(series[order], prepend=series[order[:1]]) != 0)
    # kept values, series after series; those of series s begin at begin[s]
    is_kept = kept[order]
    kept_rows = order[is_kept]
    count = np.bincount(number, is_kept, minlength=int(number.max(initial=-1)) + 1).astype(np.int64)
    begin = np.concatenate([[0], np.cumsum(count)[:-1]]).astype(np.int64) if len(count) else np.zeros(0, np.int64)
    which = np.arange(rows) if chosen is None else np.flatnonzero(chosen)
    own_series: Integers = np.empty(rows, np.int64)
    own_series[order] = number
    before: Integers = np.empty(rows, np.int64)
    before[order] = np.cumsum(is_kept) - is_kept - begin[number]
    own_series, before = own_series[which], before[which]
    mean_after, scatter_after = _welford(values[kept_rows], count, begin)
    n = before - (r - 1) if most is None else np.minimum(before - (r - 1), most[which])
    mean, scatter = np.zeros((len(which), p)), np.zeros((len(which), p, p))
    some = n >= 1
    at = begin[own_series[some]] + n[some] - 1
    mean[some], scatter[some] = mean_after[at], scatter_after[at]
    window = np.full((len(which), r), -1, np.int64)
    window[:, 0] = which
    window_mean = values[which]
    full = before >= r - 1
    for back in range(1, r):
        at = kept_rows[begin[own_series[full]] + before[full] - back]
        window[full, back] = at
        window_mean[full] += values[at]
    window_mean /= r
    window_mean[~full] = np.nan
    return ExpandingMoments(n, mean, scatter, window_mean, window)


def _welford(x: Floats, count: Integers, begin: Integers) -> tuple[Floats, Floats]:
    """(mean, scatter) after each value; series s has count[s] rows from begin[s]."""
    longest_first = np.argsort(-count, kind="stable")
    steps = np.arange(int(count.max(initial=0)))
    alive = np.searchsorted(-count[longest_first], -steps, side="left")  # series that have a value of this number
    at = np.concatenate([np.zeros(0, np.int64), *(begin[longest_first[:n]] + k for k, n in enumerate(alive.tolist()))])
    # the first values of all series, the longest first, then the second ones, ...: neighbours in memory
    x, starts = x[at], np.cumsum(alive) - alive
    mean, scatter = x.copy(), np.zeros((*x.shape, x.shape[1]))
    for k in range(1, len(alive)):
        now, last = (slice(starts[step], starts[step] + alive[k]) for step in (k, k - 1))
        delta = x[now] - mean[last]
        mean[now] = mean[last] + delta / (k + 1)
        scatter[now] = scatter[last] + delta[:, :, None] * delta[:, None, :] * (k / (k + 1))
    back = np.empty_like(at)
    back[at] = np.arange(len(at))
    return mean[back], scatter[back]
