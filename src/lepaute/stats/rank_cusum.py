"""The rank CUSUM of a series, whose range says whether its level changed, and what range chance alone has.

Pettitt (Applied Statistics 28, 1979) counts, for every place k, how many more pairs across k rise than fall, U(k);
where its absolute value is largest is the change. It uses ranks alone, so that a few runs that took ten times as long
weigh as much as any others, and the unit does not matter. We compare the range of U, largest less smallest value, as
Kuiper does with Kolmogorov's: for one step it is the same number, for a level that changed and came back it is twice as
large (the circular segmentation of Olshen et al., Biostatistics 5, 2004, has the same statistic with means).

His p-value, and that of a permutation, take the values for exchangeable. Those of a reference kernel are not: a
temperature lasts, so that neighbours are alike, and at a correlation of 0.5 a 1 % test of that kind gives an alarm in
more than one quiet series out of five. Permuting blocks helps only where blocks are much longer than the memory and
there are many of them, and the series here have 20 to 200 values. So the statistic is compared with that of simulated
autoregressive series, x(i) = rho x(i-1) + noise, of the same length and about the same correlation; since it depends on
ranks only, that the noise is normal there matters little (the promise tests have a heavy tail).

How alike neighbours of a series are, whether or not its level changes on the way.

The plain correlation of neighbours takes a change of level for correlation, and then no change would ever be found. So
there are two estimates, both from ranks, against outliers; each errs upwards, and the smaller one counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, sqrt

import numpy as np
import numpy.typing as npt

from lepaute.errors import InputError
from lepaute.stats.expanding import Floats
from lepaute.stats.robust import lag_correlation

#: Fewer values than this say nothing about a change: even two levels wide apart come about by chance too often.
FEWEST = 8
#: The p-value is taken from this many simulated series first, and from all of them only if it is small there.
FIRST_SERIES = 200
ALL_SERIES = 5000
#: The first ones are enough for a p-value above this.
ENOUGH = 0.1
#: Below this p-value, where 20 of all series are left, the tail is taken for that of Kuiper's distribution.
TAIL = 0.004
#: No p-value is smaller: so far from what was simulated, a number would only look exact.
MIN_P = 1e-9
#: Longer series are compared with simulated ones of this length: the range of U over n^1.5 hardly depends on n there.
LONGEST_SIMULATED = 1000
#: Simulated values at once: 3 MB of them.
CHUNK_VALUES = 400_000
#: Of `null_table` by its arguments, the latest last: 40 kB each.
MAX_TABLES = 1024
null_tables: dict[tuple[int, float, int, int], Floats] = {}
#: Never above this, or nothing could be distinguished from a wandering level any more.
MAX_CORRELATION = 0.9
#: Standard errors added, since a correlation taken too low makes false alarms and one taken too high costs power. The
#: estimate from differences has the wider error, 1.8 to 2.4 / root n by simulation for rho from 0 to 0.6. With the
#: other one besides, steps of six standard deviations in 40 values are found in 72 % of series at rho = 0.6, not 26 %.
CAUTION_DIFFERENCES = 1.0
CAUTION_LEVELS = 1.5


def ordered_series(time_s: Sequence[float], values: Sequence[float]) -> tuple[Floats, Floats]:
    """(dates, values) by increasing date; the values of equal dates become one, their median, so their order is free.

    time_s : n finite dates in any order; values : n finite numbers > 0 in any one unit
    Raises InputError if the lengths differ, or a number cannot be.
    """
    dates, x = np.asarray(time_s, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if dates.ndim != 1 or dates.shape != x.shape:
        raise InputError(f"the series has {dates.size} dates and {x.size} values; give as many dates as values")
    wrong = np.flatnonzero(~(np.isfinite(dates) & np.isfinite(x) & (x > 0)))
    if wrong.size:
        first = int(wrong[0])
        raise InputError(f"value {first} of the series is {x[first]!r} at {dates[first]!r} s; give finite values > 0")
    unique, inverse = np.unique(dates, return_inverse=True)
    if len(unique) == len(dates):
        order = np.argsort(dates)
        return dates[order], x[order]
    return unique, np.array([np.median(x[inverse == i]) for i in range(len(unique))])


@dataclass(frozen=True, slots=True)
class Change:
    """The most likely change: before value `index` (from 0). `spread` is the range of U, 0 at both ends included."""

    index: int
    spread: float


def ranks(values: Floats) -> Floats:
    """Ranks from 1 within each row, equal values share the mean of theirs; shape (..., n)."""
    order = values.argsort(axis=-1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=-1)
    ranked = np.broadcast_to(np.arange(1.0, values.shape[-1] + 1), values.shape)
    same = ordered[..., 1:] == ordered[..., :-1]
    if same.any():
        # of each run of equal values the first and the last place
        place = np.broadcast_to(np.arange(values.shape[-1]), values.shape)
        edge = np.ones((*values.shape[:-1], 1), np.bool_)
        first = np.maximum.accumulate(np.where(np.concatenate([edge, ~same], axis=-1), place, 0), axis=-1)
        backwards = np.concatenate([~same, edge], axis=-1)[..., ::-1]
        last = values.shape[-1] - 1 - np.maximum.accumulate(np.where(backwards, place, 0), axis=-1)[..., ::-1]
        ranked = 1 + (first + last) / 2
    found = np.empty(values.shape)
    np.put_along_axis(found, order, ranked, axis=-1)
    return found


def largest_change(values: Floats) -> Change:
    """The place of the largest |U(k)|, the first one where several are as good, and the range of U; shape (n,), n >= 2.

    Formula: U(k) = sum over i <= k < j of sign(x(j) - x(i)) = k (n + 1) - 2 (sum of the first k ranks).
    """
    index, spread = _largest_changes(ranks(values))
    return Change(int(index), float(spread))


def _largest_changes(ranked: Floats) -> tuple[npt.NDArray[np.int64], Floats]:
    """Index and spread of each row of ranks, of shape (..., n)."""
    count = ranked.shape[-1]
    u = np.arange(1, count) * (count + 1.0) - 2.0 * np.cumsum(ranked, axis=-1)[..., :-1]
    spread = np.maximum(u.max(axis=-1), 0.0) - np.minimum(u.min(axis=-1), 0.0)
    return np.asarray(np.abs(u).argmax(axis=-1) + 1), np.asarray(spread)


def p_value(spread: float, count: int, rho: float, seed: int) -> float:
    """The chance that U has this range or a larger one, among `count` values of correlation `rho` without a change.

    seed : of the simulated series; the same arguments give the same p-value
    (1 + number of series at least as extreme) / (1 + number of series), which never promises too much; the first 200
    series are enough where it is above 0.1 there (Besag & Clifford, Biometrika 78, 1991). Below TAIL, so that a
    campaign of hundreds of nodes needs no millions of series: the square of the range has an exponential tail (Kuiper),
    whose scale is the mean excess of the largest 100 (Knijnenburg et al., Bioinformatics 25, 2009, fit such tails). For
    short series the range is bounded and the true chance smaller still. Never below MIN_P.
    """
    if count > LONGEST_SIMULATED:
        spread, count = spread * (LONGEST_SIMULATED / count) ** 1.5, LONGEST_SIMULATED
    first = float(_shares(spread, null_table(count, rho, FIRST_SERIES, seed)))
    if first > ENOUGH:
        return first
    table = null_table(count, rho, ALL_SERIES, seed)
    p = float(_shares(spread, table))
    if p > TAIL:
        return p
    squares = table[-100:] ** 2
    scale = max(float(squares.mean() - squares[0]), 1e-12)
    p = 100 / (1 + ALL_SERIES) * exp(-max(0.0, spread**2 - float(squares[0])) / scale)
    return min(TAIL, max(MIN_P, p))


def _shares(spreads: "float | Floats", table: Floats) -> Floats:
    """Of each range, the share of the table that is at least as large, itself included."""
    at_least = len(table) - np.searchsorted(table, np.asarray(spreads) * (1 - 1e-12))
    return np.asarray((1 + at_least) / (1 + len(table)))


def null_table(count: int, rho: float, series: int, seed: int) -> Floats:
    """The range of U of `series` simulated series of `count` values each, in increasing order."""
    key = count, rho, series, seed
    table = null_tables.pop(key, None)
    null_tables[key] = _simulated_ranges(*key) if table is None else table
    if len(null_tables) > MAX_TABLES:
        del null_tables[next(iter(null_tables))]
    return null_tables[key]


def _simulated_ranges(count: int, rho: float, series: int, seed: int) -> Floats:
    rng = np.random.default_rng((seed, count, round(1000 * rho), series))
    maxima: list[Floats] = []
    at_once = max(1, CHUNK_VALUES // count)
    for start in range(0, series, at_once):
        x = autoregressive(rng, (min(at_once, series - start), count), rho)
        order = x.argsort(axis=1)
        ranked = np.empty(x.shape)
        np.put_along_axis(ranked, order, np.broadcast_to(np.arange(1.0, count + 1), x.shape), axis=1)
        maxima.append(_largest_changes(ranked)[1])
    return np.sort(np.concatenate(maxima))


def autoregressive(rng: np.random.Generator, shape: tuple[int, int], rho: float) -> Floats:
    """Stationary normal series x(i) = rho x(i-1) + noise of variance 1, one a row of `shape` (series, values)."""
    x = rng.normal(size=shape)
    if rho == 0:
        return x
    of_place = np.ascontiguousarray(x.T)  # of which each step takes neighbours in memory
    of_place[1:] *= np.sqrt(1 - rho * rho)
    for i in range(1, shape[1]):
        of_place[i] += rho * of_place[i - 1]
    return np.ascontiguousarray(of_place.T)


def change_p_values(values: Floats, least_correlation: Floats, seed: int = 1) -> Floats:
    """For each row, shape (series, n >= 8), the chance of so clear a change, at whatever date, without one.

    least_correlation : of neighbours, of each row: they have no less; seed: as of `p_value`
    """
    ranked = ranks(values)
    spreads, rho = _largest_changes(ranked)[1], np.maximum(least_correlation, _cautious(ranked))
    p_values, count = np.empty(len(values)), values.shape[1]
    if count > LONGEST_SIMULATED:
        return np.array(
            [p_value(*each, seed) for each in zip(spreads, [count] * len(values), rho.tolist(), strict=True)]
        )
    for correlation in np.unique(rho).tolist():
        rows = np.flatnonzero(rho == correlation)
        p_values[rows] = _shares(spreads[rows], null_table(count, correlation, FIRST_SERIES, seed))
        for row in rows[p_values[rows] <= ENOUGH].tolist():
            p_values[row] = p_value(float(spreads[row]), count, correlation, seed)
    return p_values


def cautious_correlation(values: Floats) -> Floats:
    """An upper estimate of the correlation of neighbours, 0 to MAX_CORRELATION, for n >= 8 values, shape (..., n).

    The smaller of the two estimates below, each with its standard errors added: 2 / root n and 1 / root n. Rounded to
    steps of 0.05, so that simulated tables are shared. Where the level changes more than once, the first one holds.
    """
    return _cautious(ranks(values))


def _cautious(ranked: Floats) -> Floats:
    count = ranked.shape[-1]
    from_differences = _from_differences(ranked) + CAUTION_DIFFERENCES * 2 / sqrt(count)
    level = _from_levels(ranked)
    # levels taken off lower a correlation by about (2 + 4 rho) / n (Kendall's bias, one more value for the second mean)
    from_levels = level + CAUTION_LEVELS / sqrt(count) + (2 + 4 * level) / count
    found: Floats = np.minimum(MAX_CORRELATION, np.rint(np.minimum(from_differences, from_levels) * 20) / 20)
    return found


def correlations(values: Floats) -> tuple[Floats, Floats]:
    """Of neighbours of each row, by differences and by levels.

    From differences, which a change of level hardly touches, 0 to MAX_CORRELATION: the mean square of x(i+2) - x(i)
    over that of x(i+1) - x(i) is 1 + rho for an autoregressive series. A step is in one or two differences only; the
    largest tenth of each is left out. A negative estimate counts as 0.
    From levels: the plain one after the means before and after the largest change; 0 to 1.
    """
    ranked = ranks(values)
    return _from_differences(ranked), _from_levels(ranked)


def _from_differences(ranked: Floats) -> Floats:
    near, far = (_trimmed_square(ranked[..., lag:] - ranked[..., :-lag]) for lag in (1, 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        seen = np.clip(far / near - 1, 0.0, MAX_CORRELATION)
    return np.where(near == 0, np.where(far == 0, 0.0, MAX_CORRELATION), seen)


def _trimmed_square(differences: Floats) -> Floats:
    squares = np.sort(differences * differences, axis=-1)
    count = squares.shape[-1]
    return np.asarray(np.ascontiguousarray(squares[..., : count - max(1, count // 10)]).mean(axis=-1))


def _from_levels(ranked: Floats) -> Floats:
    count = ranked.shape[-1]
    cut = np.clip(_largest_changes(ranked)[0], 2, count - 2)[..., None]
    sums = np.cumsum(ranked, axis=-1)  # of halves: exact
    before = np.take_along_axis(sums, cut - 1, axis=-1)
    rest = ranked - np.where(np.arange(count) < cut, before / cut, (sums[..., -1:] - before) / (count - cut))
    return np.fmax(0.0, lag_correlation(rest))
