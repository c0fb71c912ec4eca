"""The covariance of the coefficients of a mean, with the terms that its rows and columns belong to."""

from collections.abc import Iterable
from typing import Any, Self

from pydantic import model_validator

from lepaute.platform.values import Number, Term, Value, fault

Rows = tuple[tuple[Number, ...], ...]


class Covariance(Value):
    """Variances and covariances of the coefficients of `terms`: matrix[i][j] is that of terms[i] and terms[j].

    A value always has its terms in the order of `in_order`, whatever the order in the file: the draws depend on it,
    and so equal covariances predict equal durations.
    """

    terms: tuple[Term, ...]
    matrix: Rows

    @model_validator(mode="after")
    def _is_one_and_in_order(self) -> Self:
        if len(set(self.terms)) < len(self.terms):
            raise fault("has the same term twice", "terms", remedy="Remove one.")
        check_covariance(self.matrix, len(self.terms), "matrix")
        order = sorted(range(len(self.terms)), key=lambda i: _place(self.terms[i]))
        if order != list(range(len(order))):
            rows = tuple(tuple(self.matrix[i][j] for j in order) for i in order)
            # the value is frozen, and still being made
            object.__setattr__(self, "terms", tuple(self.terms[i] for i in order))
            object.__setattr__(self, "matrix", rows)
        return self


def in_order(terms: Iterable[str]) -> list[str]:
    """`terms` as `lepaute fit` orders them: by falling degree, products of different letters first, then m, n, k."""
    return sorted(terms, key=_place)


def _place(term: str) -> tuple[int, int, list[int]]:
    return (0, 0, []) if term == "1" else (-len(term), -len(set(term)), ["mnk".find(letter) for letter in term])


def named(rows: Any, mean: Any) -> Any:
    """The covariance `rows` of a file of an earlier version, which did not name the terms, with those of `mean`.

    They were in the order of the keys of `mean`, which many programs change when they save the file again. So they are
    taken only where the keys have the order of `lepaute fit`; sorted keys have it only where sorting changes nothing.
    Raises the fault of another order; keys that are no terms are left to the validation of `mean`.
    """
    terms = [str(term) for term in mean] if isinstance(mean, dict) else []
    expected = in_order(terms)
    if terms != expected and all(term == "1" or set(term) <= set("mnk") for term in terms):
        raise fault(
            f"does not name its terms, and the keys of mean ({', '.join(terms)}) are not in the order in which they "
            f"are written ({', '.join(expected)}), as after saving with sorted keys: which row is which is unknown",
            "covariance",
            remedy="Use the original file, or write covariance: {terms: [...], matrix: [[...], ...]}.",
        )
    return {"terms": terms, "matrix": rows}


def check_covariance(rows: tuple[tuple[float, ...], ...], size: int, *at: str | int) -> None:
    """Raises the fault, at the field `at`, of a matrix that is not square, not symmetric, or has a variance below 0."""
    if len(rows) != size or any(len(row) != size for row in rows):
        raise fault(
            f"must be square, {size} x {size}: a row and a column for each term",
            *at,
            remedy="Complete it, or write null.",
        )
    for i in range(size):
        if rows[i][i] < 0:
            raise fault(f"is {rows[i][i]!r}; a variance must be >= 0", *at, i, i)
        for j in range(i):
            scale = (rows[i][i] * rows[j][j]) ** 0.5
            if abs(rows[i][j] - rows[j][i]) > 1e-9 * scale:
                raise fault(
                    f"is {rows[i][j]!r}, but {at[-1]}[{j}][{i}] is {rows[j][i]!r}; a covariance must be symmetric",
                    *at,
                    i,
                    j,
                    remedy="Make them equal.",
                )
            if abs(rows[i][j]) > scale * (1 + 1e-6):
                raise fault(f"is {rows[i][j]!r}, a correlation beyond 1", *at, i, j)
