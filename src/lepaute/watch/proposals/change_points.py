"""When the level of a machine's factor changed, by how much, and with which certainty, over all machines at once.

Each series is tested by `stats.steps` for having any change; Benjamini and Yekutieli's correction over all series of a
run then holds whatever they have in common. Where nothing changes, a run has any change point with a chance of LEVEL.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
import pandas as pd

from lepaute.errors import InputError
from lepaute.stats.expanding import Floats, Integers
from lepaute.stats.level_shift import LevelShift, level_shift, onset
from lepaute.stats.multiple_tests import benjamini_yekutieli, selected_level
from lepaute.stats.rank_cusum import change_p_values
from lepaute.stats.steps import SHORTEST, find_steps
from lepaute.stats.student import student_quantile
from lepaute.watch.alarms import sizes
from lepaute.watch.changelog import Changelog
from lepaute.watch.proposals.watched_series import (
    SeriesGroup,
    WatchedSeries,
    lines_of,
    of_equal_length,
    smoothed,
    sudden_changes,
    sudden_p_value,
    watched_series,
    winsorized,
)
from lepaute.watch.values import DAY_S, Machine, backward_jobs, check_values

#: The chance that a run over machines that never change has any change point.
LEVEL = 0.05
#: Confidence of intervals.
CONFIDENCE = 0.95
#: Relative change from which on a step matters. BIOS upgrades moved rates by 1 to 5 %, a changed file of sizes by 3 %,
#: and rates of the same processor scatter by up to 1 % from day to day. Of Celsius degrees, 1 % would be half of one,
#: as much as a door left open: 5 % are 3 degrees at 60.
MIN_CHANGE = 0.01
#: Values of a stretch in which a change is looked for where seasons are left in a series: a season is straight in it.
LOCAL_VALUES = 60
#: Of the level of a series, what its drift has: what remains of a season is one, nearly; drifts that matter are clear.
DRIFT_SHARE = 0.02
#: Values on either side of a common change that its size is taken from.
COMMON_REACH = 10
#: From this share of the machines on, changes of the same days are (also) one of what all have in common.
COMMON_SHARE = 0.25
#: A machine responds to what is common by so much more or less than the others, as in `change_evidence`; at most.
RESPONSE_SPREAD, MAX_RESPONSE = 0.2, 0.5
MIN_FOR_RESPONSE = 30

LeastChange = float | Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A change of one factor of one machine.

    after_s, before_s   : dates of the last job of the old level and of the first one of the new level: best estimate
    earliest_s, latest_s: the change lies between these, with 95 % confidence
    size, low, high     : relative to the level before, and its interval: of all that a run reports, at most 5 % miss
    p_value             : corrected for the number of series of the run
    level_before, level_after : in the unit of the factor
    gradual             : a drift from after_s to before_s, which has no date of its own
    """

    cluster: str
    node: str
    cpu: int
    stratum: str
    factor: str
    after_s: float
    before_s: float
    earliest_s: float
    latest_s: float
    size: float
    low: float
    high: float
    p_value: float
    level_before: float
    level_after: float
    archive_before: str
    archive_after: str
    gradual: bool = False

    @property
    def machine(self) -> Machine:
        return self.cluster, self.node, self.cpu

    @property
    def direction(self) -> int:
        return 1 if self.size > 0 else -1


@dataclass(frozen=True, slots=True)
class _Cut:
    """A change in a series: its first value of the new level is number `index`."""

    series: WatchedSeries
    index: int
    begin: int  # of the stretch of one level before, and the end of that after
    end: int
    p_value: float
    confidence: float
    shift: LevelShift

    @property
    def dates(self) -> tuple[float, float]:
        return float(self.series.started_s[self.index - 1]), float(self.series.started_s[self.index])

    @property
    def bounds(self) -> tuple[float, float]:
        reach = int(min(self.shift.date_reach, len(self.series.started_s)))
        first, last = max(self.begin, self.index - 1 - reach), min(self.end - 1, self.index + reach)
        return float(self.series.started_s[first]), float(self.series.started_s[last])


