"""Balanced, nearly orthogonal subsets of all combinations, for factors with any numbers of levels."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

from lepaute.design.draws import Draws

_STARTS = 4
_MOST_SWAPS = 30_000


@dataclass(frozen=True, slots=True)
class Subset:
    """Rows of level numbers, and how far they are from orthogonal.

    imbalance: the largest difference, over all pairs of factors and of their levels, between how often the two levels
               occur together and how often they would if all pairs did equally often; 0 is an orthogonal array
    """

    rows: tuple[tuple[int, ...], ...]
    imbalance: float


def balanced_subset(sizes: Sequence[int], runs: int, draws: Draws) -> Subset:
    """`runs` rows in which every level of a factor occurs equally often, to within one.

    sizes: number of levels of each factor

    Starts from shuffled balanced columns and swaps two entries of a column as long as the sum of squares of the counts
    of pairs (and of whole rows, against repeated ones) does not rise: the E(s^2) criterion for many levels, all in
    whole numbers. The best of a few starts.
    """
    whole = math.prod(sizes)
    if runs < whole < 2 * runs:
        # What remains of a balanced whole without a balanced subset is balanced too, and nothing in it is repeated.
        without = set(balanced_subset(sizes, whole - runs, draws).rows)
        rows = tuple(row for row in product(*map(range, sizes)) if row not in without)
        if len(rows) == runs:
            return Subset(rows, imbalance_of(rows, sizes))
    best = min((_improved(sizes, runs, draws) for _ in range(_STARTS)), key=lambda candidate: candidate[0])[1]
    rows = tuple(zip(*best, strict=True))
    return Subset(rows, imbalance_of(rows, sizes))


def imbalance_of(rows: Sequence[Sequence[int]], sizes: Sequence[int]) -> float:
    """The largest departure of a count of a pair of levels from equal counts."""
    worst = 0.0
    for first, second in combinations(range(len(sizes)), 2):
        expected = len(rows) / (sizes[first] * sizes[second])
        counts = Counter((row[first], row[second]) for row in rows)
        missing = len(counts) < sizes[first] * sizes[second]
        worst = max(worst, *(abs(count - expected) for count in counts.values()), expected if missing else 0.0)
    return worst


def _improved(sizes: Sequence[int], runs: int, draws: Draws) -> tuple[int, list[list[int]]]:
    """The cost reached from one start, and the columns."""
    columns = [draws.shuffled([row % size for row in range(runs)]) for size in sizes]
    factors = range(len(sizes))
    pairs: dict[tuple[int, ...], Counter[tuple[int, ...]]] = {
        pair: Counter(zip(*(columns[place] for place in pair), strict=True)) for pair in combinations(factors, 2)
    }
    whole = Counter(zip(*columns, strict=True))
    for _ in range(min(_MOST_SWAPS, 40 * runs * len(sizes))):
        column, one, two = draws.below(len(sizes)), draws.below(runs), draws.below(runs)
        if columns[column][one] == columns[column][two]:
            continue
        if _swap(columns, pairs, whole, column, one, two) > 0:
            _swap(columns, pairs, whole, column, one, two)  # back
    cost = sum(count * count for counts in (*pairs.values(), whole) for count in counts.values())
    return cost, columns


def _swap(
    columns: list[list[int]],
    pairs: dict[tuple[int, ...], Counter[tuple[int, ...]]],
    whole: Counter[tuple[int, ...]],
    column: int,
    one: int,
    two: int,
) -> int:
    """Swaps two entries of a column, keeps the counts right, and returns the change of the sum of their squares."""
    touched = [(pair, counts) for pair, counts in pairs.items() if column in pair]
    everything = tuple(range(len(columns)))
    change = 0
    for step in (-1, 1):
        for row in (one, two):
            for places, counts in (*touched, (everything, whole)):
                cell = tuple(columns[place][row] for place in places)
                change += 2 * step * counts[cell] + 1  # (c + step)^2 - c^2
                counts[cell] += step
        if step < 0:
            values = columns[column]
            values[one], values[two] = values[two], values[one]
    return change
