"""Residuals against size: does the mean hold at all sizes, and does the scatter of single calls?"""

import numpy as np

from lepaute.fit.diagnostics.contrast import FEWEST_UNITS, Contrast, contrasts
from lepaute.fit.diagnostics.flag import Check, Limits, unable
from lepaute.fit.diagnostics.number_text import percent
from lepaute.fit.diagnostics.residuals import Classed
from lepaute.fit.numeric import Floats
from lepaute.kit.text import seconds

#: A mean that is off by 5 % over part of the sizes moves a prediction by up to as much; 20 % is no model any more.
SIZE = Limits(0.05, 0.20)
#: The mean over all calls; a fit has it right by construction, another day's platform need not.
LEVEL = Limits(0.03, 0.10)
#: Factor between the scatter of a class and that of all, relative to the model's, less 1: an interval of twice or half
#: the width that it should have is worth a word; where the mean is right, predictions hardly change.
SPREAD = Limits(1.0, 4.0)
#: A class with less of a kernel's time does not matter, whatever is wrong with it.
LEAST_TIME_SHARE = 0.05


def level(calls: Classed) -> Check:
    """Does all that was measured add up to what the model says?"""
    kind = "level"
    if not calls.of.modelled:
        return unable(kind, LEVEL, "There is no model of this operation alone: it is compared with its running median.")
    process = np.unique(calls.of.process, return_inverse=True)[1]
    processes = int(process.max()) + 1
    if processes < FEWEST_UNITS:
        return unable(kind, LEVEL, f"Too few processes ({processes}) to tell whether the mean is right.")
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
    way = "longer" if total > 1 else "shorter"
    return Check(
        kind,
        abs(total - 1.0),
        t,
        _two_sided(t, processes - 1),
        LEVEL,
        f"All calls together take {percent(abs(total - 1.0))} {way} than the model says: a few sizes or "
        "interruptions decide the sum, or the model is of other calls; compare the pictures against size and time.",
        f"All calls together take what the model says, to {percent(abs(total - 1.0))}.",
    )


def size(calls: Classed) -> Check:
    """Is the mean right at all sizes, or too high at some and too low at others?"""
    kind = "size"
    if not calls.of.modelled:
        return unable(kind, SIZE, "No model of sizes to judge: the calls are compared with their own running median.")
    if len(calls.counts) < 2:
        return unable(kind, SIZE, "All calls are of about one size, so that residuals cannot depend on it.")
    classes = contrasts(calls.ratio / calls.ratio.mean(), calls.number, calls.unit)
    worst = _worst(calls, classes, np.array([abs(one.difference) for one in classes]), SIZE)
    if worst is None:
        return unable(
            kind, SIZE, "Too few independent calls of each size to tell whether the mean is right everywhere."
        )
    one = classes[worst]
    way = "longer" if one.difference > 0 else "shorter"
    return Check(
        kind,
        abs(one.difference),
        one.t,
        min(1.0, one.p_value * len(classes)),
        SIZE,
        f"Calls of {_between(calls, worst)} take {percent(abs(one.difference))} {way} than the model says, beside the "
        "others: its shape is wrong there; measure more sizes around them, or let the model have another piece.",
        "The mean is right at all sizes that matter: the largest class error is "
        f"{percent(abs(one.difference))} (calls of {_between(calls, worst)}).",
    )


def spread(calls: Classed) -> Check:
    """Heteroscedasticity: does the scatter of single calls change with size otherwise than the model says?"""
    kind = "spread"
    if not calls.of.noise_modelled:
        return unable(kind, SPREAD, "There is no model of the noise of this operation to judge.")
    if len(calls.counts) < 2:
        return unable(kind, SPREAD, "All calls are of about one size, so that their scatter cannot depend on it.")
    if not np.any(calls.scale > 0):
        return unable(kind, SPREAD, "Single calls do not scatter at all.")
    away = np.abs(calls.ratio - calls.mean[calls.number]) * calls.of.predicted_s / calls.of.deviation_s
    mean = float(away.mean())
    classes = contrasts(away / mean, calls.number, calls.unit)
    factors = np.array([1.0 + one.difference for one in classes])
    sizes = np.maximum(factors, 1.0 / np.maximum(factors, 1e-3)) - 1.0
    worst = _worst(calls, classes, sizes, SPREAD)
    if worst is None:
        return unable(kind, SPREAD, "Too few independent calls of each size to tell whether the scatter is right.")
    one, factor = classes[worst], float(factors[worst])
    way = f"{factor:.2g} times as much as" if factor > 1 else f"only {factor:.2g} of what"
    return Check(
        kind,
        float(sizes[worst]),
        one.t,
        min(1.0, one.p_value * len(classes)),
        SPREAD,
        f"Calls of {_between(calls, worst)} scatter {way} the model of the noise says, beside the others "
        "(heteroscedasticity): the noise of single calls is wrong there; means are not touched. Give the noise more "
        "terms, or measure more calls of these sizes.",
        f"The scatter of single calls changes with size as the model says, within a factor of {1 + sizes[worst]:.2g}.",
    )


def _worst(calls: Classed, classes: list[Contrast], sizes: Floats, limits: Limits) -> int | None:
    """The class to report: the most certain of those that matter and are large, or the largest; None: no test."""
    share = calls.time_share() if calls.of.weighs_time else np.ones(len(sizes))
    matters = [at for at, one in enumerate(classes) if share[at] >= LEAST_TIME_SHARE and one.t != 0.0]
    if not matters:
        return None
    large = [at for at in matters if sizes[at] >= limits.notable]
    return (
        min(large, key=lambda at: (classes[at].p_value, -sizes[at]))
        if large
        else max(matters, key=lambda at: sizes[at])
    )


def _between(calls: Classed, which: int) -> str:
    inside = calls.of.predicted_s[calls.number == which]
    return f"{seconds(float(inside.min()))} to {seconds(float(inside.max()))}"


def _two_sided(t: float, degrees: int) -> float:
    from scipy.special import stdtr

    return 2.0 * float(stdtr(degrees, -abs(t)))
