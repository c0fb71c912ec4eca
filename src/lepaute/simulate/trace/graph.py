"""The calls of a run as a graph of what waits for what, replayed with other durations: no machine is simulated.

A node ends when all that it waits for has ended, and its weight later. Of a real run the weights are what its calls
and its computing took beyond waiting (`breakdown` calls it transfer); with them the run comes out as it was.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.simulate.trace.dependencies import Waits, waits_of
from lepaute.simulate.trace.table import Trace

#: Values of all nodes that are held at once.
MAX_VALUES = 1 << 25


def edges_of(trace: Trace) -> Waits:
    """The waits of a trace that its dates allow, as clocks may be off; of a send only those for a receive that came
    later. Where an MPI_Waitall names no requests, it waits for all receives before it."""
    waits = waits_of(trace)
    matches = waits.matches
    lost = numpy.flatnonzero(matches.end < 0)
    end = _next_wait(trace, matches.receive[lost])
    row, other = numpy.concatenate((waits.row, end)), numpy.concatenate((waits.other, matches.send[lost]))
    sends = numpy.concatenate((waits.sends, numpy.zeros(len(lost), dtype=bool)))
    real = (row >= 0) & (row != other) & (trace.end_s[row] > trace.start_s[other])
    real &= ~sends | (trace.start_s[other] > trace.start_s[row])
    latest = numpy.full(int(waits.joined.max(initial=-1)) + 1, -numpy.inf)
    numpy.maximum.at(latest, waits.joined, trace.start_s[waits.member])
    ended = trace.end_s[waits.waiting] >= latest[waits.awaited]
    return replace(
        waits,
        row=row[real],
        other=other[real],
        sends=sends[real],
        waiting=waits.waiting[ended],
        awaited=waits.awaited[ended],
    )


def _next_wait(trace: Trace, posted: NDArray[Any]) -> NDArray[Any]:
    """The next MPI_Waitall of the rank of each row, where it names no requests; -1 where there is none."""
    waits = numpy.flatnonzero(trace.named("MPI_Waitall") & (trace.completion < 0))
    if not len(waits):
        return numpy.full(len(posted), -1)
    after = waits[numpy.searchsorted(waits, posted).clip(max=len(waits) - 1)]
    result: NDArray[Any] = numpy.where((after > posted) & (trace.rank[after] == trace.rank[posted]), after, -1)
    return result


class Graph:
    """A graph without circles, in levels.

    count  : of nodes
    before, after : edges, the second of each waits for the first; where they make a circle, `optional` edges go
    """

    def __init__(
        self, count: int, before: NDArray[Any], after: NDArray[Any], optional: NDArray[Any], dates: NDArray[Any]
    ) -> None:
        self.count = count
        level = _levels(count, before, after)
        if (level < 0).any():  # clocks that are off: what waits for the future waits for nothing
            kept = ~optional | (dates[before] < dates[after])
            before, after = before[kept], after[kept]
            level = _levels(count, before, after)
        order = numpy.lexsort((after, level[after]))
        self._before, after = before[order], after[order]
        first = numpy.flatnonzero(numpy.r_[True, after[1:] != after[:-1]]) if len(after) else numpy.zeros(0, dtype=int)
        nodes = after[first]
        cuts = numpy.flatnonzero(numpy.r_[True, level[nodes][1:] != level[nodes][:-1]]) if len(nodes) else first
        bounds = numpy.r_[cuts, len(nodes)]
        edges = numpy.r_[first, len(after)]
        self._steps = [
            (nodes[low:high], slice(edges[low], edges[high]), edges[low:high] - edges[low])
            for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
        ]

    def replay(self, weights: NDArray[Any]) -> NDArray[Any]:
        """When each node ends; weights, and the result: shape (nodes, runs), in seconds."""
        ends: NDArray[Any] = weights.copy()
        for nodes, edges, first in self._steps:
            ends[nodes] += numpy.maximum.reduceat(ends[self._before[edges]], first, axis=0)
        return ends


def _levels(count: int, before: NDArray[Any], after: NDArray[Any]) -> NDArray[Any]:
    """The longest way to each node, in edges; -1 in a circle and behind it."""
    order = numpy.argsort(before)
    targets = after[order].tolist()
    begin = numpy.searchsorted(before[order], numpy.arange(count + 1)).tolist()
    missing = numpy.bincount(after, minlength=count).tolist()
    level = [-1] * count
    ready: list[int] = [node for node, edges in enumerate(missing) if not edges]
    for node in ready:
        level[node] = 0
    deepest = [0] * count
    while ready:
        following: list[int] = []
        for node in ready:
            below = level[node] + 1
            for target in targets[begin[node] : begin[node + 1]]:
                missing[target] -= 1
                deepest[target] = max(deepest[target], below)
                if not missing[target]:
                    level[target] = deepest[target]
                    following.append(target)
        ready = following
    return numpy.array(level, dtype=int)


def batches(nodes: int, runs: int) -> Sequence[slice]:
    """Parts of so many runs that are replayed at a time."""
    size = max(1, MAX_VALUES // max(nodes, 1))
    return [slice(low, min(low + size, runs)) for low in range(0, runs, size)]
