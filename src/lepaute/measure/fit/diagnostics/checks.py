"""Residuals of one subject against size, order and place, and what single calls say."""

from dataclasses import dataclass

import numpy as np
from scipy.special import erfc, stdtr

from lepaute.kit.text import counted, percent, seconds
from lepaute.measure.fit.diagnostics import flag
from lepaute.measure.fit.diagnostics.residuals import Classed, Residuals
from lepaute.measure.fit.kernels.polynomial import r_squared
from lepaute.measure.fit.numeric import Floats, Integers

#: A class with less of a kernel's time does not matter, whatever is wrong with it.
MIN_TIME_SHARE = 0.05
#: With fewer units the deviation between them says too little.
MIN_UNITS = 6
MIN_PAIRS = 50
#: Processes that a place must have: what lasts in a place shows only against what changes from process to process.
MIN_PROCESSES = 3
ENOUGH_TO_BE_EQUAL = 5


@dataclass(frozen=True, slots=True)
class Contrast:
    """difference: mean of a class less that of all; t: over its standard error; p_value: two-sided, Student's."""

    difference: float
    t: float
    p_value: float


def contrasts(values: Floats, number: Integers, unit: Integers) -> list[Contrast]:
    """The contrast of each class against all calls, classes and units numbered from 0.

    values, number, unit : shape (calls,); calls of one unit need not be independent
    The standard error is that of sums over units (clusters), whatever the calls of one unit have in common: with the
    influence a_i of call i on the difference, its variance is G / (G - 1) sum over units of (sum of a_i)^2 (Cameron &
    Miller, Journal of Human Resources 50, 2015, section II). Degrees of freedom: the number of units that the class
    effectively rests on, (sum s)^2 / sum s^2 for the squares s of the units' sums, less 1, and no more than the units
    less 1. Below MIN_UNITS units the p-value is 1.
    """
    units, count = int(unit.max()) + 1, len(values)
    overall = values - values.mean()
    result = []
    for which in range(int(number.max()) + 1):
        inside = number == which
        size = int(np.count_nonzero(inside))
        if size in (0, count):
            result.append(Contrast(0.0, 0.0, 1.0))
            continue
        inside_values = values[inside]
        difference = float(inside_values.mean() - values.mean())
        influence = -overall / count
        influence[inside] += (inside_values - inside_values.mean()) / size
        sums = np.bincount(unit, weights=influence, minlength=units)
        seen = np.bincount(unit[inside], minlength=units)
        present = int(np.count_nonzero(seen))
        effective = float(seen.sum()) ** 2 / float((seen.astype(np.float64) ** 2).sum())
        if present < MIN_UNITS or effective < MIN_UNITS / 2:
            result.append(Contrast(difference, 0.0, 1.0))
            continue
        variance = present / (present - 1) * float(np.sum(sums**2))
        t = difference / variance**0.5 if variance > 0 else 0.0
        result.append(Contrast(difference, t, _two_sided(t, min(present, effective) - 1.0)))
    return result


def level(calls: Classed) -> flag.Check:
    """Does all that was measured add up to what the model says?"""
    if not calls.of.modelled:
        return flag.unable(
            "level", "There is no model of this operation alone: it is compared with its running median."
        )
    process = np.unique(calls.of.process, return_inverse=True)[1]
    processes = int(process.max()) + 1
    if processes < MIN_UNITS:
        return flag.unable("level", f"Too few processes ({processes}) to tell whether the mean is right.")
    # Sums, interruptions included, as an application adds them up. Of messages, ratios, since each size matters as
    # much, without interruptions, which models of messages leave out.
    if calls.of.weighs_time:
        over, under = calls.of.measured_s, calls.of.predicted_s
    else:
        over, under = calls.ratio, np.ones(len(calls.of))
    total = float(over.sum()) / float(under.sum())
    sums = np.bincount(process, weights=over - total * under)
    error = float(np.sqrt(np.sum(sums**2) * processes / (processes - 1))) / float(under.sum())
    t = (total - 1.0) / error if error > 0 else 0.0
    return flag.checked("level", abs(total - 1.0), t, _two_sided(t, processes - 1), by=flag.longer(total - 1.0))


