"""What a fit is worth, as rows that a person reads."""

from dataclasses import dataclass

import numpy as np

from lepaute.fit.kernels.kernel_fit import FittedKernel, goodness, ranges
from lepaute.fit.kernels.polynomial import machine_excess
from lepaute.fit.kernels.size_classes import group_errors
from lepaute.fit.observations.calls import Calls


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
