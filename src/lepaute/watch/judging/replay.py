"""What a watch would have concluded on each day, from what was known on that day: the judge without hindsight.

`judge` tests old jobs with today's log. A job that was recognised as an outlier a week later, or that was ingested a
week later, was in the references of that week, or was in none. Here a verdict is made on the day (UTC) of its job with
the entries of the log up to that day, each from its own date on, and stays as it was made.

An entry or a job changes nothing of what began before it (pooled: on a day before its own), so that one pass of `judge`
serves all days. Only what comes late, an outlier that is logged after its job or a job that is ingested after a later
one, divides the days into stretches, for the nodes that it touches (their whole cluster where tests are pooled).
"""

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from lepaute.errors import InputError
from lepaute.watch.changelog import Changelog
from lepaute.watch.judging.judge import CONFIDENCE, WINDOWS, judge, vectors_asked
from lepaute.watch.values import DAY_S, MACHINE, NODE, Node, check_values, day_numbers

_EPOCH = dt.date(1970, 1, 1)
_JOB = [*MACHINE, "job"]


def replay(
    values: "pd.DataFrame",
    changelog: Changelog | None = None,
    *,
    factors: "Sequence[str | Sequence[str]] | None" = None,
    windows: Sequence[int] = WINDOWS,
    confidence: float = CONFIDENCE,
    pooled: bool = False,
    since: dt.date | None = None,
    until: dt.date | None = None,
    ingested_s: Sequence[float] | None = None,
    progress: Callable[[float], None] | None = None,
) -> "pd.DataFrame":
    """The verdicts of each day, as they were made on that day.

    values, factors, windows, confidence, pooled : as in `judge`
    since, until : first and last day (UTC) of the verdicts; what was measured before is a reference all the same
    ingested_s   : when each row of `values` became known, in seconds since the epoch; NaN, and None for all: when its
                   job started. A job that starts after it was ingested (a clock that was set back) counts as known at
                   its start; the rows of one job of one machine count together, from the last one on.
    progress     : gets the share of the work that is behind

    The columns of `judge`, and judged_s, the end of the day of the verdict; in the order of judged_s. Empty where no
    job became known between since and until. Raises InputError as `judge` does, and for ingested_s that does not fit.
    """
    table = check_values(values)
    if table.empty:
        raise InputError("there is nothing to replay: the table of factor values is empty")
    log = changelog or Changelog()
    known = sorted(table["factor"].unique())
    tested = vectors_asked(known if factors is None else factors)
    for factor in (name for names in tested for name in names):
        if factor not in known:
            raise InputError(f"no row has the factor {factor!r}; there are {', '.join(known)}")
    first = -np.inf if since is None else (since - _EPOCH).days
    last = np.inf if until is None else (until - _EPOCH).days
    jobs = _jobs(table, _known_s(values, ingested_s))
    day_of = jobs.set_index(_JOB)["day"]
    node_of_row = list(table[NODE].itertuples(index=False, name=None))
    job_of_row = pd.MultiIndex.from_frame(table[_JOB])
    parts = []
    stretches = _stretches(jobs, log, pooled)
    for number, stretch in enumerate(stretches):
        if progress is not None:
            progress(number / len(stretches))
        if stretch.begin > last or max(stretch.end.values()) <= first:
            continue
        seen = table[[node in stretch.end for node in node_of_row] & ~job_of_row.isin(stretch.hidden)]
        present = set(seen["factor"])
        testable = [names for names in tested if present.issuperset(names)]
        if not testable:
            continue
        tests = judge(seen, stretch.log, testable, windows, confidence, pooled)
        day = day_of.reindex(pd.MultiIndex.from_frame(tests[_JOB])).to_numpy()
        end = np.array([stretch.end[node] for node in tests[NODE].itertuples(index=False, name=None)])
        now = (day >= max(first, stretch.begin)) & (day < end) & (day <= last)
        parts.append(tests[now].assign(judged_s=(day[now] + 1) * DAY_S))
    if not parts:
        return judge(table, log, tested, windows, confidence, pooled).iloc[:0].assign(judged_s=np.zeros(0))
    return pd.concat(parts, ignore_index=True).sort_values("judged_s", kind="stable", ignore_index=True)


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Days for which one pass of the judge serves, from `begin` on.

    end : of each node that is judged: the day on which something that is late touches it next
    log : what counts of the changelog
    hidden : jobs (_JOB) that are not yet known
    """

    begin: float
    end: dict[Node, float]
    log: Changelog
    hidden: "pd.MultiIndex"


def _known_s(values: "pd.DataFrame", ingested_s: Sequence[float] | None) -> "pd.Series[float]":
    """When each job of a machine (_JOB) became known; NaN: when it started."""
    known_s = np.full(len(values), np.nan) if ingested_s is None else np.asarray(ingested_s, dtype=np.float64)
    if known_s.shape != (len(values),):
        raise InputError(f"ingested_s has the shape {known_s.shape}; give one date for each of the {len(values)} rows")
    if np.isinf(known_s).any():
        raise InputError(f"ingested_s, row {int(np.isinf(known_s).argmax()) + 1}, is not finite; give seconds or NaN")
    keys = values[_JOB].reset_index(drop=True)
    keys = keys.astype({"cluster": str, "node": str, "cpu": np.int64, "job": str})  # as check_values does
    return keys.assign(known_s=known_s).groupby(_JOB)["known_s"].max()


def _jobs(table: "pd.DataFrame", known_s: "pd.Series[float]") -> "pd.DataFrame":
    """A row a job of a machine: _JOB, the first and the last start in its rows, and the day when it became known."""
    jobs = table.groupby(_JOB)["started_s"].agg(["min", "max"])
    return jobs.assign(day=day_numbers(np.fmax(jobs["max"], known_s.reindex(jobs.index)))).reset_index()


def _stretches(jobs: "pd.DataFrame", log: Changelog, pooled: bool) -> list[_Stretch]:
    """All days of all nodes, each once: a first stretch for all nodes, then one for the nodes that are touched."""
    node = list(jobs[NODE].itertuples(index=False, name=None))
    day = jobs["day"].to_numpy()
    late_job = _late_jobs(jobs, pooled)
    touched: dict[float, set[Node]] = {}
    for row in np.flatnonzero(late_job):
        touched.setdefault(float(day[row]), set()).add(node[row])
    earliest: dict[tuple[str, str, str], int] = {}
    for pair, job, when in zip(node, jobs["job"], day, strict=True):
        earliest[*pair, job] = min(earliest.get((*pair, job), when), when)
    late_outliers = set()
    for outlier in log.outliers:
        date = (outlier.date - _EPOCH).days
        named = {pair: earliest.get((*pair, outlier.job)) for pair in outlier.nodes.among(node)}
        if any(when is not None and when < date for when in named.values()):
            late_outliers.add(outlier)
            touched.setdefault(float(date), set()).update(pair for pair, when in named.items() if when is not None)
    if pooled:
        clusters = {date: {cluster for cluster, _ in some} for date, some in touched.items()}
        touched = {date: {name for name in node if name[0] in clusters[date]} for date in touched}
    touched[-np.inf] = set(node)
    next_day = dict.fromkeys(node, np.inf)
    stretches = []
    for begin in sorted(touched, reverse=True):
        known = [entry for entry in log.outliers if entry not in late_outliers or (entry.date - _EPOCH).days <= begin]
        hidden = pd.MultiIndex.from_frame(jobs.loc[late_job & (day > begin), _JOB])
        end = {name: next_day[name] for name in touched[begin]}
        stretches.append(_Stretch(begin, end, Changelog(log.events, tuple(known)), hidden))
        next_day.update(dict.fromkeys(end, begin))
    return stretches[::-1]


def _late_jobs(jobs: "pd.DataFrame", pooled: bool) -> npt.NDArray[np.bool_]:
    """Which jobs became known on a later day than one that did not start before them on the same node.

    Pooled: than one of the cluster that did not start on a day before theirs, since a day is estimated as a whole.
    """
    group = jobs.groupby(["cluster"] if pooled else NODE, sort=False).ngroup().to_numpy()
    day, first, last = jobs["day"].to_numpy(), jobs["min"].to_numpy(), jobs["max"].to_numpy()
    if pooled:
        first, last = np.floor(first / DAY_S), np.floor(last / DAY_S)
    late = np.zeros(len(jobs), np.bool_)
    for number in np.unique(group):
        rows = np.flatnonzero(group == number)
        rows = rows[np.argsort(day[rows], kind="stable")]
        earlier = np.searchsorted(day[rows], day[rows], side="left")  # so many became known on days before
        late[rows] = first[rows] <= np.concatenate([[-np.inf], np.maximum.accumulate(last[rows])])[earlier]
    return late
