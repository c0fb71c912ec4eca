"""Who waited, why, and for whom: the wait states of Scalasca.

late sender                  a receive, or a wait for one, began before its send
late receiver                a send that is not over, or a wait for one, began before its receive
wait at barrier              before the last rank came to MPI_Barrier
wait at NxN                  the same of other operations of all with all, such as MPI_Allreduce
wait at communicator creation  the same of calls that make communicators
late broadcast               before the root came to an operation from one to all
early reduce                 of the root, before the last of the others came (Scalasca: before the first)

They are the breakdown's "waiting", row by row, and add up to it. The rank waited for is the one that began last.

Source: Scalasca's documentation of its patterns (scalasca.org); Geimer, Wolf, Wylie, Abraham, Becker, Mohr, "The
Scalasca performance toolset architecture", Concurrency and Computation 22 (6), 2010.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.simulate.trace.breakdown import LATE
from lepaute.simulate.trace.dependencies import Dependencies
from lepaute.simulate.trace.messages import (
    ALL_TO_ALL,
    CREATIONS,
    FROM_ROOT,
    IMMEDIATE_SENDS,
    PROBES,
    RECEIVES,
    SENDRECVS,
    SENDS,
    TO_ROOT,
)
from lepaute.simulate.trace.sums import sums_by
from lepaute.simulate.trace.table import Trace

CAUSES = (
    *("late sender", "late receiver", "wait at barrier", "wait at NxN", "wait at communicator creation"),
    *("late broadcast", "early reduce", "not known"),
)
LATE_SENDER, LATE_RECEIVER, AT_BARRIER, AT_ALL, AT_CREATION, LATE_BROADCAST, EARLY_REDUCE, NOT_KNOWN = range(8)
_OF_COLLECTIVES: Mapping[int, frozenset[str]] = {
    AT_ALL: ALL_TO_ALL,
    AT_CREATION: CREATIONS,
    AT_BARRIER: frozenset(("MPI_Barrier",)),
    LATE_BROADCAST: FROM_ROOT,
    EARLY_REDUCE: TO_ROOT,
}


@dataclass(frozen=True, slots=True)
class WaitStates:
    """Calls that waited; arrays of the same length.

    row, rank : of the trace, and who waited;  whom: for which rank, -1 if that is not known
    cause     : into CAUSES
    """

    row: NDArray[Any]
    rank: NDArray[Any]
    whom: NDArray[Any]
    cause: NDArray[Any]
    time_s: NDArray[Any]

    def where(self, mask: NDArray[Any]) -> "WaitStates":
        """Those of a mask."""
        return WaitStates(*(column[mask] for column in (self.row, self.rank, self.whom, self.cause, self.time_s)))

    def seconds_by(self, *keys: NDArray[Any]) -> dict[tuple[Any, ...], float]:
        """Seconds by the values of some of the columns, the longest first."""
        return sums_by(self.time_s, *keys)

    def by_cause(self, trace: Trace) -> list[dict[str, Any]]:
        """Calls, ranks and seconds of each cause and call, the longest first."""
        made = []
        for (cause, name), time_s in self.seconds_by(self.cause, trace.name[self.row]).items():
            mask = (self.cause == cause) & (trace.name[self.row] == name)
            made.append(
                {
                    "cause": CAUSES[cause],
                    "call": trace.names[name],
                    "calls": int(mask.sum()),
                    "ranks": len(numpy.unique(self.rank[mask])),
                    "time_s": time_s,
                }
            )
        return made

    def by_rank(self, keys: NDArray[Any]) -> list[dict[str, Any]]:
        """Seconds of each rank of `keys` (rank: that waits; whom: that causes it) by cause, the longest first."""
        total = self.seconds_by(keys)
        parts = self.seconds_by(keys, self.cause)
        return [
            {
                "rank": rank,
                "time_s": time_s,
                "by_cause_s": {CAUSES[cause]: part_s for (of, cause), part_s in parts.items() if of == rank},
            }
            for (rank,), time_s in total.items()
        ]


def wait_states_of(trace: Trace, parts: NDArray[Any], whom: NDArray[Any], known: Dependencies) -> WaitStates:
    """The wait states of a trace; parts, whom: as `split` gives them;  known: its dependencies."""
    rows = numpy.flatnonzero(parts[:, LATE] > 0)
    other = known.row[rows]
    is_sender = trace.named(SENDS | IMMEDIATE_SENDS)
    cause = numpy.full(len(rows), NOT_KNOWN)
    cause[trace.named(RECEIVES | PROBES)[rows]] = LATE_SENDER
    cause[trace.named(SENDS - SENDRECVS)[rows]] = LATE_RECEIVER
    if len(trace):
        cause = numpy.where(other >= 0, numpy.where(is_sender[other], LATE_SENDER, LATE_RECEIVER), cause)
    for number, names in _OF_COLLECTIVES.items():
        cause[trace.named(names)[rows]] = number
    waited_for = numpy.where(other >= 0, trace.rank[other], whom[rows]) if len(trace) else other
    waited_for = numpy.where(waited_for == trace.rank[rows], -1, waited_for)
    return WaitStates(rows, trace.rank[rows], waited_for, cause, parts[rows, LATE])
