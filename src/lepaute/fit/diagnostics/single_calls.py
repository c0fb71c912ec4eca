"""What single calls say: interruptions, scatter, equal durations, the tick of the clock, too few sizes."""

import numpy as np

from lepaute.fit.diagnostics.flag import Check, Limits, unable
from lepaute.fit.diagnostics.number_text import percent
from lepaute.fit.diagnostics.residuals import Classed, Residuals
from lepaute.kit.text import seconds

#: Share of the time that interruptions took: of 2 %, a prediction is off by up to as much if they came by accident.
OUTLIERS = Limits(0.02, 0.10)
#: Mean absolute relative error of a single call.
SCATTER = Limits(0.5, 2.0)
#: Below 60 calls a mean is known to no better than some per cent; below 20 a kernel is a constant.
CALLS, FEW, TOO_FEW = Limits(1.0, 3.0), 60, 20
#: Equal durations among calls that should scatter: copied numbers, or a clock that does not tick.
CONSTANT = Limits(1.0, 1.0)
ENOUGH_TO_BE_EQUAL = 5
#: A tick of the clock over the usual duration.
TICK = Limits(0.2, 1.0)
SIZES = Limits(1.0, 2.0)


def outliers(calls: Classed) -> Check:
    """The share of the time that was spent far above the usual duration of calls of the same size; of messages, the
    share of such calls."""
    of = calls.of
    lost_s = float(np.sum((of.ratio - calls.ratio) * of.predicted_s))
    time_share = lost_s / max(float(of.measured_s.sum()), 1e-300)
    count = int(np.count_nonzero(calls.cut))
    # Models of messages leave interruptions out, so that only their number matters.
    share = time_share if of.weighs_time else count / len(of)
    return Check(
        "outliers",
        share,
        float(count),
        None,
        OUTLIERS,
        f"{count} of {len(of)} calls took far longer than others of their size, {percent(time_share)} of all time: the "
        "machine was interrupted. Close other programs and measure again; if it is always so, it is part of the model.",
        f"{count} of {len(of)} calls took far longer than others of their size, {percent(time_share)} of all time."
        if count
        else "No call took far longer than others of its size.",
    )


def scatter(groups: Classed) -> Check:
    """How far single calls are from the model, interruptions cut off; its R squared goes along."""
    calls = groups.of
    error = float(np.mean(np.abs(groups.ratio - 1.0)))
    total = float(np.sum((calls.measured_s - calls.measured_s.mean()) ** 2))
    squared = 1.0 - float(np.sum((calls.measured_s - calls.predicted_s) ** 2)) / total if total > 0 else 0.0
    return Check(
        "goodness",
        error,
        squared,
        None,
        SCATTER,
        f"Single calls are {percent(error)} off the model on average (R² = {squared:.3f}): it holds for "
        "sums of many calls, not for single ones. Something other than size matters: alignment, cache contents, the "
        "state of the library.",
        f"Single calls are {percent(error)} off the model on average (R² = {squared:.3f}).",
    )


def number_of_calls(calls: Residuals) -> Check:
    """Are there enough calls?"""
    count = len(calls)
    size = 3.0 if count < TOO_FEW else 1.0 if count < FEW else 0.0
    return Check(
        "calls",
        size,
        float(count),
        None,
        CALLS,
        f"Only {count} calls were measured: the model is little more than their mean; measure at least {FEW}.",
        f"{count} calls were measured.",
    )


def constant(calls: Residuals) -> Check:
    """Are durations all the same?"""
    if len(calls) < ENOUGH_TO_BE_EQUAL:
        return unable("constant", CONSTANT, "Too few calls to tell whether their durations are all the same.")
    distinct = len(np.unique(calls.measured_s))
    return Check(
        "constant",
        1.0 if distinct == 1 else 0.0,
        float(distinct),
        None,
        CONSTANT,
        f"All {len(calls)} durations are exactly {seconds(float(calls.measured_s[0]))}: these are not "
        "measurements, or the clock is too coarse; do not use this model.",
        f"{distinct} different durations were measured.",
    )


def tick(calls: Residuals) -> Check:
    """Does the clock resolve durations of this length?"""
    distinct = np.unique(calls.measured_s)
    if len(distinct) < 3:
        return unable("clock", TICK, "Too few different durations to estimate the resolution of the clock.")
    step_s, usual_s = float(np.min(np.diff(distinct))), float(np.median(calls.measured_s))
    size = step_s / usual_s if usual_s > 0 else 1.0
    zero = float(np.mean(calls.measured_s <= 0.0))
    size = max(size, 1.0 if zero > 0.5 else 0.2 if zero > 0.05 else 0.0)
    return Check(
        "clock",
        size,
        step_s,
        None,
        TICK,
        f"The typical duration is {seconds(usual_s)}, the clock resolves {seconds(step_s)}, and {percent(zero)} of "
        "the calls are no longer than reading it takes: time several calls at once.",
        f"The clock resolves {seconds(step_s)}, calls take {seconds(usual_s)}.",
    )


def one_size(calls: Residuals) -> Check:
    """Was more than one size measured?"""
    distinct = len(np.unique(calls.size))
    return Check(
        "sizes",
        2.0 if distinct == 1 else 1.0 if distinct == 2 else 0.0,
        float(distinct),
        None,
        SIZES,
        f"Calls of only {distinct} size{'s' if distinct > 1 else ''} were measured: the model does not cover others; "
        "measure more sizes, or use it for these only.",
        f"{distinct} sizes were measured.",
    )
