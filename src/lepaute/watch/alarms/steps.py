"""Whom a change hit, since when, and by how much: what alarms say one machine at a time, of all machines at once.

An alarm needs much evidence, since nobody knows when and on which machine there may be a change. Once there is one, the
date is known, and every machine of its group (cluster, factor, stratum) is asked about that date alone: those that
changed with it are named, though their own alarms are days away, and the others are what the named ones are compared
with. If no machine is left that did not change, the change is one of all.

The size of a step is that of its date: from the step before, or the event, to the step after.

Rows of steps, or of tests, of the same machines on the same dates in several factors are one report.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from lepaute.stats.expanding import Floats, Integers
from lepaute.stats.group_effects import MIN_IN_PART, MIN_PART
from lepaute.stats.level_shift import onset
from lepaute.stats.robust import medians_of
from lepaute.watch.alarms.sizes import LevelChange, correlations_within, size_at, sizes_at
from lepaute.watch.alarms.worth_a_look import GRADUAL
from lepaute.watch.changelog import ALL, Changelog
from lepaute.watch.values import DAY_S, MACHINE, WHOLE_NODE, Machine, day_numbers, nodes_of

#: Values on either side of a step that its size is taken from.
REACH = 100
#: The chance that a machine without an alarm is named for a date on which it did not change; of one with an alarm, that
#: it is named although another step explains the alarm.
NAMED, ALARMED = 1e-4, 1e-2
#: A machine changed with others if its change is at least this share of theirs.
MIN_SHARE = 1 / 3
#: Machines that did not change tell what a day did to all from this many on.
MIN_CONTROLS = 3
#: Values before and after a date without which nothing is said about a machine.
MIN_BEFORE, MIN_AFTER = 3, 2
#: The date of an episode is sought so far from that of its strongest alarm.
DATE_REACH_S = 10 * DAY_S
#: Twice the logarithm of how much likelier another date is for a machine that did not change with the others.
LIKELIER = 14.0
_PASSES = 5
GROUP = ["cluster", "factor", "stratum"]
Row = dict[str, Any]
#: Changes in several factors are one report if their dates, which are estimates, are no further apart.
SAME_S = 3 * DAY_S


@dataclass(slots=True)
class _Series:
    """A machine's values in order of time, without outliers; resets_s : when an event begins its reference anew.

    steps_s : dates that limit a level, by the number of the episode that they are of
    """

    machine: Machine
    times_s: Floats
    values: Floats
    resets_s: tuple[float, ...]
    steps_s: dict[int, float] = field(default_factory=dict)
    days: Integers = field(init=False)
    _dates: list[float] = field(init=False)
    _around: dict[tuple[float, ...], tuple[int, int, int]] = field(default_factory=dict, init=False)
    _levels: dict[tuple[int, int], float] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._dates, self.days = self.times_s.tolist(), day_numbers(self.times_s)

    def around(self, date_s: float) -> tuple[int, int, int]:
        """Positions: where the level before the date begins, the first value from the date on, where its level ends."""
        key = (date_s, *self.steps_s.values())
        if key not in self._around:
            known = [*self.resets_s, *self.steps_s.values()]
            begin_s = max((each for each in known if each < date_s), default=-np.inf)
            end_s = min((each for each in known if each > date_s), default=np.inf)
            begin, first, end = (bisect_left(self._dates, each) for each in (begin_s, date_s, end_s))
            self._around[key] = max(begin, first - REACH), first, min(end, first + REACH)
        return self._around[key]

    def level_before(self, date_s: float) -> float:
        """The mean of the level before the date."""
        begin, first, _ = self.around(date_s)
        if (begin, first) not in self._levels:
            self._levels[begin, first] = float(self.values[begin:first].mean())
        return self._levels[begin, first]

    def can_tell(self, date_s: float) -> bool:
        begin, first, end = self.around(date_s)
        if first - begin < MIN_BEFORE or end - first < MIN_AFTER:
            return False
        return bool((self.values[begin + 1 : end] != self.values[begin]).any())


def steps_of(alarms: pd.DataFrame, changelog: Changelog, values: pd.DataFrame) -> "list[Row]":
    """The steps that alarms have found: a row a machine and date, or node "all" for all machines of a group together.

    alarms : as judge_days gives them; values : as check_values returns it, of all machines of their groups
    Columns: those of alarms; day, evidence, enough and archive are of the alarm of the machine, or of the first one.
    And gradual_s: when it began, where it rather is a drift; changed_s is then the best step; NaN else. By date.
    """
    every_step: list[Row] = []
    for group, rows in alarms.groupby(GROUP, sort=True):
        whole: Machine = (str(group[0]), ALL, WHOLE_NODE)
        every = _series_of(of_group(values, group), changelog)
        episodes = _episodes([{str(k): v for k, v in row.items()} for row in rows.to_dict("records")])
        for series in every:
            series.steps_s = {
                n: _date(row)
                for n, episode in enumerate(episodes)
                for row in episode
                if _machine(row) in (series.machine, whole)
            }
        # a second time with the steps that were found as limits, instead of the alarms
        for _ in range(2):
            steps = []
            for n, episode in enumerate(episodes):  # which grows
                rows_of, others = _episode_steps(n, episode, every)
                steps += rows_of
                if others:
                    episodes[n] = [row for row in episode if row not in others]
                    episodes.append(others)
            if len(episodes) == 1:  # there are no other limits
                break
        every_step += steps
    return sorted(every_step, key=lambda row: (row["changed_s"], row["factor"], row["node"], row["cpu"]))


def _series_of(values: pd.DataFrame, changelog: Changelog) -> list[_Series]:
    """values : of one group, in the order of machine, time and job"""
    resets = changelog.resets_s(nodes_of(values))
    kept = values[~changelog.is_outlier(values)]
    starts = np.flatnonzero(~kept.duplicated(MACHINE).to_numpy(np.bool_))
    times, x = (kept[name].to_numpy(np.float64) for name in ("started_s", "value"))
    machines = kept[MACHINE].iloc[starts].itertuples(index=False, name=None)
    return [
        _Series((cluster, node, int(cpu)), times[begin:end], x[begin:end], resets[cluster, node])
        for (cluster, node, cpu), begin, end in zip(machines, starts, [*starts[1:], len(kept)], strict=True)
    ]


def of_group(table: pd.DataFrame, group: Iterable[Any]) -> pd.DataFrame:
    """The rows of a table of this cluster, factor and stratum that are done."""
    chosen = (table["state"] == "done").to_numpy(np.bool_, copy=True)
    for name, value in zip(GROUP, group, strict=True):
        chosen &= (table[name] == value).to_numpy(np.bool_)
    return table[chosen]


def _episodes(alarms: list[Row]) -> list[list[Row]]:
    """Alarms whose dates follow each other closely, together, in the order in which there was a first one."""
    episodes: list[list[Row]] = []
    for row in sorted(alarms, key=_date):
        if episodes and _date(row) - _date(episodes[-1][-1]) <= SAME_S:
            episodes[-1].append(row)
        else:
            episodes.append([row])
    return sorted(episodes, key=lambda rows: min(row["day"] for row in rows))


def _episode_steps(number: int, alarms: list[Row], every: Sequence[_Series]) -> tuple[list[Row], list[Row]]:
    """The rows of one episode, and the alarms that are of another date after all.

    Its date becomes a limit of the levels of its machines.
    """
    for series in every:  # a step is no limit of itself
        series.steps_s.pop(number, None)
    own = {_machine(row): row for row in sorted(alarms, key=lambda row: row["day"], reverse=True)}
    hit = _hit(own, max(alarms, key=lambda row: row["evidence"]), every)
    first = min(alarms, key=lambda row: (row["day"], -row["evidence"]))
    for series in hit.series:
        series.steps_s[number] = hit.date_s
    rows = [_row(machine, change, hit, own.get(machine, first)) for machine, change in sorted(hit.changes.items())]
    return rows, [row for row in alarms if _machine(row) in hit.others]


def _row(machine: Machine, change: LevelChange, hit: "_Hit", alarm: Row) -> Row:
    columns = change.columns(str(alarm["factor"]), 1 if change.size > 0 else -1)
    dates = {"changed_s": hit.date_s, "gradual_s": hit.gradual_s}
    return {**alarm, **dict(zip(MACHINE, machine, strict=True)), **dates, **columns}


@dataclass(frozen=True, slots=True)
class _Hit:
    """series : of the machines that changed at date_s; changes : what is said, of each or of node "all".

    others : machines that changed, but at another date
    gradual_s : when they began to drift, NaN if the change is a step
    """

    date_s: float
    series: tuple[_Series, ...]
    changes: Mapping[Machine, LevelChange]
    others: frozenset[Machine] = frozenset()
    gradual_s: float = np.nan


def _hit(own: Mapping[Machine, Row], strongest: Row, every: Sequence[_Series]) -> _Hit:
    whole: Machine = (str(strongest["cluster"]), ALL, WHOLE_NODE)
    date_s = _date(strongest)
    testable = [one for one in every if one.can_tell(date_s)]
    if not testable:
        return _Hit(date_s, (), {})
    raw = _changes(testable, date_s, ())
    direction, of_all = int(own.get(whole, strongest)["direction"]), whole in own
    middle = median(change.size for change in raw.values())
    if not of_all and middle * direction < -MIN_SHARE * abs(strongest["size"]):
        # what all have in common is a median: where most changed, the others seem to have, the other way
        of_all, direction = True, -direction
    if of_all:
        named = {machine for machine, each in raw.items() if each.p_value < NAMED and each.size * direction > 0}
    else:
        named = {one.machine for one in testable if one.machine in own}
    for _ in range(_PASSES):
        best_s = _best_date([one for one in testable if one.machine in named] or testable, date_s)
        if able := [one for one in every if one.can_tell(best_s)]:
            date_s, testable = best_s, able
        # the machines that tell what a day did to all, if they are enough
        controls = [one for one in testable if one.machine not in named]
        changes = _changes(testable, date_s, controls if len(controls) >= MIN_CONTROLS else ())
        usual = median([abs(changes[each].size) for each in named & changes.keys()] or [0.0])
        now = {
            machine
            for machine, each in changes.items()
            if (machine in own and each.p_value < (NAMED if of_all else ALARMED))
            or (each.p_value < NAMED and each.size * direction > 0 and abs(each.size) >= MIN_SHARE * usual)
        }
        if now == named:
            break
        named = now
    others = set()
    if not of_all:
        likelier = LIKELIER + 2 * np.log(max(1, len(named)))  # of many, one has such a date by chance
        others = {each.machine for each in testable if each.machine in named and not _fits(each, date_s, likelier)}
        others = set() if others >= named & own.keys() else others
        named -= others
    left = [one for one in testable if one.machine not in named]
    if of_all and (not named or _moved(left, date_s, direction, usual)):
        left = []
    if left or len({one.machine[:2] for one in testable}) < 2:
        hit = tuple(one for one in testable if one.machine in named)
        gradual_s = _gradual_s(hit, date_s, left) if hit else np.nan
        return _Hit(date_s, hit, {one.machine: changes[one.machine] for one in hit}, frozenset(others), gradual_s)
    together = _together(testable, date_s)
    raw = _changes(testable, date_s, ())
    apart = _changes(testable, date_s, testable)
    clear = {machine: raw[machine] for machine in own if machine in apart and apart[machine].p_value < NAMED}
    return _Hit(date_s, tuple(testable), {whole: together} | clear)


def _moved(left: Sequence[_Series], date_s: float, direction: int, usual: float) -> bool:
    """Whether those that are not named changed as well, together, though it is not clear of each."""
    if not left:
        return True
    change = _together(left, date_s)
    return change.p_value < NAMED and change.size * direction > 0 and abs(change.size) >= MIN_SHARE * usual


def _changes(asked: Sequence[_Series], date_s: float, controls: Sequence[_Series]) -> dict[Machine, LevelChange]:
    """The change of each at the date, apart from what the controls have in common; neighbours are alike in all."""
    parts = _parts(asked, date_s, controls)
    correlation, changes = _correlation(parts.values()), dict[Machine, LevelChange]()
    machines = list(parts)
    for places, rows, first in _alike(parts.values()):
        changes |= zip([machines[place] for place in places], sizes_at(rows, first, correlation), strict=True)
    return {machine: changes[machine] for machine in machines}


def _alike(parts: "Iterable[tuple[Floats, int]]") -> "Iterator[tuple[list[int], Floats, int]]":
    """Places of series of one length with one first value of the new level, these series, and that value."""
    alike: dict[tuple[int, int], list[tuple[int, Floats]]] = defaultdict(list)
    for place, (x, first) in enumerate(parts):
        alike[len(x), first].append((place, x))
    for (_, first), own in alike.items():
        yield [place for place, _ in own], np.stack([x for _, x in own]), first


def _parts(every: Sequence[_Series], date_s: float, controls: Sequence[_Series]) -> dict[Machine, tuple[Floats, int]]:
    """Values of each around the date, apart from what the controls have in common, and the first from the date."""
    common = _common(controls, date_s) if controls else None
    spans = [series.around(date_s) for series in every]
    values = [series.values[begin:end] for series, (begin, _, end) in zip(every, spans, strict=True)]
    if common is not None and every:
        days = np.concatenate([series.days[begin:end] for series, (begin, _, end) in zip(every, spans, strict=True)])
        effects = np.split(np.interp(days, *common), np.cumsum([len(x) for x in values])[:-1])
        values = [x - series.level_before(date_s) * y for series, x, y in zip(every, values, effects, strict=True)]
    parts = zip(values, [first - begin for begin, first, _ in spans], strict=True)
    return {series.machine: part for series, part in zip(every, parts, strict=True)}


def _gradual_s(series: Sequence[_Series], date_s: float, controls: Sequence[_Series]) -> float:
    """When they began to change, if a line from there is likelier than the step at the date by far; else NaN.

    Without controls a season would be such a line.
    """
    if len(controls) < MIN_CONTROLS:
        return np.nan
    parts = _parts(series, date_s, controls)
    correlation = _correlation(parts.values())
    dated = []
    for one in series:
        begin, _, end = one.around(date_s)
        dated.append((np.floor(one.times_s[begin:end] / DAY_S) * DAY_S, parts[one.machine][0]))
    found = onset(dated)
    gain = found.gain * (1 - correlation) / (1 + correlation)
    return found.line_s if gain > GRADUAL else np.nan


def _together(series: Sequence[_Series], date_s: float) -> LevelChange:
    """The change of what they have in common."""
    day, effect = _common(series, date_s)
    level = median(one.level_before(date_s) for one in series)
    first = int(np.searchsorted(day, np.floor(date_s / DAY_S)))
    first = min(max(first, 1), len(day) - 1)
    x = level * (1 + effect)
    return size_at(x, first, _correlation([(x, first)]))


def _common(series: Sequence[_Series], date_s: float) -> "tuple[np.ndarray[Any, np.dtype[np.int64]], Floats]":
    """Days around the date, ascending, and the median relative deviation of the machines from their level before."""
    days, deviations = [], []
    for one in series:
        begin, _, end = one.around(date_s)
        days.append(one.days[begin:end])
        deviations.append(one.values[begin:end] / (one.level_before(date_s) or np.nan) - 1)
    at, every = pd.factorize(np.concatenate(days), sort=True)
    deviation = np.concatenate(deviations)
    effect = medians_of(at, deviation)
    effect[at[np.isnan(deviation)]] = np.nan
    return every, effect


def _correlation(parts: "Iterable[tuple[Floats, int]]") -> float:
    """Correlation of neighbours within levels, over all series, without the bias of removed means (Kendall's)."""
    parts = list(parts)
    within = np.empty(len(parts))
    for places, rows, first in _alike(parts):
        within[places] = correlations_within(rows, first)
    lengths = [len(x) for x, _ in parts]
    count = sum(lengths)
    estimate = sum((each + 2 / n) * n for each, n in zip(within.tolist(), lengths, strict=True)) / count
    return estimate if estimate > 2 / np.sqrt(count) else 0.0


def _best_date(series: Sequence[_Series], date_s: float) -> float:
    """The moment, near the date, at which a step of all of them leaves the least sum of squares within levels."""
    candidates = np.unique(np.concatenate([one.times_s for one in series]))
    candidates = candidates[np.abs(candidates - date_s) <= DATE_REACH_S]
    gain = np.zeros(len(candidates))
    for one in series:
        begin, first, end = one.around(date_s)
        x = one.values[begin:end]
        spread = float(np.var(x[: first - begin]) + np.var(x[first - begin :])) or 1.0
        gain += _explained(one, date_s, candidates) / spread
    return float(candidates[gain.argmax()]) if len(candidates) and gain.any() else date_s


def _explained(one: _Series, date_s: float, candidates: Floats) -> Floats:
    """The sum of squares that a step at each of these moments takes off, in the levels around the date."""
    begin, _, end = one.around(date_s)
    x = one.values[begin:end]
    k = np.clip(np.searchsorted(one.times_s[begin:end], candidates), 0, len(x))
    inside = (k > 0) & (k < len(x))
    sums = np.concatenate([[0.0], np.cumsum(x - x.mean())])
    at = np.where(inside, k, 1)
    return np.asarray(np.where(inside, sums[at] ** 2 * len(x) / (at * (len(x) - at)), 0.0))


def _fits(one: _Series, date_s: float, likelier: float) -> bool:
    """Whether the date explains the machine's step nearly as well as its own best one, by the ratio of likelihoods."""
    begin, _, end = one.around(date_s)
    x = one.values[begin:end]
    total = float(((x - x.mean()) ** 2).sum())
    at, best = (
        total - float(_explained(one, date_s, np.array([each]))[0]) for each in (date_s, _best_date([one], date_s))
    )
    return bool(at <= best * np.exp(likelier / len(x)))


def shared_steps(steps: Iterable[Row], values: pd.DataFrame) -> dict[tuple[str, str, str, float], list[Row]]:
    """By cluster, factor, stratum and date, the steps of a part of a fleet that is told apart (`PartialShifts`)."""
    dated: dict[tuple[str, str, str, float], list[Row]] = defaultdict(list)
    for row in steps:
        if row["node"] != ALL:
            dated[row["cluster"], row["factor"], row["stratum"], row["changed_s"]].append(row)
    if not any(len(rows) >= MIN_IN_PART for rows in dated.values()):
        return {}
    machines = values[[*GROUP, *MACHINE[1:]]].drop_duplicates().groupby(GROUP, observed=True).size()
    return {
        key: rows for key, rows in sorted(dated.items()) if len(rows) >= max(MIN_IN_PART, MIN_PART * machines[key[:3]])
    }


def _machine(row: Row) -> Machine:
    return str(row["cluster"]), str(row["node"]), int(row["cpu"])


def _date(row: Row) -> float:
    return float(row["changed_s"])


def alike_changes(standing: Iterable[dict[Any, Any]]) -> list[list[list[dict[Any, Any]]]]:
    """The rows of each report, of which each list is of one factor and direction."""
    alike: dict[tuple[Any, ...], list[dict[Any, Any]]] = defaultdict(list)
    for row in standing:
        # what all machines have in common is a report of its own, and so is each step: those of one have one date
        day = row["changed_s"] // DAY_S
        alike[row["cluster"], row["factor"], np.sign(row["size"]), row["node"] == ALL, day].append(row)
    return same_machines(list(alike.values()), "changed_s")


def same_machines(
    groups: Sequence[list[dict[Any, Any]]], date: str, within_s: float = SAME_S
) -> list[list[list[dict[Any, Any]]]]:
    """Groups of several factors, of mostly the same nodes on the same dates, together; the largest first."""
    joined: list[list[list[dict[Any, Any]]]] = []
    for rows in sorted(groups, key=lambda rows: (-len({row["node"] for row in rows}), rows[0]["factor"])):
        home = next((group for group in joined if _belongs(rows, group[0], date, within_s)), None)
        if home is None:
            joined.append([rows])
        else:
            home.append(rows)
    return joined


def _belongs(rows: list[dict[Any, Any]], first: list[dict[Any, Any]], date: str, within_s: float) -> bool:
    if within_s:
        distant = abs(median(row[date] for row in rows) - median(row[date] for row in first)) > within_s
    else:
        distant = rows[0][date] // DAY_S != first[0][date] // DAY_S
    nodes, first_nodes = {row["node"] for row in rows}, {row["node"] for row in first}
    same_cluster = rows[0]["cluster"] == first[0]["cluster"]
    return same_cluster and not distant and 2 * len(nodes & first_nodes) > len(first_nodes) and nodes <= first_nodes