def find_change_points(
    values: "pd.DataFrame",
    changelog: Changelog | None = None,
    *,
    least_change: LeastChange | None = None,
    level: float = LEVEL,
    of_factor: Mapping[str, Changelog] | None = None,
) -> tuple[ChangePoint, ...]:
    """The changes of level of each machine, stratum and factor between the events of the changelog.

    values       : as watch.values says; only jobs that are done count, no outliers, and none whose date its number
                   contradicts (`backward_jobs`)
    least_change : smallest relative change that matters, for all factors or by factor; see `least_change_of`
    level        : the chance of any change point where nothing changes
    of_factor    : other changelogs of some factors
    In order of cluster, node, processor, factor and date. A level lasts four jobs at least, so one spike is no change,
    and none is found at the beginning or end of a series. What all machines of a cluster have in common on a day is
    taken off where eight or more are measured, and is a series of its own. There, and where fewer are measured, a
    season is no change, since changes are looked for in stretches of LOCAL_VALUES jobs; small ones take longer ones.
    Raises InputError for a table that is none, and a level outside (0, 1) or a least change below 0.
    """
    if not 0 < level < 1:
        raise InputError(f"the level of change points is {level!r}; give a chance between 0 and 1, such as {LEVEL}")
    table = check_values(values)
    backward = backward_jobs(table)
    table = table[~backward] if backward.any() else table
    groups = [_steady(group) for group in watched_series(table, changelog or Changelog(), of_factor)]
    every = [series for group in groups for series in (*group.machines, *group.common)]
    steps, lines = _step_p_values(every), _drift_p_values(every)
    p = [min(1.0, step / (1 - DRIFT_SHARE), line / DRIFT_SHARE) for step, line in zip(steps, lines, strict=True)]
    corrected = benjamini_yekutieli(p)
    chosen = [number for number, value in enumerate(corrected) if value <= level]
    inner = selected_level(len(chosen), len(every), level)
    confidence = 1 - selected_level(len(chosen), len(every), 1 - CONFIDENCE)
    cuts: dict[int, list[_Cut]] = {}
    drifts: dict[int, ChangePoint] = {}
    numbers = {id(series): number for number, series in enumerate(every)}
    for number in chosen:
        # what only the line has chosen is no step
        is_step = steps[number] <= inner
        cuts[number], straight = _cuts(every[number], inner, corrected[number], confidence) if is_step else ([], False)
        if not cuts[number] and every[number].node:
            found = _drift(every[number], corrected[number], confidence, beside_season=not straight)
            if found is not None:
                drifts[number] = found
    for group in groups:
        machines = [(numbers[id(series)], series) for series in group.machines]
        _one_shape_a_node(machines, cuts, drifts, corrected, confidence)
    points = list(drifts.values())
    for group in groups:
        own = [cut for series in group.machines for cut in cuts.get(numbers[id(series)], [])]
        points += _points(group, own, [cut for one in group.common for cut in cuts.get(numbers[id(one)], [])])
    kept = [point for point in points if abs(point.size) >= least_change_of(point.factor, least_change)]
    return tuple(sorted(kept, key=lambda each: (each.cluster, each.node, each.cpu, each.factor, each.before_s)))


def least_change_of(factor: str, least_change: LeastChange | None) -> float:
    """The smallest relative change of the factor that matters: as asked for, or by default by its unit.

    Raises InputError if it is below 0.
    """
    default = sizes.least_change_of(factor, MIN_CHANGE)
    if least_change is None:
        return default
    found = least_change.get(factor, default) if isinstance(least_change, Mapping) else least_change
    if not found >= 0:
        raise InputError(f"the least change of {factor} is {found!r}; give a relative change >= 0, such as 0.01")
    return found


