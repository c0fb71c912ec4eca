"""Operations of dense linear algebra, counted one by one while the textbook algorithm runs on numbers that count.

A square root counts as a multiplication; a column that is divided by its pivot costs one reciprocal and a
multiplication an element, as LAPACK's counts have it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Tally:
    multiplies: int = 0
    adds: int = 0


@dataclass
class Number:
    tally: Tally = field(default_factory=Tally)

    def __mul__(self, other: "Number") -> "Number":
        self.tally.multiplies += 1
        return Number(self.tally)

    __truediv__ = __mul__

    def __add__(self, other: "Number") -> "Number":
        self.tally.adds += 1
        return Number(self.tally)

    __sub__ = __add__

    def inverse(self) -> "Number":
        self.tally.multiplies += 1
        return Number(self.tally)

    root = inverse


class Matrix:
    def __init__(self, tally: Tally, rows: int, columns: int) -> None:
        self.cells = [[Number(tally) for _ in range(columns)] for _ in range(rows)]

    def __getitem__(self, at: tuple[int, int]) -> Number:
        return self.cells[at[0]][at[1]]

    def __setitem__(self, at: tuple[int, int], value: Number) -> None:
        self.cells[at[0]][at[1]] = value


def counted(algorithm: Callable[..., None], *sizes: int) -> tuple[int, int]:
    """(multiplications, additions) of `algorithm` for these sizes."""
    tally = Tally()
    algorithm(lambda rows, columns=1: Matrix(tally, rows, columns), *sizes)
    return tally.multiplies, tally.adds


def product(new: Callable[..., Matrix], m: int, n: int, k: int) -> None:
    """C += A B."""
    a, b, c = new(m, k), new(k, n), new(m, n)
    for i in range(m):
        for j in range(n):
            for p in range(k):
                c[i, j] = c[i, j] + a[i, p] * b[p, j]


def triangle_of_product(new: Callable[..., Matrix], n: int, k: int) -> None:
    """The lower triangle of C += A A'."""
    a, c = new(n, k), new(n, n)
    for i in range(n):
        for j in range(i + 1):
            for p in range(k):
                c[i, j] = c[i, j] + a[i, p] * a[j, p]


def triangle_of_two_products(new: Callable[..., Matrix], n: int, k: int) -> None:
    triangle_of_product(new, n, k)
    triangle_of_product(new, n, k)


def band_times_vector(new: Callable[..., Matrix], m: int, n: int, kl: int, ku: int) -> None:
    a, x, y = new(m, n), new(n), new(m)
    for i in range(m):
        for j in range(n):
            if -ku <= i - j <= kl:
                y[i, 0] = y[i, 0] + a[i, j] * x[j, 0]


def symmetric_band_times_vector(new: Callable[..., Matrix], n: int, k: int) -> None:
    band_times_vector(new, n, n, k, k)


def triangle_times_matrix(new: Callable[..., Matrix], order: int, columns: int) -> None:
    """B := L B, in place."""
    a, b = new(order, order), new(order, columns)
    for j in range(columns):
        for i in reversed(range(order)):
            b[i, j] = a[i, i] * b[i, j]
            for p in range(i):
                b[i, j] = b[i, j] + a[i, p] * b[p, j]


def triangle_solved(new: Callable[..., Matrix], order: int, columns: int) -> None:
    """B := L⁻¹ B."""
    a, b = new(order, order), new(order, columns)
    for j in range(columns):
        for i in range(order):
            b[i, j] = b[i, j] / a[i, i]
            for p in range(i + 1, order):
                b[p, j] = b[p, j] - a[p, i] * b[i, j]


def band_triangle_solved(new: Callable[..., Matrix], n: int, k: int) -> None:
    a, x = new(n, n), new(n)
    for i in range(n):
        x[i, 0] = x[i, 0] / a[i, i]
        for p in range(i + 1, min(n, i + k + 1)):
            x[p, 0] = x[p, 0] - a[p, i] * x[i, 0]


def unit_triangle_solved(new: Callable[..., Matrix], order: int, columns: int) -> None:
    a, b = new(order, order), new(order, columns)
    for j in range(columns):
        for i in range(order):
            for p in range(i + 1, order):
                b[p, j] = b[p, j] - a[p, i] * b[i, j]


def lu(new: Callable[..., Matrix], m: int, n: int) -> None:
    a = new(m, n)
    for j in range(min(m, n)):
        pivot = a[j, j].inverse()
        for i in range(j + 1, m):
            a[i, j] = a[i, j] * pivot
        for i in range(j + 1, m):
            for p in range(j + 1, n):
                a[i, p] = a[i, p] - a[i, j] * a[j, p]


def lu_solved(new: Callable[..., Matrix], n: int, nrhs: int) -> None:
    unit_triangle_solved(new, n, nrhs)
    triangle_solved(new, n, nrhs)


def band_cholesky(new: Callable[..., Matrix], n: int, k: int) -> None:
    a = new(n, n)
    for j in range(n):
        a[j, j] = a[j, j].root()
        end = min(n, j + k + 1)
        for i in range(j + 1, end):
            a[i, j] = a[i, j] / a[j, j]
        for i in range(j + 1, end):
            for p in range(j + 1, i + 1):
                a[i, p] = a[i, p] - a[i, j] * a[p, j]


def cholesky(new: Callable[..., Matrix], n: int) -> None:
    band_cholesky(new, n, n)


def cholesky_solved(new: Callable[..., Matrix], n: int, nrhs: int) -> None:
    triangle_solved(new, n, nrhs)
    triangle_solved(new, n, nrhs)


def band_cholesky_solved(new: Callable[..., Matrix], n: int, k: int, nrhs: int) -> None:
    for _ in range(2 * nrhs):
        band_triangle_solved(new, n, k)


def triangle_inverted(new: Callable[..., Matrix], n: int) -> None:
    """Column by column: the inverse of the leading triangle, already there, times the column, times the pivot."""
    a = new(n, n)
    for j in range(n):
        pivot = a[j, j].inverse()
        for i in range(j):
            a[i, j] = a[i, i] * a[i, j]
            for p in range(i + 1, j):
                a[i, j] = a[i, j] + a[i, p] * a[p, j]
        for i in range(j):
            a[i, j] = a[i, j] * pivot
