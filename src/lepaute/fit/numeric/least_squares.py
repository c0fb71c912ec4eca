"""Weighted least squares by normal equations of scaled columns: many calls, few terms."""

import numpy as np

from lepaute.fit.numeric.arrays import Booleans, Floats, Integers

#: A column whose part that earlier columns do not explain is smaller than this, relative to it, is not determined.
INDEPENDENCE = 1e-3
#: What a leverage lacks to 1 at least: a row that alone determines a coefficient would have an infinite error.
MOST_OF_ONE_ROW = 1e-6


def normal_equations(x: Floats, y: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """X' W X, shape (p, p), and X' W y, shape (p,)."""
    weighted = x * weight[:, None]
    return weighted.T @ x, weighted.T @ y


def solution(gram: Floats, moment: Floats) -> Floats:
    """Coefficients b with gram b = moment; the columns are first scaled to unit weighted length."""
    length = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    scaled = gram / np.outer(length, length)
    result: Floats = np.linalg.lstsq(scaled, moment / length, rcond=1e-13)[0] / length
    return result


def nonnegative_solution(gram: Floats, moment: Floats, *, last_free: bool = False) -> Floats:
    """Coefficients b >= 0 that minimise b' gram b - 2 b' moment (Lawson and Hanson's algorithm on a square root).

    last_free : the last coefficient may have any sign
    """
    from scipy.optimize import nnls

    if last_free:
        signs = np.vstack([np.eye(len(moment)), -np.eye(len(moment))[-1:]])
        parts = nonnegative_solution(signs @ gram @ signs.T, signs @ moment)
        joined: Floats = parts @ signs
        return joined

    length = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    values, vectors = np.linalg.eigh(gram / np.outer(length, length))
    values = np.maximum(values, 1e-13 * values[-1])
    root = np.sqrt(values)[:, None] * vectors.T
    target = (vectors.T @ (moment / length)) / np.sqrt(values)
    result: Floats = nnls(root, target)[0] / length
    return result


def independent_columns(x: Floats, weight: Floats) -> Integers:
    """Indices of the columns that the earlier ones do not explain, in their order (Cholesky's rows of the products).

    x      : shape (n, p), columns of comparable size
    weight : shape (n,), factor of each row
    """
    weighted = x * weight[:, None]
    length = np.sqrt(np.sum(weighted**2, axis=0))
    weighted = weighted / np.where(length > 0, length, 1.0)
    gram = weighted.T @ weighted
    kept: list[int] = []
    rows = np.zeros((0, x.shape[1]))  # of the triangle: one for each column that is kept
    for index in np.flatnonzero(length > 0):
        if len(kept) == x.shape[0]:
            break
        rest = gram[index] - rows[:, index] @ rows
        # What is left of squares of unit length: exact to 1e-15, well below the square of what decides.
        if rest[index] > INDEPENDENCE**2:
            rows = np.vstack([rows, rest / np.sqrt(rest[index])])
            kept.append(int(index))
    return np.array(kept, dtype=np.int64)


def sandwich(x: Floats, residual: Floats, weight: Floats, active: Booleans) -> Floats:
    """Covariance of weighted least squares coefficients that holds also where the weights are wrong (HC3).

    (X'WX)^-1 X' W diag(r^2 / (1-h)^2) W X (X'WX)^-1 with leverages h. Columns that are not active have zeros.
    Source: MacKinnon and White (1985), Journal of Econometrics 29, 305-325.
    """
    shifts = shifts_by_row(x, residual, weight, active)
    return shifts.T @ shifts


def shifts_by_row(x: Floats, residual: Floats, weight: Floats, active: Booleans) -> Floats:
    """How much each row moves the coefficients: those of all rows less those without it, shape of x."""
    shifts = np.zeros_like(x)
    root = whitening(x[:, active], weight)
    z = x[:, active] @ root
    leverage = np.minimum(np.einsum("ij,ij->i", z, z) * weight, 1.0 - MOST_OF_ONE_ROW)
    shifts[:, active] = (z * (weight * residual / (1.0 - leverage))[:, None]) @ root.T
    return shifts


def whitening(x: Floats, weight: Floats) -> Floats:
    """L with L L' = (X'WX)^-1, shape (p, p); directions that the rows do not determine are left out."""
    gram = (x * weight[:, None]).T @ x
    length = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    values, vectors = np.linalg.eigh(gram / np.outer(length, length))
    known = values > 1e-13 * max(float(values[-1]), 0.0) if len(values) else np.zeros(0, dtype=bool)
    result: Floats = vectors[:, known] / np.sqrt(values[known]) / length[:, None]
    return result
