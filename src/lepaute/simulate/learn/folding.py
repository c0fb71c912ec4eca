"""Sequences of calls as nested loops: what repeats itself is folded, the shortest repetition first.

All ranks of all recordings are folded together, so that equal pieces become the same loop everywhere. A loop is known
by its body alone; how often it runs belongs to the place where it stands. That is what ScalaTrace keeps as regular
section descriptors (Noeth, Ratn, Mueller, Schulz, de Supinski: J. Parallel Distrib. Comput. 69, 2009).
"""

from dataclasses import dataclass, field
from typing import Any

import numpy
from numpy.typing import NDArray

#: Repetitions that are looked for at once: distances at which many symbols come again.
_CANDIDATES = 24
_LONGEST_PERIOD = 4096
_MAX_ROUNDS = 400


@dataclass
class Level:
    """One round of folding: of every place of the string before the place in the string after it.

    parent : place of the loop, or of the same symbol, after the round
    turn, slot : of what is in a loop which iteration, and which symbol of its body; -1 elsewhere
    after  : the string after the round
    """

    after: NDArray[Any]
    parent: NDArray[Any]
    turn: NDArray[Any]
    slot: NDArray[Any]


@dataclass
class Folded:
    """Strings as loops of loops.

    top    : symbols after the last round, all sequences one after another;  sequence: which one each belongs to
    bodies : of a symbol that is a loop the symbols of its body;  levels : rounds, the first one first
    """

    top: NDArray[Any]
    sequence: NDArray[Any]
    bodies: dict[int, tuple[int, ...]] = field(default_factory=dict)
    levels: list[Level] = field(default_factory=list)


def fold(symbols: NDArray[Any], sequence: NDArray[Any]) -> Folded:
    """Folds strings of symbols (0, 1, ...), each place with the number of its sequence, which ascend."""
    folded = Folded(symbols.astype("int64"), sequence)
    numbers: dict[tuple[int, ...], int] = {}
    following = int(symbols.max(initial=-1)) + 1
    for _ in range(_MAX_ROUNDS):
        starts, repeats, period = _repetitions(folded.top, folded.sequence)
        if not period:
            return folded
        bodies = folded.top[starts[:, None] + numpy.arange(period)]
        distinct, which = numpy.unique(bodies, axis=0, return_inverse=True)
        which = which.reshape(-1)
        codes = []
        for row in distinct.tolist():
            body = tuple(row)
            if body not in numbers:
                numbers[body], following = following, following + 1
                folded.bodies[numbers[body]] = body
            codes.append(numbers[body])
        starts, repeats, loops = _with_singles(folded, distinct, codes, starts, repeats, which, period)
        _replace(folded, starts, repeats, loops, period)
    return folded


def _repetitions(top: NDArray[Any], sequence: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], int]:
    """Starts and counts of the shortest repetitions, and their length; 0 if nothing repeats itself."""
    for period in _candidates(top, sequence):
        starts, repeats = _runs(top, sequence, period)
        if len(starts):
            return starts, repeats, period
    return numpy.zeros(0, "int64"), numpy.zeros(0, "int64"), 0


def _candidates(top: NDArray[Any], sequence: NDArray[Any]) -> list[int]:
    """Lengths at which something may repeat itself, the shortest first."""
    if len(top) < 2:
        return []
    if ((top[1:] == top[:-1]) & (sequence[1:] == sequence[:-1])).any():
        return [1]
    order = numpy.lexsort((top,))
    again = (top[order[1:]] == top[order[:-1]]) & (sequence[order[1:]] == sequence[order[:-1]])
    distance = numpy.diff(order)[again]
    lengths, counts = numpy.unique(distance[distance <= _LONGEST_PERIOD], return_counts=True)
    most = numpy.lexsort((-counts,))[:_CANDIDATES]
    shortest = lengths[:_CANDIDATES]
    return sorted({*lengths[most].tolist(), *shortest.tolist()})


