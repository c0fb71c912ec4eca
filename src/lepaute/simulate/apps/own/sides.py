"""Numbers of ranks: sides of balanced grids, and how far one is from those that were recorded."""

from math import log2
from typing import Any

from lepaute.errors import InputError
from lepaute.kit.numbers import plain


def doublings(recorded: tuple[int, int] | None, ranks: int) -> float:
    """How far a number of ranks is outside of the fewest and the most that were recorded, in doublings."""
    return 0.0 if recorded is None else log2(max(ranks / recorded[1], recorded[0] / ranks, 1.0))


def check_span(recorded: Any, extrapolation: float) -> tuple[int, int] | None:
    """The fewest and the most ranks that a cost was measured on; raises InputError for anything else."""
    if recorded is None:
        if extrapolation:
            raise InputError("extrapolation of a Cost counts beyond `recorded`, two numbers of ranks; give both")
        return None
    ranks = tuple(map(plain, recorded)) if isinstance(recorded, tuple | list) else ()
    if len(ranks) != 2 or not all(type(count) is int for count in ranks) or not 1 <= ranks[0] <= ranks[1]:
        raise InputError(f"recorded of a Cost is {recorded!r:.80}; it is the fewest and the most ranks")
    return ranks[0], ranks[1]


def balanced_sides(ranks: int, dimensions: int) -> tuple[int, ...]:
    """Sides of a grid, largest first, as Open MPI's MPI_Dims_create: prime factors, the largest first, go each to the
    side that is smallest so far."""
    factors, quotient, factor = [], ranks, 2
    while quotient > 1:
        if quotient % factor == 0:
            factors.append(factor)
            quotient //= factor
        else:
            factor = factor + 1 if factor * factor <= quotient else quotient
    sides = [1] * dimensions
    for factor in reversed(factors):
        sides[sides.index(min(sides))] *= factor
    return tuple(sorted(sides, reverse=True))
