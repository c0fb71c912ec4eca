"""Temporal perturbation: a change that all kernels share at the same time is the machine's, not the models'."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lepaute.fit.diagnostics.burst import BURST, FEWEST_PROCESSES, burst_of
from lepaute.fit.diagnostics.by_time import CHANGE, FEWEST_VALUES, Series, dates_text, slow_change, steps_of
from lepaute.fit.diagnostics.flag import Check, unable
from lepaute.fit.diagnostics.number_text import percent
from lepaute.fit.diagnostics.residuals import ENOUGH_PROCESSES, Classed
from lepaute.fit.numeric import Booleans, Floats, Integers
from lepaute.fit.variability.wandering import Watch, wandering_of
from lepaute.kit.text import moment
from lepaute.stats.steps import Step

#: Parts of a process in which a change inside it is looked for: no more, of at least eight calls each, and no fewer
#: than the least, since among few values even the clearest change may be chance.
MOST_PARTS, LEAST_PARTS, CALLS_OF_PART = 120, 30, 8
#: A kernel changed with the others when its level did by this share of the whole change, in the same direction.
SAME = 0.5
FEWEST_CALLS_BESIDE = 5


@dataclass(frozen=True, slots=True)
class Machine:
    """The kernels of one host together.

    series : levels over all processes, a few values a process; inside: the finer series of each process with a change
    sentinels: the fixed product that was run between the probes, over its median; None where there was none
    """

    host: str
    series: Series | None
    inside: tuple[Series, ...]
    checks: tuple[Check, ...]
    sentinels: Series | None = None


def watched(machine: Machine, watches: Sequence[Watch]) -> Machine:
    """The machine with its sentinels in all calibrations, and what they say of its speed."""
    mine = [watch.quiet() for watch in watches if machine.host in ("", watch.host)]
    if not mine:
        return machine
    date_s, duration_s = (np.concatenate([getattr(each, name) for each in mine]) for name in ("date_s", "duration_s"))
    start_s = date_s - date_s.min()
    level = duration_s / float(np.median(duration_s))
    series = Series(start_s, start_s + duration_s, level, np.arange(len(level), dtype=np.float64), False)
    found = [one for watch in mine if (one := wandering_of(watch)) is not None]
    if not found:
        check = Check(
            "sentinels", 0.0, 0.0, None, CHANGE, "", f"The {len(level)} sentinels show no change of its speed."
        )
        if len(level) < FEWEST_VALUES:
            check = unable("sentinels", CHANGE, f"Too few sentinels ({len(level)}) to see a change of its speed.")
        return replace(machine, sentinels=series, checks=(*machine.checks, check))
    one = max(found, key=lambda each: abs(each.relative))
    text = one.sentence[:1].upper() + one.sentence[1:]
    check = Check(
        "sentinels",
        abs(one.relative),
        one.relative,
        None,  # tested at a level of its own, with too few permutations for that of all tests together
        CHANGE,
        f"By the sentinels: {text}. The models hold for its mean; days.drift of the platform is what to expect later.",
        f"By the sentinels: {text}.",
    )
    return replace(machine, sentinels=series, checks=(*machine.checks, check))


def machine_of(host: str, kernels: Sequence[Classed]) -> Machine:
    """What the kernels measured on one host have in common in the course of time.

    A level is sum(measured) / sum(expected) of the calls of a part of a process; expected is the model times what the
    class of size and the setting of a call are off by. So kernels weigh by their time.
    """
    kernels = [calls for calls in kernels if len(calls.of)]
    if not kernels:
        return Machine(host, None, (), (unable("step", CHANGE, "No kernel was measured."),))
    measured, expected, time_s, process = _together(kernels)
    several = len(np.unique(process)) >= ENOUGH_PROCESSES
    checks: list[Check] = []
    whole = _series(measured, expected, time_s, process, 3) if several else None
    steps: tuple[Step, ...] = ()
    if whole is not None and len(whole) >= FEWEST_VALUES:
        steps = steps_of(whole)
        checks += [_step(steps, kernels, "")]
        checks += [slow_change(whole, bool(steps)), _burst(whole, kernels)]
    else:
        checks += [unable("step", CHANGE, "Too few processes to see a change from one to the next.")]
    inside, within = _inside(measured, expected, time_s, process, kernels)
    return Machine(host, whole, inside, (*checks, within))


def _inside(
    measured: Floats, expected: Floats, time_s: Floats, process: Integers, kernels: Sequence[Classed]
) -> tuple[tuple[Series, ...], Check]:
    """The process with the clearest change inside, as a check over all of them, and its series."""
    best: tuple[float, Series, tuple[Step, ...]] | None = None
    tests = 0
    for one in np.unique(process):
        mine = process == one
        parts = min(MOST_PARTS, int(np.count_nonzero(mine)) // CALLS_OF_PART)
        if parts < LEAST_PARTS:
            continue
        series = _series(measured[mine], expected[mine], time_s[mine], process[mine], parts)
        tests += 1
        steps = steps_of(series)
        if steps and (best is None or min(step.p_value for step in steps) < best[0]):
            best = (min(step.p_value for step in steps), series, steps)
    if not tests:
        return (), unable("perturbation", CHANGE, "Too few calls of one process to see a change inside it.")
    if best is None:
        return (), Check("perturbation", 0.0, 0.0, 1.0, CHANGE, "", f"No change inside any of the {tests} processes.")
    p_value, series, steps = best
    check = _step(steps, kernels, "inside a process, ")
    return (series,), replace(check, kind="perturbation", p_value=min(1.0, tests * p_value))


def _step(steps: tuple[Step, ...], kernels: Sequence[Classed], where: str) -> Check:
    if not steps:
        return Check("step", 0.0, 0.0, 1.0, CHANGE, "", "No change of level from one process to the next.")
    one = max(steps, key=lambda step: abs(step.relative_size))
    at = steps.index(one)
    low = steps[at - 1].before_s if at else -np.inf
    high = steps[at + 1].before_s if at + 1 < len(steps) else np.inf
    changed, seen = _changed(kernels, (low, one.before_s), (one.before_s, high), one.relative_size)
    if len(steps) == 2 and steps[0].relative_size * steps[1].relative_size < 0:
        what = (
            f"from {moment(steps[0].before_s)} to {moment(steps[1].before_s)} after the first call of all, calls took "
            f"{percent(abs(steps[0].relative_size))} {'longer' if steps[0].relative_size > 0 else 'less'} than before"
        )
    else:
        what = f"calls took {dates_text(steps)}, counted from the first call of all"
    return Check(
        "step",
        abs(one.relative_size),
        one.relative_size,
        min(step.p_value for step in steps),
        CHANGE,
        f"Something else happened during the measurement: {where}{what}, in {changed} of the {seen} kernels that were "
        "called on both sides. Find out what ran then (cron, another user, a changed clock rate), and measure again.",
        f"A small change during the measurement: {where}{what}, in {changed} of {seen} kernels.",
    )


def _burst(series: Series, kernels: Sequence[Classed]) -> Check:
    processes = len(np.unique(series.process))
    if processes < FEWEST_PROCESSES:
        return unable("burst", BURST, f"Too few processes ({processes}) to tell an interval from a single process.")
    burst = burst_of(series)
    if burst is None:
        return Check("burst", 0.0, 0.0, None, BURST, "", "No interval differs from what is before and after.")
    changed, seen = _changed(kernels, (-np.inf, burst.start_s), (burst.start_s, burst.end_s), burst.relative_size)
    size = percent(abs(burst.relative_size))
    what = (
        f"from {moment(burst.start_s)} to {moment(burst.end_s)} after the first call of all, calls took {size} "
        f"{'longer' if burst.relative_size > 0 else 'less'} than before and after, in {changed} of the {seen} kernels "
        "that were called there and earlier"
    )
    return Check(
        "burst",
        abs(burst.relative_size),
        burst.robust_sd,
        None,
        BURST,
        f"Something else happened for a while: {what}. Find out what ran then (cron, another user), and measure again.",
        f"A small deviation for a while: {what}.",
    )


def _changed(
    kernels: Sequence[Classed], earlier_s: tuple[float, float], later_s: tuple[float, float], size: float
) -> tuple[int, int]:
    """Kernels whose level changed with the whole, by `size`, and kernels that were called in both stretches of time."""
    changed = seen = 0
    for calls in kernels:
        time_s, level = calls.of.time_s, calls.level
        before: Booleans = (time_s >= earlier_s[0]) & (time_s < earlier_s[1])
        after: Booleans = (time_s >= later_s[0]) & (time_s < later_s[1])
        if min(np.count_nonzero(before), np.count_nonzero(after)) < FEWEST_CALLS_BESIDE:
            continue
        seen += 1
        change = float(np.median(level[after]) / np.median(level[before])) - 1.0
        changed += change * size > 0 and abs(change) >= SAME * abs(size)
    return changed, seen


def _together(kernels: Sequence[Classed]) -> tuple[Floats, Floats, Floats, Integers]:
    """Measured and expected seconds, dates and processes of the calls of all kernels, in the order of dates."""
    measured = np.concatenate([calls.of.measured_s for calls in kernels])
    expected = np.concatenate([calls.expected * calls.of.predicted_s for calls in kernels])
    time_s = np.concatenate([calls.of.time_s for calls in kernels])
    process = np.concatenate([calls.of.process for calls in kernels])
    order = np.argsort(time_s, kind="stable")
    return measured[order], expected[order], time_s[order], process[order]


def _series(measured: Floats, expected: Floats, time_s: Floats, process: Integers, parts: int) -> Series:
    """Levels of parts of each process, each of about the same expected time, in the order of time."""
    _, number = np.unique(process, return_inverse=True)
    order = np.argsort(number, kind="stable")
    number, of_process = number[order], process[order]
    measured, expected, time_s = measured[order], expected[order], time_s[order]
    total = np.bincount(number, weights=expected)
    passed = np.cumsum(expected) - np.concatenate([[0.0], np.cumsum(total)[:-1]])[number]
    share = np.clip((passed - 0.5 * expected) / total[number], 0.0, 1.0 - 1e-9)
    part = number * parts + (share * parts).astype(np.int64)
    first = np.flatnonzero(np.concatenate([[True], np.diff(part) > 0]))
    level = np.add.reduceat(measured, first) / np.add.reduceat(expected, first)
    last = np.concatenate([first[1:], [len(part)]]) - 1
    by_time = np.argsort(time_s[first], kind="stable")
    return Series(
        time_s[first][by_time],
        (time_s + measured)[last][by_time],
        np.maximum(level, 1e-9)[by_time],
        of_process[first][by_time].astype(np.float64),
        False,
    )
