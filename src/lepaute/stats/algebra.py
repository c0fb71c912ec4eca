"""Algebra of the small matrices that fits have, the same bits on every processor (`core/fit/algebra.hpp`).

NumPy's `@`, `einsum` and `linalg` call BLAS and LAPACK, whose kernels add up in an order of their own on each kind of
processor: the last digit differs, and where two models are equal up to rounding it chooses one of them.
"""

import numpy as np

from lepaute import _core
from lepaute.stats.expanding import Floats


def times(a: Floats, b: Floats) -> Floats:
    """a b; shapes (n, k) and (k,) or (k, p), result (n,) or (n, p)."""
    if b.ndim == 1:
        return _core.product(a, b[:, None])[:, 0]
    return _core.product(a, b)


def products(a: Floats, b: Floats) -> Floats:
    """a' b; shapes (n, p) and (n,) or (n, q), result (p,) or (p, q)."""
    if b.ndim == 1:
        return _core.products(a, b[:, None])[:, 0]
    return _core.products(a, b)


def squares(x: Floats, weight: Floats | None = None) -> Floats:
    """x' diag(weight) x, shape (p, p) for x of shape (n, p), symmetric in every bit."""
    return _core.weighted_products(x, np.ones(len(x)) if weight is None else weight)


def dot(a: Floats, b: Floats) -> float:
    return float(np.sum(a * b))


def solution(gram: Floats, moment: Floats) -> Floats:
    """b with gram b = moment, shape (p,), for a symmetric, positive semi-definite gram; a column that those before it
    explain up to rounding has the coefficient 0."""
    return _core.solution(gram, moment)


def nonnegative_solution(gram: Floats, moment: Floats, *, last_free: bool = False) -> Floats:
    """b >= 0 that minimises b' gram b - 2 b' moment, shape (p,); what is 0 up to rounding is 0.

    last_free : the last coefficient may have any sign
    """
    return _core.nonnegative_solution(gram, moment, last_free)


def residuals(sums: Floats, negligible: float) -> Floats:
    """What least squares leave of the last column squared, (parts,), from products of all, (parts, p + 1, p + 1).

    negligible : a column of which those before it leave no more than this share explains nothing
    """
    return _core.residuals(sums, negligible)


def eigen(symmetric: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues in increasing order, shape (p,), and eigenvectors, the columns of shape (p, p)."""
    return _core.eigen(symmetric)
