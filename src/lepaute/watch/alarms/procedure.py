"""Alarms: which machines are said to have changed on which day, so that few of all alarms are false.

Each stream, that is a machine, factor and stratum since the last event, is one hypothesis: its level did not change by
more than `least_change`. The day's values add to its evidence (`stats.change_evidence`), and the day's batch of
evidence becomes alarms (`stats.online_fdr`). What all machines of a cluster have in common is a stream of its own,
node "all". An alarm begins a new reference for its stream on the next day, as an event would: what was found is not
found again, and a later change or the return to the old level is. `standing` says which alarms are of consequence now.

A day is judged once. Of what was judged, the store keeps the hypotheses in order and the alarms, and never changes
them; evidence is made anew from values and changelog each time, so a late value or a corrected event counts on later
days only.
"""

import json
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lepaute.errors import InputError
from lepaute.stats.change_evidence import COMMON_MEMORY, ChangeEvidence
from lepaute.stats.common_effect import CommonEffect
from lepaute.stats.online_fdr import LEVEL, OnlineFdr
from lepaute.watch.alarms.polarity import is_worse
from lepaute.watch.alarms.sizes import size_of_change
from lepaute.watch.alarms.streams import STREAM, Streams, streams_of
from lepaute.watch.changelog import ALL, Changelog
from lepaute.watch.values import DAY_S, WHOLE_NODE, check_values

if TYPE_CHECKING:
    import pandas as pd

    from lepaute.store import Store

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
    """Days that were judged, a row each (columns of the store's table `alarm_days`), and their alarms (`alarms`)."""

    days: "pd.DataFrame"
    alarms: "pd.DataFrame"


def judge_days(
    values: "pd.DataFrame",
    changelog: Changelog | None = None,
    before: Judged | None = None,
    settings: AlarmSettings | None = None,
) -> Judged:
    """The days after those of `before` on which something was measured, and their alarms.

    values   : the whole table of factor values, as watch.values says, those of days that were judged included
    before   : all that was judged so far; None: nothing
    settings : those of the first day that was judged, which later ones cannot change; the defaults
    Columns of alarms: cluster, node, cpu, factor, stratum; day (ISO date, UTC) of the alarm; stream; since_s, the start
    of the reference; changed_s, when the new level began, as far as can be told; evidence, and enough, the least that
    would have been; direction, 1 or -1; before, the level before; size, the relative change, with its interval of 95 %
    size_low, size_high; worse; archive of the latest value; judged_s.
    """
    table = check_values(values)
    known = changelog or Changelog()
    fdr, chosen = _state(before, settings)
    streams = streams_of(table, known)
    days: list[dict[str, object]] = []
    alarms: list[dict[str, object]] = []
    if streams.values.size:
        _run(streams, fdr, chosen, before, days, alarms)
    return _judged(days, alarms)


