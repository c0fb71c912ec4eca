"""Fitted kernels as the values of a platform."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lepaute.fit.kernels.kernel_fit import FittedKernel, FittedPiece
from lepaute.fit.numeric.mixture import Mode

if TYPE_CHECKING:
    from lepaute.platform.schema import KernelModel


def kernel_model(
    kernel: FittedKernel,
    discrepancy_relative_sd: float,
    crowding: float,
    places: Mapping[int, tuple[int, int]],
    modes: Sequence[Mode] | None = None,
) -> "KernelModel":
    """The model of a kernel in a platform.

    places : numbers of the platform's node and cpu for each measured core, as `Calls.cpu` has it
    modes  : of the noise where it is a mixture, see `mixture`; half-normal without
    """
    from lepaute.platform.schema import KernelModel

    return KernelModel.model_validate(
        {
            "kernel": kernel.kernel,
            "threads": 1,
            "pieces": [_piece(piece, places, modes) for piece in kernel.pieces],
            "discrepancy_relative_sd": float(discrepancy_relative_sd),
            "crowding": float(crowding) or None,
            "form": str(kernel.form),
        }
    )


def _piece(piece: FittedPiece, places: Mapping[int, tuple[int, int]], modes: Sequence[Mode] | None) -> dict[str, Any]:
    fit = piece.pooled
    sd = _polynomial(fit.sd_terms, fit.sd, positive=True)
    return {
        "where": _bounds(piece.region.where),
        "mean": _polynomial(fit.terms, fit.mean),
        "covariance": _covariance(piece),
        "noise": _noise(sd, modes),
        "range": _bounds(piece.range),
        "goodness": {
            "n_observations": fit.n_observations,
            "r_squared": fit.r_squared,
            "mean_absolute_relative_error": None
            if np.isnan(fit.mean_absolute_relative_error)
            else fit.mean_absolute_relative_error,
        },
        "per_cpu": _per_cpu(piece, places, noisy=bool(sd)),
    }


def _noise(sd: dict[str, float], modes: Sequence[Mode] | None) -> dict[str, Any]:
    if not sd:
        return {"kind": "none"}
    if modes is None:
        return {"kind": "half-normal", "sd": sd}
    rows = [{"weight": mode.weight, "mean": mode.mean, "sd": mode.sd} for mode in modes]
    return {"kind": "mixture", "sd": sd, "modes": rows}


def _per_cpu(piece: FittedPiece, places: Mapping[int, tuple[int, int]], *, noisy: bool) -> dict[str, Any] | None:
    """The coefficients of single cores; those of the standard deviation only where the piece has one at all."""
    if not piece.per_cpu:
        return None
    fits = [piece.pooled, *piece.per_cpu.values()]
    terms = _joined(fit.terms for fit in fits)
    sd_terms = _joined(fit.sd_terms for fit in fits) if noisy else ()
    rows = [
        [float(number) for number in places[cpu]]
        + [_coefficient(fit.terms, fit.mean, term) for term in terms]
        + [_coefficient(fit.sd_terms, fit.sd, term) for term in sd_terms]
        for cpu, fit in sorted(piece.per_cpu.items())
    ]
    return {"columns": ["node", "cpu", *terms, *(f"sd:{term}" for term in sd_terms)], "rows": rows}


def _joined(lists: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """All terms, those of the first list in its order and then the others by name."""
    first, *others = lists
    return first + tuple(sorted({term for terms in others for term in terms} - set(first)))


def _coefficient(terms: tuple[str, ...], values: Any, term: str) -> float:
    return float(values[terms.index(term)]) if term in terms else 0.0


def _covariance(piece: FittedPiece) -> dict[str, Any] | None:
    """The covariance, made symmetric and of correlations within 1 to the last digit; None where it is zero.

    Coefficients are drawn for each core anew where cores have their own: their error is that of a core's own fit, the
    mean over the cores.
    """
    fit = piece.pooled
    own = [each.covariance for each in piece.per_cpu.values() if each.terms == fit.terms]
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
