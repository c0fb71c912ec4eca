"""For whom a call waits: the calls of others that had to begin before it could end.

A receive waits for its send, a send that is not over for its receive, a wait or a test for those of its requests, a
collective operation for all members, its root, or, at the root, for the others.
"""

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
    PROBES,
    TO_ROOT,
    Matches,
    collective_turns,
    completions,
    match_messages,
)
from lepaute.simulate.trace.table import Trace


@dataclass(frozen=True, slots=True)
class Waits:
    """Which rows of a trace wait until others have begun.

    row, other, sends : of messages; sends: whether the row sends, and the other receives
    member, joined    : rows by whose beginning a collective operation begins, and the number of that operation
    waiting, awaited  : rows that wait for those of an operation, and its number
    matches : the messages of which both ends are known
    """

    row: NDArray[Any]
    other: NDArray[Any]
    sends: NDArray[Any]
    member: NDArray[Any]
    joined: NDArray[Any]
    waiting: NDArray[Any]
    awaited: NDArray[Any]
    matches: Matches


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


def waits_of(trace: Trace) -> Waits:
    """All waits of a trace; a send that was over before its receive began did not wait for it."""
    matches = match_messages(trace)
    has_end = matches.end >= 0
    has_sent = matches.sent >= 0
    sent, receive = matches.sent[has_sent], matches.receive[has_sent]
    waited = trace.end_s[sent] > trace.start_s[receive]
    rows = numpy.concatenate((matches.end[has_end], sent[waited]))
    others = numpy.concatenate((matches.send[has_end], receive[waited]))
    sends = numpy.arange(len(rows)) >= numpy.count_nonzero(has_end)
    return Waits(rows, others, sends, *_collective_waits(trace), matches)


def dependencies_of(trace: Trace) -> Dependencies:
    """The last call for which each waits; those of nonblocking collective operations are left out."""
    row, gap_s = numpy.full(len(trace), -1), numpy.full(len(trace), -numpy.inf)
    waits = waits_of(trace)
    in_time = numpy.argsort(trace.start_s[waits.member], kind="stable")  # of those of an operation the last stays
    last = numpy.full(int(waits.joined.max(initial=-1)) + 1, -1)
    last[waits.joined[in_time]] = waits.member[in_time]
    blocking = trace.named(COLLECTIVES)[waits.waiting]
    rows = numpy.concatenate((waits.waiting[blocking], waits.row))
    others = numpy.concatenate((last[waits.awaited[blocking]], waits.other))
    gap = trace.start_s[others] - trace.start_s[rows]
    order = numpy.argsort(gap, kind="stable")  # of several of a row the longest stays
    row[rows[order]], gap_s[rows[order]] = others[order], gap[order]
    return Dependencies(row, gap_s, waits.matches)


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


def _collective_waits(trace: Trace) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """member, joined, waiting and awaited of Waits.

    The i-th collective call of a group of ranks is one operation on all its members, since MPI asks that they be called
    in the same order. Those of groups that are not known are left out, and where members disagree about the routine.
    """
    rows = numpy.flatnonzero(trace.named(COLLECTIVES | NONBLOCKING_COLLECTIVES) & (trace.comm >= 0))
    if not len(rows):
        return rows, rows, rows, rows
    _, operation = numpy.unique(collective_turns(trace, rows), return_inverse=True)
    count, name = int(operation.max()) + 1, trace.name[rows]
    first_name = numpy.full(count, -1)
    first_name[operation[::-1]] = name[::-1]
    agreed = numpy.ones(count, dtype=bool)
    numpy.logical_and.at(agreed, operation, name == first_name[operation])
    ends = numpy.where(trace.named(COLLECTIVES)[rows], rows, completions(trace)[rows])
    is_root = trace.peer[rows] == trace.rank[rows]
    everybody = numpy.ones(len(rows), dtype=bool)
    joins, waits = ~everybody, ~everybody
    for names, who, others in (
        (ALL_TO_ALL, everybody, everybody),
        (FROM_ROOT, ~is_root, is_root),
        (TO_ROOT, is_root, ~is_root),
    ):
        named = trace.named(names.union(name for name, does in BLOCKING_OF.items() if does in names))[rows]
        joins |= named & agreed[operation] & others
        waits |= named & agreed[operation] & who & (ends >= 0)
    waits &= numpy.isin(operation, operation[joins])
    return rows[joins], operation[joins], ends[waits], operation[waits]
