"""Alarms: which machines are said to have changed on which day, so that few of all alarms are false.

Each stream, that is a machine, factor and stratum since the last event, is one hypothesis: its level did not change by
more than `least_change`. The day's values add to its evidence (`stats.change_evidence`), and the day's batch of
evidence becomes alarms (`stats.multiple_tests`). What all machines of a cluster have in common is a stream of its own,
node "all". An alarm begins a new reference for its stream on the next day, as an event would: what was found is not
found again, and a later change or the return to the old level is. `standing` says which alarms are of consequence now.

The alarms are a function of values, changelog and settings, whatever was judged when: what is ingested late, or logged
late, counts as if it had been known on its day. Those of a day do not depend on later days. A store records what was
said first of each day, from which nothing is decided, and the settings.
"""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np
import pandas as pd

from lepaute.errors import InputError, LepauteError
from lepaute.stats.multiple_tests import LEVEL, OnlineFdr
from lepaute.watch.alarms.groups import LOOKS
from lepaute.watch.alarms.stretches import STREAM, Streams, Stretches, streams_of
from lepaute.watch.alarms.worth_a_look import Look, looks_of
from lepaute.watch.changelog import Changelog, Inventory
from lepaute.watch.kept import keep_state, kept_state, kept_tables
from lepaute.watch.store import Store
from lepaute.watch.store.tables import ALARM_DAYS, ALARMS
from lepaute.watch.values import DAY_S, check_values

#: Relative changes up to this are nobody's concern: a fifth of the smallest in the literature, which is still found.
MIN_CHANGE = 0.002
#: What is judged is kept so often, for a run that is stopped.
KEEP_S = 20.0


@dataclass(frozen=True, slots=True)
class AlarmSettings:
    """level : of false discoveries, the share of false alarms among all; least_change : relative, >= 0."""

    level: float = LEVEL
    least_change: float = MIN_CHANGE

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise InputError(f"the level of false discoveries is {self.level!r}; it must lie between 0 and 1")
        if not 0 <= self.least_change < 1:
            raise InputError(f"the least change is {self.least_change!r}; give a fraction from 0 to below 1")


@dataclass(frozen=True, slots=True)
class Judged:
    """Days that were judged, a row each (columns of the store's table `alarm_days`), and their alarms (`alarms`).

    looks : what is worth a look besides, and no alarm, a row each (`watch.alarms.worth_a_look`)
    unconfirmed : machines with evidence of a change that is not enough for an alarm yet, and is borne out; as alarms
    """

    days: "pd.DataFrame"
    alarms: "pd.DataFrame"
    looks: "pd.DataFrame"
    unconfirmed: "pd.DataFrame"


def judge_days(
    values: "pd.DataFrame",
    changelog: Changelog | None = None,
    settings: AlarmSettings | None = None,
    progress: Callable[[float], None] | None = None,
    *,
    keep: bool = False,
) -> Judged:
    """The days on which something was measured, and their alarms.

    values   : the whole table of factor values, as watch.values says
    progress : gets the share of the work that is behind
    keep     : what is worked out of whole days is kept, and a day more takes no longer than its jobs
    Columns of alarms: cluster, node, cpu, factor, stratum; day (ISO date, UTC) of the alarm; stream; since_s, the start
    of the reference; changed_s, when the new level began, as far as can be told; evidence, and enough, the least that
    would have been; direction, 1 or -1; before, the level before; size, the relative change, with its interval of 95 %
    size_low, size_high; worse; archive of the latest value; judged_s.
    """
    settings, log = settings or AlarmSettings(), changelog or Changelog()
    table = check_values(values)
    streams = streams_of(table, log)
    days, alarms, looks, unconfirmed = list[dict[str, Any]](), list[dict[str, Any]](), list[Look](), list[Any]()
    if streams.values.size:
        course = _course(streams, table, log, settings, progress, keep)
        last = len(streams.day) - 1
        now = {"day": str(np.datetime64(int(streams.day[last]), "D")), "judged_s": time.time()}
        days, alarms, looks = course.days, course.alarms, course.stretches.looks(last)
        unconfirmed = [now | row for row in course.stretches.unconfirmed(last)]
    types: dict[str, Any] = {"text": "str", "integer": np.int64, "real": np.float64, "flag": np.bool_}
    columns = {name: types[kind] for name, kind in ALARMS.columns.items()}
    of_days = pd.DataFrame(days, columns=list(ALARM_DAYS.columns))
    changes = [pd.DataFrame(rows, columns=list(columns)).astype(columns) for rows in (alarms, unconfirmed)]
    return Judged(of_days, changes[0], looks_of(looks, settings.least_change), changes[1])


def judged_once(
    values: "pd.DataFrame",
    changelog: Changelog,
    settings: AlarmSettings,
    progress: Callable[[float], None] | None = None,
) -> Judged:
    """What `judge_days` gives, kept for the next who asks; `judged_s` tells when it was worked out."""
    names = [each.name for each in fields(Judged)]

    def tables() -> "list[pd.DataFrame]":
        judged = judge_days(values, changelog, settings, progress, keep=True)
        return [getattr(judged, name) for name in names]

    return Judged(*kept_tables(names, values, (changelog, settings), tables))


