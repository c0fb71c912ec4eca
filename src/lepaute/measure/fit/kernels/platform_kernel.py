"""Fitted kernels as the values of a platform, and what a fit is worth.

The error of coefficients of single cores or sockets: what is common to all of them, and what is each one's own.

A block was faster, or a launch: all cores were, which no number of cores averages out. A simulation draws the
coefficients of each core by themselves, so that the common error has to be drawn apart, as one factor on the kernel's
calls. It is that of the fit to all cores together, and is taken from the errors of their own fits.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lepaute.measure.fit.kernels.form import Form
from lepaute.measure.fit.kernels.kernel_fit import FittedKernel, FittedPiece, goodness, ranges
from lepaute.measure.fit.kernels.polynomial import PolynomialFit, design_matrix, machine_excess
from lepaute.measure.fit.kernels.regions import ENOUGH_IN_CONTEXT, first_match
from lepaute.measure.fit.numeric import Booleans, Floats, Integers, Mode
from lepaute.measure.fit.observations.calls import Calls
from lepaute.simulate.platform.kernel_model import KernelModel
from lepaute.stats import algebra

CLASSES = 4
#: What is left of an own fit's variance at least, in any direction: both variances are estimates.
MIN_OWN = 0.05


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
    return ratio - 1.0, (float(np.sum((measured - ratio * predicted) ** 2)) / total**2), total


@dataclass(frozen=True, slots=True)
class QualityRow:
    """How well a model describes the calls of an application (those timed inside steps of HPL, where there are any).

    form        : member of the family, such as M'-H/N-2
    group_error : largest relative error of the sum over a class of size (classes with under 1 % of the time left out)
    discrepancy : relative standard deviation of the error on held-out blocks
    tail_share  : part of the time that single calls spent far above their model (interruptions)
    cold_excess : relative extra time of calls in the first step of a row, which are not fitted; NaN if unknown
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
    cold = calls.where(calls.cold)
    predicted = float(kernel.predict(cold).sum()) if len(cold) else 0.0
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
        cold_excess=float(cold.duration_s.sum()) / predicted - 1.0 if predicted > 0 else float("nan"),
        core_spread=_core_spread(fitted, kernel),
        ranges=", ".join(f"{letter} {low:g}-{high:g}" for letter, (low, high) in ranges(fitted).items()),
        note=kernel.note,
        threads=threads,
    )


def _core_spread(calls: Calls, kernel: FittedKernel) -> float:
    ratios = []
    for cpu in np.unique(calls.cpu):
        mine = calls.where(calls.cpu == cpu)
        predicted = float(kernel.predict(mine).sum())
        if predicted > 0:
            ratios.append(float(mine.duration_s.sum()) / predicted)
    return max(ratios) / min(ratios) - 1.0 if len(ratios) > 1 and min(ratios) > 0 else float("nan")


def common_relative_sd(kernel: FittedKernel, calls: Calls) -> float:
    """Relative error of the time of the calls that a model is judged by, from the fits to all cores together.

    0 if all cores have the same coefficients: these are drawn once, with their error. The errors of the pieces are
    taken to go together, since what made them does.
    """
    if kernel.form.shared:
        return 0.0
    chosen = judged(calls)
    total = error = 0.0
    for piece, mask in zip(
        kernel.pieces, first_match(tuple(piece.region for piece in kernel.pieces), chosen), strict=True
    ):
        inside = chosen.where(mask)
        sums = design_matrix(piece.pooled.terms, inside.m, inside.n, inside.k).sum(axis=0)
        total += algebra.dot(sums, piece.pooled.mean)
        error += float(np.sqrt(max(0.0, algebra.dot(sums, algebra.times(piece.pooled.covariance, sums)))))
    return error / total if total > 0.0 else 0.0


def _separate_covariance(own: PolynomialFit, pooled: PolynomialFit) -> Floats:
    """The covariance of the coefficients of one core or socket less that of all together, shape (p, p).

    Both have the same terms. Where the variances of the one are 1, those of the other are taken off, down to MIN_OWN.
    """
    values, vectors = algebra.eigen(own.covariance)
    known = values > 1e-12 * max(float(values[-1]), 0.0)
    if not known.any():
        return own.covariance
    root = vectors[:, known] * np.sqrt(values[known])
    inverse = (vectors[:, known] / np.sqrt(values[known])).T
    shares, axes = algebra.eigen(algebra.times(algebra.times(inverse, pooled.covariance), inverse.T))
    axes = algebra.times(root, axes)
    return algebra.times(axes * np.maximum(1.0 - shares, MIN_OWN), axes.T)