def _runs(top: NDArray[Any], sequence: NDArray[Any], period: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Where two or more equal pieces of a length follow each other, and how many they are."""
    if len(top) < 2 * period:
        return numpy.zeros(0, "int64"), numpy.zeros(0, "int64")
    same = (top[period:] == top[:-period]) & (sequence[period:] == sequence[:-period])
    edges = numpy.flatnonzero(numpy.diff(same.astype("int8"), prepend=0, append=0))
    begins, ends = edges[::2], edges[1::2]
    long = ends - begins >= period
    begins, ends = begins[long], ends[long]
    repeats = (ends - begins) // period + 1
    # Runs may overlap by less than a period: one that begins within the one before is put off, or left out.
    starts, counts, behind = [], [], 0
    for begin, count in zip(begins.tolist(), repeats.tolist(), strict=True):
        if begin < behind:
            late = -(-(behind - begin) // period)
            first, times = behind, count - late
        else:
            first, times = begin, count
        if times >= 2:
            starts.append(first)
            counts.append(times)
            behind = first + times * period
    return numpy.array(starts, dtype="int64"), numpy.array(counts, dtype="int64")


def _with_singles(
    folded: Folded,
    distinct: NDArray[Any],
    codes: list[int],
    starts: NDArray[Any],
    repeats: NDArray[Any],
    which: NDArray[Any],
    period: int,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The loops with those that run once: elsewhere their body stands alone, as on a rank with one neighbour, between
    the same symbols as a loop."""
    top, sequence = folded.top, folded.sequence
    before = numpy.where(numpy.diff(sequence, prepend=-1) == 0, numpy.roll(top, 1), -1)
    after = numpy.append(numpy.where(numpy.diff(sequence) == 0, top[1:], -1), -1)
    taken = numpy.zeros(len(top) + 1, dtype="int64")
    numpy.add.at(taken, starts, 1)
    numpy.add.at(taken, starts + repeats * period, -1)
    busy = numpy.cumsum(taken)[:-1] > 0
    all_starts, all_repeats, all_loops = [starts], [repeats], [numpy.array(codes)[which]]
    last = len(top) - period + 1
    for number, (row, code) in enumerate(zip(distinct, codes, strict=True)):
        loops = which == number
        first, behind = before[starts[loops]], after[starts[loops] + repeats[loops] * period - 1]
        alone = ~busy[:last] & (sequence[:last] == sequence[period - 1 :][:last])
        alone &= numpy.isin(before[:last], first) & numpy.isin(after[period - 1 :][:last], behind)
        for place, symbol in enumerate(row.tolist()):
            alone &= (top[place : place + last] == symbol) & ~busy[place : place + last]
        single = numpy.flatnonzero(alone)
        if period > 1 and len(single):
            single = single[numpy.diff(single, prepend=-period) >= period]
            for at in single.tolist():
                busy[at : at + period] = True
        all_starts.append(single)
        all_repeats.append(numpy.ones(len(single), dtype="int64"))
        all_loops.append(numpy.full(len(single), code))
    starts, repeats, symbols = (numpy.concatenate(parts) for parts in (all_starts, all_repeats, all_loops))
    order = numpy.lexsort((starts,))
    return starts[order], repeats[order], symbols[order]


def _replace(folded: Folded, starts: NDArray[Any], repeats: NDArray[Any], loops: NDArray[Any], period: int) -> None:
    """One symbol for every repetition."""
    top = folded.top
    length = repeats * period
    inside = numpy.zeros(len(top) + 1, dtype="int64")
    numpy.add.at(inside, starts, 1)
    numpy.add.at(inside, starts + length, -1)
    in_loop = numpy.cumsum(inside)[:-1] > 0
    kept = ~in_loop
    kept[starts] = True
    parent = numpy.cumsum(kept) - 1
    turn, slot = numpy.full(len(top), -1), numpy.full(len(top), -1)
    begun = numpy.full(len(top), -1)
    begun[starts] = starts
    begun = numpy.maximum.accumulate(begun)
    since = (numpy.arange(len(top)) - begun)[in_loop]
    turn[in_loop], slot[in_loop] = since // period, since % period
    top = top.copy()
    top[starts] = loops
    folded.top, folded.sequence = top[kept], folded.sequence[kept]
    folded.levels.append(Level(folded.top, parent, turn, slot))
