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
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lepaute.errors import InputError, LepauteError
from lepaute.stats.change_evidence import COMMON_MEMORY, ChangeEvidence, CommonEffect
from lepaute.stats.expanding import Floats, Integers
from lepaute.stats.multiple_tests import LEVEL, OnlineFdr
from lepaute.stats.small_changes import MEMORY, SmallChanges, enough
from lepaute.watch.alarms.sizes import size_of_change
from lepaute.watch.alarms.worth_a_look import Look, looks_of
from lepaute.watch.changelog import ALL, Changelog
from lepaute.watch.values import DAY_S, MACHINE, NODE, WHOLE_NODE, check_values, day_numbers, nodes_of

if TYPE_CHECKING:
    import pandas as pd

    from lepaute.store import Store

STREAM = [*MACHINE, "factor", "stratum"]


@dataclass(frozen=True, slots=True)
class Streams:
    """keys    : a row a stream, columns STREAM, in their order
    group   : shape (streams,), the same number for the machines of a cluster, factor and stratum
    values  : shape (rounds, streams), NaN where there is none
    day     : of each round, days since 1970, ascending, shape (rounds,)
    times_s : shape (rounds, streams), when the value was measured, NaN where there is none
    archive : position of the archive's id in `archives`, -1 where there is no value, shape (rounds, streams)
    resets  : of each stream, the days on which an event begins its reference anew, ascending
    """

    keys: "pd.DataFrame"
    group: Integers
    values: Floats
    day: Integers
    times_s: Floats
    archive: Integers
    archives: tuple[str, ...]
    resets: tuple[tuple[int, ...], ...]


