"""Machines that are unlike the others of their cluster as long as they are watched: no change could ever show it."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from lepaute.watch.changelog import Changelog
from lepaute.watch.judging.reference import references
from lepaute.watch.proposals.change_points import LEVEL, LeastChange, least_change_of
from lepaute.watch.proposals.day_effect import day_effect
from lepaute.watch.values import DAY_S, vectors

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    Floats = npt.NDArray[np.float64]

#: Fewer machines have no usual spread; fewer jobs no level.
FEWEST_MACHINES, FEWEST_JOBS = 8, 3
_SIMULATED = 20_000


@dataclass(frozen=True, slots=True)
class UnlikePeers:
    """A machine whose level since its last event is outside the spread of its peers.

    size    : relative to their median; peers: how many others; jobs: of the machine, since since_s
    p_value : the chance of any machine so far out among as many machines, times the number of groups compared
    """

    cluster: str
    node: str
    cpu: int
    stratum: str
    factor: str
    size: float
    peers: int
    jobs: int
    since_s: float
    p_value: float


def unlike_peers(
    table: "pd.DataFrame",
    changelog: Changelog,
    *,
    least_change: LeastChange | None = None,
    level: float = LEVEL,
) -> tuple[UnlikePeers, ...]:
    """The machines that never were as their peers are; `table` as `check_values` returns it.

    Processors of the same number in their nodes are compared, in one cluster and stratum, each by its median since its
    last event and without the effects of the days. The distance from the median of all, in median absolute deviations,
    is compared with the largest distance among as many simulated normal levels; a third of the machines may be unlike.
    `level` is the chance of any where levels are normal, over all factors and groups. Machines of two kinds under one
    name of a cluster are rightly unlike: give them clusters of their own.
    """
    groups = [group for factor in sorted(table["factor"].unique()) for group in _groups(table, factor, changelog)]
    found = []
    for factor, rows in groups:
        size = rows["level"].to_numpy(np.float64)
        spread = 1.4826 * float(np.median(np.abs(size - np.median(size))))
        if spread == 0:
            continue
        distance = np.abs(size - np.median(size)) / spread
        largest = _largest_distances(len(size))
        p = (1 + len(largest) - np.searchsorted(largest, distance)) / (1 + len(largest)) * len(groups)
        least = least_change_of(factor, least_change)
        for at in np.flatnonzero(p <= level):
            relative = float((1 + size[at]) / (1 + np.median(size)) - 1)
            if abs(relative) < least:
                continue
            row = rows.iloc[at]
            found.append(
                UnlikePeers(
                    row["cluster"],
                    row["node"],
                    int(row["cpu"]),
                    row["stratum"],
                    factor,
                    relative,
                    len(size) - 1,
                    int(row["jobs"]),
                    float(row["since_s"]),
                    float(p[at]),
                )
            )
    return tuple(sorted(found, key=lambda each: (each.cluster, each.node, each.cpu, each.factor)))


def _groups(table: "pd.DataFrame", factor: str, changelog: Changelog) -> "Iterator[tuple[str, pd.DataFrame]]":
    """A row a machine: level (relative to the median of the group), jobs, since_s."""
    rows = vectors(table, (factor,))
    if rows.empty:
        return
    known = references(rows, changelog)
    rows = rows.rename(columns={factor: "value"}).assign(series=known.series)[~known.outlier]
    for (_, stratum, _), part in rows.groupby(["cluster", "stratum", "cpu"], sort=True):
        middle = float(part["value"].median())
        if middle == 0:
            continue
        relative = part["value"].to_numpy(np.float64) / middle - 1.0
        series = part["series"].to_numpy(np.int64)
        day = np.floor(part["started_s"].to_numpy(np.float64) / DAY_S).astype(np.int64)
        usual = part.assign(relative=relative).groupby("series")["relative"].transform("median").to_numpy(np.float64)
        effect = day_effect(day, series, relative - usual)
        own = relative - (effect.at(day) if effect is not None else 0.0)
        levels = (
            part.assign(own=own)
            .groupby(["cluster", "node", "cpu", "series"], sort=True)
            .agg(level=("own", "median"), jobs=("own", "size"), since_s=("started_s", "min"))
            .reset_index()
        )
        # of each machine the latest stretch
        levels = levels.sort_values("since_s", kind="stable").drop_duplicates(["node", "cpu"], keep="last")
        levels = levels[levels["jobs"] >= FEWEST_JOBS].assign(stratum=str(stratum))
        if len(levels) >= FEWEST_MACHINES:
            yield factor, levels.sort_values("node", kind="stable").reset_index(drop=True)


@lru_cache(maxsize=64)
def _largest_distances(machines: int) -> "Floats":
    """Of simulated groups of normal levels, the largest distance from the median in deviations, ascending."""
    rng = np.random.default_rng((20261123, machines))
    largest: list[Floats] = []
    at_once = max(1, 2_000_000 // machines)
    for start in range(0, _SIMULATED, at_once):
        x = rng.normal(size=(min(at_once, _SIMULATED - start), machines))
        x = np.abs(x - np.median(x, axis=1, keepdims=True))
        largest.append(x.max(axis=1) / (1.4826 * np.median(x, axis=1)))
    return np.sort(np.concatenate(largest))
