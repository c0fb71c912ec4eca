"""Cholesky factor of a covariance that may be singular, in plain arithmetic: the same bits on every machine.

LAPACK's last digit depends on the library and the processor, but draws by the factor must repeat bit for bit.
"""

from collections.abc import Sequence
from math import sqrt

Matrix = Sequence[Sequence[float]]

#: A pivot below this share of its variance is rounding: the direction has no spread of its own.
NEGLIGIBLE = 1e-10
#: A pivot below minus this share of its variance is no rounding of a file's digits.
ALLOWED = 1e-6


def lower_factor(covariance: Matrix) -> list[list[float]]:
    """L with L L^T = covariance, lower triangular; a column of zeros where a variance follows from those before.

    covariance : symmetric, positive semi-definite up to rounding, in any units
    Raises ValueError if it is not positive semi-definite, naming the row (from 0).
    """
    size = len(covariance)
    factor = [[0.0] * size for _ in range(size)]
    for column in range(size):
        variance = covariance[column][column]
        pivot = variance
        for earlier in range(column):
            pivot -= factor[column][earlier] * factor[column][earlier]
        if variance < 0.0 or pivot < -ALLOWED * variance:
            raise ValueError(f"row {column}")
        root = sqrt(pivot) if pivot > NEGLIGIBLE * variance else 0.0
        factor[column][column] = root
        for row in range(column + 1, size):
            rest = covariance[row][column]
            for earlier in range(column):
                rest -= factor[row][earlier] * factor[column][earlier]
            if root > 0.0:
                factor[row][column] = rest / root
            elif abs(rest) > 1e-3 * sqrt(covariance[row][row] * variance):
                raise ValueError(f"row {column}")  # what has no spread cannot vary together with anything
    return factor


def multiply_lower_triangular(factor: Matrix, vector: Sequence[float]) -> list[float]:
    """L v for a lower triangular L."""
    product = []
    for row, values in enumerate(factor):
        total = 0.0
        for column in range(row + 1):
            total += values[column] * vector[column]
        product.append(total)
    return product
