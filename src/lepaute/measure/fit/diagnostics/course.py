"""The level of calls in the course of time: steps and drifts, of one subject, and of a machine as a whole.

Every process is a little faster or slower than the others, by its pages and by chance; that is a layer of the models.
So a change between processes is looked for in a series of few values a process, whose correlation the tests account
for; a change inside a process, in a series of many, one process at a time. Where there are too few processes for the
first, the processes are set to one level and the second takes them all together.

A change that all kernels share at the same time is the machine's, not the models'.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lepaute.kit.text import moment
from lepaute.measure.fit.diagnostics.flag import CHANGE, Check, chance, checked, longer, nothing, unable
from lepaute.measure.fit.diagnostics.residuals import ENOUGH_PROCESSES, Classed, parts_of
from lepaute.measure.fit.numeric import Booleans, Floats, Integers, subset
from lepaute.measure.fit.variability.sentinels import Watch, change_of
from lepaute.stats.steps import Step, drift, find_steps

#: Handed to the tests as theirs; the p-value is what counts, adjusted for all tests of the fit.
FALSE_ALARMS = 0.01
PARTS_OF_PROCESS, PARTS_IN_ALL = 3, 60
MIN_VALUES = 16
MIN_CALLS_PER_VALUE = 4
#: Parts of a process in which a change inside it is looked for: no more, of at least eight calls each, and no fewer
#: than the least, since among few values even the clearest change may be chance.
MAX_PARTS, MIN_PARTS, CALLS_OF_PART = 120, 30, 8
#: A kernel changed with the others when its level did by this share of the whole change, in the same direction.
SAME = 0.5
MIN_CALLS_BESIDE = 5


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
    centred = 1 < processes < ENOUGH_PROCESSES
    parts = PARTS_OF_PROCESS if processes >= ENOUGH_PROCESSES else max(1, PARTS_IN_ALL // max(processes, 1))
    parts = max(1, min(parts, len(calls.of) // max(processes, 1) // MIN_CALLS_PER_VALUE))
    part = parts_of(calls.of.process, parts)
    order = np.argsort(part, kind="stable")
    count = int(part.max()) + 1 if len(part) else 0
    bounds = np.searchsorted(part[order], np.arange(count + 1))
    level, start, end, process = (np.zeros(count) for _ in range(4))
    levels, times, lengths = calls.level[order], calls.of.time_s[order], calls.of.measured_s[order]
    numbers = calls.of.process[order]
    for at in range(count):
        inside = slice(bounds[at], bounds[at + 1])
        level[at] = np.median(levels[inside])
        start[at], end[at], process[at] = times[inside][0], times[inside][-1] + lengths[inside][-1], numbers[inside][0]
    if centred:
        for each in np.unique(process):
            level[process == each] /= max(float(np.median(level[process == each])), 1e-300)
    by_time = np.argsort(start, kind="stable")
    return Series(start[by_time], end[by_time], np.maximum(level[by_time], 1e-9), process[by_time], centred)


def step(series: Series) -> Check:
    """Did the level change at some date, and stay so for a while?"""
    if len(series) < MIN_VALUES:
        return unable("step", f"Too few parts of processes ({len(series)}) to see a change of level.")
    steps = steps_of(series)
    if not steps:
        limit = " Changes between processes cannot be detected with so few of them." if series.centred else ""
        return nothing("step", "No change of level during the measurement." + limit, 1.0)
    largest = max(steps, key=lambda each: (each.p_value <= 1e-3, abs(each.relative_size)))
    size = largest.relative_size
    return checked("step", abs(size), size, largest.p_value, what=_dates_text(steps))


def steps_of(series: Series) -> tuple[Step, ...]:
    """Changes of level, in the order of their dates; none in a series that is too short."""
    if len(series) < MIN_VALUES:
        return ()
    return find_steps(
        series.start_s.tolist(), series.level.tolist(), false_alarms=FALSE_ALARMS, least_size=CHANGE.notable / 3
    ).steps


def slow_change(series: Series, steps: bool) -> Check:
    """Did the level rise or fall little by little? Not asked where there was a step, which is a trend as well."""
    if len(series) < MIN_VALUES:
        return unable("drift", f"Too few parts of processes ({len(series)}) to see a drift.")
    if series.centred:
        return unable("drift", "Too few processes to tell a drift from the differences between processes.")
    if steps:
        return unable("drift", "Not tested for a drift: the level changed in a step.")
    trend = drift(series.start_s.tolist(), series.level.tolist(), false_alarms=FALSE_ALARMS, least_size=0.0)
    total = trend.relative_total
    return checked("drift", abs(total), trend.relative_per_hour, trend.p_value, by=longer(total))


def _dates_text(steps: tuple[Step, ...]) -> str:
    """The steps in words: "15.0 % longer from 12.3 s on (p = 0.001), then 13.0 % shorter from 20 s on (p = 0.002)"."""
    words = [f"{longer(each.relative_size)} from {moment(each.before_s)} on ({chance(each.p_value)})" for each in steps]
    return ", then ".join(words[:4]) + (f", and {len(steps) - 4} more" if len(steps) > 4 else "")


@dataclass(frozen=True, slots=True)
class Machine:
    """The kernels of one host together.

    series : levels over all processes, a few values a process; inside: the finer series of each process with a change
    sentinels: the fixed product that was run between the probes, over its median; None if there was none
    """

    host: str
    series: Series | None
    inside: tuple[Series, ...]
    checks: tuple[Check, ...]
    sentinels: Series | None = None


def machine_of(host: str, kernels: Sequence[Classed], watches: Sequence[Watch] = ()) -> Machine:
    """Common course of the kernels measured on one host in the course of time; host "": on all.

    watches : sentinels of all calibrations
    A level is sum(measured) / sum(expected) of the calls of a part of a process; expected is the model times what the
    class of size and the setting of a call are off by. So kernels weigh by their time.
    """
    machine = _of_kernels(host, [calls for calls in kernels if len(calls.of)])
    mine = [watch.quiet() for watch in watches if host in ("", watch.host)]
    if not mine:
        return machine
    date_s, duration_s = (np.concatenate([getattr(watch, name) for watch in mine]) for name in ("date_s", "duration_s"))
    start_s = date_s - date_s.min()
    level = duration_s / float(np.median(duration_s))
    series = Series(start_s, start_s + duration_s, level, np.arange(len(level), dtype=np.float64), False)
    changes = [change for watch in mine if (change := change_of(watch)) is not None]
    if changes:
        change = max(changes, key=lambda each: abs(each.relative))
        text = change.sentence[:1].upper() + change.sentence[1:]
        # Tested at a level of its own, with too few permutations for that of all tests together.
        check = checked("sentinels", abs(change.relative), change.relative, None, what=text)
    elif len(level) < MIN_VALUES:
        check = unable("sentinels", f"Too few sentinels ({len(level)}) to see a change of its speed.")
    else:
        check = nothing("sentinels", f"The {len(level)} sentinels show no change of its speed.")
    return replace(machine, sentinels=series, checks=(*machine.checks, check))


def _of_kernels(host: str, kernels: Sequence[Classed]) -> Machine:
    if not kernels:
        return Machine(host, None, (), (unable("step", "No kernel was measured."),))
    calls = _together(kernels)
    series = _series(calls, 3) if len(np.unique(calls.process)) >= ENOUGH_PROCESSES else None
    if series is not None and len(series) >= MIN_VALUES:
        steps = steps_of(series)
        checks = [_step(steps, kernels), slow_change(series, bool(steps))]
    else:
        checks = [unable("step", "Too few processes to see a change from one to the next.")]
    inside, within = _inside(calls, kernels)
    return Machine(host, series, inside, (*checks, within))


@dataclass(frozen=True, slots=True)
class _Calls:
    """Calls of all kernels, vectors of shape (calls,), in the order of dates."""

    measured_s: Floats
    expected_s: Floats
    time_s: Floats
    process: Integers


def _together(kernels: Sequence[Classed]) -> _Calls:
    calls = _Calls(
        np.concatenate([calls.of.measured_s for calls in kernels]),
        np.concatenate([calls.expected * calls.of.predicted_s for calls in kernels]),
        np.concatenate([calls.of.time_s for calls in kernels]),
        np.concatenate([calls.of.process for calls in kernels]),
    )
    return subset(calls, np.argsort(calls.time_s, kind="stable").astype(np.int64))


def _inside(calls: _Calls, kernels: Sequence[Classed]) -> tuple[tuple[Series, ...], Check]:
    """The process with the clearest change inside, as a check over all of them, and its series."""
    best: tuple[float, Series, tuple[Step, ...]] | None = None
    tests = 0
    for number in np.unique(calls.process):
        mine = calls.process == number
        parts = min(MAX_PARTS, int(np.count_nonzero(mine)) // CALLS_OF_PART)
        if parts < MIN_PARTS:
            continue
        series = _series(subset(calls, mine), parts)
        tests += 1
        steps = steps_of(series)
        if steps and (best is None or min(each.p_value for each in steps) < best[0]):
            best = (min(each.p_value for each in steps), series, steps)
    if not tests:
        return (), unable("perturbation", "Too few calls of one process to see a change inside it.")
    if best is None:
        return (), nothing("perturbation", f"No change inside any of the {tests} processes.", 1.0)
    p_value, series, steps = best
    return (series,), replace(_step(steps, kernels, "perturbation"), p_value=min(1.0, tests * p_value))


def _step(steps: tuple[Step, ...], kernels: Sequence[Classed], kind: str = "step") -> Check:
    if not steps:
        return nothing(kind, "No change of level from one process to the next.", 1.0)
    largest = max(steps, key=lambda each: abs(each.relative_size))
    size, at = largest.relative_size, steps.index(largest)
    low = steps[at - 1].before_s if at else -np.inf
    high = steps[at + 1].before_s if at + 1 < len(steps) else np.inf
    where = _changed(kernels, (low, largest.before_s), (largest.before_s, high), size)
    if len(steps) == 2 and steps[0].relative_size * steps[1].relative_size < 0:
        first, second = steps
        what = f"{longer(first.relative_size)} from {moment(first.before_s)} to {moment(second.before_s)}"
    else:
        what = _dates_text(steps)
    p_value = min(each.p_value for each in steps)
    return checked(kind, abs(size), size, p_value, what=f"{what} after the first call of all, {where}")


def _changed(
    kernels: Sequence[Classed], earlier_s: tuple[float, float], later_s: tuple[float, float], size: float
) -> str:
    """In how many kernels the level changed with the whole, by `size`, of those that were called in both stretches."""
    changed = seen = 0
    for calls in kernels:
        time_s, level = calls.of.time_s, calls.level
        before: Booleans = (time_s >= earlier_s[0]) & (time_s < earlier_s[1])
        after: Booleans = (time_s >= later_s[0]) & (time_s < later_s[1])
        if min(np.count_nonzero(before), np.count_nonzero(after)) < MIN_CALLS_BESIDE:
            continue
        seen += 1
        change = float(np.median(level[after]) / np.median(level[before])) - 1.0
        changed += change * size > 0 and abs(change) >= SAME * abs(size)
    return f"in {changed} of the {seen} kernels that were called before and then"


def _series(calls: _Calls, parts: int) -> Series:
    """Levels of parts of each process, each of about the same expected time, in the order of time."""
    _, number = np.unique(calls.process, return_inverse=True)
    order = np.argsort(number, kind="stable").astype(np.int64)
    number, calls = number[order], subset(calls, order)
    measured, expected, time_s = calls.measured_s, calls.expected_s, calls.time_s
    total = np.bincount(number, weights=expected)
    passed = np.cumsum(expected) - np.concatenate([[0.0], np.cumsum(total)[:-1]])[number]
    share = np.clip((passed - 0.5 * expected) / total[number], 0.0, 1.0 - 1e-9)
    part = number * parts + (share * parts).astype(np.int64)
    first = np.flatnonzero(np.concatenate([[True], np.diff(part) > 0]))
    last = np.concatenate([first[1:], [len(part)]]) - 1
    by_time = np.argsort(time_s[first], kind="stable")
    return Series(
        time_s[first][by_time],
        (time_s + measured)[last][by_time],
        np.maximum(np.add.reduceat(measured, first) / np.add.reduceat(expected, first), 1e-9)[by_time],
        calls.process[first][by_time].astype(np.float64),
        False,
    )
