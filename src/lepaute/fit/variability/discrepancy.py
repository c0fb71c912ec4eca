"""Error of a kernel's model on calls that it has not seen: what the shape of the polynomial gets wrong."""

from collections.abc import Sequence

import numpy as np

from lepaute.errors import FitError
from lepaute.fit.kernels.kernel_fit import FittedKernel, fit_kernel
from lepaute.fit.kernels.size_classes import class_boundaries, judged, relative_error, size_classes
from lepaute.fit.numeric.arrays import Booleans
from lepaute.fit.observations.calls import Calls
from lepaute.fit.variability.days import BlockEffects, variance_of_processes


def discrepancies(
    kernels: Sequence[tuple[Calls, FittedKernel]], effects: BlockEffects | None, machine_excess: float = 0.0
) -> list[float]:
    """That of each kernel; one that was called in a single block, of which none can be left out, has the median of the
    others: options of HPL that few runs of a calibration have are no better known than the rest."""
    known = [
        discrepancy_relative_sd(calls, kernel, effects, machine_excess) if _blocks(calls) > 1 else None
        for calls, kernel in kernels
    ]
    median = float(np.median([value for value in known if value is not None] or [0.0]))
    return [median if value is None else value for value in known]


def _blocks(calls: Calls) -> int:
    return len(np.unique(calls.block))


def discrepancy_relative_sd(
    calls: Calls, kernel: FittedKernel, effects: BlockEffects | None, machine_excess: float = 0.0
) -> float:
    """Relative standard deviation of the model's error, from fits that leave one block out.

    The held-out calls inside steps of HPL (all calls, where there are none) are put into classes by probe, that is by
    what the neighbouring cores do meanwhile, and by size, quartiles of the product of the parameters; the error of a
    class in a block is sum(measured) / sum(predicted) - 1, after the effect that the block has on all kernels, which is
    another layer, is divided out. The result is the root mean square of the errors weighted by time, less what the
    scatter of single calls and the effects of the processes and launches in the class explain, layers as well. 0 with
    fewer than two blocks.

    machine_excess : time lost to interruptions over time not lost, of all kernels; see `polynomial.machine_excess`
    """
    if _blocks(calls) < 2:
        return 0.0
    regions = tuple(piece.region for piece in kernel.pieces)
    boundaries = class_boundaries(calls)
    errors, variances, weights = [], [], []
    for block in np.unique(calls.block):
        held = judged(calls.where(calls.block == block))
        others = calls.where(calls.block != block)
        if len(held) == 0 or len(others) == 0:
            continue
        try:
            fitted = fit_kernel(others, regions, kernel.form).settled(machine_excess)
        except FitError:
            continue
        predicted, deviation = fitted.predict(held), fitted.deviation(held)
        factor = effects.of_block(int(block)) if effects is not None else 1.0
        for mask in _by_probe(held, size_classes(held, boundaries)):
            error, variance, time_s = relative_error(held.duration_s[mask] / factor, predicted[mask])
            if time_s > 0:
                errors.append(error)
                # Of one or two calls in a class, residuals about its own mean know next to nothing.
                variance = max(variance, float(np.sum(deviation[mask] ** 2)) / time_s**2)
                variances.append(variance + variance_of_processes(held.where(mask), predicted[mask], effects))
                weights.append(time_s)
    if not weights:
        return 0.0
    excess = np.average(np.array(errors) ** 2 - np.array(variances), weights=weights)
    return float(np.sqrt(max(0.0, float(excess))))


def _by_probe(calls: Calls, masks: list[Booleans]) -> list[Booleans]:
    """Each class divided by probe."""
    parts = [mask & (calls.probe == probe) for mask in masks for probe in np.unique(calls.probe)]
    return [part for part in parts if part.any()]