def _stretches(series: WatchedSeries) -> list[tuple[int, int]]:
    """Where changes are looked for: all of it, or overlapping pieces of LOCAL_VALUES."""
    count = len(series.relative)
    if not series.local or count <= LOCAL_VALUES:
        return [(0, count)]
    starts = list(range(0, count - LOCAL_VALUES, LOCAL_VALUES // 2))
    return [*((start, start + LOCAL_VALUES) for start in starts), (count - LOCAL_VALUES, count)]


def _drift_p_values(every: Sequence[WatchedSeries]) -> list[float]:
    """p-value of each having a drift; 1 where a season is left."""
    p_values = [1.0] * len(every)
    drifting = [number for number, series in enumerate(every) if series.node and not series.local]
    by_correlation: dict[float, list[int]] = defaultdict(list)
    for number in drifting:
        by_correlation[every[number].least_correlation].append(number)
    for numbers in by_correlation.values():
        for places, rows in of_equal_length([every[number].relative for number in numbers]):
            lines = lines_of([every[numbers[place]] for place in places], values=winsorized(rows))
            for place, p in zip(places, lines.p_value.tolist(), strict=True):
                p_values[numbers[place]] = p
    return p_values


def _step_p_values(every: Sequence[WatchedSeries]) -> list[float]:
    """p-value of each having a step: the least of its stretches, corrected for their number."""
    parts = [(number, series.relative[a:b]) for number, series in enumerate(every) for a, b in _stretches(series)]
    least = [1.0] * len(every)
    for places, rows in of_equal_length([part for _, part in parts]):
        varies = np.ptp(rows, axis=1) > 0
        numbers = [parts[places[place]][0] for place in np.flatnonzero(varies)]
        correlations = np.array([every[number].least_correlation for number in numbers])
        for number, p in zip(numbers, change_p_values(rows[varies], correlations).tolist(), strict=True):
            least[number] = min(least[number], p)
    found = []
    for series, p in zip(every, least, strict=True):
        step = min(1.0, len(_stretches(series)) * p)
        # local: twice the smaller one of ranks, and of evidence for something sudden
        found.append(min(1.0, 2 * min(step, sudden_p_value(series.evidence))) if series.local else step)
    return found


def _cuts(series: WatchedSeries, level: float, p_value: float, confidence: float) -> tuple[list[_Cut], bool]:
    """The steps of a series that the correction has chosen, each with its size; whether a slope is all there is."""
    stretches = _stretches(series)
    straight = False
    share = level / 2 if series.local else level
    found = set(sudden_changes(series.relative, series.evidence, share)) if series.local else set()
    for begin, end in stretches:
        part = series.relative[begin:end]
        dates = series.started_s[begin:end]
        described = find_steps(
            dates.tolist(),
            (part - part.min() + 1.0).tolist(),  # only ranks and differences count, and they have to be above 0
            false_alarms=share / len(stretches),
            least_size=0.0,
            least_correlation=series.least_correlation,
        )
        straight = straight or described.straight
        places = [begin + int(np.searchsorted(dates, step.before_s)) for step in described.steps]
        for place in places:
            # pieces overlap: the same change may be one of two, a few values apart
            if not any(abs(place - other) <= COMMON_REACH // 2 for other in found):
                found.add(place)
    places = sorted(found)
    cuts = []
    for number, place in enumerate(places):
        begin = places[number - 1] if number else 0
        end = places[number + 1] if number + 1 < len(places) else len(series.relative)
        if series.local:  # seasons: only its neighbourhood
            begin, end = max(begin, place - COMMON_REACH), min(end, place + COMMON_REACH)
        cuts.append(_Cut(series, place, begin, end, p_value, confidence, _shift(series, begin, place, end)))
    return cuts, straight and not cuts


def _one_shape_a_node(
    machines: list[tuple[int, WatchedSeries]],
    cuts: dict[int, list[_Cut]],
    drifts: dict[int, ChangePoint],
    p_values: Sequence[float],
    confidence: float,
) -> None:
    """Where processors of a node changed in one direction, some by a step and some by a drift, the likelier of both.

    machines : numbers and series of a group; `cuts` and `drifts` are changed, by number. What is likelier is a common
    step or lines that begin on a common date (`level_shift.onset`), as far as a series can have that shape.
    """
    of_node: dict[str, list[tuple[int, WatchedSeries]]] = defaultdict(list)
    for number, series in machines:
        if number in drifts or cuts.get(number):
            of_node[series.node].append((number, series))
    for members in of_node.values():
        drifting = [member for member in members if member[0] in drifts]
        stepping = [member for member in members if member[0] not in drifts]
        directions = {drifts[number].direction for number, _ in drifting}
        directions |= {1 if cut.shift.difference > 0 else -1 for number, _ in stepping for cut in cuts[number]}
        if not drifting or not stepping or len(directions) > 1:
            continue
        common = onset([(series.started_s, winsorized(series.relative)) for _, series in members])
        if common.gain > 0:
            for number, series in stepping:
                found = _drift(series, p_values[number], confidence, beside_season=False)
                if found is not None and {found.direction} == directions:
                    drifts[number], cuts[number] = found, []
            continue
        for number, series in drifting:
            place, count = int(np.searchsorted(series.started_s, common.step_s)), len(series.started_s)
            if SHORTEST <= place <= count - SHORTEST:
                shift = _shift(series, 0, place, count)
                cuts[number] = [_Cut(series, place, 0, count, p_values[number], confidence, shift)]
                del drifts[number]


def _shift(series: WatchedSeries, begin: int, place: int, end: int) -> LevelShift:
    return level_shift(series.relative[begin:place], series.relative[place:end], series.least_correlation)


def _drift(series: WatchedSeries, p_value: float, confidence: float, *, beside_season: bool) -> ChangePoint | None:
    """What is no step, though something changed: a line through all of it.

    beside_season : no test has chosen the series that takes its response to the season for known
    """
    line, t = lines_of([series], beside_season=beside_season), series.started_s
    slope, error = float(line.slope[0]), float(line.error[0])
    half = student_quantile(0.5 + confidence / 2, line.degrees_of_freedom) * error
    if abs(slope) <= half:
        return None
    span = float(t[-1] - t[0])
    base = 1.0 + float(np.median(series.relative - slope * (t - t[0])))
    if base <= 0:
        return None
    return replace(
        _point(series, 0, len(t) - 1, slope * span / base, half * span / base, p_value, base),
        gradual=True,
        earliest_s=float(t[0]),
        latest_s=float(t[-1]),
    )


def _steady(group: SeriesGroup) -> SeriesGroup:
    """The group without what machines respond more or less than others to a season or to warm days.

    What is proportional to the effects of the days, up to MAX_RESPONSE of them, is no change of a machine. Levels on
    both sides of a sudden change of all machines do not count for that proportion: that change need not be shared.
    """
    dates = np.array(sorted(cut.dates[1] for one in group.common for cut in _cuts(one, LEVEL, 1.0, CONFIDENCE)[0]))
    left = list(group.machines)
    for places, rows in of_equal_length([machine.relative for machine in group.machines]):
        if rows.shape[1] >= MIN_FOR_RESPONSE:
            machines = [left[place] for place in places]
            for place, values in zip(places, _without_response(machines, rows, dates), strict=True):
                left[place] = replace(left[place], relative=values)
    return replace(group, machines=tuple(left))


def _without_response(machines: Sequence[WatchedSeries], left: "Floats", dates: "Floats") -> "Floats":
    """left : their values, shape (machines, n)"""
    common = np.stack([machine.common for machine in machines])
    sides = np.searchsorted(dates, np.stack([machine.started_s for machine in machines]), side="right")
    season = (
        smoothed(common)
        if not len(dates)
        else np.stack(
            [
                np.concatenate([smoothed(row[side == each]) for each in np.unique(side)])
                for row, side in zip(common, sides, strict=True)
            ]
        )
    )
    # first to the season, which the effects of the days have together with other noise, then to warm days
    for effects in (season, _around_means(common, sides)):
        own = _around_means(winsorized(left), sides)
        # the response is normal with a standard deviation of RESPONSE_SPREAD: where days differ little, it is not known
        squares = (effects**2).sum(axis=1) + (own**2).mean(axis=1) / RESPONSE_SPREAD**2
        response = np.divide((effects * own).sum(axis=1), squares, out=np.zeros(len(left)), where=squares > 0)
        left = left - np.clip(response, -MAX_RESPONSE, MAX_RESPONSE)[:, None] * effects
    return left


def _around_means(values: "Floats", sides: "Integers") -> "Floats":
    """Values of each row less the mean of those on the same side; both of shape (rows, n)."""
    number = sides + (int(sides.max()) + 1) * np.arange(len(sides))[:, None]
    means = np.bincount(number.ravel(), values.ravel()) / np.maximum(1, np.bincount(number.ravel()))
    return np.asarray(values - means[number])


def _point(
    series: WatchedSeries, last: int, first: int, size: float, half: float, p_value: float, base: float
) -> ChangePoint:
    """The change between the dates number `last` and `first`."""
    place = series.cluster, series.node, series.cpu, series.stratum, series.factor
    dates = float(series.started_s[last]), float(series.started_s[first])
    before, archives = base * series.scale, (series.archives[last], series.archives[first])
    bounds = size, size - half, size + half
    return ChangePoint(*place, *dates, *dates, *bounds, p_value, before, before * (1 + size), *archives)


def _points(group: SeriesGroup, own: list[_Cut], common: list[_Cut]) -> Iterator[ChangePoint]:
    """Changes of the machines, each with what all had in common on the same days.

    The effect of a day is a median: where half of the machines change, it is half of their change, and the others seem
    to change the other way. Both together are what a machine really did.
    """
    shared = [*common, *_implied(group, own, common)]
    for series in group.machines:
        left = [cut for cut in own if cut.series is series]
        for cut in shared:
            alone = next((other for other in left if _is_same_change(other, cut)), None)
            point = _with_common(series, alone, cut)
            if alone is not None:
                left.remove(alone)
            if point is not None:
                yield point
        yield from map(_alone, left)


def _alone(cut: _Cut) -> ChangePoint:
    base = 1.0 + cut.shift.before if cut.shift.before > -1 else 1.0
    size, half = cut.shift.difference / base, cut.shift.half_width(cut.confidence) / base
    found = _point(cut.series, cut.index - 1, cut.index, size, half, cut.p_value, base)
    return replace(found, earliest_s=cut.bounds[0], latest_s=cut.bounds[1])


def _with_common(series: WatchedSeries, alone: _Cut | None, cut: _Cut) -> ChangePoint | None:
    """The change of a machine where all together changed by `cut`, and it by itself by `alone` on top of that."""
    index = alone.index if alone is not None else int(np.searchsorted(series.started_s, cut.dates[1]))
    if not 0 < index < len(series.started_s):
        return None
    parts = [cut] if alone is None else [cut, alone]
    difference = sum(part.shift.difference for part in parts)
    half = sqrt(sum(part.shift.half_width(part.confidence) ** 2 for part in parts))
    base = 1.0 + float(np.median(series.relative[max(0, index - COMMON_REACH) : index])) + cut.shift.before
    base = base if base > 0 else 1.0
    p_value = min(part.p_value for part in parts)
    found = _point(series, index - 1, index, difference / base, half / base, p_value, base)
    bounds = parts[-1].bounds
    return replace(found, earliest_s=min(bounds[0], found.after_s), latest_s=max(bounds[1], found.before_s))


def _implied(group: SeriesGroup, own: list[_Cut], common: list[_Cut]) -> Iterator[_Cut]:
    """Changes of the effect of the days at dates on which many machines changed, though it is not significant there."""
    cuts = sorted(own, key=lambda cut: cut.dates[1])
    needed = max(2, COMMON_SHARE * len({(machine.node, machine.cpu) for machine in group.machines}))
    used: set[int] = set()
    for cut in cuts:
        if id(cut) in used:
            continue
        together = [other for other in cuts if id(other) not in used and _overlap(other.bounds, cut.bounds)]
        if len(together) < needed or any(_overlap(other.bounds, cut.bounds) for other in common):
            continue
        used |= {id(other) for other in together}
        date = float(np.median([other.dates[1] for other in together]))
        for series in group.common:
            place = int(np.searchsorted(series.started_s, np.floor(date / DAY_S) * DAY_S))
            begin, end = max(0, place - COMMON_REACH), min(len(series.relative), place + COMMON_REACH)
            if place - begin >= 2 and end - place >= 2:
                best = min(together, key=lambda other: other.p_value)
                shift = _shift(series, begin, place, end)
                if abs(shift.difference) <= shift.half_width(CONFIDENCE):
                    continue  # as the days are: it would only blur what the machines show
                yield _Cut(series, place, begin, end, best.p_value, best.confidence, shift)


def _is_same_change(mine: _Cut, cut: _Cut) -> bool:
    """A change whose date is hardly known could be any: its best date has to be near, too."""
    place = int(np.searchsorted(mine.series.started_s, cut.dates[1]))
    return _overlap(mine.bounds, cut.bounds) and abs(mine.index - place) <= COMMON_REACH // 2


def _overlap(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return max(one[0], other[0]) < min(one[1], other[1])
