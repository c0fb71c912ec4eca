"""Terms of a model's polynomial: products of the parameters m, n and k."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lepaute.fit.numeric.arrays import Floats

#: Terms that a fit of a kernel tries, most important first: of two that the data cannot distinguish, the first is kept.
DEFAULT_TERMS: dict[str, tuple[str, ...]] = {
    "dgemm": ("mnk", "mn", "mk", "nk", "1"),
    "dgemm_nn": ("mnk", "mn", "mk", "nk", "1"),
    "dtrsm": ("mnk", "mn", "m", "n", "1"),
    "dtrsm_left": ("mnk", "mn", "m", "n", "1"),
    "dgemv": ("mn", "m", "n", "1"),
    "dger": ("mn", "m", "n", "1"),
    "dtrsv": ("nn", "n", "1"),
    "dscal": ("n", "1"),
    "idamax": ("n", "1"),
    "daxpy": ("n", "1"),
    "dcopy": ("n", "1"),
    "dlocswp": ("n", "1"),
    "pdfact_glue": ("m", "n", "1"),
    "pdupdate_glue": ("1",),
    "first_touch": ("n", "1"),
}
#: Swaps and copies.
MATRIX_TERMS: tuple[str, ...] = ("mn", "m", "n", "1")


def default_terms(kernel: str) -> tuple[str, ...]:
    """Terms for a kernel by name."""
    return DEFAULT_TERMS.get(kernel, MATRIX_TERMS)


def term_column(term: str, m: "Floats", n: "Floats", k: "Floats") -> "Floats":
    """Values of one term, shape of m; "1" is the constant.  Raises KeyError for a letter other than m, n, k."""
    import numpy as np

    if term == "1":
        return np.ones_like(m)
    letters = {"m": m, "n": n, "k": k}
    column = letters[term[0]].copy()
    for letter in term[1:]:
        column *= letters[letter]
    return column


def design_matrix(terms: Sequence[str], m: "Floats", n: "Floats", k: "Floats") -> "Floats":
    """Columns of the terms, shape (len(m), len(terms))."""
    import numpy as np

    return np.column_stack([term_column(term, m, n, k) for term in terms])
