"""Error of a kernel's model on calls that it has not seen: what the shape of the polynomial gets wrong."""

import numpy as np

from lepaute.errors import FitError
from lepaute.fit.arrays import Booleans, Floats, Integers
from lepaute.fit.calls import Calls
from lepaute.fit.days import BlockEffects
from lepaute.fit.kernel_fit import FittedKernel, fit_kernel

CLASSES = 4


def discrepancy_relative_sd(
    calls: Calls, kernel: FittedKernel, effects: BlockEffects | None, machine_excess: float = 0.0
) -> float:
    """Relative standard deviation of the model's error, from fits that leave one block out.

    The held-out calls inside steps of HPL (all calls, where there are none) are put into classes by probe, that is by
    what the neighbouring core does meanwhile, and by size, quartiles of the product of the parameters; the error of a
    class in a block is sum(measured) / sum(predicted) - 1, after the
    effect that the block has on all kernels, which is another layer, is divided out. The result is the root mean
    square of the errors weighted by time, less what the scatter of single calls explains. 0 with fewer than two blocks.

    machine_excess : time lost to interruptions over time not lost, of all kernels; see `tail`
    """
    blocks = np.unique(calls.block)
    if len(blocks) < 2:
        return 0.0
    regions = tuple(piece.region for piece in kernel.pieces)
    boundaries = class_boundaries(calls)
    errors, variances, weights = [], [], []
    for block in blocks:
        held = judged(calls.where(calls.block == block))
        others = calls.where(calls.block != block)
        if len(held) == 0 or len(others) == 0:
            continue
        try:
            predicted = fit_kernel(others, regions, kernel.form).settled(machine_excess).predict(held)
        except FitError:
            continue
        factor = effects.of_block(int(block)) if effects is not None else 1.0
        for mask in _by_probe(held, _classes(held, boundaries)):
            error, variance, time_s = _ratio(held.duration_s[mask] / factor, predicted[mask])
            if time_s > 0:
                errors.append(error)
                variances.append(variance)
                weights.append(time_s)
    if not weights:
        return 0.0
    excess = np.average(np.array(errors) ** 2 - np.array(variances), weights=weights)
    return float(np.sqrt(max(0.0, float(excess))))


def group_errors(calls: Calls, kernel: FittedKernel) -> tuple[Floats, Floats]:
    """Relative error sum(measured) / sum(predicted) - 1 of the classes of size, and the time of each in seconds."""
    counted = judged(calls)
    predicted = kernel.predict(counted)
    results = [_ratio(counted.duration_s[mask], predicted[mask]) for mask in _classes(counted, class_boundaries(calls))]
    return np.array([error for error, _, _ in results]), np.array([time_s for _, _, time_s in results])


def class_boundaries(calls: Calls) -> Floats:
    """Quartiles of the size, among the calls that count."""
    result: Floats = np.unique(np.quantile(judged(calls).work(), np.arange(1, CLASSES) / CLASSES))
    return result


def judged(calls: Calls) -> Calls:
    """The calls that a model is judged by: those in steps of HPL but the first ones, or all where there are none."""
    calls = calls.where(calls.nonempty())
    inside = calls.in_context & ~calls.cold
    return calls.where(inside) if inside.any() else calls


def _classes(calls: Calls, boundaries: Floats) -> list[Booleans]:
    which: Integers = np.searchsorted(boundaries, calls.work(), side="left").astype(np.int64)
    return [which == number for number in range(len(boundaries) + 1) if np.any(which == number)]


def _by_probe(calls: Calls, masks: list[Booleans]) -> list[Booleans]:
    """Each class divided by probe."""
    parts = [mask & (calls.probe == probe) for mask in masks for probe in np.unique(calls.probe)]
    return [part for part in parts if part.any()]


def _ratio(measured: Floats, predicted: Floats) -> tuple[float, float, float]:
    """Relative error of a sum, its variance from the scatter of the calls, and the predicted seconds."""
    total = float(predicted.sum())
    if total <= 0.0:
        return 0.0, 0.0, 0.0
    ratio = float(measured.sum()) / total
    scatter = float(np.sum((measured - ratio * predicted) ** 2)) / total**2
    return ratio - 1.0, scatter, total