def streams_of(table: "pd.DataFrame", changelog: Changelog) -> Streams:
    """The streams of a table as `check_values` returns it."""
    import pandas as pd

    done = table[table["state"] == "done"]
    done = done[~changelog.is_outlier(done)]
    # in order of machine, factor, time and job; of strata, one machine may have several
    number = done.groupby(STREAM, sort=False).ngroup().to_numpy().astype(np.int64)
    order = np.argsort(number, kind="stable")
    done, number = done.iloc[order], number[order]
    days = day_numbers(done["started_s"])
    first = np.flatnonzero(np.diff(number, prepend=-1) | np.diff(days, prepend=0))
    place_of_first = np.zeros(len(done), np.int64)
    place_of_first[first] = first
    turn = np.arange(len(done)) - np.maximum.accumulate(place_of_first)
    turns = int(turn.max(initial=0)) + 1
    rounds, at = np.unique(days * turns + turn, return_inverse=True)
    keys = done[STREAM].iloc[np.unique(number, return_index=True)[1]].reset_index(drop=True)
    shape = (len(rounds), len(keys))
    values, times = np.full(shape, np.nan), np.full(shape, np.nan)
    archive = np.full(shape, -1, np.int64)
    codes, archives = pd.factorize(done["archive"])
    values[at, number], times[at, number] = done["value"], done["started_s"]
    archive[at, number] = codes
    group = keys.groupby(["cluster", "factor", "stratum"], sort=False).ngroup().to_numpy().astype(np.int64)
    of_node = changelog.resets_s(nodes_of(keys))
    resets = tuple(
        tuple(int(reset // DAY_S) for reset in of_node[node]) for node in keys[NODE].itertuples(index=False, name=None)
    )
    return Streams(keys, group, values, rounds // turns, times, archive, tuple(archives), resets)


#: Relative changes up to this are nobody's concern: a fifth of the smallest that the literature found worth an entry,
#: so that such a one is still found.
LEAST_CHANGE = 0.002


@dataclass(frozen=True, slots=True)
class AlarmSettings:
    """level : of false discoveries, the share of false alarms among all; least_change : relative, >= 0."""

    level: float = LEVEL
    least_change: float = LEAST_CHANGE

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise InputError(f"the level of false discoveries is {self.level!r}; it must lie between 0 and 1")
        if not 0 <= self.least_change < 1:
            raise InputError(f"the least change is {self.least_change!r}; give a fraction from 0 to below 1")


@dataclass(frozen=True, slots=True)
class Judged:
    """Days that were judged, a row each (columns of the store's table `alarm_days`), and their alarms (`alarms`).

    looks : what is worth a look besides, and no alarm, a row each (`watch.alarms.worth_a_look`)
    """

    days: "pd.DataFrame"
    alarms: "pd.DataFrame"
    looks: "pd.DataFrame"


def judge_days(
    values: "pd.DataFrame", changelog: Changelog | None = None, settings: AlarmSettings | None = None
) -> Judged:
    """The days on which something was measured, and their alarms.

    values : the whole table of factor values, as watch.values says
    Columns of alarms: cluster, node, cpu, factor, stratum; day (ISO date, UTC) of the alarm; stream; since_s, the start
    of the reference; changed_s, when the new level began, as far as can be told; evidence, and enough, the least that
    would have been; direction, 1 or -1; before, the level before; size, the relative change, with its interval of 95 %
    size_low, size_high; worse; archive of the latest value; judged_s.
    """
    import pandas as pd

    from lepaute.store.tables import ALARM_DAYS, ALARMS

    settings = settings or AlarmSettings()
    streams = streams_of(check_values(values), changelog or Changelog())
    days, alarms, looks = _run(streams, settings) if streams.values.size else ([], [], [])
    frame = pd.DataFrame(alarms, columns=list(ALARMS.columns))
    types: dict[str, Any] = {"text": "str", "integer": np.int64, "real": np.float64, "flag": np.bool_}
    frame = frame.astype({name: types[kind] for name, kind in ALARMS.columns.items()})
    return Judged(pd.DataFrame(days, columns=list(ALARM_DAYS.columns)), frame, looks_of(looks, settings.least_change))


def settings_of(store: "Store") -> AlarmSettings:
    """Those with which the store was first judged, or the defaults; raises InputError where they cannot be read."""
    days = store.alarm_days()
    try:
        return AlarmSettings(**json.loads(days["added"].iloc[0])["settings"]) if len(days) else AlarmSettings()
    except LepauteError:
        raise
    except (KeyError, TypeError, ValueError) as problem:
        raise InputError(f"this is no stored state of alarms ({problem}); judge into a new store") from None


def known_days(values: "pd.DataFrame") -> "pd.DataFrame":
    """The values of days up to tomorrow (UTC): a job of the future is a clock that was wrong."""
    known: pd.DataFrame = values[values["started_s"] < (time.time() // DAY_S + 2) * DAY_S]
    return known


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
    days, kept = store.alarm_days()["day"], settings_of(store)
    if len(days) and asked != kept:
        raise InputError(
            f"the alarms of this store are those of a level of {kept.level:g} and a least change of "
            f"{kept.least_change:g}, since {days.iloc[0]}; that cannot change, judge into a new store"
        )


def _run(
    streams: Streams, settings: AlarmSettings
) -> tuple[list[dict[str, object]], list[dict[str, object]], list[Look]]:
    """Takes the values round by round, and judges at the end of each day; the rows of days and of alarms, and looks."""
    days: list[dict[str, object]] = []
    alarms: list[dict[str, object]] = []
    stretches, fdr = _Stretches(streams, settings.least_change), OnlineFdr(settings.level)
    for at, day in enumerate(streams.day):
        date = str(np.datetime64(int(day), "D"))
        stretches.begin(int(day))
        stretches.take(at)
        if at + 1 < len(streams.day) and streams.day[at + 1] == day:
            continue
        new_alarms = fdr.judge(date, stretches.evidence())
        stretches.look(at)
        added: dict[str, object] = {} if days else {"settings": asdict(settings)}
        judged_s = time.time()
        days.append({"day": date, "added": json.dumps(added), "judged_s": judged_s})
        for alarm in new_alarms:
            row = stretches.describe(alarm.stream, at)
            alarms.append(
                {"day": date, "evidence": alarm.evidence, "enough": alarm.enough, "judged_s": judged_s, **row}
            )
        stretches.restart([stretches.number[alarm.stream] for alarm in new_alarms], int(day) + 1)
    return days, alarms, stretches.looks(len(streams.day) - 1)


class _Stretches:
    """The current stretch of each stream, from the last event or alarm on, and its evidence.

    Streams are those of the table, then one for each group: what its machines have in common.
    """

    def __init__(self, streams: Streams, least_change: float) -> None:
        self.streams, self.least_change = streams, least_change
        self.machines = len(streams.keys)
        first = np.unique(streams.group, return_index=True)[1]
        common = streams.keys.iloc[first].assign(node=ALL, cpu=WHOLE_NODE)
        rows = [*streams.keys.itertuples(index=False, name=None), *common.itertuples(index=False, name=None)]
        self.keys: list[tuple[object, ...]] = rows
        self.since = np.full(len(rows), -1, np.int64)  # day, -1 before any event
        self.names = [self._name(number) for number in range(len(rows))]
        self.number = {name: number for number, name in enumerate(self.names)}
        members = [np.flatnonzero(streams.group == group) for group in range(len(first))]
        everywhere = [set.intersection(*(set(streams.resets[m]) for m in each)) for each in members]
        self._due: dict[int, list[int]] = {}
        for number, resets in enumerate([*streams.resets, *everywhere]):
            for day in resets:
                self._due.setdefault(day, []).append(number)
        self._waiting = sorted(self._due)
        self._day = -1
        self.state = ChangeEvidence.start(self.machines)
        self.common = ChangeEvidence.start(len(first), COMMON_MEMORY)
        self.effect = CommonEffect.start(streams.group)
        self.shared = np.zeros((len(streams.day), len(first)))  # the common effect of each round
        self.begun = np.zeros(len(rows), np.int64)  # the round in which the stretch began
        self._new = np.ones(len(rows), np.bool_)  # of which no evidence was given yet
        self.small = SmallChanges.start(self.machines, MEMORY)
        self.small_begun = np.zeros(self.machines, np.int64)
        self._seen = np.zeros(self.machines, np.bool_)
        self._open: dict[int, Look] = {}  # by stream
        self._over: list[Look] = []

    def begin(self, day: int) -> None:
        """Stretches that begin by this day, of which a round follows."""
        if day != self._day:
            self.small.begin_day()
            self._day = day
        while self._waiting and self._waiting[0] <= day:
            due = self._waiting.pop(0)
            self.restart(self._due[due], due)

    def take(self, at: int) -> None:
        """The values of a round."""
        today, group = self.streams.values[at], self.streams.group
        shared = self.effect.take(self.state.deviations(today))
        self.shared[at] = self.effect.effect
        allowed = self.least_change * np.abs(np.nan_to_num(self.state.levels()))
        here = np.where(self.effect.here, self.effect.effect, np.nan)
        members = np.maximum(np.bincount(group), 1)
        self.common.update(here, least=np.bincount(group, weights=allowed) / members)
        self.state.update(today, group, shared, allowed)
        self.small.update(today, group, shared)
        self._seen |= np.isfinite(today)

    def look(self, at: int) -> None:
        """At the end of a day: what has become worth a look. The stream begins anew, for this tier alone."""
        evidence, least = self.small.evidence(), enough(int(self._seen.sum()))
        found = np.flatnonzero(evidence >= least)
        for number in found:
            if number in self._open:  # the same change goes on
                continue
            self._open[int(number)] = Look(
                dict(zip(STREAM, self.keys[number], strict=True)),
                int(self.streams.day[at]),
                int(self.small_begun[number]),
                float(evidence[number]),
                least,
                int(self.small.directions()[number]),
            )
        self.small.restart(found)
        self.small_begun[found] = at + 1

    def looks(self, last: int) -> list[Look]:
        """All of them, with the values that they are about."""
        still_open = [replace(look, stands=True, **self._part(n, look.begun, last)) for n, look in self._open.items()]
        return [*self._over, *still_open]

    def _close(self, number: int, last: int) -> None:
        if number in self._open:
            look = self._open.pop(number)
            self._over.append(replace(look, **self._part(number, look.begun, last)))

    def _part(self, number: int, begun: int, last: int) -> dict[str, Any]:
        """The values of these rounds, without what all machines have in common, and their dates."""
        part = slice(begun, last + 1)
        values = self.streams.values[part, number] - self.shared[part, self.streams.group[number]]
        seen = np.isfinite(values)
        return {"values": values[seen], "times_s": self.streams.times_s[part, number][seen]}

    def evidence(self) -> dict[str, float]:
        """Of the stretches of which a value was tested: of those that are new, and of those that can be alarms."""
        tested = np.concatenate([self.state.tests, self.common.tests]) > 0
        evidence = np.concatenate([self.state.evidence(), self.common.evidence()])
        chosen = np.flatnonzero(tested & (self._new | (evidence >= 1)))
        self._new &= ~tested
        return {self.names[number]: float(evidence[number]) for number in chosen}

    def describe(self, name: str, at: int) -> dict[str, object]:
        """What an alarm says of its stream: columns of the table of alarms."""
        number = self.number[name]
        state, own = (self.state, number) if number < self.machines else (self.common, number - self.machines)
        begun = int(self.begun[number])
        if number < self.machines:
            group = int(self.streams.group[number])
            values = self.streams.values[begun : at + 1, number] - self.shared[begun : at + 1, group]
            times = self.streams.times_s[begun : at + 1, number]
            archive = self.streams.archive[begun : at + 1, number]
        else:
            inside = self.streams.group == own
            with np.errstate(invalid="ignore"):
                values = np.nanmedian(self.streams.values[begun : at + 1, inside], axis=1)
                times = np.nanmin(self.streams.times_s[begun : at + 1, inside], axis=1)
            archive = self.streams.archive[begun : at + 1, inside].max(axis=1)
        direction = int(state.directions()[own])
        seen = np.flatnonzero(np.isfinite(values))
        change = size_of_change(values[seen], direction)
        latest = int(archive[seen[-1]])
        since = float(times[seen[0]]) if self.since[number] < 0 else self.since[number] * DAY_S
        return {
            **dict(zip(STREAM, self.keys[number], strict=True)),
            "stream": name,
            "since_s": since,
            "changed_s": float(times[seen[change.first]]),
            **change.columns(str(self.keys[number][3]), direction),
            "archive": self.streams.archives[latest] if latest >= 0 else "",
        }

    def restart(self, numbers: list[int], day: int) -> None:
        """New stretches of these streams from this day on."""
        for number in numbers:
            del self.number[self.names[number]]
            self.since[number] = day
            self._new[number] = True
            self.names[number] = self._name(number)
            self.number[self.names[number]] = number
            self.begun[number] = int(np.searchsorted(self.streams.day, day))
            if number < self.machines:
                self._close(number, int(self.begun[number]) - 1)
                self.small_begun[number] = self.begun[number]
        chosen = np.array(numbers, dtype=np.int64)
        self.state.restart(chosen[chosen < self.machines])
        self.small.restart(chosen[chosen < self.machines])
        self.common.restart(chosen[chosen >= self.machines] - self.machines)

    def _name(self, number: int) -> str:
        since = self.since[number]
        return json.dumps([*self.keys[number], "" if since < 0 else str(np.datetime64(int(since), "D"))])
