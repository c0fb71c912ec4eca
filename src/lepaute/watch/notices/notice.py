"""What no change shows: a machine that was bad from the start, a node that vanished, dates that cannot be right."""

import datetime as dt
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from lepaute.watch.changelog import Changelog
from lepaute.watch.job_dates import backward_jobs
from lepaute.watch.judging.reference import references
from lepaute.watch.proposals.change_points import LEVEL, LeastChange, least_change_of
from lepaute.watch.proposals.day_effect import day_effect
from lepaute.watch.values import DAY_S, check_values, vectors

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    Floats = npt.NDArray[np.float64]

#: Kinds.
UNLIKE_PEERS, ABSENT, DATES = "unlike its peers", "absent", "dates"
#: Of which nodes, the text says itself.
UNCONFIRMED = "unconfirmed change"


@dataclass(frozen=True, slots=True)
class Notice:
    """Something to look at; not an event, since nothing changed, or nobody can say when.

    kind     : "unlike its peers", "absent" or "dates"
    cpu      : -1 where it is about the node; factor: empty where it is about none
    since_s  : the first job that it is about, or the last one before
    size     : relative to the median of its peers; NaN for other kinds
    p_value  : corrected for the number of machines and factors; NaN for dates, which are no test
    """

    kind: str
    cluster: str
    node: str
    cpu: int
    factor: str
    since_s: float
    size: float
    p_value: float
    text: str

    def __str__(self) -> str:
        name = " ".join(each for each in (self.cluster, self.node) if each)
        return self.text if self.kind == UNCONFIRMED or not name else f"{name}: {self.text}"

    def as_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "kind": self.kind,
            "cluster": self.cluster,
            "node": self.node,
            "cpu": self.cpu,
            "factor": self.factor,
            "since_s": self.since_s,
            "size": None if self.size != self.size else self.size,
            "p_value": None if self.p_value != self.p_value else self.p_value,
            "text": self.text,
        }


def notices(
    values: "pd.DataFrame",
    changelog: Changelog | None = None,
    *,
    least_change: LeastChange | None = None,
    level: float = LEVEL,
) -> tuple[Notice, ...]:
    """What there is to say besides events; `level` is the chance of any of each kind where nothing is wrong.

    values, changelog, least_change : as for `propose`
    In order of kind, cluster, node, processor and factor. Raises InputError as that does.
    """
    table = check_values(values)
    backward = table[backward_jobs(table)]
    found = [
        *_peers(table, changelog or Changelog(), least_change, level),
        *_absent(table, backward, level),
        *_dates(backward),
    ]
    return tuple(sorted(found, key=lambda each: (each.kind, each.cluster, each.node, each.cpu, each.factor)))


def _peers(
    table: "pd.DataFrame", changelog: Changelog, least_change: LeastChange | None, level: float
) -> Iterable[Notice]:
    for one in unlike_peers(table, changelog, least_change=least_change, level=level):
        where = f"cpu {one.cpu}, " if one.cpu >= 0 else ""
        text = (
            f"{where}{one.factor} {100 * one.size:+.1f} % from the median of its {one.peers} peers over all {one.jobs} "
            f"jobs since {_day(one.since_s)}"
        )
        yield Notice(UNLIKE_PEERS, one.cluster, one.node, one.cpu, one.factor, one.since_s, one.size, one.p_value, text)


def _absent(table: "pd.DataFrame", backward: "pd.DataFrame", level: float) -> Iterable[Notice]:
    nan = float("nan")
    # a node with wrong dates did report, nobody knows when
    wrong = set(zip(backward["cluster"], backward["node"], strict=True))
    table = table[[node not in wrong for node in zip(table["cluster"], table["node"], strict=True)]]
    for one in vanished_nodes(table, level=level):
        how = f", {one.failed} of them as a job that did not end" if one.failed else ""
        text = f"no result since {_day(one.last_s)}; others were measured on {one.days} days since{how}"
        yield Notice(ABSENT, one.cluster, one.node, -1, "", one.last_s, nan, one.p_value, text)


def _dates(backward: "pd.DataFrame") -> Iterable[Notice]:
    rows = backward.drop_duplicates(["cluster", "node", "job"])
    nan = float("nan")
    for (cluster, node), part in rows.groupby(["cluster", "node"], sort=True):
        first = part.sort_values("started_s").iloc[0]
        some = f"{len(part)} job{'s' * (len(part) != 1)}"
        text = (
            f"the dates of {some} run backwards, such as {_day(first['started_s'])} of job {first['job']}: was a clock "
            "set? No change is looked for in them"
        )
        yield Notice(DATES, str(cluster), str(node), -1, "", float(first["started_s"]), nan, nan, text)


def _day(moment_s: float) -> str:
    return dt.datetime.fromtimestamp(moment_s, dt.UTC).date().isoformat()


#: Fewer days without a result are a busy node.
FEWEST_DAYS = 3
#: A day of the cluster is one on which this share of its nodes that were ever measured before has a result.
LEAST_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class VanishedNode:
    """A node without a result on the last `days` days of its cluster; failed: on how many of them it has a failed job.

    last_s  : its last result
    p_value : the chance of so many days in a row if it took part as usual, times the number of nodes
    """

    cluster: str
    node: str
    last_s: float
    days: int
    failed: int
    p_value: float


def vanished_nodes(table: "pd.DataFrame", *, level: float = LEVEL) -> tuple[VanishedNode, ...]:
    """The nodes that stay away longer than ever before; `table` as `check_values` returns it.

    A node took part in a share of the days of its cluster, from its first result to its last. That it misses the last k
    in a row by chance has a probability of (1 - share)^k if its days are independent; since they are not always, it has
    to be longer than its longest absence before, too, and FEWEST_DAYS at least. Failed, aborted and missing jobs are no
    results.
    """
    rows = table.assign(day=np.floor(table["started_s"] / DAY_S).astype(np.int64), done=table["state"] == "done")
    found: list[VanishedNode] = []
    nodes = len(table[["cluster", "node"]].drop_duplicates())
    for cluster, part in rows.groupby("cluster", sort=True):
        done = part[part["done"]]
        present = done[["node", "day"]].drop_duplicates()
        count = present.groupby("day")["node"].nunique()
        known = present.groupby("node")["day"].min().sort_values().to_numpy()
        days = count.index.to_numpy(np.int64)
        days = days[count.to_numpy() >= LEAST_SHARE * np.searchsorted(known, days, side="right")]
        for node, of_node in present.groupby("node", sort=True):
            mine = np.isin(days, of_node["day"].to_numpy())
            last = int(of_node["day"].max())
            away = days[days > last]
            seen = mine[(days >= of_node["day"].min()) & (days <= last)]
            if len(away) < FEWEST_DAYS or len(away) <= _longest_gap(seen):
                continue
            share = (seen.sum() + 1) / (len(seen) + 2)
            p = min(1.0, float((1 - share) ** len(away)) * nodes)
            if p > level:
                continue
            late = part[(part["node"] == node) & ~part["done"] & (part["day"] > last)]
            result = done[done["node"] == node]["started_s"].max()
            found.append(VanishedNode(str(cluster), str(node), float(result), len(away), int(late["day"].nunique()), p))
    return tuple(found)


def _longest_gap(seen: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> int:
    positions = np.flatnonzero(seen)
    return int(np.diff(positions).max(initial=1)) - 1


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
