"""When the level of a series changed, whether it drifts, and whether there is any order in time: a machine that is not
what it was.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import erfc, inf, log, sqrt

import numpy as np

from lepaute.errors import InputError
from lepaute.kit.text import p_text, significant
from lepaute.stats.expanding import Floats
from lepaute.stats.rank_cusum import FEWEST, cautious_correlation, largest_change, ordered_series, p_value

#: Longer series are cut into this many groups at most and their medians taken: all pairs are compared.
MAX_VALUES = 1500
#: A level lasts at least this many values on either side of a step; what is shorter is a run of outliers.
SHORTEST = 4
#: The date of a step is looked for among this many values on either side of where ranks have it.
MAX_REACH = 25
#: A stretch of `largest_shift` and the rest have at least this many values: a single outlier is none.
SHORTEST_STRETCH = 2
#: Permutations of it; all of them only where the first ones leave it open.
FIRST, ALL = 200, 5000
#: Longer series are cut into this many means of neighbours: all stretches are compared.
MAX_STRETCHED = 60
_CHUNK = 1_000_000


@dataclass(frozen=True, slots=True)
class Drift:
    """A trend, relative to the median value."""

    significant: bool  # and at least the least size over the series
    relative_per_hour: float
    relative_total: float  # from the first date to the last
    p_value: float
    note: str | None  # why nothing can be said, where that is so

    def __str__(self) -> str:
        """The trend as text; `value` is a duration, so more is slower."""
        if self.note:
            return self.note
        if not self.significant:
            return "no drift"
        way = "slower" if self.relative_total > 0 else "faster"
        total, rate = (significant(100 * abs(size), 2) for size in (self.relative_total, self.relative_per_hour))
        return f"became {total} % {way} gradually ({rate} % an hour, {p_text(self.p_value)})"


def drift(
    time_s: Sequence[float], values: Sequence[float], *, false_alarms: float = 0.01, least_size: float = 0.01
) -> Drift:
    """Whether the values rise or fall in the course of time: Mann-Kendall's test, Theil and Sen's slope.

    time_s, values : n dates in any order and values > 0 in any one unit, as in `ordered_series`
    false_alarms   : chance that a series without a trend is called drifting
    least_size     : relative change over the whole series below which a trend is not called one, however certain it is
    Correlated neighbours make the test give false alarms; its variance is therefore multiplied by (1 + rho) / (1 -
    rho), the inverse share of values that are as good as independent (Yue & Wang, Water Resources Management 18, 2004),
    rho taken cautiously and from what the slope leaves. A step is a trend for this test as well:
    ask it about the stretches between steps (`find_steps` first).
    Fewer than 8 dates: p-value 1, and a note. Raises InputError for a series that cannot be.
    """
    dates, x = ordered_series(time_s, values)
    if len(x) < FEWEST:
        return Drift(False, 0.0, 0.0, 1.0, f"too few values for a drift: {len(x)} dates, at least {FEWEST} are needed")
    if len(x) > MAX_VALUES:
        size = -(-len(x) // MAX_VALUES)
        dates, x = (np.array([np.median(v[i : i + size]) for i in range(0, len(v), size)]) for v in (dates, x))
    slope_per_s, kendall_s = theil_sen(dates, x)
    p = _mann_kendall(x, kendall_s, float(cautious_correlation(x - slope_per_s * (dates - dates[0]))))
    middle = float(np.median(x))
    total = slope_per_s * float(dates[-1] - dates[0]) / middle
    significant = p <= false_alarms and abs(total) >= least_size
    return Drift(significant, 3600 * slope_per_s / middle, total, p, None)


def theil_sen(dates: Floats, x: Floats) -> tuple[float, float]:
    """(median slope of all pairs, number of rising pairs less falling ones); dates increasing, shape (n,), n >= 2."""
    early, late = np.triu_indices(len(x), 1)
    rise = x[late] - x[early]
    return float(np.median(rise / (dates[late] - dates[early]))), float(np.sign(rise).sum())


def _mann_kendall(x: Floats, kendall_s: float, rho: float) -> float:
    """Two-sided p-value by the normal approximation, with ties (Kendall, Rank Correlation Methods, 4th ed., 4.9)."""
    n = len(x)
    ties = np.unique(x, return_counts=True)[1]
    variance = (n * (n - 1) * (2 * n + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    if variance <= 0:
        return 1.0  # all values are equal
    z = max(0.0, abs(kendall_s) - 1) / sqrt(variance * (1 + rho) / (1 - rho))
    return erfc(z / sqrt(2))


@dataclass(frozen=True, slots=True)
class Step:
    """A change of level between two successive values of a series.

    after_s, before_s : dates of the last value of the old level and of the first one of the new level
    relative_size     : median of the values until the next step over that since the last one, less 1
    p_value           : chance of so clear a step in a stretch of this length and correlation that has none
    """

    after_s: float
    before_s: float
    relative_size: float
    p_value: float


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of a series in the order of their dates; `note` says why it was not testable, if so.

    straight : something changed, and a slope alone describes it best
    """

    steps: tuple[Step, ...]
    note: str | None = None
    straight: bool = False


