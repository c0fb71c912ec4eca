"""MPI calls by what they do, and which send goes with which receive."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lepaute.trace.table import Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

SENDS = frozenset(f"MPI_{form}" for form in ("Send", "Ssend", "Bsend", "Rsend", "Sendrecv"))
IMMEDIATE_SENDS = frozenset(f"MPI_{form}" for form in ("Isend", "Issend", "Ibsend", "Irsend"))
RECEIVES = frozenset(("MPI_Recv", "MPI_Sendrecv_arrival"))
IMMEDIATE_RECEIVES = frozenset(("MPI_Irecv",))
WAITS = frozenset(f"MPI_{form}" for form in ("Wait", "Waitall", "Waitany", "Waitsome"))
PROBES = frozenset(f"MPI_{form}" for form in ("Iprobe", "Probe", "Test", "Testall", "Testany", "Testsome"))


@dataclass(frozen=True, slots=True)
class Matches:
    """Messages of which both ends are in a trace; arrays of the same length.

    send, receive : rows of the two calls; receive is the one that posts
    end           : row of the call in which the receiver had the message: `receive` itself, or the wait for it; -1
                    where that is not known
    """

    send: "NDArray[Any]"
    receive: "NDArray[Any]"
    end: "NDArray[Any]"


def match_messages(trace: Trace) -> Matches:
    """Pairs sends with receives: the i-th send from a rank to another with a tag is what its i-th receive gets.

    That is MPI's own rule within a communicator. A trace does not tell communicators, so that two with the same ranks
    and tag at once may be mixed up; and a trace of a part of the run may begin between a send and its receive.
    """
    import numpy

    is_send = trace.named(SENDS | IMMEDIATE_SENDS) & (trace.peer >= 0)
    is_receive = trace.named(RECEIVES | IMMEDIATE_RECEIVES) & (trace.peer >= 0)
    sends, receives = numpy.flatnonzero(is_send), numpy.flatnonzero(is_receive)
    send_keys = numpy.stack((trace.rank[sends], trace.peer[sends], trace.tag[sends]), axis=1)
    receive_keys = numpy.stack((trace.peer[receives], trace.rank[receives], trace.tag[receives]), axis=1)
    left, right = pair_by_key(send_keys, receive_keys)
    sends, receives = sends[left], receives[right]
    end = receives.copy()
    is_immediate = trace.named(IMMEDIATE_RECEIVES)[receives]
    end[is_immediate] = _waits_of(trace, receives[is_immediate])
    return Matches(sends, receives, end)


def _waits_of(trace: Trace, receives: "NDArray[Any]") -> "NDArray[Any]":
    """Of each immediate receive (a row) the wait that ended it, -1 where none is known.

    It is the first later wait of the rank that names the same peer and tag; waits for several requests name none.
    """
    import numpy

    wait_of = numpy.full(len(receives), -1, dtype=int)
    waits = numpy.flatnonzero(trace.named(("MPI_Wait", "MPI_Waitany", "MPI_Test")) & (trace.peer >= 0))
    keys_of = [numpy.stack((trace.rank[rows], trace.peer[rows], trace.tag[rows]), axis=1) for rows in (receives, waits)]
    by_key: dict[tuple[int, ...], list[int]] = {}
    for row, key in zip(waits.tolist(), map(tuple, keys_of[1].tolist()), strict=True):
        by_key.setdefault(key, []).append(row)
    position: dict[tuple[int, ...], int] = {}
    for i, (row, key) in enumerate(zip(receives.tolist(), map(tuple, keys_of[0].tolist()), strict=True)):
        candidates = by_key.get(key, [])
        at = position.get(key, 0)
        while at < len(candidates) and candidates[at] < row:
            at += 1
        if at < len(candidates):
            wait_of[i] = candidates[at]
        position[key] = at + 1
    return wait_of


def pair_by_key(left: "NDArray[Any]", right: "NDArray[Any]") -> "tuple[NDArray[Any], NDArray[Any]]":
    """Indices into two lists of keys, the i-th of a key on the left with the i-th of the same key on the right.

    left, right: shape (rows, columns of the key); the order within a key is that of the rows.
    """
    import numpy

    both = numpy.concatenate((left, right))
    if not len(both):
        return numpy.zeros(0, dtype=int), numpy.zeros(0, dtype=int)
    _, codes = numpy.unique(both, axis=0, return_inverse=True)
    codes = codes.reshape(-1)
    ranked_left, ranked_right = occurrence(codes[: len(left)]), occurrence(codes[len(left) :])
    width = max(len(left), len(right)) + 1
    _, at_left, at_right = numpy.intersect1d(
        codes[: len(left)] * width + ranked_left,
        codes[len(left) :] * width + ranked_right,
        assume_unique=True,
        return_indices=True,
    )
    order = numpy.argsort(at_left)
    return at_left[order], at_right[order]


def occurrence(codes: "NDArray[Any]") -> "NDArray[Any]":
    """How many equal codes come before each one; shape as given."""
    import numpy

    order = numpy.argsort(codes, kind="stable")
    ordered = codes[order]
    new = numpy.ones(len(codes), dtype=bool)
    new[1:] = ordered[1:] != ordered[:-1]
    first = numpy.maximum.accumulate(numpy.where(new, numpy.arange(len(codes)), 0)) if len(codes) else order
    counted = numpy.empty(len(codes), dtype=int)
    counted[order] = numpy.arange(len(codes)) - first
    return counted
