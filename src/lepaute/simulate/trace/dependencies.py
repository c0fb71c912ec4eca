"""For whom a call waits: of each row the last of the calls of others that had to begin before it could end.

A receive waits for its send, a send that is not over for its receive, a wait or a test for those of its requests, a
collective operation for all members, its root, or, at the root, for the others.
"""

from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.simulate.trace.messages import (
    ALL_TO_ALL,
    COLLECTIVES,
    FROM_ROOT,
    PROBES,
    TO_ROOT,
    Matches,
    collective_turns,
    match_messages,
)
from lepaute.simulate.trace.table import Trace


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Of each row of a trace, shape (rows,).

    row     : of the call that began last of those for which it waits, -1 if there is none or that is not known
    gap_s   : when that began, since the row's own beginning: what is above 0 is waiting; -inf if there is none
    matches : the messages of which both ends are known
    """

    row: NDArray[Any]
    gap_s: NDArray[Any]
    matches: Matches


def dependencies_of(trace: Trace) -> Dependencies:
    """The dependencies of a trace; those of nonblocking collective operations are not known."""
    row, gap_s = _last_members(trace)
    matches = match_messages(trace)
    has_end = matches.end >= 0
    # A send that was over before the receive began did not wait for it.
    has_sent = matches.sent >= 0
    sent, receive = matches.sent[has_sent], matches.receive[has_sent]
    waited = trace.end_s[sent] > trace.start_s[receive]
    rows = numpy.concatenate((matches.end[has_end], sent[waited]))
    others = numpy.concatenate((matches.send[has_end], receive[waited]))
    gap = trace.start_s[others] - trace.start_s[rows]
    later = gap > gap_s[rows]
    rows, others, gap = rows[later], others[later], gap[later]
    order = numpy.argsort(gap, kind="stable")  # of several of a row the longest stays
    row[rows[order]], gap_s[rows[order]] = others[order], gap[order]
    return Dependencies(row, gap_s, matches)


def probed(trace: Trace, known: Dependencies) -> Dependencies:
    """The same, where probes and tests in vain that come right before a receive wait for its send, too: in which of
    them it began, and as far as a simulation tells of waiting, in all."""
    row, gap_s = known.row.copy(), known.gap_s.copy()
    is_probe = trace.named(PROBES)
    has_end = known.matches.end >= 0
    waits = numpy.nan_to_num(trace.late_s) + numpy.nan_to_num(trace.transfer_s) > 0
    for send, end in zip(known.matches.send[has_end].tolist(), known.matches.end[has_end].tolist(), strict=True):
        begun_s, rank, before = trace.start_s[send], trace.rank[end], end - 1
        while before >= 0 and is_probe[before] and trace.rank[before] == rank:
            if row[before] < 0 and (begun_s > trace.start_s[before] or waits[before]):
                row[before], gap_s[before] = send, begun_s - trace.start_s[before]
            if begun_s > trace.start_s[before]:
                break
            before -= 1
    return Dependencies(row, gap_s, known.matches)


def _last_members(trace: Trace) -> tuple[NDArray[Any], NDArray[Any]]:
    """Of each row of a collective operation the row of the member that began last of those for whom it waits, and when,
    since its own beginning; elsewhere -1 and -inf.

    The i-th collective call of a group of ranks is one operation on all its members, since MPI asks that they be called
    in the same order. Those of groups that are not known are left out, and where members disagree about the routine.
    """
    last, gap_s = numpy.full(len(trace), -1), numpy.full(len(trace), -numpy.inf)
    rows = numpy.flatnonzero(trace.named(COLLECTIVES) & (trace.comm >= 0))
    if not len(rows):
        return last, gap_s
    _, operation = numpy.unique(collective_turns(trace, rows), return_inverse=True)
    count, start_s, name = int(operation.max()) + 1, trace.start_s[rows], trace.name[rows]
    is_root = trace.peer[rows] == trace.rank[rows]
    in_time = numpy.argsort(start_s, kind="stable")
    first_name = numpy.full(count, -1)
    first_name[operation[::-1]] = name[::-1]
    agreed = numpy.ones(count, dtype=bool)
    numpy.logical_and.at(agreed, operation, name == first_name[operation])
    everybody = numpy.ones(len(rows), dtype=bool)
    for names, who, others in (
        (ALL_TO_ALL, everybody, everybody),
        (FROM_ROOT, ~is_root, is_root),
        (TO_ROOT, is_root, ~is_root),
    ):
        chosen = in_time[others[in_time]]  # of those with the same operation the last stays
        of_operation = numpy.full(count, -1)
        of_operation[operation[chosen]] = rows[chosen]
        waiting = trace.named(names)[rows] & who & agreed[operation]
        waiting &= of_operation[operation] >= 0
        last[rows[waiting]] = of_operation[operation[waiting]]
    known = last >= 0
    gap_s[known] = trace.start_s[last[known]] - trace.start_s[known]
    return last, gap_s