@dataclass(frozen=True, slots=True)
class _Cut:
    index: int  # the first value of the new level
    p_value: float


def find_steps(
    time_s: Sequence[float],
    values: Sequence[float],
    *,
    false_alarms: float = 0.01,
    least_size: float = 0.01,
    least_correlation: float = 0.0,
    seed: int = 1,
) -> Steps:
    """Finds the dates at which the level of a series changed: none, one or several.

    time_s, values : n dates in any order, irregular or not, and values > 0 in any one unit, as in `ordered_series`
    false_alarms   : chance that a series whose level never changes gets a step, the whole series together, also where
                     the noise has a heavy tail; half as much again where neighbours are correlated by 0.6
    least_size     : relative change below which a step is none, however certain it is
    least_correlation: of neighbours, known from elsewhere, such as many series of the same kind: what a short series
                     seems to have may be too little, which at small false_alarms is what most of them come from
    seed           : of the simulation that p-values come from; the same arguments give the same result

    Binary segmentation: the largest change is tested by the range of its rank CUSUM (`rank_cusum`), then both sides of
    it. A test after d cuts is done at false_alarms / 2^d; by Kraft's inequality the leaves of the tree then share no
    more than false_alarms, however many steps there are. A slow drift also fails that test. So where something is
    found, three descriptions compete by Schwarz's criterion for the sum of absolute errors: levels, levels on top of a
    slope, and a slope alone, in which case there is no step. Steps smaller than least_size are then dropped, the
    smallest first. A step of two standard deviations in the middle is found in about nine out of ten series of 80
    independent values, one of six among 40 values with a correlation of 0.6 in about two out of three; where the level
    comes back it takes more values. A wandering level often looks like a step.

    Fewer than 8 dates: no step, and a note. Raises InputError for a series that cannot be, or a chance outside (0, 1).
    """
    if not 0 < false_alarms < 1 or not least_size >= 0:
        raise InputError(
            f"false alarms are {false_alarms!r}, the least size {least_size!r}; give a chance in (0, 1), a size >= 0"
        )
    dates, x = ordered_series(time_s, values)
    count = len(x)
    if count < FEWEST:
        return Steps((), f"too few values for a step: {count} dates, at least {FEWEST} are needed")
    clearest = float((count // 2) * ((count + 1) // 2))  # the range of U for two levels that do not overlap
    if p_value(clearest, count, _correlation(x, least_correlation), seed) > false_alarms:
        return Steps((), f"too few values for a step: even the clearest would not be significant among {count} values")
    cuts = _cuts(x, 0, false_alarms, least_correlation, seed)
    if not cuts:
        return Steps(())
    flat = x - _local_slope(dates, x) * (dates - dates[0])
    flat_cuts = _cuts(flat, 0, false_alarms, least_correlation, seed)
    straight = x - theil_sen(*_thinned(dates, x))[0] * (dates - dates[0])
    descriptions: list[tuple[Floats, list[_Cut], int]] = [(x, cuts, 0), (flat, flat_cuts, 1), (straight, [], 1)]
    level, kept, _ = min(descriptions, key=lambda description: _criterion(*description))
    # without its slope the series stays at the first date's level: back to the middle of the values, for relative sizes
    found = _large_enough(dates, level + float(np.median(x) - np.median(level)), kept, least_size)
    return Steps(found, straight=not kept)


def _correlation(x: Floats, least: float) -> float:
    return max(least, float(cautious_correlation(x)))


def _cuts(
    x: Floats, depth: int, false_alarms: float, least_correlation: float, seed: int, start: int = 0
) -> list[_Cut]:
    """Significant changes of x in order, their indices counted from `start`."""
    if len(x) < FEWEST:
        return []
    change = largest_change(x)
    if not SHORTEST <= change.index <= len(x) - SHORTEST:
        return []
    level = false_alarms / 2**depth
    p = p_value(change.spread, len(x), _correlation(x, least_correlation), seed)
    if p > level:
        return []
    index = _sharpest(x, change.index)
    before = _cuts(x[:index], depth + 1, false_alarms, least_correlation, seed, start)
    after = _cuts(x[index:], depth + 1, false_alarms, least_correlation, seed, start + index)
    return [*before, _Cut(start + index, p), *after]


def _sharpest(x: Floats, index: int) -> int:
    """The cut near `index` with the least absolute deviation from the medians of both sides.

    Ranks cannot tell on which side the lowest value of the upper level lies, and prefer the middle; distances can.
    """

    def error(cut: int) -> float:
        return sum(float(np.abs(side - np.median(side)).sum()) for side in (x[:cut], x[cut:]))

    reach = min(MAX_REACH, max(3, len(x) // 10))
    return min(range(max(SHORTEST, index - reach), min(len(x) - SHORTEST, index + reach) + 1), key=error)


def _medians(x: Floats, cuts: Sequence[_Cut]) -> list[float]:
    edges = [0, *(cut.index for cut in cuts), len(x)]
    return [float(np.median(x[a:b])) for a, b in pairwise(edges)]


def _criterion(x: Floats, cuts: Sequence[_Cut], slopes: int) -> tuple[float, int]:
    """Schwarz's criterion for errors with Laplace's distribution: 2 n log(mean absolute error) + parameters log n."""
    error = float(np.abs(x - np.repeat(_medians(x, cuts), np.diff([0, *(cut.index for cut in cuts), len(x)]))).mean())
    # 3 log n for a step, its date and its level together (modified criterion of Zhang & Siegmund, Biometrics 63, 2007)
    parameters = 3 * len(cuts) + 1 + slopes
    # relative to the values: what is left of nothing but rounding is no error
    if error <= 1e-12 * float(np.abs(x).max()):
        return -inf, parameters
    return 2 * len(x) * log(error) + parameters * log(len(x)), parameters


def _local_slope(dates: Floats, x: Floats) -> float:
    """The median slope of pairs of values up to an eighth of the series apart: few have a step in between."""
    dates, x = _thinned(dates, x)
    slopes = [(x[lag:] - x[:-lag]) / (dates[lag:] - dates[:-lag]) for lag in range(1, max(2, len(x) // 8 + 1))]
    return float(np.median(np.concatenate(slopes)))


def _thinned(dates: Floats, x: Floats) -> tuple[Floats, Floats]:
    """Every this many values, MAX_VALUES at most: enough for a slope, of which all pairs are taken."""
    stride = -(-len(x) // MAX_VALUES)
    return dates[::stride], x[::stride]


def _large_enough(dates: Floats, x: Floats, cuts: Sequence[_Cut], least_size: float) -> tuple[Step, ...]:
    """The steps of at least least_size; without the smallest one its neighbours are sized anew, until all are large."""
    kept = list(cuts)
    while kept:
        levels = _medians(x, kept)
        sizes = [after / before - 1 for before, after in pairwise(levels)]
        smallest = min(range(len(kept)), key=lambda i: abs(sizes[i]))
        if abs(sizes[smallest]) >= least_size:
            return tuple(
                Step(float(dates[cut.index - 1]), float(dates[cut.index]), size, cut.p_value)
                for cut, size in zip(kept, sizes, strict=True)
            )
        del kept[smallest]
    return ()


@dataclass(frozen=True, slots=True)
class Shift:
    """The stretch values[first:last] of a series of `count`, and the chance of one as clear without any order."""

    first: int
    last: int
    count: int
    p_value: float

    @property
    def lasts(self) -> bool:
        """It is a step: it reaches the end of the series, or begins with it."""
        return self.first == 0 or self.last == self.count


def largest_shift(values: Sequence[float] | Floats, seed: int = 1) -> Shift | None:
    """The stretch that differs most; None with fewer than 2 SHORTEST_STRETCH values, or where all are equal.

    `find_steps` takes neighbours that are alike for the series' usual state, and says when its level changed beyond
    that; of thirty values it needs a third on either side. The question here is another: is there any order in time at
    all? So the test is exact by permutation of the values. The statistic is that of circular binary segmentation
    (Olshen et al., Biostatistics 5, 2004) on a line: the largest standardised difference of a mean to the rest.
    values : in the order of time, in any unit
    seed   : of the permutations; the same arguments give the same result
    """
    every = np.asarray(values, dtype=np.float64)
    x = every
    bounds = np.arange(len(every) + 1)
    if len(every) > MAX_STRETCHED:
        parts = np.array_split(every, MAX_STRETCHED)
        x = np.array([part.mean() for part in parts])
        bounds = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
    n = len(x)
    if n < 2 * SHORTEST_STRETCH or float(np.ptp(x)) == 0.0:
        return None
    first, last = np.triu_indices(n + 1, SHORTEST_STRETCH)
    kept = last - first <= n - SHORTEST_STRETCH
    first, last = first[kept], last[kept]
    length = (last - first).astype(np.float64)
    # |mean inside - mean outside| sqrt(L (n - L) / n) for values of mean 0.
    weight = np.sqrt(n / (length * (n - length)))
    x = x - x.mean()

    def statistics(rows: Floats) -> Floats:
        sums = np.concatenate([np.zeros((len(rows), 1)), np.cumsum(rows, axis=1)], axis=1)
        found: Floats = np.abs(sums[:, last] - sums[:, first]) * weight
        return found

    seen = statistics(x[None, :])[0]
    at = int(np.argmax(seen))
    largest = float(seen[at]) * (1 - 1e-12)
    rng = np.random.default_rng((seed, n))
    beyond = done = 0
    for count in (FIRST, ALL - FIRST):
        for begin in range(0, count, max(1, _CHUNK // len(first))):
            batch = min(count - begin, max(1, _CHUNK // len(first)))
            rows = rng.permuted(np.broadcast_to(x, (batch, n)), axis=1)
            beyond += int(np.count_nonzero(statistics(rows).max(axis=1) >= largest))
            done += batch
        if beyond > 0.05 * done:
            break
    return Shift(int(bounds[first[at]]), int(bounds[last[at]]), len(every), (1 + beyond) / (1 + done))
