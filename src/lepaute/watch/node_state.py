"""How much slower a node is now than it was: the ratio of two states of it, with its error."""

from dataclasses import dataclass
from math import inf

import numpy as np
import pandas as pd

from lepaute.errors import InputError
from lepaute.kit.later import stats
from lepaute.kit.text import counted
from lepaute.watch.alarms.sizes import worse_direction
from lepaute.watch.changelog import Changelog
from lepaute.watch.values import check_values, day_of, vectors

#: Jobs of the state now, where nobody says since when it lasts.
LATEST = 5
#: A variance needs two; three is the least that judge() takes for one factor.
MIN_BEFORE = 3


@dataclass(frozen=True, slots=True)
class NodeState:
    """The latest jobs of a node against those before, cpu by cpu; times in seconds since the epoch.

    cpus : of the rows below; WHOLE_NODE alone for a factor of the whole node
    log_slowdown : logarithm of how many times as long a computation takes now
    log_covariance : of the errors of these; jobs are taken as independent, with one covariance before and now
    n, r : jobs before, and now;  degrees_of_freedom : n + r - 2
    """

    cluster: str
    node: str
    factor: str
    stratum: str
    cpus: tuple[int, ...]
    log_slowdown: tuple[float, ...]
    log_covariance: tuple[tuple[float, ...], ...]
    n: int
    r: int
    before_s: tuple[float, float]
    now_s: tuple[float, float]

    @property
    def degrees_of_freedom(self) -> int:
        return self.n + self.r - 2

    def slowdown(self, cpu: int, confidence: float = 0.95) -> tuple[float, float, float]:
        """How many times as long on this cpu, and the bounds of its confidence interval (Student's)."""
        at = self.cpus.index(cpu)
        half = float(stats.t.ppf(0.5 + 0.5 * confidence, self.degrees_of_freedom)) * self.log_covariance[at][at] ** 0.5
        mean = self.log_slowdown[at]
        mean, low, high = (float(value) for value in np.exp([mean, mean - half, mean + half]))
        return mean, low, high


def node_state(
    values: pd.DataFrame,
    cluster: str,
    node: str,
    factor: str,
    *,
    changelog: Changelog | None = None,
    since_s: float | None = None,
    before_s: float | None = None,
    latest: int = LATEST,
) -> NodeState:
    """The state since `since_s`, or of the `latest` jobs, against the jobs before it, back to the last event.

    values : as watch.values says, of this node at least; of several strata that of its latest job counts
    An event after `since_s` begins the state now; one on its very date is what is being compared, not a limit.
    before_s : the jobs before are those before this; since_s by default
    Jobs that are outliers, or lack one of the CPUs, are left out.
    Raises InputError if the factor has no direction, or there are too few jobs.
    """
    worse = 0 if factor.endswith("_degC") else worse_direction(factor)
    if not worse:
        raise InputError(f"factor {factor} does not say how long work takes; give a rate (_flops) or a duration (_s)")
    log = changelog or Changelog()
    of_node = (values["cluster"] == cluster) & (values["node"] == node)
    rows = vectors(check_values(values[of_node]), (factor,)) if of_node.any() else None
    if rows is None or rows.empty:
        raise InputError(f"there is no value of {factor} of node {node}{f' of {cluster}' if cluster else ''}")
    stratum = str(rows["stratum"].iloc[int(rows["started_s"].to_numpy().argmax())])
    wide = (
        rows[(rows["stratum"] == stratum) & ~log.is_outlier(rows)]
        .pivot_table(index=["started_s", "job"], columns="cpu", values=factor)
        .dropna()
        .sort_index()
    )
    started_s = wide.index.get_level_values("started_s").to_numpy(np.float64)
    x = wide.to_numpy(np.float64)
    if not (x > 0.0).all():
        raise InputError(f"{factor} of node {node} is not above 0 everywhere, and has no ratio")
    begin_s, now_s = _limits(started_s, log.resets_s([(cluster, node)])[cluster, node], since_s, before_s, latest)
    ends_s = next(each for each in (before_s, since_s, now_s) if each is not None)
    before, now = (started_s >= begin_s) & (started_s < ends_s), started_s >= now_s
    n, r = int(before.sum()), int(now.sum())
    if not r:
        raise InputError(f"node {node} has no job since then; give an earlier date")
    if n < MIN_BEFORE:
        since = "" if begin_s == -inf else f", whose last event is of {day_of(begin_s)},"
        remedy = " give a later date" if since_s is not None else " give the date since when it is as it is now"
        raise InputError(
            f"node {node}{since} has {counted(n, 'job')} before its present state, and {MIN_BEFORE} are needed;{remedy}"
        )
    logs = np.log(x) * worse
    centred = [logs[rows_of] - logs[rows_of].mean(axis=0) for rows_of in (before, now)]
    scatter = sum(each.T @ each for each in centred) / (n + r - 2)
    covariance = scatter * (1.0 / n + 1.0 / r)
    return NodeState(
        cluster=cluster,
        node=node,
        factor=factor,
        stratum=stratum,
        cpus=tuple(int(cpu) for cpu in wide.columns),
        log_slowdown=tuple(map(float, logs[now].mean(axis=0) - logs[before].mean(axis=0))),
        log_covariance=tuple(tuple(map(float, row)) for row in covariance),
        n=n,
        r=r,
        before_s=(float(started_s[before].min()), float(started_s[before].max())),
        now_s=(float(started_s[now].min()), float(started_s[now].max())),
    )


def _limits(
    started_s: "np.ndarray[tuple[int], np.dtype[np.float64]]",
    resets_s: tuple[float, ...],
    since_s: float | None,
    before_s: float | None,
    latest: int,
) -> tuple[float, float]:
    """Where the reference begins, and where the state now does."""
    if since_s is None:
        now_s = float(started_s[-latest:].min()) if latest < len(started_s) else -inf
        last = max((each for each in resets_s if each <= started_s[-1]), default=-inf)
        return last, max(now_s, last)
    ends_s = since_s if before_s is None else before_s
    begin_s = max((each for each in resets_s if each < ends_s), default=-inf)
    return begin_s, max([since_s, *(each for each in resets_s if since_s < each <= started_s[-1])])
