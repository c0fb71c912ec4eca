"""What moved between ranks and between nodes: messages by pairs, and collective operations, which belong to no pair."""

from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.simulate.trace.breakdown import LATE
from lepaute.simulate.trace.dependencies import Dependencies
from lepaute.simulate.trace.messages import COLLECTIVES, NONBLOCKING_COLLECTIVES, collective_turns, message_rows
from lepaute.simulate.trace.sums import largest_first
from lepaute.simulate.trace.table import Trace


@dataclass(frozen=True, slots=True)
class Pairs:
    """Messages from senders to receivers, which are ranks or nodes; arrays of the same length, each pair once.

    time_s : from the beginning of each send to the end of the call in which its message was received, added up; of
             messages of which both are in the trace
    """

    sender: NDArray[Any]
    receiver: NDArray[Any]
    messages: NDArray[Any]
    size_bytes: NDArray[Any]
    time_s: NDArray[Any]

    def grouped(self, group_of: NDArray[Any]) -> "Pairs":
        """The same between the groups of senders and receivers, such as their nodes; group_of: of each."""
        pairs = numpy.stack((group_of[self.sender], group_of[self.receiver]), axis=1)
        pairs, place = numpy.unique(pairs, axis=0, return_inverse=True)
        sums = [
            numpy.bincount(place.reshape(-1), weights=column, minlength=len(pairs))
            for column in (self.messages, self.size_bytes, self.time_s)
        ]
        return Pairs(pairs[:, 0], pairs[:, 1], sums[0].astype("int64"), sums[1], sums[2])

    def to_list(self, sender: str, receiver: str) -> list[dict[str, Any]]:
        """Rows for JSON, most bytes first."""
        order = largest_first(self.size_bytes)
        columns = (self.sender, self.receiver, self.messages, self.size_bytes, self.time_s)
        names = (sender, receiver, "messages", "size_bytes", "time_s")
        rows = zip(*(column[order].tolist() for column in columns), strict=True)
        return [dict(zip(names, row, strict=True)) for row in rows]


@dataclass(frozen=True, slots=True)
class CollectiveUse:
    """All operations of one name in communicators of so many members.

    members    : -1 if that is not known;  operations, calls: that many calls are these operations
    size_bytes : of all calls, as recorded;  time_s, waiting_s: of all their ranks
    """

    call: str
    members: int
    operations: int
    calls: int
    size_bytes: float
    time_s: float
    waiting_s: float


def pairs_of(trace: Trace, known: Dependencies) -> Pairs:
    """The messages of a trace by pairs of ranks; known: its dependencies."""
    sends, _ = message_rows(trace)
    has_end = known.matches.end >= 0
    send, end = known.matches.send[has_end], known.matches.end[has_end]
    took_s = numpy.zeros(len(trace))
    took_s[send] = trace.end_s[end] - trace.start_s[send]
    ranks = numpy.arange(int(max(trace.rank.max(initial=0), trace.peer.max(initial=0))) + 1)
    ends = trace.rank[sends], trace.peer[sends]
    return Pairs(*ends, numpy.ones(len(sends), "int64"), trace.size_bytes[sends], took_s[sends]).grouped(ranks)


def collectives_of(trace: Trace, parts: NDArray[Any]) -> tuple[CollectiveUse, ...]:
    """The collective operations of a trace, those with the most time first; parts: as `split` gives them."""
    rows = numpy.flatnonzero(trace.named(COLLECTIVES | NONBLOCKING_COLLECTIVES))
    turns = collective_turns(trace, rows)
    comm = trace.comm[rows]
    members = numpy.full(len(rows), -1)
    for number in numpy.unique(comm[comm >= 0]).tolist():
        members[comm == number] = len(numpy.unique(trace.rank[rows[comm == number]]))
    keys = numpy.stack((trace.name[rows], members), axis=1)
    uses = []
    for name, of_members in numpy.unique(keys, axis=0).tolist():
        mask = (trace.name[rows] == name) & (members == of_members)
        chosen = rows[mask]
        operations = len(numpy.unique(turns[mask])) if of_members >= 0 else int(mask.sum())
        sums = [float(column[chosen].sum()) for column in (trace.size_bytes, trace.duration_s, parts[:, LATE])]
        uses.append(CollectiveUse(trace.names[name], of_members, operations, int(mask.sum()), *sums))
    return tuple(sorted(uses, key=lambda use: -use.time_s))
