"""The series in which changes are looked for: what a machine showed of a factor between two events, relatively.

And what all machines of a cluster have in common on a day: a season, a warm afternoon, an upgrade of all of them. The
effect of a day is the median over machines of their relative deviation, as in `change_evidence`. Taken off, it leaves
what a machine does by itself; by itself, it shows what happened to all.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import compress
from math import inf

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import stdtr

from lepaute.stats.change_evidence import COMMON_MEMORY, ChangeEvidence
from lepaute.stats.expanding import Floats, Integers
from lepaute.stats.level_shift import independent_values
from lepaute.stats.rank_cusum import FEWEST, cautious_correlation, correlations
from lepaute.stats.robust import medians_of, row_medians
from lepaute.stats.steps import SHORTEST
from lepaute.stats.student import SD_OF_MAD
from lepaute.watch.changelog import Changelog
from lepaute.watch.judging.reference import references
from lepaute.watch.values import DAY_S, MACHINE, day_numbers, in_turn, parts_of, vectors

#: Machines without which a day has no effect of its own.
MIN_MACHINES = 8
#: A day on which fewer were measured takes in this many days before and after it, as few as are enough.
REACHES = (0, 1, 3, 7)
_POLISHES = 2
#: With fewer series the correlations of neighbours say too little about each other: see `_least_correlation`.
MIN_SERIES = 8
#: Standard errors added to the correlation of a series that has no others beside it.
CAUTION_ALONE = 3.0
#: Never above this, or nothing could be told from a wandering level.
MAX_CORRELATION = 0.9
#: So many effects of the days have a mean that is the season.
SEASON_VALUES = 15
#: The change is at most this many values before there is evidence of it; levels of this many values tell where.
REACH = 20


@dataclass(frozen=True, slots=True)
class DayEffect:
    """day (days since the epoch, ascending), effect (relative), of shape (days,); reach: days taken in on each side."""

    day: "Integers"
    effect: "Floats"
    reach: "Integers"

    def at(self, day: "Integers") -> "Floats":
        """The effects of these days, which are all among those given to `day_effect`."""
        return np.asarray(self.effect[np.searchsorted(self.day, day)])

    def apart(self) -> "Integers":
        """Positions of days whose effects share no measurement."""
        kept: list[int] = []
        for position in range(len(self.day)):
            near = self.reach[position] + (self.reach[kept[-1]] if kept else 0)
            if not kept or self.day[position] - self.day[kept[-1]] > near:
                kept.append(position)
        return np.array(kept, np.int64)


def day_effect(day: "Integers", series: "Integers", relative: "Floats") -> DayEffect | None:
    """The common part of deviations; all arrays of shape (rows,).

    day      : days since the epoch; series: a number for each machine; relative: its deviation from its own level
    None if no day has MIN_MACHINES machines: then nothing can be told apart. Days without enough of them within
    the widest reach take the effect of the days next to them, on a straight line between both.
    """
    at, days = pd.factorize(day, sort=True)
    members = pd.factorize(series, sort=True)[0]
    count = int(members.max(initial=-1)) + 1
    if count < MIN_MACHINES:
        return None
    left = relative.copy()
    total = np.zeros(len(days))
    reach = np.full(len(days), -1, np.int64)
    cell = at * count + members
    counts = np.bincount(cell, minlength=len(days) * count).reshape(len(days), count)
    machines = (counts > 0).sum(axis=1)
    reach[machines >= MIN_MACHINES] = 0
    if reach.any():
        order = np.argsort(at, kind="stable")
        starts = np.searchsorted(at[order], np.arange(len(days) + 1))
    for polish in range(_POLISHES):
        sums = np.bincount(cell, left, minlength=counts.size).astype(float, copy=False)
        effect = _middles(sums.reshape(counts.shape), counts, machines)
        effect[reach != 0] = np.nan
        for position in np.flatnonzero(reach != 0):
            for wide in REACHES if polish == 0 else (int(reach[position]),):
                if wide < 0:
                    continue
                first = int(np.searchsorted(days, days[position] - wide))
                rows = order[starts[first] : starts[int(np.searchsorted(days, days[position] + wide, side="right"))]]
                means = _means(members[rows], left[rows])
                if len(means) >= MIN_MACHINES:
                    effect[position], reach[position] = float(np.median(means)), wide
                    break
        known = np.isfinite(effect)
        if not known.any():
            return None
        total += np.interp(days, days[known], effect[known])
        if polish < _POLISHES - 1:
            deviations = relative - total[at]
            left = deviations - medians_of(members, deviations)[members]
    return DayEffect(days, total, np.maximum(reach, 0))


def _middles(sums: "Floats", counts: "Integers", machines: "Integers") -> "Floats":
    """For each day, the median over its machines of the means of their values; sums, counts: shape (days, machines)."""
    means = np.divide(sums, counts, out=np.full(sums.shape, np.inf), where=counts > 0)
    means.sort(axis=1)
    day = np.arange(len(means))
    return np.asarray((means[day, np.maximum(machines - 1, 0) // 2] + means[day, machines // 2]) / 2)


def _means(members: "Integers", values: "Floats") -> "Floats":
    """Mean of each machine among them."""
    counts = np.bincount(members)
    there = counts > 0
    return np.asarray(np.bincount(members, values)[there] / counts[there])


@dataclass(frozen=True, slots=True)
class WatchedSeries:
    """One factor of one machine, or of all machines of a cluster, in one stratum between two events; n dates each.

    node, cpu        : of the machine; node is "" for the effect of the days, which all of them share
    started_s        : dates, ascending, shape (n,)
    relative         : values over their median, less 1; without the effect of the day where that is known
    common           : that effect, shape (n,), 0 if it is not known
    scale            : that median, in the unit of the factor; 1 for the effect of the days
    archives         : of each date; empty for the effect of the days
    least_correlation: of neighbours, from all series of the same kind
    local            : seasons are left in it, so that only what is sudden is a change
    evidence         : of a sudden change, on each date; where it is local
    """

    cluster: str
    stratum: str
    factor: str
    node: str
    cpu: int
    started_s: "Floats"
    relative: "Floats"
    common: "Floats"
    scale: float
    archives: "Sequence[str] | npt.NDArray[np.object_]"
    least_correlation: float
    local: bool
    evidence: "Floats | None" = None


@dataclass(frozen=True, slots=True)
class SeriesGroup:
    """All series of a cluster, stratum and factor: of the machines, and of what they share (in stretches)."""

    machines: tuple[WatchedSeries, ...]
    common: tuple[WatchedSeries, ...]


def observed(
    table: "pd.DataFrame", changelog: Changelog, of_factor: Mapping[str, Changelog] | None = None
) -> "Iterator[tuple[str, pd.DataFrame]]":
    """Of each factor its observations, as `vectors` has them, without outliers, with columns series and begin_s."""
    for factor in sorted(table["factor"].unique()):
        rows = vectors(table, (factor,))  # a factor may be of no job that is done
        if not rows.empty:
            known = references(rows, (of_factor or {}).get(factor, changelog))
            rows = rows.assign(series=known.series, begin_s=known.begin_s[known.series])
            yield factor, rows[~known.outlier] if known.outlier.any() else rows


def watched_series(
    table: "pd.DataFrame", changelog: Changelog, of_factor: Mapping[str, Changelog] | None = None
) -> tuple[SeriesGroup, ...]:
    """The series of a table of factor values (`check_values`), without outliers; of each FEWEST dates at least.

    of_factor : other changelogs of some factors
    """
    groups = []
    for factor, observations in observed(table, changelog, of_factor):
        for (cluster, stratum), part in parts_of(observations, ["cluster", "stratum"]):
            group = _group(str(cluster), str(stratum), factor, part)
            if group.machines:
                groups.append(group)
    return _with_evidence(groups)


def _with_evidence(groups: "Sequence[SeriesGroup]") -> tuple[SeriesGroup, ...]:
    local = [member for group in groups for member in (*group.machines, *group.common) if member.local]
    known = {
        id(local[place]): evidence
        for places, rows in of_equal_length([member.relative for member in local])
        for place, evidence in zip(places, sudden_evidence(rows), strict=True)
    }

    def completed(series: tuple[WatchedSeries, ...]) -> tuple[WatchedSeries, ...]:
        return tuple(replace(x, evidence=known[id(x)]) if x.local else x for x in series)

    return tuple(SeriesGroup(completed(group.machines), completed(group.common)) for group in groups)


def _group(cluster: str, stratum: str, factor: str, part: "pd.DataFrame") -> SeriesGroup:
    keys = ["series", *MACHINE, "started_s"]
    part = part.rename(columns={factor: "value"})
    new_series, later_s = (np.diff(part[name].to_numpy()) for name in ("series", "started_s"))
    if ((new_series < 0) | ((new_series == 0) & (later_s < 0))).any():
        part = part.sort_values(["series", "started_s"], kind="stable")
        new_series, later_s = (np.diff(part[name].to_numpy()) for name in ("series", "started_s"))
    if ((new_series == 0) & (later_s == 0)).any():  # jobs of the same moment count once, by their median
        firsts = {name: (name, "first") for name in ("archive", "begin_s")}
        part = part.groupby(keys, sort=True).agg(value=("value", "median"), **firsts).reset_index()
    else:
        part = part[[*keys, "value", "archive", "begin_s"]]
    number = in_turn(part["series"].to_numpy(np.int64))
    middle = medians_of(number, part["value"].to_numpy(np.float64))[number]
    if not middle.all():
        part, middle = part[middle != 0], middle[middle != 0]
    scale = np.abs(middle)
    relative = (part["value"].to_numpy(np.float64) - middle) / scale
    day = day_numbers(part["started_s"])
    series = part["series"].to_numpy(np.int64)
    effect = day_effect(day, series, relative) if len(part) else None
    common = effect.at(day) if effect is not None else np.zeros(len(part))
    relative = relative - common
    starts = np.flatnonzero(np.diff(series, prepend=-1))
    varies = np.maximum.reduceat(relative, starts) > np.minimum.reduceat(relative, starts) if len(part) else starts > 0
    lasts, first = [*starts[1:].tolist(), len(part)], part[["node", "cpu"]].iloc[starts]
    columns = starts.tolist(), lasts, first["node"].tolist(), first["cpu"].tolist(), scale[starts].tolist()
    rows = [
        (slice(begin, end), str(node), int(cpu), level)
        for begin, end, node, cpu, level in compress(zip(*columns, strict=True), varies.tolist())
        if end - begin >= FEWEST
    ]
    least = _least_correlation([relative[span] for span, *_ in rows])
    started_s = part["started_s"].to_numpy()
    archives = part["archive"].to_numpy(object)
    series_of_machines = tuple(
        WatchedSeries(
            cluster=cluster,
            stratum=stratum,
            factor=factor,
            node=node,
            cpu=cpu,
            started_s=started_s[span],
            relative=relative[span],
            common=common[span],
            scale=level,
            archives=archives[span],
            least_correlation=least,
            local=effect is None,
        )
        for span, node, cpu, level in rows
    )
    shared = _common(cluster, stratum, factor, part.assign(day=day), effect) if effect is not None else ()
    return SeriesGroup(series_of_machines, tuple(shared))


def _common(cluster: str, stratum: str, factor: str, part: "pd.DataFrame", effect: DayEffect) -> "list[WatchedSeries]":
    """The effects of the days, cut where most machines begin anew."""
    kept = effect.apart()
    begin = part.groupby("day")["begin_s"].median().to_numpy(np.float64)[kept]
    values = effect.effect[kept]
    dates: Floats = (effect.day[kept] * DAY_S).astype(np.float64)
    edges = [0, *(np.flatnonzero(begin[1:] != begin[:-1]) + 1), len(kept)]
    pieces = [(a, b) for a, b in zip(edges[:-1], edges[1:], strict=True) if b - a >= FEWEST]
    pieces = [(a, b) for a, b in pieces if float(np.ptp(values[a:b])) > 0]
    least = _least_correlation([values[a:b] for a, b in pieces])
    return [
        WatchedSeries(cluster, stratum, factor, "", -1, dates[a:b], values[a:b], np.zeros(b - a), 1.0, (), least, True)
        for a, b in pieces
    ]


def _least_correlation(series: "list[Floats]") -> float:
    """Least correlation of neighbours in any of these series.

    The estimate of one short series is too low now and then; at the small levels of many tests, most false alarms come
    from there. So no series has less than the mean of all, with two standard errors of that. Fewer than MIN_SERIES
    have no such mean: each then has its largest, with CAUTION_ALONE.
    """
    if not series:
        return 0.0
    counts = np.array([len(x) for x in series], np.float64)
    estimates = np.empty(len(series))
    for places, rows in of_equal_length(series):
        # levels taken off lower a correlation by about (2 + 4 rho) / n (Kendall's bias; see `correlation`)
        from_differences, rho = correlations(rows)
        estimates[places] = np.minimum(from_differences, rho + (2 + 4 * rho) / rows.shape[1])
    if len(series) >= MIN_SERIES:
        weights = counts / counts.sum()
        mean = float(weights @ estimates)
        least = mean + 2 * float(np.sqrt((weights**2 * (estimates - mean) ** 2).sum()))
    else:
        least = float((estimates + CAUTION_ALONE / np.sqrt(counts)).max())
        least = max(least, *(float(cautious_correlation(x)) for x in series)) if len(series) > 1 else least
    return min(MAX_CORRELATION, round(least * 20) / 20)


def of_equal_length(series: "Sequence[Floats]") -> "Iterator[tuple[list[int], Floats]]":
    """Places of series of one length and these series, shape (series, n), for each length."""
    places: dict[int, list[int]] = defaultdict(list)
    for place, x in enumerate(series):
        places[len(x)].append(place)
    for own in places.values():
        yield own, np.concatenate([series[place] for place in own]).reshape(len(own), -1)


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
    x = winsorized(np.stack([machine.relative for machine in series])) if values is None else values
    t = np.stack([machine.started_s for machine in series])
    count = x.shape[1]
    time, season = t - t.mean(axis=1, keepdims=True), smoothed(np.stack([machine.common for machine in series]))
    power = (season**2).sum(axis=1) * beside_season

    def without_season(values: Floats) -> Floats:
        share = np.divide((season * values).sum(axis=1), power, out=np.zeros(len(values)), where=power > 0)
        return np.asarray(values - share[:, None] * season)

    alone, residual = without_season(time), without_season(x - x.mean(axis=1, keepdims=True))
    information = (alone**2).sum(axis=1)
    independent = independent_values(count, series[0].least_correlation)
    freedom = independent - 3
    known = information > 1e-9 * (time**2).sum(axis=1)
    if freedom < 1 or not known.any():
        return Lines(np.zeros(len(x)), np.full(len(x), inf), 1.0, np.ones(len(x)))
    slope = np.divide((alone * residual).sum(axis=1), information, out=np.zeros(len(x)), where=known)
    residual = residual - slope[:, None] * alone
    # of n values that say as much as n' independent ones, with three parameters taken off
    variance = (residual**2).sum(axis=1) / (count * (1 - 3 / independent))
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
    """How many of this many values each such mean is of."""
    return np.convolve(np.ones(count), np.ones(min(SEASON_VALUES, count)), "same")


def winsorized(x: "Floats") -> "Floats":
    """Spikes say nothing about a response; of each row, shape (..., n)."""
    middle = row_medians(x)[..., None]
    reach = 3 * SD_OF_MAD * row_medians(np.abs(x - middle))[..., None]
    return np.asarray(np.clip(x, middle - reach, middle + reach))


# Of a series in which a season is left: by how far they are, where ranks would need many values after. The evidence is
# that of the alarms (`stats.change_evidence`), with a memory that follows a season; one over its largest value is a
# p-value (Ville's inequality), however often it is looked at. It has no date: that is looked for in the values before.


def sudden_p_value(evidence: "Floats | None") -> float:
    """p-value of a series having no sudden change, by the evidence on each of its dates."""
    return 1.0 if evidence is None else min(1.0, 1.0 / float(evidence.max(initial=1.0)))


def sudden_changes(values: "Floats", evidence: "Floats | None", level: float) -> list[int]:
    """The numbers of the first values of new levels, each with SHORTEST values on both sides at least; shape (n,).

    After a change the series begins anew, at half of the level.
    """
    found: list[int] = []
    start = 0
    while len(values) - start >= 2 * SHORTEST:
        since = sudden_evidence(values[None, start:])[0] if evidence is None or start else evidence
        evident = np.flatnonzero(since >= 1.0 / level)
        if not len(evident):
            break
        place = _best_cut(values, start, start + int(evident[0]))
        if place is None:
            break
        found.append(place)
        start, level = place, level / 2
    return found


def sudden_evidence(values: "Floats") -> "Floats":
    """Evidence of each series, in order of time, on each date; both of shape (series, n)."""
    state = ChangeEvidence.start(len(values), COMMON_MEMORY)
    scaled = np.empty(values.shape)
    for row, series in enumerate(values):
        # in units of its own noise, so that nothing underflows
        differences = np.abs(np.diff(series))
        unit = float(np.median(differences[differences > 0])) if (differences > 0).any() else 1.0
        scaled[row] = (series - series[0]) / unit
    evidence = np.empty(values.shape)
    for at in range(values.shape[1]):
        state.update(np.ascontiguousarray(scaled[:, at]))
        evidence[:, at] = state.evidence()
    return evidence


def _best_cut(values: "Floats", start: int, evident: int) -> int | None:
    """The cut with the least absolute deviations from the medians of both sides."""
    first, last = max(start, evident - REACH), min(len(values), evident + REACH)
    possible = range(first + SHORTEST, min(evident, last - SHORTEST) + 1)

    def error(cut: int) -> float:
        return sum(float(np.abs(side - np.median(side)).sum()) for side in (values[first:cut], values[cut:last]))

    return min(possible, key=error, default=None)