def settings_of(days: "pd.DataFrame") -> AlarmSettings:
    """Settings with which days were first judged, or the defaults; raises InputError if they cannot be read."""
    try:
        return AlarmSettings(**json.loads(days["added"].iloc[0])["settings"]) if len(days) else AlarmSettings()
    except LepauteError:
        raise
    except (KeyError, TypeError, ValueError) as problem:
        raise InputError(f"this is no stored state of alarms ({problem}); judge into a new store") from None


def known_days(values: "pd.DataFrame") -> "pd.DataFrame":
    """The values of days up to tomorrow (UTC): a job of the future is a clock that was wrong."""
    known = values["started_s"] < (time.time() // DAY_S + 2) * DAY_S
    return values if known.all() else values[known]


def record_alarms(store: "Store", judged: Judged) -> "pd.DataFrame":
    """Records the days after the last one that is recorded, with their alarms, and returns these.

    Safe where several processes do so at once: each day is recorded by one of them.
    """
    while True:
        recorded = store.alarm_days()["day"]
        after = "" if recorded.empty else str(recorded.iloc[-1])
        days, alarms = (rows[rows["day"] > after] for rows in (judged.days, judged.alarms))
        if days.empty or store.add_alarms(days, alarms, after=after):
            return alarms


def check_settings(store: "Store", asked: AlarmSettings) -> None:
    """Raises InputError for others than those with which the store was first judged: its days would contradict."""
    days = store.alarm_days()
    if len(days) and asked != (kept := settings_of(days)):
        raise InputError(
            f"the alarms of this store are those of a level of {kept.level:g} and a least change of "
            f"{kept.least_change:g}, since {days['day'].iloc[0]}; that cannot change, judge into a new store"
        )


@dataclass(slots=True)
class _Course:
    """Days that are judged one after the other; all that was found of them is kept. rounds : that are judged."""

    stretches: Stretches
    fdr: OnlineFdr
    rounds: int = 0
    days: list[dict[str, object]] = field(default_factory=list)
    alarms: list[dict[str, object]] = field(default_factory=list)

    def run(self, streams: Streams, changelog: Changelog, settings: AlarmSettings) -> Iterator[int]:
        """Takes the values round by round, and judges at the end of each day; gives the rounds behind, day by day."""
        for at in range(self.rounds, len(streams.day)):
            day = streams.day[at]
            self.stretches.begin(int(day))
            self.stretches.take(at)
            if at + 1 < len(streams.day) and streams.day[at + 1] == day:
                continue
            self._end_day(at, str(np.datetime64(int(day), "D")), changelog.inventory, settings)
            self.rounds = at + 1
            yield self.rounds

    def _end_day(self, at: int, date: str, inventory: Inventory, settings: AlarmSettings) -> None:
        new_alarms = self.fdr.alarms_of_day(date, self.stretches.evidence())
        self.stretches.look(at)
        added: dict[str, object] = {} if self.days else {"settings": asdict(settings)}
        judged_s = time.time()
        self.days.append({"day": date, "added": json.dumps(added), "judged_s": judged_s})
        named: set[tuple[object, ...]] = set()
        for alarm in new_alarms:
            columns = {"day": date, "evidence": alarm.evidence, "enough": alarm.enough, "judged_s": judged_s}
            # a machine with an alarm of its own is not named a second time with its group
            for row in self.stretches.describe(alarm.stream, at):
                if (stream := tuple(row[key] for key in STREAM)) not in named:
                    self.alarms.append(columns | row)
                    named.add(stream)
        self.stretches.restart_after(at, new_alarms)
        if len(self.days) in LOOKS:
            self.stretches.regroup(at, inventory)
        self.stretches.note_unconfirmed()


def _course(
    streams: Streams,
    values: "pd.DataFrame",
    changelog: Changelog,
    settings: AlarmSettings,
    progress: Callable[[float], None] | None,
    keep: bool,
) -> _Course:
    """All days judged.

    keep : what was kept of the same streams up to a day with the same values is where it begins, and the days before
        the last one, to which jobs may come in, are kept for the next; so are those before it is stopped
    """
    of = "course", settings, changelog, streams.keys.to_csv()
    course = kept_state(of, values) if keep else None
    if course is None:
        course = _Course(Stretches(streams, settings.least_change), OnlineFdr(settings.level))
    else:
        course.stretches.go_on(streams, course.rounds)
    last_day, since_s = int(streams.day[-1]), time.monotonic()
    complete = int(np.searchsorted(streams.day, last_day))
    for rounds in course.run(streams, changelog, settings):
        if progress is not None:
            progress(rounds / len(streams.day))
        if keep and rounds <= complete and time.monotonic() - since_s > (KEEP_S if rounds < complete else 0):
            keep_state(of, values, (int(streams.day[rounds - 1]) + 1) * DAY_S, course)
            since_s = time.monotonic()
    return course
