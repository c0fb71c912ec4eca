"""The days of a replay: which alarms were given on each, and which tests were suspicious."""

import datetime as dt
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lepaute.kit.text import counted
from lepaute.watch.alarms.steps import DATE_REACH_S, SAME_S, Row, alike_changes, steps_of
from lepaute.watch.changelog import ALL
from lepaute.watch.report import summary
from lepaute.watch.values import DAY_S, Machine, check_values, day_of, start_of

if TYPE_CHECKING:
    from lepaute.watch.open_regressions import OpenRegressions


@dataclass(frozen=True, slots=True)
class ChangeAlarm:
    """An alarm of one day: machines of which the same is said; worse : it would stand as a regression."""

    cluster: str
    machines: tuple[Machine, ...]
    since: dt.date
    changes: tuple[summary.Change, ...]
    worse: bool
    gradual_from: dt.date | None = None


@dataclass(frozen=True, slots=True)
class Day:
    """Report in the evening of a day on which something was measured or found."""

    date: dt.date
    tests: int
    suspicious_tests: int
    alarms: tuple[ChangeAlarm, ...]
    suspicions: tuple[summary.Suspicion, ...]


def is_open(alarm: ChangeAlarm, still_open: "Sequence[summary.Regression]") -> bool:
    """Whether one of these regressions is what the alarm was about."""
    return any((each.since, set(each.machines)) == (alarm.since, set(alarm.machines)) for each in still_open)


def alarms_answer(days: "Sequence[Day]") -> str:
    """What would have been found when: 2 alarms in 55 days, the first on 2026-02-12: demo node7 ..."""
    if not days:
        return "No day has a test or an alarm"
    alarms = [(day, alarm) for day in days for alarm in day.alarms]
    if not alarms:
        return f"Replayed {counted(len(days), 'day')}: no alarm, {days[0].date} to {days[-1].date}"
    day, first = alarms[0]
    given = f"Replayed {counted(len(days), 'day')}: {counted(len(alarms), 'alarm')}"
    what = f"{summary.change_text(first.changes[0])} {summary.since_text(first)}"
    return f"{given}, the first on {day.date}: {summary.machines_text(first.machines)}, {what}"


def evenings_of(
    found: "OpenRegressions",
    since: dt.date | None = None,
    until: dt.date | None = None,
    progress: Callable[[float], None] | None = None,
) -> "dict[dt.date, pd.DataFrame]":
    """The steps of each change on the evening on which it was known first, as they were known then.

    They are asked of the values up to that day: rows as `steps_of` gives them. progress : gets the share behind
    A machine or factor that a later evening adds to a change stands with its first evening: a change is one alarm.
    """
    alarms, table = found.judged.alarms, check_values(found.values)
    news: dict[dt.date, list[Row]] = defaultdict(list)
    changes = [[row for part in group for row in part] for group in alike_changes(found.steps)]
    known_since: dict[tuple[Any, ...], dt.date] = {}
    before: list[Row] = []
    dates = sorted(alarms["day"].unique())
    for number, day in enumerate(dates):
        if progress is not None:
            progress(number / len(dates))
        date = dt.date.fromisoformat(str(day))
        known = table[table["started_s"] < start_of(date) + DAY_S]
        now = steps_of(alarms[alarms["day"] <= day], found.changelog, known)
        for row in now:
            if any(_is_same(row, other) and abs(row["changed_s"] - other["changed_s"]) <= SAME_S for other in before):
                continue
            series = tuple(row[name] for name in _OF_SERIES)
            became = [(far_s, n) for n, rows in enumerate(changes) for far_s in _distances_s(row, rows)]
            change = min(became)[1] if became else None
            first = date if change is None else known_since.setdefault((change,), date)
            if change is None or known_since.setdefault((change, *series), date) == date:
                news[first].append(row)
        before = now
    return {
        date: pd.DataFrame(rows)
        for date, rows in news.items()
        if (since is None or date >= since) and (until is None or date <= until)
    }


_OF_SERIES = ("cluster", "node", "cpu", "factor", "stratum", "direction")


def _is_same(one: Row, other: Row) -> bool:
    return all(one[name] == other[name] for name in _OF_SERIES)


def _distances_s(row: Row, last: list[Row]) -> list[float]:
    """How far the step of an evening is from each of the last steps that it may have become: dates are refined."""
    names = set(_OF_SERIES) - {"node", "cpu"}
    same = [step for step in last if all(row[name] == step[name] for name in names)]
    same = [step for step in same if _is_same(row, step) or ALL in (row["node"], step["node"])]
    distances_s = (abs(row["changed_s"] - step["changed_s"]) for step in same)
    return [far_s for far_s in distances_s if far_s <= 3 * DATE_REACH_S]


def days_of(verdicts: "pd.DataFrame", evenings: "Mapping[dt.date, pd.DataFrame]", *, level: float) -> tuple[Day, ...]:
    """verdicts : as `judging.replay` gives them; evenings : as `evenings_of`; level : of suspicious tests"""
    tested = verdicts[verdicts["missing"] == 0]
    days, suspicious = _by_day(tested), _by_day(tested[(tested["p_value"] < level) & ~tested["outlier"]])
    alarms = {
        date: tuple(
            ChangeAlarm(report.cluster, report.machines, report.since, report.changes, bool(worse), report.gradual_from)
            for worse, part in rows.groupby("worse", sort=True)
            for report in summary.regressions_of(part)
        )
        for date, rows in evenings.items()
        if len(rows)
    }
    suspicions = {date: summary.suspicions_of(rows) for date, rows in suspicious.items()}
    counts = {date: (len(days.get(date, ())), len(suspicious.get(date, ()))) for date in sorted({*days, *alarms})}
    return tuple(Day(date, *tests, alarms.get(date, ()), suspicions.get(date, ())) for date, tests in counts.items())


def _by_day(rows: "pd.DataFrame") -> "dict[dt.date, pd.DataFrame]":
    ends_s = rows["judged_s"].to_numpy(np.float64)
    return {day_of(end_s - DAY_S): rows[ends_s == end_s] for end_s in np.unique(ends_s)}
