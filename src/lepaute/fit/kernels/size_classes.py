"""Errors of a kernel's model by class of size, over the calls that a model is judged by."""

import numpy as np

from lepaute.fit.kernels.kernel_fit import FittedKernel
from lepaute.fit.kernels.regions import ENOUGH_IN_CONTEXT
from lepaute.fit.numeric.arrays import Booleans, Floats, Integers
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
