"""Levels of a factor that were measured in stretches of calls, not shuffled: then the stretches are what is exchanged.

Successive calls are alike whatever their level, since a core is faster or slower for a while. Calls of a level that
were made one after the other are about as good as one, and where all processes made them in the same order, as one for
all processes: what the order itself does (caches that warm up, a clock that falls) is then the same in all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lepaute.fit.numeric.arrays import Floats, Integers

#: Standard deviations that the number of stretches has to be below that of shuffled levels. Of designs that were
#: shuffled, one in forty is then tested by stretches: a loss of power, but no false alarm.
FEWER = 1.96


@dataclass(frozen=True, slots=True)
class Stretches:
    """Stretches of successive calls of one level in one process.

    number     : of the stretch of each call, shape (calls,)
    place      : of each stretch in its process, from 0
    same_order : all processes, of which there are several, have the same levels in the same order
    """

    number: Integers
    place: Integers
    same_order: bool


def stretches_of(process: Integers, order: Floats, level: Integers) -> Stretches | None:
    """The stretches; None where there are as many as with shuffled levels.

    process, order, level : of each call, shape (calls,): its process, when it was made, its level (numbers from 0)
    The number of stretches is compared with its distribution over all orders of the levels inside processes (Wald and
    Wolfowitz's runs, here of any number of levels: Barton and David 1957, Biometrika 44, 168-178).
    """
    rows = np.lexsort((order, process))
    sorted_process, sorted_level = process[rows], level[rows]
    begins = np.ones(len(rows), dtype=bool)
    begins[1:] = (sorted_process[1:] != sorted_process[:-1]) | (sorted_level[1:] != sorted_level[:-1])
    if not _too_few(sorted_process, sorted_level, int(begins.sum())):
        return None
    number = np.empty(len(rows), dtype=np.int64)
    number[rows] = np.cumsum(begins) - 1
    starts = np.flatnonzero(begins)
    of_process, of_level = sorted_process[starts], sorted_level[starts]
    first = np.flatnonzero(np.concatenate([[True], of_process[1:] != of_process[:-1]]))
    count = np.diff(np.append(first, len(starts)))
    place = np.arange(len(starts)) - np.repeat(first, count)
    sequences = {tuple(of_level[begin : begin + size].tolist()) for begin, size in zip(first, count, strict=True)}
    return Stretches(number, place, len(first) > 1 and len(sequences) == 1)


def _too_few(process: Integers, level: Integers, stretches: int) -> bool:
    """Whether the stretches are fewer than shuffling leaves; both arguments sorted by process."""
    expected = variance = 0.0
    for begin, end in _ranges(process):
        sizes = np.bincount(level[begin:end]).astype(np.float64)
        n, squares, cubes = end - begin, float(np.sum(sizes**2)), float(np.sum(sizes**3))
        expected += n + 1.0 - squares / n
        if n > 1:
            variance += (squares * (squares + n * (n + 1.0)) - 2.0 * n * cubes - n**3.0) / (n**2.0 * (n - 1.0))
    return bool(stretches + 0.5 < expected - FEWER * np.sqrt(max(variance, 0.0)))


def _ranges(sorted_values: Integers) -> Sequence[tuple[int, int]]:
    edges = [0, *(np.flatnonzero(np.diff(sorted_values)) + 1).tolist(), len(sorted_values)]
    return list(zip(edges[:-1], edges[1:], strict=True))
