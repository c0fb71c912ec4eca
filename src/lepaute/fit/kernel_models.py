"""Fitted kernels as the values of a platform."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lepaute.fit.kernel_fit import FittedKernel, FittedPiece
from lepaute.fit.polynomial import PolynomialFit

if TYPE_CHECKING:
    from lepaute.platform.schema import KernelModel


def kernel_model(
    kernel: FittedKernel, discrepancy_relative_sd: float, crowding: float, places: Mapping[int, tuple[int, int]]
) -> "KernelModel":
    """The model of a kernel in a platform.

    places : numbers of the platform's node and cpu for each measured core, as `Calls.cpu` has it
    """
    from lepaute.platform.schema import KernelModel

    return KernelModel.model_validate(
        {
            "kernel": kernel.kernel,
            "threads": 1,
            "pieces": [_piece(piece, places) for piece in kernel.pieces],
            "discrepancy_relative_sd": float(discrepancy_relative_sd),
            "crowding": float(crowding) or None,
        }
    )


def _piece(piece: FittedPiece, places: Mapping[int, tuple[int, int]]) -> dict[str, Any]:
    fit = piece.pooled
    sd = _polynomial(fit.terms, fit.sd, positive=True)
    return {
        "where": _bounds(piece.region.where),
        "mean": _polynomial(fit.terms, fit.mean),
        "covariance": _covariance(fit) if np.any(fit.covariance) else None,
        "noise": {"kind": "half-normal", "sd": sd} if sd else {"kind": "none"},
        "range": _bounds(piece.range),
        "goodness": {
            "n_observations": fit.n_observations,
            "r_squared": fit.r_squared,
            "mean_absolute_relative_error": None
            if np.isnan(fit.mean_absolute_relative_error)
            else fit.mean_absolute_relative_error,
        },
        "per_cpu": _per_cpu(piece, places) if sd else None,
    }


def _per_cpu(piece: FittedPiece, places: Mapping[int, tuple[int, int]]) -> dict[str, Any] | None:
    if not piece.per_cpu:
        return None
    terms = piece.pooled.terms
    terms += tuple(sorted({term for fit in piece.per_cpu.values() for term in fit.terms} - set(terms)))
    rows = [
        [float(number) for number in places[cpu]]
        + [_coefficient(fit, fit.mean, term) for term in terms]
        + [_coefficient(fit, fit.sd, term) for term in terms]
        for cpu, fit in sorted(piece.per_cpu.items())
    ]
    return {"columns": ["node", "cpu", *terms, *(f"sd:{term}" for term in terms)], "rows": rows}


def _coefficient(fit: PolynomialFit, values: Any, term: str) -> float:
    return float(values[fit.terms.index(term)]) if term in fit.terms else 0.0


def _covariance(fit: PolynomialFit) -> list[list[float]]:
    """Rows of the covariance, made symmetric and of correlations within 1 to the last digit."""
    symmetric = (fit.covariance + fit.covariance.T) / 2
    return [[float(value) for value in row] for row in symmetric]


def _polynomial(terms: tuple[str, ...], values: Any, *, positive: bool = False) -> dict[str, float]:
    return {term: float(value) for term, value in zip(terms, values, strict=True) if not positive or value > 0}


def _bounds(bounds: Mapping[str, tuple[float, float]] | None) -> dict[str, list[int]] | None:
    if not bounds:
        return None
    return {letter: [int(low), int(high)] for letter, (low, high) in bounds.items()}
