"""What an observation is compared with: those of its machine and stratum since the last event that touches the node.

Outliers are tested, but are never part of a reference.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lepaute.stats.expanding import Booleans, Floats, Integers
from lepaute.watch.changelog import ALL, Changelog
from lepaute.watch.values import MACHINE

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class References:
    """For each observation, shape (rows,).

    series  : a number for each machine, stratum and stretch between events: only within it is anything compared
    outlier : logged as one
    begin_s, end_s : of the stretch, shape (series,): from the event at its beginning to the next; -inf and inf without
    """

    series: Integers
    outlier: Booleans
    begin_s: Floats
    end_s: Floats


@dataclass(frozen=True, slots=True)
class Frozen:
    """References that end where a regression began, as long as it is open; shape (rows,).

    most : values that the reference of the observation has at most; begun_s : when the regression began, inf without
    """

    most: Integers
    begun_s: Floats


def frozen(
    observations: "pd.DataFrame", found: References, factors: Sequence[str], standing: "pd.DataFrame | None"
) -> Frozen:
    """standing : rows of `open_regressions`, of which those of the factors count."""
    rows = len(observations)
    begun_s = np.full(rows, np.inf)
    if standing is not None and len(standing):
        for row in standing[standing["factor"].isin(factors)].to_dict("records"):
            mine = (observations["cluster"] == row["cluster"]) & (observations["stratum"] == row["stratum"])
            if row["node"] != ALL:
                mine &= (observations["node"] == row["node"]) & (observations["cpu"] == row["cpu"])
            # one that an event ended is not open
            mine &= found.end_s[found.series] > row["changed_s"]
            mine &= found.begin_s[found.series] <= row["changed_s"]
            begun_s[mine.to_numpy()] = np.minimum(begun_s[mine.to_numpy()], row["changed_s"])
    before = ~found.outlier & (observations["started_s"].to_numpy(np.float64) < begun_s)
    count = np.bincount(found.series, before, minlength=len(found.begin_s)).astype(np.int64)
    return Frozen(count[found.series], begun_s)


def references(observations: "pd.DataFrame", changelog: Changelog) -> References:
    """The series of observations, a table with the columns of MACHINE, started_s, job and stratum.

    An event counts from 00:00 UTC of its date, itself included.
    """
    node = observations.groupby(["cluster", "node"], sort=False).ngroup().to_numpy()
    nodes = list(observations[["cluster", "node"]].drop_duplicates().itertuples(index=False, name=None))
    resets_s = changelog.resets_s(nodes)
    started_s = observations["started_s"].to_numpy(np.float64)
    stretch: Integers = np.zeros(len(observations), np.int64)
    begin_s, end_s = np.full(len(observations), -np.inf), np.full(len(observations), np.inf)
    order = np.argsort(node, kind="stable")
    ends = np.cumsum(np.bincount(node, minlength=len(nodes)))
    for number, name in enumerate(nodes):
        rows = order[ends[number - 1] if number else 0 : ends[number]]
        bounds = np.array([-np.inf, *resets_s[name], np.inf])
        stretch[rows] = np.searchsorted(bounds, started_s[rows], side="right") - 1
        begin_s[rows], end_s[rows] = bounds[stretch[rows]], bounds[stretch[rows] + 1]
    keys = observations[[*MACHINE, "stratum"]].assign(stretch=stretch)
    series: Integers = keys.groupby([*MACHINE, "stratum", "stretch"], sort=False).ngroup().to_numpy().astype(np.int64)
    first = np.unique(series, return_index=True)[1]
    outlier = _outliers(observations["job"], node, nodes, changelog)
    return References(series, outlier, begin_s[first], end_s[first])


def _outliers(
    job: "pd.Series[str]", node: "npt.NDArray[np.integer[Any]]", nodes: list[tuple[str, str]], changelog: Changelog
) -> Booleans:
    """Of each observation, whether its job is an outlier of its node; node : number among `nodes`."""
    logged = changelog.outlying_jobs(nodes)
    if not logged:
        return np.zeros(len(job), np.bool_)
    codes, names = job.factorize()
    job_number = {str(name): number for number, name in enumerate(names)}
    node_number = {name: number for number, name in enumerate(nodes)}
    pairs = [
        node_number[cluster, name] * len(names) + job_number[its_job]
        for cluster, name, its_job in logged
        if its_job in job_number
    ]
    outlier: Booleans = np.isin(node * len(names) + codes, pairs)
    return outlier
