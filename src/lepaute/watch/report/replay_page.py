"""A replay as a page: what would have been found when, at which rate of false alarms, and what that rests on."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median_low
from typing import Any

import numpy as np

from lepaute.kit.json_values import finite_json
from lepaute.kit.report.page import picture_values, records_table, render
from lepaute.kit.report.svg import Layer, Picture, axis
from lepaute.kit.text import counted, exact_number, p_text
from lepaute.watch.report.history import ChangeAlarm, Day, alarms_answer, is_open
from lepaute.watch.report.summary import Regression, change_text, machines_text, regression_nodes, since_text

#: Days of suspicious tests that are listed.
MAX_SUSPICIONS = 500


@dataclass(frozen=True, slots=True)
class Replayed:
    """days : as `history.days_of`; still_open : regressions after the last one; tests : single ones, of all days

    false_alarms : the share of alarms that are false, in expectation; level : below it a single test is suspicious
    what : of which machines and factors
    """

    days: Sequence[Day]
    still_open: Sequence[Regression]
    tests: int
    false_alarms: float
    level: float
    what: str

    @property
    def alarms(self) -> "list[tuple[dt.date, ChangeAlarm]]":
        """Each with the day of its evening."""
        return [(day.date, alarm) for day in self.days for alarm in day.alarms]

    def to_dict(self) -> dict[str, Any]:
        return {
            "answer": alarms_answer(self.days),
            "days": finite_json(self.days),
            "regressions": finite_json(self.still_open),
            "tests": self.tests,
            "false_alarms": self.false_alarms,
            "level": self.level,
        }


def page(found: Replayed) -> str:
    """The page; all names in it are escaped."""
    days = found.days
    span = f", {days[0].date} to {days[-1].date}" if days else ""
    suspicions = [
        {
            "day": str(day.date),
            "machines": machines_text(suspicion.machines),
            "what": "; ".join(map(change_text, suspicion.changes)),
            "p": p_text(suspicion.p_value).removeprefix("p = "),
        }
        for day in days
        for suspicion in day.suspicions
    ]
    return render(
        "lepaute.watch.report",
        "replay.html.j2",
        title="Replay of a watch",
        facts=f"{found.what}{span}, {counted(found.tests, 'test')}",
        answer=alarms_answer(days),
        figures=_figures(found),
        alarms=records_table("Alarms", [_row(date, alarm, found.still_open) for date, alarm in found.alarms]),
        is_open=bool(found.still_open),
        standing=[
            f"{regression_nodes(each)}, {since_text(each)}: {'; '.join(map(change_text, each.changes))}; "
            f"alarm of {each.alarm}"
            for each in found.still_open
            if not any(is_open(alarm, [each]) for _, alarm in found.alarms)
        ],
        pictures=[picture_values(_picture(found))] if days else [],
        suspicions=records_table("Suspicious tests", suspicions[:MAX_SUSPICIONS]),
        false_alarms=exact_number(100.0 * found.false_alarms),
        level=exact_number(found.level, 1),
        tests=found.tests,
    )


def _figures(found: Replayed) -> list[tuple[str, str]]:
    alarms = found.alarms
    waits = [(date - alarm.since).days for date, alarm in alarms]
    worse = sum(alarm.worse for _, alarm in alarms)
    return [
        (counted(len(alarms), "alarm"), f"{worse} for the worse; {len(found.still_open)} open at the end"),
        (
            counted(median_low(waits), "day") if waits else "–",
            "from a change to its alarm, in the median" if waits else "from a change to its alarm: there was none",
        ),
        (f"{exact_number(100.0 * found.false_alarms)} %", "of alarms at most are expected to be false"),
    ]


def _row(date: "dt.date", alarm: ChangeAlarm, still_open: Sequence[Regression]) -> dict[str, Any]:
    return {
        "alarm": str(date),
        "machines": machines_text(alarm.machines),
        "since": since_text(alarm).removeprefix("since "),
        "days_later": (date - alarm.since).days,
        "what": "; ".join(map(change_text, alarm.changes)),
        "for_the_worse": alarm.worse,
        "open_at_the_end": is_open(alarm, still_open),
    }


def _picture(found: Replayed) -> Picture:
    """Suspicious tests of each day, and the days with an alarm."""
    first = found.days[0].date
    day = np.array([(each.date - first).days for each in found.days], np.float64)
    share = np.array([100.0 * each.suspicious_tests / max(1, each.tests) for each in found.days])
    alarmed = np.array([(date - first).days for date, _ in found.alarms], np.float64)
    dates = tuple(str(first + dt.timedelta(number)) for number in range(int(day[-1]) + 1))
    alarms = "; red: days with an alarm. After a change it is high until an event explains it, the machine is back, or "
    return Picture(
        alt=f"Share of suspicious tests on each of {len(day)} days, and {counted(len(alarmed), 'alarm')}",
        caption="Share of single tests that are suspicious on each day"
        + (f"{alarms}the references have taken it in." if len(alarmed) else "."),
        x=replace(axis("", day, include=(0.0,)), names=dates),
        y=axis("suspicious tests, %", share, include=(0.0,)),
        layers=[Layer("bars", day, share, "interval"), Layer("rules", alarmed, np.zeros(len(alarmed)), "rule")],
    )