def update_alarms(
    store: "Store", changelog: Changelog | None = None, settings: AlarmSettings | None = None
) -> "pd.DataFrame":
    """Judges the days of a store that were not judged yet, records them, and returns their alarms.

    Safe where several processes do so at once: each day is judged by one of them.
    Days later than tomorrow (UTC) wait: days are judged in order, and after one of them no day before could be.
    Raises InputError for settings other than those with which the store's first day was judged, and where a day later
    than tomorrow was judged.
    """
    end = int(time.time() // DAY_S) + 2
    tomorrow = str(np.datetime64(end - 1, "D"))
    while True:
        before = Judged(store.alarm_days(), store.alarms())
        after = "" if before.days.empty else str(before.days["day"].iloc[-1])
        if after > tomorrow:
            raise InputError(
                f"the alarms of this store were judged up to {after}, which is in the future, so no day until then can "
                "be; ingest the files into a new store, without the job of that date, or set the clock of this machine"
            )
        new = judge_days(store.values(until_s=end * DAY_S), changelog, before, settings)
        if new.days.empty or store.add_alarms(new.days, new.alarms, after=after):
            return new.alarms


def _state(before: Judged | None, settings: AlarmSettings | None) -> tuple[OnlineFdr, AlarmSettings]:
    if before is None or before.days.empty:
        chosen = settings or AlarmSettings()
        return OnlineFdr(chosen.level), chosen
    added = [json.loads(text) for text in before.days["added"]]
    try:
        kept = AlarmSettings(**added[0]["settings"])
        hypotheses = [name for day in added for name in day["hypotheses"]]
        first = next((len(day["hypotheses"]) for day in added if day["hypotheses"]), 0)
    except (KeyError, TypeError) as problem:
        raise InputError(f"this is no stored state of alarms ({problem}); judge into a new store") from None
    if settings is not None and settings != kept:
        raise InputError(
            f"the alarms of this store are those of a level of {kept.level:g} and a least change of "
            f"{kept.least_change:g}, since {before.days['day'].iloc[0]}; that cannot change, judge into a new store"
        )
    rows = before.alarms[["stream", "day", "evidence", "enough"]].sort_values(["day", "stream"])
    state = {
        "level": kept.level,
        "first_batch": first,
        "last_day": str(before.days["day"].iloc[-1]),
        "order": hypotheses,
        "alarms": rows.to_numpy().tolist(),
    }
    return OnlineFdr.from_json(state), kept


def _run(
    streams: Streams,
    fdr: OnlineFdr,
    settings: AlarmSettings,
    before: Judged | None,
    days: list[dict[str, object]],
    alarms: list[dict[str, object]],
) -> None:
    """Takes the values round by round, and judges at the end of each day after the last one that was judged."""
    stretches = _Stretches(streams, before, settings.least_change)
    last_judged = fdr.last_day
    for at, day in enumerate(streams.day):
        date = str(np.datetime64(int(day), "D"))
        stretches.begin(int(day))
        stretches.take(at)
        if at + 1 < len(streams.day) and streams.day[at + 1] == day:
            continue
        if date <= last_judged:
            stretches.restart_known(date)
            continue
        names = len(fdr.order)
        found = fdr.judge(date, stretches.evidence())
        added: dict[str, object] = {"hypotheses": list(fdr.order)[names:]}
        if not days and not last_judged:
            added["settings"] = asdict(settings)
        judged_s = time.time()
        days.append({"day": date, "added": json.dumps(added), "judged_s": judged_s})
        for alarm in found:
            row = stretches.describe(alarm.stream, at)
            alarms.append(
                {"day": date, "evidence": alarm.evidence, "enough": alarm.enough, "judged_s": judged_s, **row}
            )
        stretches.restart([alarm.stream for alarm in found], int(day) + 1)


class _Stretches:
    """The current stretch of each stream, from the last event or alarm on, and its evidence.

    Streams are those of the table, then one for each group: what its machines have in common.
    """

    def __init__(self, streams: Streams, before: Judged | None, least_change: float) -> None:
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
        self.state = ChangeEvidence.start(self.machines)
        self.common = ChangeEvidence.start(len(first), COMMON_MEMORY)
        self.effect = CommonEffect.start(streams.group)
        self.shared = np.zeros((len(streams.day), len(first)))  # the common effect of each round
        self.begun = np.zeros(len(rows), np.int64)  # the round in which the stretch began
        self._new = np.ones(len(rows), np.bool_)  # of which no evidence was given yet
        self._found: dict[str, list[int]] = {}
        if before is not None and len(before.alarms):
            where = {key: number for number, key in enumerate(rows)}
            for row in before.alarms[[*STREAM, "day"]].itertuples(index=False, name=None):
                if row[:-1] in where:
                    self._found.setdefault(row[-1], []).append(where[row[:-1]])

    def begin(self, day: int) -> None:
        """Stretches that begin by this day."""
        while self._waiting and self._waiting[0] <= day:
            due = self._waiting.pop(0)
            self._restart(self._due[due], due)

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

    def evidence(self) -> dict[str, float]:
        """Of the stretches of which a value was tested: of those that are new, and of those that can be alarms."""
        tested = np.concatenate([self.state.tests, self.common.tests]) > 0
        evidence = np.concatenate([self.state.evidence(), self.common.evidence()])
        chosen = np.flatnonzero(tested & (self._new | (evidence >= 1)))
        self._new &= ~tested
        return {self.names[number]: float(evidence[number]) for number in chosen}

    def restart(self, names: list[str], day: int) -> None:
        """New stretches from this day on, after the alarms of the day before."""
        self._restart([self.number[name] for name in names], day)

    def restart_known(self, date: str) -> None:
        """As `restart`, after the alarms of a day that was judged before."""
        day = int(np.datetime64(date, "D").astype(np.int64)) + 1
        self._restart(self._found.get(date, []), day)

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
            "direction": direction,
            "before": change.before,
            "size": change.size,
            "size_low": change.low,
            "size_high": change.high,
            "worse": is_worse(str(self.keys[number][3]), direction),
            "archive": self.streams.archives[latest] if latest >= 0 else "",
        }

    def _restart(self, numbers: list[int], day: int) -> None:
        for number in numbers:
            del self.number[self.names[number]]
            self.since[number] = day
            self._new[number] = True
            self.names[number] = self._name(number)
            self.number[self.names[number]] = number
            self.begun[number] = int(np.searchsorted(self.streams.day, day))
        chosen = np.array(numbers, dtype=np.int64)
        self.state.restart(chosen[chosen < self.machines])
        self.common.restart(chosen[chosen >= self.machines] - self.machines)

    def _name(self, number: int) -> str:
        since = self.since[number]
        return json.dumps([*self.keys[number], "" if since < 0 else str(np.datetime64(int(since), "D"))])


def _judged(days: list[dict[str, object]], alarms: list[dict[str, object]]) -> Judged:
    import pandas as pd

    from lepaute.store.tables import ALARM_DAYS, ALARMS

    frame = pd.DataFrame(alarms, columns=list(ALARMS.columns))
    kinds: dict[str, Any] = {"text": "str", "integer": np.int64, "real": np.float64, "flag": np.bool_}
    frame = frame.astype({name: kinds[kind] for name, kind in ALARMS.columns.items()})
    return Judged(pd.DataFrame(days, columns=list(ALARM_DAYS.columns)), frame)
