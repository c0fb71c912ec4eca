"""Which machines leave no values: absence is an observation. Faulty memory, say, shows as jobs that never finish."""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import gammaln

from lepaute.kit.text import counted
from lepaute.stats.expanding import Floats
from lepaute.watch.store.rows import row_keys
from lepaute.watch.store.tables import STATES
from lepaute.watch.values import DAY_S, MACHINE, NODE, Machine, day_numbers, day_of, parts_of

#: A machine does not report if it is late by this many of its usual intervals, and others reported on this many days.
LATE_INTERVALS, LATE_DAYS = 3.0, 3
#: Jobs in a row that did not end well, from which on a machine counts as absent.
MIN_CONSECUTIVE_FAILURES = 1


@dataclass(frozen=True, slots=True)
class Absence:
    """Machines without a value since `last` (None: ever), on `days` later days with jobs of others.

    state : of their latest job; "" if there is no job at all; jobs : that did not end well, in a row
    """

    cluster: str
    machines: tuple[Machine, ...]
    last: dt.date | None
    days: int
    state: str
    jobs: int


def last_data(values: "pd.DataFrame", now_s: float) -> tuple[dt.date, str]:
    """The day of the latest value, and what to say where it should not be the latest: "" while data are on time."""
    done = values.loc[values["state"] == "done", "started_s"].to_numpy(np.float64)
    if not len(done):
        return day_of(float(values["started_s"].max())), "No job has ever ended well: nothing is known"
    days = np.unique(np.floor(done / DAY_S))
    usual = float(np.median(np.diff(days))) if len(days) > 2 else 1.0
    gone = int(now_s // DAY_S - days[-1])
    late = gone > LATE_INTERVALS * usual and gone >= LATE_DAYS
    often = "every day" if usual <= 1 else f"every {usual:.0f} days"
    text = f"No data for {counted(gone, 'day')}, before that {often}: what has happened since is not known"
    return day_of(days[-1] * DAY_S), text if late else ""


def absences(jobs: "pd.DataFrame") -> "pd.DataFrame":
    """A row a node, those first that have been away longest and fail more often than their peers.

    jobs : as of `Store.job_states`: a row a job of a node
    Columns: cluster, node, jobs, done, failed, aborted, missing (counts of jobs), last_done_s (NaN: never),
    not_done_since (jobs without a value since the last one that was done), last_s (of the last job of any kind),
    days_away (days since then on which other nodes of the cluster had jobs), usual_share (of the cluster's days between
    its first and last job, those on which it had one), p_value: the probability of as many failures or more if all
    nodes of the cluster failed alike and jobs failed independently (Fisher's exact test; what one failure ends on other
    nodes is aborted, and is no failure). NaN if the cluster has no other node.
    """
    table = jobs.assign(day=day_numbers(jobs["started_s"]))
    for state in STATES:
        table[state] = (table["state"] == state).astype("int64")
    table["done_s"] = table["started_s"].where(table["done"] == 1)
    table["last_done_s"] = table.groupby(NODE)["done_s"].transform("max")
    late = table["last_done_s"].isna() | (table["started_s"] > table["last_done_s"])
    table["not_done_since"] = ((table["done"] == 0) & late).astype("int64")
    nodes = (
        table.groupby(NODE, sort=True)
        .agg(
            jobs=("job", "size"),
            **{state: (state, "sum") for state in STATES},
            last_done_s=("last_done_s", "max"),
            not_done_since=("not_done_since", "sum"),
            last_s=("started_s", "max"),
            first_day=("day", "min"),
            last_day=("day", "max"),
            days=("day", "nunique"),
        )
        .reset_index()
    )
    cluster_days = {name: np.unique(part) for name, part in table.groupby("cluster")["day"]}
    away, span = [], []
    for cluster, first_day, last_day in zip(nodes["cluster"], nodes["first_day"], nodes["last_day"], strict=True):
        days = cluster_days[cluster]
        first, last = (int(each) for each in np.searchsorted(days, [first_day, last_day]))
        away.append(len(days) - 1 - last)
        span.append(last - first + 1)
    share = nodes["days"].to_numpy() / np.array(span, np.float64)
    # failures of its own against those of all nodes, among the jobs that nothing else ended
    bad, tried = nodes["failed"] + nodes["missing"], nodes["jobs"] - nodes["aborted"]
    totals = pd.DataFrame({"cluster": nodes["cluster"], "bad": bad, "tried": tried}).groupby("cluster").transform("sum")
    p_value = [_as_many(*each) for each in zip(bad, tried, totals["bad"], totals["tried"], strict=True)]
    alone = nodes.groupby("cluster")["node"].transform("size") == 1
    return (
        nodes.drop(columns=["first_day", "last_day", "days"])
        .assign(days_away=away, usual_share=share, p_value=np.where(alone, np.nan, p_value))
        .sort_values(
            ["days_away", "p_value", *NODE], ascending=[False, True, True, True], kind="stable", ignore_index=True
        )
    )


def _as_many(bad: int, tried: int, all_bad: int, total_jobs: int) -> float:
    """The chance of this many bad ones or more among those tried, which are any of all: the hypergeometric tail."""

    def log_choices(n: "int | Floats", k: "Floats") -> "Floats":
        return np.asarray(gammaln(np.add(n, 1)) - gammaln(k + 1) - gammaln(n - k + 1))

    k = np.arange(max(bad, tried - (total_jobs - all_bad)), min(tried, all_bad) + 1, dtype=np.float64)
    logs = log_choices(all_bad, k) + log_choices(total_jobs - all_bad, tried - k)
    return min(1.0, float(np.exp(logs - log_choices(total_jobs, np.array(tried, np.float64))).sum()))


def absences_of(values: "pd.DataFrame") -> tuple[Absence, ...]:
    """Machines whose latest jobs did not end well, or that are late; one report for those that are alike."""
    alike: dict[tuple[Any, ...], list[Machine]] = defaultdict(list)
    for (cluster,), own in parts_of(values, ["cluster"]):
        for machine, *absence in _absent(own):
            alike[cluster, *absence].append((str(cluster), *machine))
    reports = [Absence(key[0], tuple(machines), *key[1:]) for key, machines in alike.items()]
    return tuple(sorted(reports, key=lambda each: (-len(each.machines), each.last or dt.date.min)))


def _absent(values: "pd.DataFrame") -> "Iterator[tuple[tuple[str, int], dt.date | None, int, str, int]]":
    """Machines of a cluster that are away: (node, cpu), and last, days, state and jobs of an Absence."""
    job = row_keys(values, [*MACHINE[1:], "job"])
    order = np.argsort(job, kind="stable")
    starts = np.flatnonzero(np.diff(job[order], prepend=-1))
    first = order[starts]  # of each job
    done = np.logical_or.reduceat((values["state"] == "done").to_numpy(np.bool_)[order], starts)
    started_s = np.minimum.reduceat(values["started_s"].to_numpy(np.float64)[order], starts)
    machine = row_keys(values, MACHINE[1:])[first]
    order = np.lexsort((started_s, machine))
    first, done, started_s = first[order], done[order], started_s[order]
    begin = np.flatnonzero(np.diff(machine[order], prepend=-1))
    end = np.append(begin[1:], len(order))
    last_done = np.maximum.reduceat(np.where(done, np.arange(len(order)), -1), begin)
    day = np.floor(started_s / DAY_S)
    days = np.unique(day[done])
    later = np.where(last_done >= 0, len(days) - np.searchsorted(days, day[last_done], side="right"), len(days))
    in_a_row = np.where(last_done >= 0, end - 1 - last_done, end - begin)
    for at in np.flatnonzero((later >= LATE_DAYS) | (in_a_row >= MIN_CONSECUTIVE_FAILURES) | (last_done < 0)).tolist():
        name = values.iloc[first[begin[at]]]
        machine_of = str(name["node"]), int(name["cpu"])
        failed = int(in_a_row[at])
        state = str(values["state"].iloc[first[end[at] - 1]]) if failed else ""
        if last_done[at] < 0:
            yield machine_of, None, len(days), state, failed
            continue
        own_days = np.unique(day[begin[at] : end[at]][done[begin[at] : end[at]]])
        usual = float(np.median(np.diff(own_days))) if len(own_days) > 2 else 1.0
        late = later[at] >= LATE_DAYS and days[-1] - own_days[-1] > LATE_INTERVALS * usual
        if late or failed >= MIN_CONSECUTIVE_FAILURES:
            yield machine_of, day_of(own_days[-1] * DAY_S), int(later[at]), state, failed
