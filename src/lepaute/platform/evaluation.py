"""What a kernel model says about one call, without drawing anything."""

from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lepaute.platform.kernel_model import KernelModel, Piece
    from lepaute.platform.values import Polynomial


def piece_of(model: "KernelModel", m: float, n: float, k: float) -> "Piece":
    """The first piece that holds for a call."""
    sizes = {"m": m, "n": n, "k": k}
    for piece in model.pieces:
        if all(low <= sizes[letter] <= high for letter, (low, high) in (piece.where or {}).items()):
            return piece
    return model.pieces[-1]


def value_of(polynomial: "Polynomial", m: float, n: float, k: float) -> float:
    """The polynomial's value for a call."""
    sizes = {"m": m, "n": n, "k": k, "1": 1.0}
    return sum(coefficient * prod(sizes[letter] for letter in term) for term, coefficient in polynomial.items())


def mean_s(model: "KernelModel", m: float, n: float, k: float, *, crowded: bool = True) -> float:
    """Mean duration of a call on a cpu without coefficients of its own; `crowded`: while all other cores compute."""
    table = model.crowding_table
    crowding = table[-1][1] if crowded and table else 0.0
    return value_of(piece_of(model, m, n, k).mean, m, n, k) * (1.0 + crowding)
