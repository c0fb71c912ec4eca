"""What a picture of a trace shows of each rank: shares of its time in equal pieces, or a sequence of segments."""

from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.simulate.trace.colours import NOTHING
from lepaute.simulate.trace.table import PHASE, Trace

#: Dates of segments are whole numbers below this.
TICKS = 1 << 26


def binned(start_s: NDArray[Any], seconds: NDArray[Any], low_s: float, high_s: float, bins: int) -> NDArray[Any]:
    """Share of each bin's time by class, shape (bins, classes); calls of many bins are spread over them.

    The parts of a call follow each other in the order of the classes.
    """
    width = (high_s - low_s) / bins
    sums = numpy.zeros((bins + 2, seconds.shape[1]))
    begin = start_s.copy()
    for place in range(seconds.shape[1]):
        duration = seconds[:, place]
        has = duration > 0
        low = numpy.clip((begin[has] - low_s) / width, 0.0, bins)
        high = numpy.clip((begin[has] + duration[has] - low_s) / width, 0.0, bins)
        # The share of a bin that lies before x grows linearly inside the bin: differences of that at both ends, added
        # up over the bins, are the time inside each.
        slope = numpy.zeros(bins + 2)
        for at, sign in ((low, 1.0), (high, -1.0)):
            cell = numpy.floor(at).astype(int)
            numpy.add.at(slope, cell, sign * (cell + 1 - at))
            numpy.add.at(slope, cell + 1, sign * (at - cell))
        sums[:, place] = numpy.cumsum(slope)
        begin += duration
    return sums[:bins].clip(0.0, None)


def evenly(ranks: list[int], most: int) -> list[int]:
    """At most this many of the ranks, the first and the last among them."""
    if len(ranks) <= most:
        return ranks
    return [ranks[at * (len(ranks) - 1) // (most - 1)] for at in range(most)]


def step_starts(trace: Trace) -> dict[int, float]:
    """When the panel of each step began to be factored; where a trace has no such phase, its first call."""
    facts = trace.named(("pdfact",)) & (trace.kind == PHASE) & (trace.step >= 0)
    rows = facts if facts.any() else trace.step >= 0
    steps, starts = trace.step[rows], trace.start_s[rows]
    order = numpy.lexsort((starts, steps))
    step_numbers, first = numpy.unique(steps[order], return_index=True)
    return {int(step): float(starts[order][at]) for step, at in zip(step_numbers, first, strict=True)}


@dataclass(frozen=True, slots=True)
class Segments:
    """What each rank does from low_s to high_s, without gaps.

    codes     : of each segment, into `kinds`; of all ranks one after the other
    ticks     : how long each lasts, in TICKS of the whole; those of a rank add up to TICKS
    kinds     : (name of the call, class in colours.CALLS); the first is nothing
    shortest_s : segments shorter than this are put together: within so long, the time of each kind is true, the order
                 is not; 0 if all are as they were
    """

    ranks: tuple[int, ...]
    low_s: float
    high_s: float
    counts: NDArray[Any]
    codes: NDArray[Any]
    ticks: NDArray[Any]
    kinds: tuple[tuple[str, int], ...]
    shortest_s: float


def segments(trace: Trace, seconds: NDArray[Any], most: int) -> Segments:
    """The calls of each rank as segments, at most about `most` of them.

    seconds : of each row by class, as colours.classes gives them, shape (rows, classes)
    Classes of a call follow each other in their order. What calls of several threads overlap counts for the first.
    """
    ranks = numpy.array(trace.ranks)
    low_s, high_s = float(trace.start_s.min()), float(trace.end_s.max())
    whole_s = max(high_s - low_s, 1e-9)
    rows, place = numpy.nonzero(seconds > 0)
    length_s = seconds[rows, place]
    start_s = trace.start_s[rows] + (numpy.cumsum(seconds, axis=1)[rows, place] - length_s)
    of_rank = numpy.searchsorted(ranks, trace.rank[rows])
    keys, code = numpy.unique(trace.name[rows].astype("int64") * (NOTHING + 1) + place, return_inverse=True)
    kinds = [(trace.names[key // (NOTHING + 1)], int(key % (NOTHING + 1))) for key in keys.tolist()]

    # Dates from the beginning of all; every rank begins at a multiple of TICKS, so that one sequence holds all.
    start = of_rank * TICKS + numpy.round((start_s - low_s) / whole_s * TICKS).clip(0, TICKS).astype("int64")
    end = of_rank * TICKS + numpy.round((start_s + length_s - low_s) / whole_s * TICKS).clip(0, TICKS).astype("int64")
    order = numpy.argsort(start, kind="stable")
    start, end, code = start[order], end[order], code.reshape(-1)[order] + 1
    end = numpy.maximum.accumulate(end)
    start = numpy.maximum(start, numpy.concatenate(([0], end[:-1])))
    # Gaps are segments too; none crosses the beginning of a rank.
    borders = numpy.arange(len(ranks) + 1) * TICKS
    cuts = numpy.unique(numpy.concatenate((start, end, borders)))
    holder = numpy.searchsorted(start, cuts[:-1], side="right") - 1
    end, code = numpy.append(end, 0), numpy.append(code, 0)  # of a trace in which nothing takes time
    codes = numpy.where((holder >= 0) & (cuts[:-1] < end[holder.clip(0)]), code[holder.clip(0)], 0)
    first, codes = _joined(cuts[:-1], codes)
    unit = 0
    while len(codes) > most and unit < TICKS:
        unit = 2 * unit or 64
        first, codes = _put_together(first, codes, unit, len(ranks))
    counts = numpy.bincount(first // TICKS, minlength=len(ranks))
    ticks = numpy.diff(numpy.append(first, borders[-1]))
    shortest_s = unit * whole_s / TICKS
    nothing = ("nothing recorded", NOTHING)
    return Segments(tuple(ranks.tolist()), low_s, high_s, counts, codes, ticks, (nothing, *kinds), shortest_s)


def _joined(first: NDArray[Any], codes: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Neighbours of the same code are one; ranks stay apart."""
    new = numpy.ones(len(codes), dtype=bool)
    new[1:] = (codes[1:] != codes[:-1]) | (first[1:] // TICKS != first[:-1] // TICKS)
    return first[new], codes[new]


def _put_together(first: NDArray[Any], codes: NDArray[Any], unit: int, ranks: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Segments shorter than `unit` ticks that begin in the same `unit`: one for each code, with all its time."""
    ticks = numpy.diff(numpy.append(first, ranks * TICKS))
    is_long = ticks >= unit
    new = numpy.ones(len(codes), dtype=bool)
    new[1:] = is_long[1:] | is_long[:-1] | (first[1:] // unit != first[:-1] // unit)
    group = numpy.cumsum(new) - 1
    width = int(codes.max()) + 1
    key, at, of_key = numpy.unique(group * width + codes, return_index=True, return_inverse=True)
    order = numpy.lexsort((at, key // width))  # in a group, as they first came
    merged = numpy.bincount(of_key.reshape(-1), weights=ticks).astype("int64")[order]
    return _joined(numpy.cumsum(merged) - merged, (key % width)[order])
