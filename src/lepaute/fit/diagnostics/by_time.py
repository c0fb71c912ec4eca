"""Residuals against time: a drift or a step while it was measured.

Every process is a little faster or slower than the others, by its pages and by chance; that is a layer of the models.
So a change between processes is looked for in a series of few values a process, whose correlation the tests account
for; a change inside a process, in a series of many, one process at a time. Where there are too few processes for the
first, the processes are set to one level and the second takes them all together.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lepaute.fit.diagnostics.flag import Check, Limits, unable
from lepaute.fit.diagnostics.number_text import percent
from lepaute.fit.diagnostics.residuals import ENOUGH_PROCESSES, Classed, parts_of
from lepaute.fit.numeric import Floats
from lepaute.kit.text import moment
from lepaute.stats.steps import Step, drift, find_steps

#: 3 % is more than blocks of fresh processes differ by on a quiet machine; 10 % decides what a prediction says.
CHANGE = Limits(0.03, 0.10)
#: Handed to the tests as theirs; the p-value is what counts, adjusted for all tests of the fit.
FALSE_ALARMS = 0.01
PARTS_OF_PROCESS, PARTS_IN_ALL = 3, 60
FEWEST_VALUES = 16
FEWEST_CALLS_OF_VALUE = 4


@dataclass(frozen=True, slots=True)
class Series:
    """Levels in the order of time: when each part began and ended, its level (1 is the model's), its process.

    centred : every process was set to the same level, since there are too few to tell them from a change
    """

    start_s: Floats
    end_s: Floats
    level: Floats
    process: Floats
    centred: bool

    def __len__(self) -> int:
        return len(self.level)


def series_of(calls: Classed) -> Series:
    """Medians of the levels of successive parts of processes, in the order of time."""
    processes = len(np.unique(calls.of.process))
    several = 1 < processes < ENOUGH_PROCESSES
    parts = PARTS_OF_PROCESS if processes >= ENOUGH_PROCESSES else max(1, PARTS_IN_ALL // max(processes, 1))
    parts = max(1, min(parts, len(calls.of) // max(processes, 1) // FEWEST_CALLS_OF_VALUE))
    return series_in_parts(calls, parts, centred=several)


def series_in_parts(
    calls: Classed, parts: int, *, centred: bool, value: Callable[[Floats], float] | None = None
) -> Series:
    """The series of `parts` values a process; `value` of the levels of a part is the median unless given."""
    part = parts_of(calls.of.process, parts)
    order = np.argsort(part, kind="stable")
    count = int(part.max()) + 1 if len(part) else 0
    bounds = np.searchsorted(part[order], np.arange(count + 1))
    level, start, end, process = (np.zeros(count) for _ in range(4))
    levels, times, lengths = calls.level[order], calls.of.time_s[order], calls.of.measured_s[order]
    numbers = calls.of.process[order]
    for at in range(count):
        inside = slice(bounds[at], bounds[at + 1])
        level[at] = np.median(levels[inside]) if value is None else value(levels[inside])
        start[at], end[at], process[at] = times[inside][0], times[inside][-1] + lengths[inside][-1], numbers[inside][0]
    if centred:
        for one in np.unique(process):
            level[process == one] /= max(float(np.median(level[process == one])), 1e-300)
    by_time = np.argsort(start, kind="stable")
    return Series(start[by_time], end[by_time], np.maximum(level[by_time], 1e-9), process[by_time], centred)


def step(series: Series) -> Check:
    """Did the level change at some date, and stay so for a while?"""
    kind = "step"
    if len(series) < FEWEST_VALUES:
        return unable(kind, CHANGE, f"Too few parts of processes ({len(series)}) to see a change of level.")
    steps = steps_of(series)
    if not steps:
        return Check(kind, 0.0, 0.0, 1.0, CHANGE, "", "No change of level during the measurement." + _limit(series))
    largest = max(steps, key=lambda one: (one.p_value <= 1e-3, abs(one.relative_size)))
    return Check(
        kind,
        abs(largest.relative_size),
        largest.relative_size,
        largest.p_value,
        CHANGE,
        f"The level changed during the measurement: {dates_text(steps)}. The machine was not in the same "
        "state before and after; find out what happened at that time, and measure again.",
        f"A small change of level during the measurement: {dates_text(steps)}.",
    )


def steps_of(series: Series) -> tuple[Step, ...]:
    """Changes of level, in the order of their dates."""
    return find_steps(
        series.start_s.tolist(), series.level.tolist(), false_alarms=FALSE_ALARMS, least_size=CHANGE.notable / 3
    ).steps


def slow_change(series: Series, steps: bool) -> Check:
    """Did the level rise or fall little by little? Not asked where there was a step, which is a trend as well."""
    kind = "drift"
    if len(series) < FEWEST_VALUES:
        return unable(kind, CHANGE, f"Too few parts of processes ({len(series)}) to see a drift.")
    if series.centred:
        return unable(kind, CHANGE, "Too few processes to tell a drift from the differences between processes.")
    if steps:
        return unable(kind, CHANGE, "Not tested for a drift: the level changed in a step.")
    trend = drift(series.start_s.tolist(), series.level.tolist(), false_alarms=FALSE_ALARMS, least_size=0.0)
    way = "longer" if trend.relative_total > 0 else "shorter"
    return Check(
        kind,
        abs(trend.relative_total),
        trend.relative_per_hour,
        trend.p_value,
        CHANGE,
        f"Drift: calls took {percent(abs(trend.relative_total))} {way} at the end than at the beginning. "
        "The machine was warming up or slowing down; let it run warm first, and measure again.",
        f"No drift: {percent(abs(trend.relative_total))} from beginning to end.",
    )


def dates_text(steps: tuple[Step, ...]) -> str:
    """The steps in words: "15 % longer from 12.3 s on, 13 % shorter again from 20 s on"."""
    words = []
    for one in steps[:4]:
        way = "longer" if one.relative_size > 0 else "shorter"
        words.append(f"{percent(abs(one.relative_size))} {way} from {moment(one.before_s)} on ({_chance(one.p_value)})")
    return ", then ".join(words) + (f", and {len(steps) - 4} more" if len(steps) > 4 else "")


def _chance(p_value: float) -> str:
    return "p < 0.000001" if p_value < 1e-6 else f"p = {p_value:.1g}"


def _limit(series: Series) -> str:
    return " Changes between processes cannot be detected with so few of them." if series.centred else ""
