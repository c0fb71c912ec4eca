"""The days of a replay: which alarms were given on each, and which tests were suspicious."""

import datetime as dt
from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lepaute.watch.report.summary import Change, Suspicion, plain, regressions_of, suspicions_of
from lepaute.watch.values import DAY_S, Machine, day_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class ChangeAlarm:
    """An alarm of one day: machines of which the same is said; worse : it would stand as a regression."""

    cluster: str
    machines: tuple[Machine, ...]
    since: dt.date
    changes: tuple[Change, ...]
    worse: bool


@dataclass(frozen=True, slots=True)
class Day:
    """What was said in the evening of a day on which something was measured or found."""

    date: dt.date
    tests: int
    suspicious_tests: int
    alarms: tuple[ChangeAlarm, ...]
    suspicions: tuple[Suspicion, ...]

    def to_dict(self) -> dict[str, Any]:
        """For JSON, as Summary.to_dict."""
        found: dict[str, Any] = plain(asdict(self))
        return found


def days_of(
    verdicts: "pd.DataFrame",
    alarms: "pd.DataFrame",
    *,
    level: float,
    since: dt.date | None = None,
    until: dt.date | None = None,
) -> tuple[Day, ...]:
    """verdicts : as `judging.replay` gives them; level : of suspicious tests

    alarms : as `alarms.procedure.judge_days` gives them
    """
    tested = verdicts[verdicts["missing"] == 0]
    suspects = tested[(tested["p_value"] < level) & ~tested["outlier"]]
    evenings, suspicious = _by_day(tested), _by_day(suspects)
    found: dict[dt.date, list[ChangeAlarm]] = defaultdict(list)
    for (day, _), rows in alarms.groupby(["day", "worse"], sort=True):
        date = dt.date.fromisoformat(str(day))
        if (since is None or date >= since) and (until is None or date <= until):
            found[date] += _alarms(rows)
    return tuple(
        Day(
            date,
            len(evenings.get(date, ())),
            len(suspicious.get(date, ())),
            tuple(found.get(date, ())),
            suspicions_of(suspicious[date]) if date in suspicious else (),
        )
        for date in sorted({*evenings, *found})
    )


def _by_day(rows: "pd.DataFrame") -> "dict[dt.date, pd.DataFrame]":
    ends_s = rows["judged_s"].to_numpy(np.float64)
    return {day_of(end_s - DAY_S): rows[ends_s == end_s] for end_s in np.unique(ends_s)}


def _alarms(rows: "pd.DataFrame") -> list[ChangeAlarm]:
    """Of one day, for the worse or for the better."""
    reports = regressions_of(rows)
    worse = bool(rows["worse"].iloc[0])
    return [ChangeAlarm(each.cluster, each.machines, each.since, each.changes, worse) for each in reports]
