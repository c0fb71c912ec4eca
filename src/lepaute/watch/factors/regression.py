"""Coefficients of the duration of dgemm, by ordinary least squares on the means of each (m, n, k): eight terms.

    duration = c_mnk mnk + c_mn mn + c_mk mk + c_nk nk + c_1 + c_m m + c_n n + c_k k

and the same terms of the standard deviation between the calls of one size: the fit of the residuals, as the test of
Cornebize's thesis has them (chapters 4 and 9). Unlike the models of `lepaute fit`, nothing is weighted, selected or
cut, so that a coefficient is linear in what was measured.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lepaute.fit.kernels.polynomial import design_matrix
from lepaute.fit.numeric import Floats, independent_columns
from lepaute.watch.factors.archived_run import ArchivedRun
from lepaute.watch.factors.dgemm_calls import dgemm_calls
from lepaute.watch.factors.value import FactorValue

#: In the order in which they are kept where sizes do not tell two of them apart.
TERMS = ("mnk", "mn", "mk", "nk", "1", "m", "n", "k")
_NAME = {"1": "intercept"}


def coefficient_name(term: str, *, residual: bool = False) -> str:
    """The factor of a term: seconds per unit of it."""
    return f"dgemm_{_NAME.get(term, term)}{'_residual' if residual else ''}_s"


#: The vectors that are tested together (p = 3 and p = 8).
PRODUCT_FACTORS = tuple(map(coefficient_name, ("mnk", "mk", "nk")))
MODEL_FACTORS = tuple(map(coefficient_name, TERMS))


@dataclass(frozen=True, slots=True)
class Regression:
    """Coefficients in seconds per unit of the term, by term; `residual` has none where no size has two calls."""

    mean: dict[str, float]
    residual: dict[str, float]


def coefficients(run: ArchivedRun) -> Iterator[FactorValue]:
    """The coefficients of each processor; terms that its sizes do not determine are left out."""
    for calls in dgemm_calls(run):
        found = regression(calls.m, calls.n, calls.k, calls.duration_s)
        for residual, values in ((False, found.mean), (True, found.residual)):
            for term, value in values.items():
                name = coefficient_name(term, residual=residual)
                yield FactorValue(calls.node, name, value, calls.cpu, calls.conditions)


def regression(m: Floats, n: Floats, k: Floats, duration_s: Floats) -> Regression:
    """The two fits of some calls, vectors of shape (calls,); empty where there are no more sizes than terms.

    The deviation of a size is that between its calls, with one degree of freedom less than calls; sizes of one call do
    not enter it.
    """
    sizes, size = np.unique(np.column_stack([m, n, k]), axis=0, return_inverse=True)
    size = size.ravel()
    calls = np.bincount(size)
    mean = np.bincount(size, duration_s) / calls
    squares = np.bincount(size, (duration_s - mean[size]) ** 2)
    several = calls > 1
    deviation = np.sqrt(squares[several] / (calls[several] - 1))
    return Regression(_least_squares(sizes, mean), _least_squares(sizes[several], deviation))


def _least_squares(sizes: Floats, y: Floats) -> dict[str, float]:
    """Coefficients by term; none where the sizes are too few."""
    if len(sizes) <= len(TERMS):
        return {}
    x = design_matrix(TERMS, sizes[:, 0], sizes[:, 1], sizes[:, 2])
    scale = np.abs(x).max(axis=0)
    kept = independent_columns(x / scale, np.ones(len(x)))
    solution = np.linalg.lstsq(x[:, kept] / scale[kept], y, rcond=None)[0] / scale[kept]
    return {TERMS[index]: float(value) for index, value in zip(kept, solution, strict=True)}
