"""Which ranks of HPL are worth tracing, and how long a trace of it gets."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lepaute.simulate.apps.hpl.parameters import Hpl


def edge_ranks(hpl: "Hpl") -> tuple[int, ...]:
    """The ranks of the first process row and of the first process column."""
    by_row = hpl.pmap == "row"
    row = (column if by_row else column * hpl.p for column in range(hpl.q))
    column = (row * hpl.q if by_row else row for row in range(hpl.p))
    return tuple(sorted({*row, *column}))


def rows_of(hpl: "Hpl", ranks: Sequence[int], steps: Sequence[int]) -> float:
    """Rows of a trace of these ranks and steps, about."""
    of_column = [0] * hpl.q
    for rank in ranks:
        of_column[rank % hpl.q if hpl.pmap == "row" else rank // hpl.p] += 1
    rounds = hpl.p.bit_length() - 1
    panel = hpl.nb * (9 + 3 * rounds)  # of each column: kernels, and three calls a round of the pivot exchange
    swap = 3 * (rounds if hpl.swap == "binary-exchange" else hpl.p + rounds)
    total = 0.0
    for step in steps:
        pieces = 1.0 + (hpl.n - step * hpl.nb) / (hpl.nb * hpl.q)  # of an update, with a probe after each
        total += of_column[step % hpl.q] * panel + len(ranks) * (10 + swap + 4 * pieces)
    return total
