"""The calls of a run as a graph of what waits for what, replayed with other durations: no machine is simulated.

A node ends when all that it waits for has ended, and its weight later. Of a real run the weights are what its calls
and its computing took beyond waiting (`breakdown` calls it transfer); with them the run comes out as it was.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.simulate.trace.messages import (
    ALL_TO_ALL,
    BLOCKING_OF,
    COLLECTIVES,
    FROM_ROOT,
    NONBLOCKING_COLLECTIVES,
    TO_ROOT,
    collective_turns,
    completions,
    match_messages,
)
from lepaute.simulate.trace.table import Trace

#: Values of all nodes that are held at once.
MOST_VALUES = 1 << 25


@dataclass(frozen=True, slots=True)
class Waits:
    """Which calls wait until others have begun.

    row, other : rows of a trace; row does not end before other begins: messages
    member     : rows that take part in collective operations, and `joined`, the number of that operation
    waiting    : rows that wait for those of their operation, and `awaited`, its number
    """

    row: NDArray[Any]
    other: NDArray[Any]
    member: NDArray[Any]
    joined: NDArray[Any]
    waiting: NDArray[Any]
    awaited: NDArray[Any]


def waits_of(trace: Trace) -> Waits:
    """The waits of a trace: a receive for its send, a send that was not over for its receive, and the members of a
    collective operation for those that breakdowns name. What ended before is no wait: clocks may be off."""
    matches = match_messages(trace)
    end = matches.end.copy()
    lost = numpy.flatnonzero(end < 0)
    end[lost] = _next_wait(trace, matches.receive[lost])
    has = end >= 0
    row, other = [end[has]], [matches.send[has]]
    sent = matches.sent
    held = numpy.flatnonzero(sent >= 0)
    held = held[trace.start_s[matches.receive[held]] > trace.start_s[matches.send[held]]]
    row.append(sent[held])
    other.append(matches.receive[held])
    rows, others = numpy.concatenate(row), numpy.concatenate(other)
    real = (trace.end_s[rows] > trace.start_s[others]) & (rows != others)
    return Waits(rows[real], others[real], *_collective_waits(trace))


def _next_wait(trace: Trace, posted: NDArray[Any]) -> NDArray[Any]:
    """The next MPI_Waitall of the rank of each row, where it names no requests; -1 where there is none."""
    waits = numpy.flatnonzero(trace.named("MPI_Waitall") & (trace.completion < 0))
    if not len(waits):
        return numpy.full(len(posted), -1)
    after = waits[numpy.searchsorted(waits, posted).clip(max=len(waits) - 1)]
    result: NDArray[Any] = numpy.where((after > posted) & (trace.rank[after] == trace.rank[posted]), after, -1)
    return result


def _collective_waits(trace: Trace) -> tuple[NDArray[Any], ...]:
    """member, joined, waiting and awaited of Waits."""
    rows = numpy.flatnonzero(trace.named(COLLECTIVES | NONBLOCKING_COLLECTIVES) & (trace.comm >= 0))
    none = numpy.zeros(0, dtype=int)
    if not len(rows):
        return none, none, none, none
    _, operation = numpy.unique(collective_turns(trace, rows), return_inverse=True)
    operation = operation.reshape(-1)
    blocking = trace.named(COLLECTIVES)[rows]
    ends = numpy.where(blocking, rows, completions(trace)[rows])
    is_root = trace.peer[rows] == trace.rank[rows]
    blocks = {
        form: frozenset((*form, *(name for name, does in BLOCKING_OF.items() if does in form)))
        for form in (ALL_TO_ALL, FROM_ROOT, TO_ROOT)
    }
    everybody = numpy.ones(len(rows), dtype=bool)
    joins, waits = numpy.zeros(len(rows), dtype=bool), numpy.zeros(len(rows), dtype=bool)
    for form, who, whom in (
        (ALL_TO_ALL, everybody, everybody),
        (FROM_ROOT, ~is_root, is_root),
        (TO_ROOT, is_root, ~is_root),
    ):
        named = trace.named(blocks[form])[rows]
        joins |= named & whom
        waits |= named & who
    latest = numpy.full(int(operation.max()) + 1, -numpy.inf)
    numpy.maximum.at(latest, operation[joins], trace.start_s[rows[joins]])
    waits &= (ends >= 0) & (trace.end_s[ends.clip(0)] >= latest[operation])
    return rows[joins], operation[joins], ends[waits], operation[waits]


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
    size = max(1, MOST_VALUES // max(nodes, 1))
    return [slice(low, min(low + size, runs)) for low in range(0, runs, size)]