def size(calls: Classed) -> flag.Check:
    """Is the mean right at all sizes, or too high at some and too low at others?"""
    if not calls.of.modelled:
        return flag.unable("size", "No model of sizes to judge: the calls are compared with their own running median.")
    if len(calls.counts) < 2:
        return flag.unable("size", "All calls are of about one size, so that residuals cannot depend on it.")
    classes = contrasts(calls.ratio / calls.ratio.mean(), calls.number, calls.unit)
    worst = _worst(calls, classes, np.array([abs(each.difference) for each in classes]), flag.KINDS["size"].limits)
    if worst is None:
        return flag.unable(
            "size", "Too few independent calls of each size to tell whether the mean is right everywhere."
        )
    contrast = classes[worst]
    return flag.checked(
        "size",
        abs(contrast.difference),
        contrast.t,
        min(1.0, contrast.p_value * len(classes)),
        sizes=_sizes_of(calls, worst),
        by=flag.longer(contrast.difference),
    )


def spread(calls: Classed) -> flag.Check:
    """Heteroscedasticity: does the scatter of single calls change with size otherwise than the model says?"""
    if not calls.of.noise_modelled:
        return flag.unable("spread", "There is no model of the noise of this operation to judge.")
    if len(calls.counts) < 2:
        return flag.unable("spread", "All calls are of about one size, so that their scatter cannot depend on it.")
    if not np.any(calls.scale > 0):
        return flag.unable("spread", "Single calls do not scatter at all.")
    away = np.abs(calls.ratio - calls.mean[calls.number]) * calls.of.predicted_s / calls.of.deviation_s
    classes = contrasts(away / float(away.mean()), calls.number, calls.unit)
    factors = np.array([1.0 + each.difference for each in classes])
    sizes = np.maximum(factors, 1.0 / np.maximum(factors, 1e-3)) - 1.0
    worst = _worst(calls, classes, sizes, flag.KINDS["spread"].limits)
    if worst is None:
        return flag.unable("spread", "Too few independent calls of each size to tell whether the scatter is right.")
    contrast = classes[worst]
    return flag.checked(
        "spread",
        float(sizes[worst]),
        contrast.t,
        min(1.0, contrast.p_value * len(classes)),
        sizes=_sizes_of(calls, worst),
        factor=float(factors[worst]),
        within=1 + sizes[worst],
    )


def _worst(calls: Classed, classes: list[Contrast], sizes: Floats, limits: flag.Limits) -> int | None:
    """The class to report: the most certain of those that matter and are large, or the largest; None: no test."""
    share = calls.time_share() if calls.of.weighs_time else np.ones(len(sizes))
    matters = [at for at, each in enumerate(classes) if share[at] >= MIN_TIME_SHARE and each.t != 0.0]
    large = [at for at in matters if sizes[at] >= limits.notable]
    if large:
        return min(large, key=lambda at: (classes[at].p_value, -sizes[at]))
    return max(matters, key=lambda at: sizes[at], default=None)


def _sizes_of(calls: Classed, which: int) -> str:
    inside = calls.of.predicted_s[calls.number == which]
    return f"{seconds(float(inside.min()))} to {seconds(float(inside.max()))}"


def _two_sided(t: float, degrees: float) -> float:
    return 2.0 * float(stdtr(degrees, -abs(t)))


def autocorrelation(calls: Classed, *, wandering: bool = False) -> flag.Check:
    """Correlation of successive calls within one process, from ranks; what their sizes and the process explain is off.

    wandering : the platform has a component that successive calls share: then a correlation is no defect
    Only calls that are more alike than independent ones matter: others make sums scatter less.
    """
    value, number = calls.by_process()
    follows = number[1:] == number[:-1]
    pairs = int(np.count_nonzero(follows))
    if pairs < MIN_PAIRS or np.ptp(value) == 0.0:
        return flag.unable("autocorrelation", f"Too few successive calls ({pairs}) to estimate their correlation.")
    rank = np.argsort(np.argsort(value, kind="stable"), kind="stable").astype(np.float64)
    before, after = rank[:-1][follows], rank[1:][follows]
    deviations = float(np.std(before) * np.std(after))
    rho = float(np.mean((before - before.mean()) * (after - after.mean()))) / deviations if deviations > 0 else 0.0
    z = rho * pairs**0.5
    effect = max(rho, 0.0)
    factor = ((1 + effect) / max(1 - effect, 1e-3)) ** 0.5
    p_value = 0.5 * float(erfc(z / 2**0.5))
    if wandering and effect >= flag.KINDS["autocorrelation"].limits.notable:
        text = f"Successive calls are correlated ({rho:.2f}); the platform models it (wandering)."
        return flag.Check("autocorrelation", effect, z, p_value, flag.Limits(np.inf, np.inf), "", text)
    limits = flag.Limits(np.inf, np.inf) if wandering else None
    return flag.checked("autocorrelation", effect, z, p_value, limits=limits, rho=rho, factor=factor)