def kernel_model(
    kernel: FittedKernel,
    discrepancy_relative_sd: float,
    crowding: tuple[tuple[tuple[float, float], ...], float],
    places: Mapping[int, tuple[int, int]],
    modes: Sequence[Mode] | None = None,
    threads: int = 1,
) -> KernelModel:
    """The model of a kernel in a platform.

    crowding : rows of shares and increases, and the error next to idle cores, see `variability.crowding`
    places : numbers of the platform's node and cpu (or socket, where coefficients are of sockets) for each measured
             core, as `Calls.cpu` has it, or socket, as `Calls.socket` has it
    modes  : of the noise where it is a mixture, see `Mode`; half-normal without
    """
    return KernelModel.model_validate(
        {
            "kernel": kernel.kernel,
            "threads": threads,
            "pieces": [_piece(piece, kernel.form, places, modes) for piece in kernel.pieces],
            "discrepancy_relative_sd": float(discrepancy_relative_sd),
            "crowding": _crowding(crowding[0]),
            "crowding_relative_sd": crowding[1] or None,
            "form": str(kernel.form),
        }
    )


def _crowding(rows: tuple[tuple[float, float], ...]) -> float | list[list[float]] | None:
    """A number where the increase is known at full load only, else the table."""
    if not rows:
        return None
    return rows[0][1] if len(rows) == 1 and rows[0][0] == 1.0 else [list(row) for row in rows]


def _piece(
    piece: FittedPiece, form: Form, places: Mapping[int, tuple[int, int]], modes: Sequence[Mode] | None
) -> dict[str, Any]:
    fit = piece.pooled
    sd = _polynomial(fit.sd_terms, fit.sd, positive=True)
    return {
        "where": _bounds(piece.region.where),
        "mean": _polynomial(fit.terms, fit.mean),
        "covariance": _covariance(piece),
        "noise": _noise(sd, modes),
        "range": _bounds(piece.range),
        "ranges": [_bounds(box) for box in piece.ranges] or None,
        "goodness": {
            "n_observations": fit.n_observations,
            "r_squared": fit.r_squared,
            "mean_absolute_relative_error": None
            if np.isnan(fit.mean_absolute_relative_error)
            else fit.mean_absolute_relative_error,
        },
        "per_cpu": _per_cpu(piece, form, places, noisy=bool(sd)),
    }


def _noise(sd: dict[str, float], modes: Sequence[Mode] | None) -> dict[str, Any]:
    if not sd:
        return {"kind": "none"}
    if modes is None:
        return {"kind": "half-normal", "sd": sd}
    rows = [{"weight": mode.weight, "mean": mode.mean, "sd": mode.sd} for mode in modes]
    return {"kind": "mixture", "sd": sd, "modes": rows}


def _per_cpu(
    piece: FittedPiece, form: Form, places: Mapping[int, tuple[int, int]], *, noisy: bool
) -> dict[str, Any] | None:
    """Coefficients of single cores or sockets; those of the standard deviation only where the piece has one at all."""
    if not piece.own:
        return None
    fits = [piece.pooled, *piece.own.values()]
    terms = _joined(fit.terms for fit in fits)
    sd_terms = _joined(fit.sd_terms for fit in fits) if noisy else ()
    return {
        "columns": ["node", "socket" if form.per_socket else "cpu", *terms, *(f"sd:{term}" for term in sd_terms)],
        "rows": [
            [float(number) for number in places[unit]]
            + [_coefficient(fit.terms, fit.mean, term) for term in terms]
            + [_coefficient(fit.sd_terms, fit.sd, term) for term in sd_terms]
            for unit, fit in sorted(piece.own.items())
        ],
    }


def _joined(lists: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """All terms, those of the first list in its order and then the others by name."""
    first, *others = lists
    return first + tuple(sorted({term for terms in others for term in terms} - set(first)))


def _coefficient(terms: tuple[str, ...], values: Any, term: str) -> float:
    return float(values[terms.index(term)]) if term in terms else 0.0


def _covariance(piece: FittedPiece) -> dict[str, Any] | None:
    """The covariance, made symmetric and of correlations within 1 to the last digit; None if it is zero.

    Coefficients are drawn for each core (or socket) anew where it has its own: their error is that of its own fit, the
    mean over the cores, without what is common to all of them.
    """
    fit = piece.pooled
    own = [_separate_covariance(each, fit) for each in piece.own.values() if each.terms == fit.terms]
    covariance = np.mean(own, axis=0) if own else fit.covariance
    if not np.any(covariance):
        return None
    symmetric = (covariance + covariance.T) / 2
    return {"terms": list(fit.terms), "matrix": [[float(value) for value in row] for row in symmetric]}


def _polynomial(terms: tuple[str, ...], values: Any, *, positive: bool = False) -> dict[str, float]:
    return {term: float(value) for term, value in zip(terms, values, strict=True) if not positive or value > 0}


def _bounds(bounds: Mapping[str, tuple[float, float]] | None) -> dict[str, list[int]] | None:
    return {letter: [int(low), int(high)] for letter, (low, high) in (bounds or {}).items()} or None
