"""All tests of a replay, with the names of the tables, and on which day they find an event."""

import datetime as dt
from collections.abc import Sequence

import numpy
import pandas

from lepaute.watch.alarms.procedure import judge_days
from lepaute.watch.changelog import Changelog
from lepaute.watch.judging.replay import replay
from lepaute.watch.proposals.change_points import find_change_points
from support.replay_events import CLUSTER, DAY_S, KnownEvent, power_drops

LEVEL = 1e-4
#: An event is found when this share of the processors that it touches have an alarm of the same test and factor.
SHARE = 0.1
#: Change points are looked for so often, and so many times after an event.
LOOK_DAYS, LOOKS = 28, 2
#: The dates of an event, written down by people, are right within this.
DATE_S = 3 * DAY_S
CPU = ["node", "cpu"]


def verdicts_of(
    values: pandas.DataFrame,
    log: Changelog,
    vectors: Sequence[tuple[str, ...]],
    since: dt.date | None = None,
    until: dt.date | None = None,
) -> pandas.DataFrame:
    """The verdicts of all raw tests, with the columns test and alarm."""
    parts = []
    for pooled in (False, True):
        part = replay(values, log, windows=(1, 5), confidence=1 - LEVEL, pooled=pooled, since=since, until=until)
        parts.append(part.assign(test=("pooled r = " if pooled else "r = ") + part["r"].astype(str)))
    part = replay(values, log, factors=vectors, windows=(1,), confidence=1 - LEVEL, since=since, until=until)
    parts.append(part.assign(test="p = " + part["p"].astype(str)))
    found = pandas.concat(parts, ignore_index=True)
    return found.assign(alarm=found["p_value"] < LEVEL)


def last_common_event_s(values: pandas.DataFrame, log: Changelog, event: KnownEvent) -> float:
    """Before it nothing is a reference for what is after the event, whatever the node."""
    nodes = {(CLUSTER, node) for node in values["node"].unique()}
    shared = set.intersection(*(set(dates) for dates in log.resets_s(nodes).values()))
    return max((date for date in shared if date <= event.begin_s), default=-numpy.inf)


def found_by_tests(verdicts: pandas.DataFrame, values: pandas.DataFrame, event: KnownEvent) -> list[dict[str, object]]:
    """A row a (test, factor): on which day the event was found by it, if it was; outliers and power drops aside."""
    drops = power_drops(values)
    known = numpy.array([pair in drops for pair in zip(verdicts["node"], verdicts["job"], strict=True)], dtype=bool)
    inside = verdicts[
        verdicts["node"].isin(event.nodes)
        & verdicts["started_s"].between(event.begin_s, event.end_s, inclusive="left")
        & ~(known | verdicts["outlier"].to_numpy(bool))
    ]
    rows = []
    for (test, factor), part in inside.groupby(["test", "factor"], sort=False):
        tested = part[part["missing"] == 0]
        first = part[part["alarm"]].groupby(CPU)["started_s"].min()
        rows.append(_row(event, str(test), str(factor), first, values, {"tests": len(tested)}))
    return rows


def found_by_alarms(values: pandas.DataFrame, log: Changelog, event: KnownEvent) -> list[dict[str, object]]:
    """The same of the corrected procedure; an alarm of what all nodes have in common finds an event of all nodes."""
    alarms = judge_days(values[values["started_s"] < event.end_s], log).alarms
    at = pandas.to_datetime(alarms["day"], utc=True).astype("int64") / 1e9 if len(alarms) else alarms["day"]
    alarms = alarms.assign(started_s=at)
    alarms = alarms[alarms["started_s"].between(event.begin_s, event.end_s, inclusive="left")]
    rows = []
    for factor in sorted(values["factor"].unique()):
        own = alarms[(alarms["factor"] == factor) & alarms["node"].isin(event.nodes)]
        rows.append(_row(event, "alarms", factor, own.groupby(CPU)["started_s"].min(), values))
        common = alarms[(alarms["factor"] == factor) & (alarms["node"] == "all")]
        if event.entry.nodes.text == "all" and len(common):
            first = float(common["started_s"].min())
            days = (first - event.begin_s) // DAY_S
            rows.append({**rows[-1], "test": "alarms, in common", "found": _date(first), "days": days, "machines": 0})
    return rows


def found_by_change_points(values: pandas.DataFrame, log: Changelog, event: KnownEvent) -> list[dict[str, object]]:
    """The same of change points, looked for LOOKS times in what is known by then, at the latest when the event ends."""
    begin = last_common_event_s(values, log, event)
    first: dict[str, dict[tuple[str, int], float]] = {factor: {} for factor in sorted(values["factor"].unique())}
    for look in range(1, LOOKS + 1):
        now = min(event.begin_s + look * LOOK_DAYS * DAY_S, event.end_s)
        seen = values[values["started_s"].between(begin, now, inclusive="left")]
        for point in find_change_points(seen, log):
            near = point.earliest_s - DATE_S <= event.begin_s <= point.latest_s + DATE_S
            if near and point.node in event.nodes:
                first[point.factor].setdefault((point.node, point.cpu), now)
    return [
        _row(event, "change points", factor, pandas.Series(found, dtype=float), values)
        for factor, found in first.items()
    ]


def _row(
    event: KnownEvent,
    test: str,
    factor: str,
    first: "pandas.Series[float]",
    values: pandas.DataFrame,
    more: dict[str, object] | None = None,
) -> dict[str, object]:
    """first : of the processors that have an alarm, when"""
    after = values[
        values["node"].isin(event.nodes)
        & (values["factor"] == factor.split(" & ", maxsplit=1)[0])
        & (values["started_s"] >= event.begin_s)
    ]
    touched = len(after[after["started_s"] < event.end_s][CPU].drop_duplicates())
    row: dict[str, object] = {"event": event.name, "test": test, "factor": factor, "touched": touched}
    row |= {"machines": len(first), "found": "", **dict.fromkeys(("days", "jobs", "last_jobs"), numpy.nan)}
    row |= more or {"tests": numpy.nan}
    needed = max(1, int(numpy.ceil(SHARE * touched)))
    if touched and len(first) >= needed:
        starts = after.groupby(CPU)["started_s"].apply(lambda part: numpy.sort(part.to_numpy())).to_dict()
        jobs = sorted(int(numpy.searchsorted(starts[cpu], at, side="right")) for cpu, at in first.items())
        when = float(first.sort_values().iloc[needed - 1])
        row |= {
            "found": _date(when),
            "days": (when - event.begin_s) // DAY_S,
            "jobs": float(numpy.median(jobs[:needed])),
            "last_jobs": jobs[-1],
        }
    return row


def _date(moment_s: float) -> str:
    return dt.datetime.fromtimestamp(moment_s, dt.UTC).date().isoformat()
