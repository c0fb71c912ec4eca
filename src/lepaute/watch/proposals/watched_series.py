"""The series in which changes are looked for: what a machine showed of a factor between two events, relatively."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lepaute.stats.rank_cusum import FEWEST, cautious_correlation, differences_correlation, levels_correlation
from lepaute.watch.changelog import Changelog
from lepaute.watch.judging.reference import references
from lepaute.watch.proposals.day_effect import DayEffect, day_effect
from lepaute.watch.values import DAY_S, MACHINE, vectors

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    Floats = npt.NDArray[np.float64]

#: Of fewer series the correlations of neighbours say too little about each other: see `_least_correlation`.
FEWEST_SERIES = 8
#: Standard errors added to the correlation of a series that has no others beside it.
CAUTION_ALONE = 3.0
#: Never above this, or nothing could be told from a wandering level.
MOST_CORRELATION = 0.9


@dataclass(frozen=True, slots=True)
class WatchedSeries:
    """One factor of one machine, or of all machines of a cluster, in one stratum between two events; n dates each.

    node, cpu        : of the machine; node is "" for the effect of the days, which all of them share
    started_s        : dates, ascending, shape (n,)
    relative         : values over their median, less 1; without the effect of the day where that is known
    common           : that effect, shape (n,), 0 where it is not known
    scale            : that median, in the unit of the factor; 1 for the effect of the days
    jobs, archives   : of each date; empty for the effect of the days
    least_correlation: of neighbours, from all series of the same kind
    local            : seasons are left in it, so that only what is sudden is a change
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
    jobs: tuple[str, ...]
    archives: tuple[str, ...]
    least_correlation: float
    local: bool

    @property
    def machine(self) -> tuple[str, str, int]:
        return self.cluster, self.node, self.cpu


@dataclass(frozen=True, slots=True)
class SeriesGroup:
    """All series of a cluster, stratum and factor: of the machines, and of what they share (in stretches)."""

    cluster: str
    stratum: str
    factor: str
    machines: tuple[WatchedSeries, ...]
    common: tuple[WatchedSeries, ...]


def watched_series(table: "pd.DataFrame", changelog: Changelog) -> tuple[SeriesGroup, ...]:
    """The series of a table of factor values (`check_values`), without outliers; of each FEWEST dates at least."""
    groups = []
    for factor in sorted(table["factor"].unique()):
        observations = vectors(table, (factor,))  # a factor may be of no job that is done
        if observations.empty:
            continue
        found = references(observations, changelog)
        observations = observations.assign(series=found.series, begin_s=found.begin_s[found.series])
        observations = observations[~found.outlier]
        for (cluster, stratum), part in observations.groupby(["cluster", "stratum"], sort=True):
            group = _group(str(cluster), str(stratum), factor, part)
            if group.machines:
                groups.append(group)
    return tuple(groups)


def _group(cluster: str, stratum: str, factor: str, part: "pd.DataFrame") -> SeriesGroup:
    # jobs of the same moment count once, by their median
    part = (
        part.groupby(["series", *MACHINE, "started_s"], sort=True)
        .agg(value=(factor, "median"), job=("job", "first"), archive=("archive", "first"), begin_s=("begin_s", "first"))
        .reset_index()
    )
    scale = part.groupby("series")["value"].transform("median").abs().to_numpy(np.float64)
    part, scale = part[scale > 0], scale[scale > 0]
    relative = (part["value"].to_numpy(np.float64) - _median_by_series(part)) / scale
    day = np.floor(part["started_s"].to_numpy(np.float64) / DAY_S).astype(np.int64)
    series = part["series"].to_numpy(np.int64)
    effect = day_effect(day, series, relative) if len(part) else None
    common = effect.at(day) if effect is not None else np.zeros(len(part))
    part = part.assign(relative=relative - common, common=common, scale=scale)
    machines = [rows for _, rows in part.groupby("series", sort=True) if len(rows) >= FEWEST]
    machines = [rows for rows in machines if float(np.ptp(rows["relative"])) > 0]
    least = _least_correlation([rows["relative"].to_numpy(np.float64) for rows in machines])
    return SeriesGroup(
        cluster,
        stratum,
        factor,
        tuple(_of_machine(stratum, factor, rows, least, effect is None) for rows in machines),
        tuple(_common(cluster, stratum, factor, part.assign(day=day), effect)) if effect is not None else (),
    )


def _median_by_series(part: "pd.DataFrame") -> "Floats":
    found: Floats = part.groupby("series")["value"].transform("median").to_numpy(np.float64)
    return found


def _of_machine(stratum: str, factor: str, rows: "pd.DataFrame", least: float, local: bool) -> WatchedSeries:
    first = rows.iloc[0]
    return WatchedSeries(
        str(first["cluster"]),
        stratum,
        factor,
        str(first["node"]),
        int(first["cpu"]),
        rows["started_s"].to_numpy(np.float64),
        rows["relative"].to_numpy(np.float64),
        rows["common"].to_numpy(np.float64),
        float(first["scale"]),
        tuple(rows["job"]),
        tuple(rows["archive"]),
        least,
        local,
    )


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
        WatchedSeries(
            cluster, stratum, factor, "", -1, dates[a:b], values[a:b], np.zeros(b - a), 1.0, (), (), least, True
        )
        for a, b in pieces
    ]


def _least_correlation(series: "list[Floats]") -> float:
    """What neighbours of any of these series have in common at least.

    The estimate of one short series is too low now and then; at the small levels of many tests, most false alarms come
    from there. So no series has less than the mean of all, with two standard errors of that. Fewer than FEWEST_SERIES
    have no such mean: each then has its largest, with CAUTION_ALONE.
    """
    if not series:
        return 0.0
    estimates = np.array([min(differences_correlation(x), _unbiased(levels_correlation(x), len(x))) for x in series])
    counts = np.array([len(x) for x in series], np.float64)
    if len(series) >= FEWEST_SERIES:
        weights = counts / counts.sum()
        mean = float(weights @ estimates)
        error = float(np.sqrt((weights**2 * (estimates - mean) ** 2).sum()))
        least = mean + 2 * error
    else:
        least = float((estimates + CAUTION_ALONE / np.sqrt(counts)).max())
        least = max(least, *(cautious_correlation(x) for x in series)) if len(series) > 1 else least
    return min(MOST_CORRELATION, round(least * 20) / 20)


def _unbiased(rho: float, count: int) -> float:
    """Levels taken off lower a correlation by about (2 + 4 rho) / n (Kendall's bias; see `correlation`)."""
    return rho + (2 + 4 * rho) / count
