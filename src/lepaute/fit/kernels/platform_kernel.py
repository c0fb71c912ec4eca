"""The error of coefficients of single cores or sockets: what is common to all of them, and what is each one's own.

A block was faster, or a launch: all cores were, which no number of cores averages out. A simulation draws the
coefficients of each core by themselves, so that the common error has to be drawn apart, as one factor on the kernel's
calls. It is that of the fit to all cores together, and is taken from the errors of their own fits.

Fitted kernels as the values of a platform.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lepaute.fit.kernels.form import Form
from lepaute.fit.kernels.kernel_fit import FittedKernel, FittedPiece
from lepaute.fit.kernels.polynomial import PolynomialFit, design_matrix
from lepaute.fit.kernels.quality import judged
from lepaute.fit.kernels.regions import first_match
from lepaute.fit.numeric import Floats, Mode
from lepaute.fit.observations.calls import Calls

if TYPE_CHECKING:
    from lepaute.platform.schema import KernelModel

#: What is left of an own fit's variance at least, in any direction: both variances are estimates.
LEAST_OWN = 0.05


def common_relative_sd(kernel: FittedKernel, calls: Calls) -> float:
    """Relative error of the time of the calls that a model is judged by, from the fits to all cores together.

    0 where all cores have the same coefficients: these are drawn once, with their error. The errors of the pieces are
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
        total += float(sums @ piece.pooled.mean)
        error += float(np.sqrt(max(0.0, sums @ piece.pooled.covariance @ sums)))
    return error / total if total > 0.0 else 0.0


def own_covariance(own: PolynomialFit, pooled: PolynomialFit) -> Floats:
    """The covariance of the coefficients of one core or socket less that of all together, shape (p, p).

    Both fits have the same terms. In the directions in which the variances of the one are 1, those of the other are
    taken off, down to LEAST_OWN.
    """
    values, vectors = np.linalg.eigh(own.covariance)
    known = values > 1e-12 * max(float(values[-1]), 0.0)
    if not known.any():
        return own.covariance
    root = vectors[:, known] * np.sqrt(values[known])
    inverse = (vectors[:, known] / np.sqrt(values[known])).T
    shares, axes = np.linalg.eigh(inverse @ pooled.covariance @ inverse.T)
    left = np.maximum(1.0 - shares, LEAST_OWN)
    axes = root @ axes
    result: Floats = (axes * left) @ axes.T
    return result


def kernel_model(
    kernel: FittedKernel,
    discrepancy_relative_sd: float,
    crowding: tuple[tuple[tuple[float, float], ...], float],
    places: Mapping[int, tuple[int, int]],
    modes: Sequence[Mode] | None = None,
    threads: int = 1,
) -> "KernelModel":
    """The model of a kernel in a platform.

    crowding : rows of shares and increases, and the error next to idle cores, see `variability.crowding`
    places : numbers of the platform's node and cpu (or socket, where coefficients are of sockets) for each measured
             core, as `Calls.cpu` has it, or socket, as `Calls.socket` has it
    modes  : of the noise where it is a mixture, see `mixture`; half-normal without
    """
    from lepaute.platform.schema import KernelModel

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
    rows = [
        [float(number) for number in places[unit]]
        + [_coefficient(fit.terms, fit.mean, term) for term in terms]
        + [_coefficient(fit.sd_terms, fit.sd, term) for term in sd_terms]
        for unit, fit in sorted(piece.own.items())
    ]
    return {
        "columns": ["node", "socket" if form.per_socket else "cpu", *terms, *(f"sd:{term}" for term in sd_terms)],
        "rows": rows,
    }


def _joined(lists: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """All terms, those of the first list in its order and then the others by name."""
    first, *others = lists
    return first + tuple(sorted({term for terms in others for term in terms} - set(first)))


def _coefficient(terms: tuple[str, ...], values: Any, term: str) -> float:
    return float(values[terms.index(term)]) if term in terms else 0.0


def _covariance(piece: FittedPiece) -> dict[str, Any] | None:
    """The covariance, made symmetric and of correlations within 1 to the last digit; None where it is zero.

    Coefficients are drawn for each core (or socket) anew where it has its own: their error is that of its own fit, the
    mean over the cores, without what is common to all of them.
    """
    fit = piece.pooled
    own = [own_covariance(each, fit) for each in piece.own.values() if each.terms == fit.terms]
    covariance = np.mean(own, axis=0) if own else fit.covariance
    if not np.any(covariance):
        return None
    symmetric = (covariance + covariance.T) / 2
    return {"terms": list(fit.terms), "matrix": [[float(value) for value in row] for row in symmetric]}


def _polynomial(terms: tuple[str, ...], values: Any, *, positive: bool = False) -> dict[str, float]:
    return {term: float(value) for term, value in zip(terms, values, strict=True) if not positive or value > 0}


def _bounds(bounds: Mapping[str, tuple[float, float]] | None) -> dict[str, list[int]] | None:
    if not bounds:
        return None
    return {letter: [int(low), int(high)] for letter, (low, high) in bounds.items()}
