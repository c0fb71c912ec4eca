"""Streams of values, day by day, and what is known of each since the last event or alarm.

A stream is a machine, factor and stratum. Beside those of machines there is one for each fleet (cluster, factor and
stratum): what its machines have in common; and one for each group that shares something, sought again day by day.
"""

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from lepaute.stats.change_evidence import COMMON_MEMORY, ChangeEvidence
from lepaute.stats.expanding import Floats, Integers
from lepaute.stats.group_effects import MIN_PEERS, CommonEffect
from lepaute.stats.multiple_tests import Alarm
from lepaute.stats.small_changes import MEMORY, SmallChanges, enough
from lepaute.watch.alarms.groups import (
    SAME_WIDTH,
    SUSPECTED,
    GroupEffects,
    Layer,
    alike,
    layers_of,
    wander_left,
    within_stretches,
)
from lepaute.watch.alarms.sizes import largest_level_change, least_change_of
from lepaute.watch.alarms.worth_a_look import Look, is_borne_out
from lepaute.watch.changelog import ALL, Changelog, Inventory
from lepaute.watch.store.rows import row_keys
from lepaute.watch.values import DAY_S, MACHINE, NODE, WHOLE_NODE, day_numbers, in_turn, nodes_of

STREAM = [*MACHINE, "factor", "stratum"]
MIN_LOOKED_AT = 5  # fewer machines know too little of how days hang together for the second tier
#: Unconfirmed changes that a cluster in which nothing changes has on average, before its next event.
UNCONFIRMED_CHANCE = 0.5
#: The same of clusters from MIN_PEERS to FEW machines, and how the logarithm of what is enough falls with a correlation
#: below CORRELATED: by simulation (`validation/alarms.py`) one machine a year at most is named wrongly.
FEW, CHANCE_OF_FEW, BY_CORRELATION, CORRELATED = 8, 3.5, 4.0, 0.5


