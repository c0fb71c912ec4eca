"""Errors of a kernel's model by class of size, over the calls that a model is judged by.

What a fit is worth, as rows that a person reads.
"""

from dataclasses import dataclass

import numpy as np

from lepaute.fit.kernels.kernel_fit import FittedKernel, goodness, ranges
from lepaute.fit.kernels.polynomial import machine_excess
from lepaute.fit.kernels.regions import ENOUGH_IN_CONTEXT
from lepaute.fit.numeric import Booleans, Floats, Integers
from lepaute.fit.observations.calls import Calls

CLASSES = 4


def group_errors(calls: Calls, kernel: FittedKernel) -> tuple[Floats, Floats]:
    """Relative error sum(measured) / sum(predicted) - 1 of the classes of size, and the time of each in seconds."""
    counted = judged(calls)
    predicted = kernel.predict(counted)
    results = [
        relative_error(counted.duration_s[mask], predicted[mask])
        for mask in size_classes(counted, class_boundaries(calls))
    ]
    return np.array([error for error, _, _ in results]), np.array([time_s for _, _, time_s in results])


def class_boundaries(calls: Calls) -> Floats:
    """Quartiles of the size, among the calls that count."""
    result: Floats = np.unique(np.quantile(judged(calls).work(), np.arange(1, CLASSES) / CLASSES))
    return result


def judged(calls: Calls) -> Calls:
    """The calls that a model is judged by: those in steps of HPL but the first ones, or all where there are none; of
    them those at full load, which it is fitted to, where there are enough."""
    calls = calls.where(calls.nonempty())
    inside = calls.in_context & ~calls.cold
    calls = calls.where(inside) if inside.any() else calls
    full = calls.at_full_load()
    return calls.where(full) if np.count_nonzero(full) >= ENOUGH_IN_CONTEXT else calls


def size_classes(calls: Calls, boundaries: Floats) -> list[Booleans]:
    """Masks of the calls between successive boundaries, those of empty classes left out."""
    which: Integers = np.searchsorted(boundaries, calls.work(), side="left").astype(np.int64)
    return [which == number for number in range(len(boundaries) + 1) if np.any(which == number)]


def relative_error(measured: Floats, predicted: Floats) -> tuple[float, float, float]:
    """Relative error of a sum, its variance from the scatter of the calls, and the predicted seconds."""
    total = float(predicted.sum())
    if total <= 0.0:
        return 0.0, 0.0, 0.0
    ratio = float(measured.sum()) / total
    scatter = float(np.sum((measured - ratio * predicted) ** 2)) / total**2
    return ratio - 1.0, scatter, total


@dataclass(frozen=True, slots=True)
class QualityRow:
    """How well a model describes the calls of an application (those timed inside steps of HPL, where there are any).

    form        : member of the family, such as M'-H/N-2
    group_error : largest relative error of the sum over a class of size (classes with under 1 % of the time left out)
    discrepancy : relative standard deviation of the error on held-out blocks
    tail_share  : part of the time that single calls spent far above their model (interruptions)
    cold_excess : relative extra time of calls in the first step of a row, which are not fitted; NaN where unknown
    core_spread : largest relative difference between the cores, of what the model leaves; NaN with one core
    time_s      : measured time of the calls
    threads     : of the processes that made them
    """

    kernel: str
    form: str
    n_calls: int
    time_s: float
    r_squared: float
    mean_abs_relative_error: float
    group_error: float
    discrepancy: float
    tail_share: float
    cold_excess: float
    core_spread: float
    ranges: str
    note: str
    threads: int = 1


def quality_row(calls: Calls, kernel: FittedKernel, discrepancy: float, threads: int = 1) -> QualityRow:
    """The row of one kernel; `calls` are all its calls, first steps included."""
    fitted = calls.where(~calls.cold & calls.nonempty()) if np.any(~calls.cold) else calls
    if fitted.in_context.any():
        fitted = fitted.where(fitted.in_context)
    r_squared, error = goodness(kernel, fitted)
    errors, times = group_errors(calls, kernel)
    matters = times > 0.01 * times.sum()
    tail, _ = machine_excess(piece.pooled for piece in kernel.pieces)
    return QualityRow(
        kernel=kernel.kernel,
        form=str(kernel.form),
        n_calls=len(fitted),
        time_s=float(fitted.duration_s.sum()),
        r_squared=r_squared,
        mean_abs_relative_error=error,
        group_error=float(np.max(np.abs(errors[matters]))) if matters.any() else 0.0,
        discrepancy=discrepancy,
        tail_share=tail / (1.0 + tail),
        cold_excess=_cold_excess(calls, kernel),
        core_spread=_core_spread(fitted, kernel),
        ranges=", ".join(f"{letter} {low:g}-{high:g}" for letter, (low, high) in ranges(fitted).items()),
        note=kernel.note,
        threads=threads,
    )


def _cold_excess(calls: Calls, kernel: FittedKernel) -> float:
    cold = calls.where(calls.cold)
    predicted = float(kernel.predict(cold).sum()) if len(cold) else 0.0
    return float(cold.duration_s.sum()) / predicted - 1.0 if predicted > 0 else float("nan")


def _core_spread(calls: Calls, kernel: FittedKernel) -> float:
    inside = calls.where(calls.in_context) if calls.in_context.any() else calls
    ratios = []
    for cpu in np.unique(inside.cpu):
        mine = inside.where(inside.cpu == cpu)
        predicted = float(kernel.predict(mine).sum())
        if predicted > 0:
            ratios.append(float(mine.duration_s.sum()) / predicted)
    return max(ratios) / min(ratios) - 1.0 if len(ratios) > 1 and min(ratios) > 0 else float("nan")