def places(calls: Classed, kind: str = "cores") -> flag.Check:
    """Differences between "cores", or "hosts", that last over processes: Kruskal and Wallis' test of processes.

    A process is one value, the mean of its calls over that of all with its setting (probe); calls are not independent.
    """
    names = calls.of.hosts if kind == "hosts" else calls.of.places
    known, place = np.unique(np.array(names, dtype=object)[calls.of.place].astype(str), return_inverse=True)
    if len(known) < 2:
        return flag.unable(kind, f"All calls were made on one of the {kind}.")
    values, of_place = _processes(calls, place.astype(np.int64))
    groups = [values[of_place == number] for number in range(len(known))]
    able = [number for number, group in enumerate(groups) if len(group) >= MIN_PROCESSES]
    if len(able) < 2:
        return flag.unable(
            kind, f"Too few processes on each of the {kind} to tell a lasting difference from one of a process."
        )
    if np.ptp(np.concatenate([groups[number] for number in able])) == 0.0:
        return flag.nothing(kind, f"All {kind} take the same time.", 1.0)
    from scipy.stats import kruskal

    means = {number: float(groups[number].mean()) for number in able}
    slow, fast = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
    effect = means[slow] / means[fast] - 1.0 if means[fast] > 0 else 0.0
    test = kruskal(*[groups[number] for number in able])
    facts = {"slow": known[slow], "fast": known[fast], "by": percent(effect), "count": len(able), "what": kind}
    return flag.checked(kind, effect, float(test.statistic), float(test.pvalue), **facts)


def _processes(calls: Classed, place: Integers) -> tuple[Floats, Integers]:
    """Mean level of each (process, place) over that of its setting, and its place."""
    key = calls.of.process * (int(place.max()) + 1) + place
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    mean = np.bincount(number, weights=calls.level) / np.bincount(number)
    setting = calls.of.setting[first]
    result = mean.copy()
    for each in np.unique(setting):
        inside = setting == each
        result[inside] = mean[inside] / np.median(mean[inside])
    return result, place[first]


def outliers(calls: Classed) -> flag.Check:
    """The share of the time that was spent far above the usual duration of alike calls; of messages, their share."""
    of = calls.of
    time_share = float(np.sum((of.ratio - calls.ratio) * of.predicted_s)) / max(float(of.measured_s.sum()), 1e-300)
    count = int(np.count_nonzero(calls.cut))
    # Models of messages leave interruptions out, so that only their number matters.
    share = time_share if of.weighs_time else count / len(of)
    return flag.checked("outliers", share, float(count), None, count=count, calls=len(of), by=percent(time_share))


def scatter(groups: Classed) -> flag.Check:
    """How far single calls are from the model, interruptions cut off; its R squared goes along."""
    calls = groups.of
    error = float(np.mean(np.abs(groups.ratio - 1.0)))
    squared = r_squared(calls.measured_s, calls.predicted_s)
    return flag.checked("goodness", error, squared, None, by=percent(error), squared=squared)


def number_of_calls(calls: Residuals) -> flag.Check:
    count = len(calls)
    grade = 3.0 if count < flag.TOO_FEW_CALLS else 1.0 if count < flag.FEW_CALLS else 0.0
    return flag.checked("calls", grade, float(count), None, count=count)


def constant(calls: Residuals) -> flag.Check:
    if len(calls) < ENOUGH_TO_BE_EQUAL:
        return flag.unable("constant", "Too few calls to tell whether their durations are all the same.")
    distinct = len(np.unique(calls.measured_s))
    first, equal = seconds(float(calls.measured_s[0])), 1.0 if distinct == 1 else 0.0
    return flag.checked("constant", equal, float(distinct), None, calls=len(calls), first=first, count=distinct)


def tick(calls: Residuals) -> flag.Check:
    """Does the clock resolve durations of this length?"""
    distinct = np.unique(calls.measured_s)
    if len(distinct) < 3:
        return flag.unable("clock", "Too few different durations to estimate the resolution of the clock.")
    step_s, usual_s = float(np.min(np.diff(distinct))), float(np.median(calls.measured_s))
    ratio = step_s / usual_s if usual_s > 0 else 1.0
    zero = float(np.mean(calls.measured_s <= 0.0))
    ratio = max(ratio, 1.0 if zero > 0.5 else 0.2 if zero > 0.05 else 0.0)
    usual, step = seconds(usual_s), seconds(step_s)
    return flag.checked("clock", ratio, step_s, None, usual=usual, step=step, zero=percent(zero))


def one_size(calls: Residuals) -> flag.Check:
    distinct = len(np.unique(calls.size))
    grade = 2.0 if distinct == 1 else 1.0 if distinct == 2 else 0.0
    return flag.checked("sizes", grade, float(distinct), None, count=counted(distinct, "size"))