@dataclass(frozen=True, slots=True)
class Streams:
    """keys    : a row a stream, columns STREAM, in their order
    group   : shape (streams,), the same number for the machines of a cluster, factor and stratum
    values  : shape (rounds, streams), NaN if there is none
    day     : of each round, days since 1970, ascending, shape (rounds,)
    times_s : shape (rounds, streams), when the value was measured, NaN if there is none
    archive : position of the archive's id in `archives`, -1 if there is no value, shape (rounds, streams)
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

    def of(self, streams: Integers) -> "Streams":
        """The same of some streams, of whole groups."""
        group: Integers = np.unique(self.group[streams], return_inverse=True)[1].astype(np.int64)
        values, times_s = (
            np.asarray(np.take(each, streams, axis=1), np.float64) for each in (self.values, self.times_s)
        )
        archive = np.asarray(np.take(self.archive, streams, axis=1), np.int64)
        resets = tuple(self.resets[number] for number in streams.tolist())
        keys = self.keys.iloc[streams].reset_index(drop=True)
        return Streams(keys, group, values, self.day, times_s, archive, self.archives, resets)


def streams_of(table: "pd.DataFrame", changelog: Changelog) -> Streams:
    """The streams of a table as `check_values` returns it."""
    usable = (table["state"] == "done").to_numpy(np.bool_) & ~changelog.is_outlier(table)
    done = table[[*STREAM, "started_s", "value", "archive"]].take(np.flatnonzero(usable))
    # in order of machine, factor, time and job; of strata, one machine may have several
    number = in_turn(row_keys(done, STREAM))
    if (np.diff(number) < 0).any():
        order = np.argsort(number, kind="stable")
        done, number = done.iloc[order], number[order]
    days = day_numbers(done["started_s"])
    first = np.flatnonzero(np.diff(number, prepend=-1) | np.diff(days, prepend=0))
    place_of_first = np.zeros(len(done), np.int64)
    place_of_first[first] = first
    turn = np.arange(len(done)) - np.maximum.accumulate(place_of_first)
    turns = int(turn.max(initial=0)) + 1
    at, rounds = pd.factorize(days * turns + turn, sort=True)
    new = np.flatnonzero(np.diff(number, prepend=-1))
    keys = done[STREAM].iloc[new].reset_index(drop=True)
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


class Stretches:
    """The current stretch of each stream, from the last event or alarm on, and its evidence.

    Streams are those of the table, then those of fleets (the table's groups), then those of groups of machines.
    """

    def __init__(self, streams: Streams, least_change: float, layers: tuple[Layer, ...] = ()) -> None:
        self.streams = streams
        self.machines = len(streams.keys)
        self.least_change = least_change
        self.least = np.array([least_change_of(factor, least_change) for factor in streams.keys["factor"]])
        first = np.unique(streams.group, return_index=True)[1]
        self.layers = layers
        self.groups = GroupEffects(layers, len(streams.day)) if layers else None
        rows = [
            *streams.keys.itertuples(index=False, name=None),
            *streams.keys.iloc[first].assign(node=ALL, cpu=WHOLE_NODE).itertuples(index=False, name=None),
        ]
        self.shared_by = self.machines + len(first)  # where the streams of groups begin
        if self.groups is not None:
            for name, its_members in zip(self.groups.names, self.groups.members, strict=True):
                cluster, _, _, *others = rows[int(its_members[0])]
                rows.append((cluster, name, WHOLE_NODE, *others))
        self.keys: list[tuple[object, ...]] = rows
        self.since = np.full(len(rows), -1, np.int64)  # day, -1 before any event
        self.names = [self._name(number) for number in range(len(rows))]
        self.number = {name: number for number, name in enumerate(self.names)}
        members = [np.flatnonzero(streams.group == group) for group in range(len(first))]
        everywhere = [set.intersection(*(set(streams.resets[m]) for m in its_members)) for its_members in members]
        self._due: dict[int, list[int]] = {}
        for number, resets in enumerate([*streams.resets, *everywhere]):
            for day in resets:
                self._due.setdefault(day, []).append(number)
        self._waiting = sorted(self._due)
        self._day = -1
        self.state = ChangeEvidence.start(self.machines)
        self.common = ChangeEvidence.start(len(first), COMMON_MEMORY)
        self.effect = CommonEffect(streams.group)
        self.shared = np.zeros((len(streams.day), len(first)))  # the common effect of each round
        self.slow = self.shared.copy()  # and its slow part
        self.begun = np.zeros(len(rows), np.int64)  # the round in which the stretch began
        self.stretch = np.zeros(streams.values.shape, np.int64)  # of each value, which stretch of its stream it is of
        self.latest = np.zeros(self.machines, np.int64)  # the same of the values that are to come
        self.shifted = np.zeros(streams.values.shape, np.bool_)  # the values of machines that shifted together
        self._new = np.ones(len(rows), np.bool_)  # of which no evidence was given yet
        self.pending = np.zeros(self.machines)  # the most evidence of an unconfirmed change, signed, 0 for none
        self.in_cluster = streams.keys.groupby("cluster")["node"].transform("size").to_numpy(np.float64)
        clusters = streams.keys[MACHINE].drop_duplicates()["cluster"].value_counts()
        self.of_few = streams.keys["cluster"].isin(clusters[clusters.between(MIN_PEERS, FEW)].index).to_numpy()
        self.small = SmallChanges.start(self.machines, MEMORY)
        self.small_begun = np.zeros(self.machines, np.int64)
        self._seen = np.zeros(self.machines, np.bool_)
        self._open: dict[int, Look] = {}  # by stream
        self._over: list[Look] = []
        self._looked: dict[int, Integers] = {}  # which of the second tier began anew after a round
        self._alarmed: list[tuple[int, list[int]]] = []  # rounds after which there were alarms, and machines and fleets

    def __getstate__(self) -> dict[str, object]:
        """Without what the table of factor values tells."""
        return {**self.__dict__, "streams": None}

    def go_on(self, streams: Streams, rounds: int) -> None:
        """After this many rounds, with others that follow, of the same streams."""
        self.streams = streams
        more = len(streams.day) - rounds

        def extended(values: Any, fill: float) -> Any:
            return np.concatenate([values[:rounds], np.full((more, *values.shape[1:]), fill, values.dtype)])

        for name in ("shared", "slow", "stretch", "shifted"):
            setattr(self, name, extended(getattr(self, name), 0))
        if self.groups is not None:
            self.groups.effects = extended(self.groups.effects, np.nan)

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
        deviations, shifted_before = self.state.deviations(today), self.effect.parts.shifted.copy()
        shared = self.effect.take(deviations, lambda common: self.state.residuals(today, group, common))
        self.shared[at], self.slow[at], self.stretch[at] = self.effect.effect, self.effect.slow, self.latest
        for state in (self.state, self.small):
            state.forget_neighbours(self.effect.parts.shifted & ~shifted_before)
        for number in np.flatnonzero(self.effect.parts.shifted):
            self.shifted[max(0, at + 1 - self.effect.parts.rounds[group[number]]) : at + 1, number] = True
        allowed = self.least * np.abs(np.nan_to_num(self.state.levels()))
        here = np.where(self.effect.here, self.effect.effect, np.nan)
        self.common.update(here, least=np.bincount(group, weights=allowed) / np.maximum(np.bincount(group), 1))
        if self.groups is not None:
            today = today - self.groups.take(at, deviations - self.effect.effect[group], allowed)
        self.state.update(today, group, shared, allowed)
        self.small.update(today, group, shared)
        self._seen |= np.isfinite(today)

    def look(self, at: int) -> None:
        """At the end of a day: what has become worth a look. The stream begins anew, for this tier alone."""
        evidence, group = self.small.evidence(), self.streams.group
        looked_at = np.bincount(group) >= MIN_LOOKED_AT
        seen = np.bincount(group, self._seen)[looked_at]
        least = enough(seen[seen > 0])
        found = np.flatnonzero((evidence >= least) & looked_at[group])
        for number in found:
            if number not in self._open:  # else the same change goes on
                key, begun = dict(zip(STREAM, self.keys[number], strict=True)), int(self.small_begun[number])
                strength, direction = float(evidence[number]), int(self.small.directions()[number])
                look = Look(key, int(self.streams.day[at]), begun, strength, least, direction)
                self._open[int(number)] = look
        self._looked[at] = found
        self.begin_looking(found, at)

    def begin_looking(self, numbers: Integers, at: int) -> None:
        """New stretches of the second tier after this round."""
        self.small.restart(numbers)
        self.small_begun[numbers] = at + 1

    def looks(self, last: int) -> list[Look]:
        """All of them, with the values that they are about."""
        active = [replace(look, stands=True, **self._part(n, look.start_round, last)) for n, look in self._open.items()]
        return [*self._over, *active]

    def _part(self, number: int, begun: int, last: int) -> dict[str, Any]:
        """The values of these rounds, without what all machines have in common, and their dates."""
        part = slice(begun, last + 1)
        values = self.streams.values[part, number] - self.shared[part, self.streams.group[number]]
        seen = np.isfinite(values)
        return {"values": values[seen], "times_s": self.streams.times_s[part, number][seen]}

    def regroup(self, at: int, inventory: Inventory) -> None:
        """Detects what groups share anew from the rounds so far, and subtracts it from the first one on."""
        values, fleet = self.streams.values[: at + 1], self.streams.group
        quick, slow = (self.shared - self.slow)[: at + 1, fleet], self.slow[: at + 1, fleet]
        rest = values - quick * self.state.expected[:, 1] - slow * self.state.expected[:, 2]
        rest = within_stretches(np.where(self.shifted[: at + 1], np.nan, rest), self.stretch[: at + 1])
        nodes = list(self.streams.keys[NODE].itertuples(index=False, name=None))
        changed = self.state.evidence() >= SUSPECTED
        if self.groups is not None:
            changed |= self.groups.changed(SUSPECTED)
        layers = layers_of(rest, fleet, nodes, inventory, changed)
        layers = self.layers if alike(layers, self.layers) else layers
        widened = self.state.widening(wander_left(rest, layers, fleet, self.state.rho(fleet), changed), fleet)
        if layers is self.layers and (np.abs(np.log(widened / self.state.widened)) <= np.log(SAME_WIDTH)).all():
            return
        concerned = widened != self.state.widened
        for layer in (*self.layers, *layers):
            concerned |= layer.group >= 0
        fleets = np.unique(fleet[concerned])  # the others are as they were, to the last bit
        machines = np.flatnonzero(np.isin(fleet, fleets))
        part = Stretches(self.streams.of(machines), self.least_change, tuple(each.of(machines) for each in layers))
        part.state.widened = part.small.widened = widened[machines]
        self._take_again(part, at, machines, fleets)
        self._put(part, layers, machines, fleets)
        self.state.widened = self.small.widened = widened

    def _take_again(self, part: "Stretches", at: int, machines: Integers, fleets: Integers) -> None:
        """All rounds up to this one, by a part that is of these machines and fleets."""
        place = {int(number): own for own, number in enumerate([*machines, *(self.machines + fleets)])}
        alarmed = dict(self._alarmed)
        for each in range(at + 1):
            part.begin(int(self.streams.day[each]))
            part.take(each)
            if each in self._looked:
                part.begin_looking(np.flatnonzero(np.isin(machines, self._looked[each])), each)
            if own := [place[number] for number in alarmed.get(each, ()) if number in place]:
                part.restart(own, int(self.streams.day[each]) + 1)

    def _put(self, part: "Stretches", layers: tuple[Layer, ...], machines: Integers, fleets: Integers) -> None:
        """Takes from the part what it has of its machines, fleets and groups, which are all groups of these layers."""
        self.state.put(machines, part.state)
        self.small.put(machines, part.small)
        self.common.put(fleets, part.common)
        self.effect.put(fleets, part.effect)
        self.shared[:, fleets], self.slow[:, fleets] = part.shared, part.slow
        self.shifted[:, machines] = part.shifted
        self.pending[machines] = 0.0  # what groups share may explain it
        given = {name for name, new in zip(self.names, self._new, strict=True) if not new}
        rows, others = slice(self.shared_by), slice(part.shared_by, None)
        self.keys, self.names = self.keys[rows] + part.keys[others], self.names[rows] + part.names[others]
        self.since = np.concatenate([self.since[rows], part.since[others]])
        self.begun = np.concatenate([self.begun[rows], part.begun[others]])
        self.number = {name: number for number, name in enumerate(self.names)}
        self._new = np.array([name not in given for name in self.names])
        self.layers, self.groups = layers, part.groups
        if self.groups is not None:
            self.groups.put_among(machines, layers)

    def evidence(self) -> dict[str, float]:
        """Evidence of stretches with a tested value: of those that are new, and of those that can be alarms."""
        states = [self.state, self.common, *([] if self.groups is None else [self.groups.state])]
        tested = np.concatenate([state.tests for state in states]) > 0
        evidence = np.concatenate([state.evidence() for state in states])
        chosen = np.flatnonzero(tested & (self._new | (evidence >= 1)))
        self._new &= ~tested
        return {self.names[number]: float(evidence[number]) for number in chosen}

    def note_unconfirmed(self) -> None:
        """At the end of a day, of machines whose evidence is enough for an unconfirmed change.

        It is one until they begin anew, whatever its own days do to the evidence.
        """
        evidence, self.least_unconfirmed = self.state.evidence_so_far(), self.in_cluster / UNCONFIRMED_CHANCE
        if (few := self.of_few).any():
            less = np.exp(np.minimum(0.0, BY_CORRELATION * (self.state.rho(self.streams.group) - CORRELATED)))
            self.least_unconfirmed[few] = (self.in_cluster * less / CHANCE_OF_FEW)[few]
        more = evidence >= np.maximum(self.least_unconfirmed, np.abs(self.pending))
        self.pending = np.where(more, evidence * self.state.directions(), self.pending)

    def unconfirmed(self, at: int) -> list[dict[str, object]]:
        """Rows of these machines, but of those whose values do not bear the change out, or are back."""
        return [
            {"evidence": abs(self.pending[number]), "enough": self.least_unconfirmed[number], **row}
            for number in np.flatnonzero(self.pending).tolist()
            if (row := self._described(number, self.names[number], at, int(np.sign(self.pending[number])), True))
        ]

    def describe(self, name: str, at: int) -> list[dict[str, object]]:
        """Description of a stream for an alarm: columns of the table of alarms; of a group, a row for each machine."""
        number = self.number[name]
        if number < self.shared_by or self.groups is None:
            state, own = (self.state, number) if number < self.machines else (self.common, number - self.machines)
            return [self._described(number, name, at, int(state.directions()[own]))]
        own = number - self.shared_by
        direction = int(self.groups.state.directions()[own])
        members = self.groups.members[own]
        begun = int(self.begun[number])
        seen = begun + np.flatnonzero(np.isfinite(self.groups.effects[begun : at + 1, own]))
        change = seen[largest_level_change(self.groups.effects[seen, own], direction).first]
        with np.errstate(invalid="ignore"):
            changed_s = float(np.nanmin(self.streams.times_s[change, members]))
        # a machine that has begun anew meanwhile has less than two values; it is asked about the date like all others
        known = [int(member) for member in members if self._values(int(member), at)[1].size > 1]
        return [self._described(each, name, at, direction) | {"changed_s": changed_s} for each in known]

    def _values(self, number: int, at: int) -> tuple[Integers, Floats]:
        """Rounds of the stretch with a value, and values of a machine or fleet, less what the fleet shares."""
        begun = int(self.begun[number])
        if number < self.machines:
            group = int(self.streams.group[number])
            values = self.streams.values[begun : at + 1, number] - self.shared[begun : at + 1, group]
        else:
            inside = self.streams.group == number - self.machines
            with np.errstate(invalid="ignore"):
                values = np.nanmedian(self.streams.values[begun : at + 1, inside], axis=1)
        seen = np.flatnonzero(np.isfinite(values))
        return begun + seen, values[seen]

    def _described(self, number: int, name: str, at: int, direction: int, stands: bool = False) -> dict[str, object]:
        """stands : nothing unless the values bear the change out"""
        seen, values = self._values(number, at)
        fleet = np.flatnonzero(self.streams.group == number - self.machines)
        inside = np.array([number]) if number < self.machines else fleet
        times = np.nanmin(self.streams.times_s[seen][:, inside], axis=1)
        change = largest_level_change(values, direction)
        if stands and not is_borne_out(values, change, change.before * (1 + change.size)):
            return {}
        latest = int(self.streams.archive[seen[-1], inside].max())
        since = float(times[0]) if self.since[number] < 0 else self.since[number] * DAY_S
        return {
            **dict(zip(STREAM, self.keys[number], strict=True)),
            "stream": name,
            "since_s": since,
            "changed_s": float(times[change.first]),
            **change.columns(str(self.keys[number][3]), direction),
            "archive": self.streams.archives[latest] if latest >= 0 else "",
        }

    def restart_after(self, at: int, alarms: list[Alarm]) -> None:
        """New stretches of the streams with an alarm from the day after this round on; of a group, of its machines."""
        numbers = {self.number[alarm.stream] for alarm in alarms}
        for number in sorted(numbers):
            if self.groups is not None and number >= self.shared_by:
                numbers |= set(self.groups.members[number - self.shared_by].tolist())
        if numbers:
            self._alarmed.append((at, sorted(number for number in numbers if number < self.shared_by)))
            self.restart(self._alarmed[-1][1], int(self.streams.day[at]) + 1)

    def restart(self, numbers: list[int], day: int) -> None:
        """New stretches of these machines and fleets from this day on, and of the groups all of whose machines do."""
        chosen = np.array(numbers, dtype=np.int64)
        machines = chosen[chosen < self.machines]
        groups = [] if self.groups is None else self.groups.restarted(machines)
        begun = int(np.searchsorted(self.streams.day, day))
        for number in [*numbers, *(self.shared_by + group for group in groups)]:
            del self.number[self.names[number]]
            self.since[number] = day
            self._new[number] = True
            self.names[number] = self._name(number)
            self.number[self.names[number]] = number
            self.begun[number] = begun
            if number < self.machines:
                if number in self._open:
                    look = self._open.pop(number)
                    self._over.append(replace(look, **self._part(number, look.start_round, begun - 1)))
                self.small_begun[number] = begun
        self.latest[machines] += 1
        self.pending[machines] = 0.0
        self.state.restart(machines)
        self.effect.parts.restart(machines)
        self.small.restart(machines)
        self.common.restart(chosen[chosen >= self.machines] - self.machines)
        if self.groups is not None:
            self.groups.state.restart(np.array(groups, dtype=np.int64))

    def _name(self, number: int) -> str:
        since = self.since[number]
        return json.dumps([*self.keys[number], "" if since < 0 else str(np.datetime64(int(since), "D"))])
