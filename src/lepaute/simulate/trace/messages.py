"""MPI calls by what they do, which send goes with which receive, and which collective calls are one operation."""

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.simulate.trace.table import NOBODY, Trace

SENDS = frozenset(f"MPI_{form}" for form in ("Send", "Ssend", "Bsend", "Rsend", "Sendrecv", "Sendrecv_replace"))
IMMEDIATE_SENDS = frozenset(f"MPI_{form}" for form in ("Isend", "Issend", "Ibsend", "Irsend"))
RECEIVES = frozenset(("MPI_Recv", "MPI_Mrecv", "MPI_Sendrecv_arrival"))
IMMEDIATE_RECEIVES = frozenset(("MPI_Irecv", "MPI_Imrecv"))
IMMEDIATE = IMMEDIATE_SENDS | IMMEDIATE_RECEIVES
#: Recorded as receives and sends, and a wait for these, which has the name of the call.
NEIGHBOURS = frozenset(
    f"MPI_Neighbor_{form}" for form in ("allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw")
)
WAITS = frozenset(f"MPI_{form}" for form in ("Wait", "Waitall", "Waitany", "Waitsome")) | NEIGHBOURS
TESTS = frozenset(f"MPI_{form}" for form in ("Test", "Testall", "Testany", "Testsome"))
PROBES = TESTS | frozenset(f"MPI_{form}" for form in ("Iprobe", "Probe", "Improbe", "Mprobe"))
SENDRECVS, ARRIVAL = frozenset(("MPI_Sendrecv", "MPI_Sendrecv_replace")), "MPI_Sendrecv_arrival"

#: Collective operations by who waits for whom: all for all, all for the root, the root for all; the rest for some.
ALL_TO_ALL = frozenset(
    (
        *(f"MPI_{form}" for form in ("Barrier", "Allreduce", "Reduce_scatter", "Reduce_scatter_block")),
        *(f"MPI_{form}" for form in ("Allgather", "Allgatherv", "Alltoall", "Alltoallv", "Alltoallw")),
        *(f"MPI_Comm_{form}" for form in ("split", "split_type", "dup", "dup_with_info", "create", "create_group")),
        *(f"MPI_{form}" for form in ("Cart_create", "Cart_sub", "Graph_create", "Intercomm_create", "Intercomm_merge")),
        *(f"MPI_Dist_graph_{form}" for form in ("create", "create_adjacent")),
    )
)
FROM_ROOT = frozenset(f"MPI_{form}" for form in ("Bcast", "Scatter", "Scatterv"))
TO_ROOT = frozenset(f"MPI_{form}" for form in ("Reduce", "Gather", "Gatherv"))
#: Calls with which a communicator is made.
CREATIONS = frozenset(
    name for name in ALL_TO_ALL if "Comm_" in name or name.endswith(("create", "adjacent", "merge", "sub"))
)
COLLECTIVES = ALL_TO_ALL | FROM_ROOT | TO_ROOT | frozenset(("MPI_Scan", "MPI_Exscan"))
#: The blocking operation that does what a nonblocking one does.
BLOCKING_OF = {
    f"MPI_I{name[4:].lower()}": name
    for name in COLLECTIVES
    if not name.startswith(("MPI_Comm_", "MPI_Cart", "MPI_Graph", "MPI_Dist", "MPI_Intercomm"))
}
NONBLOCKING_COLLECTIVES = frozenset(BLOCKING_OF)
#: What names a message of two ranks: matching is within a communicator.
BETWEEN_TWO = SENDS | IMMEDIATE | RECEIVES | (PROBES - TESTS)
#: Calls without which a trace is not that of its program.
COMMUNICATING = BETWEEN_TWO | WAITS | PROBES | COLLECTIVES | NONBLOCKING_COLLECTIVES
_RELEASES = frozenset(("MPI_Request_free", "MPI_Comm_free", "MPI_Comm_disconnect"))
#: What the recorder wraps in an emulation (probes/record_smpi.h).
RECORDED = (SENDS | IMMEDIATE | RECEIVES | WAITS | PROBES | COLLECTIVES | NONBLOCKING_COLLECTIVES | _RELEASES) - (
    frozenset(f"MPI_{form}" for form in ("Iprobe", "Improbe", "Mprobe", "Mrecv", "Imrecv", "Alltoallw", "Ialltoallw"))
    | frozenset(("MPI_Comm_create_group", "MPI_Dist_graph_create", "MPI_Dist_graph_create_adjacent"))
    | NEIGHBOURS
)


@dataclass(frozen=True, slots=True)
class Matches:
    """Messages of which both ends are in a trace; arrays of the same length.

    send, receive : rows of the two calls; receive is the one that posts
    sent          : row of the call in which the sender was done: `send`, or the wait for it; -1: not known
    end           : the same of the receiver; of MPI_Sendrecv_arrival its MPI_Sendrecv
    """

    send: NDArray[Any]
    receive: NDArray[Any]
    sent: NDArray[Any]
    end: NDArray[Any]


def match_messages(trace: Trace) -> Matches:
    """Pairs sends with receives: the i-th send from a rank to another with a tag is what its i-th receive gets.

    That is MPI's own rule within a communicator, which recordings tell; of others two with the same ranks and tag at
    once may be mixed up. A trace of a part of the run may begin between a send and its receive.
    """
    sends, receives = message_rows(trace)
    left, right = pair_by_key(message_keys(trace, sends), message_keys(trace, receives, received=True))
    sends, receives = sends[left], receives[right]
    done = completions(trace)
    sent, end = (numpy.where(trace.named(IMMEDIATE)[rows], done[rows], rows) for rows in (sends, receives))
    unknown = trace.named(IMMEDIATE_RECEIVES)[receives] & (end < 0)
    end[unknown] = _waits_of(trace, receives[unknown])
    is_arrival = trace.named((ARRIVAL,))[receives]
    arrivals = receives[is_arrival]
    # The last MPI_Sendrecv, or _replace, of the rank before it, itself where there is none.
    before = numpy.maximum.accumulate(numpy.where(trace.named(SENDRECVS), numpy.arange(len(trace)), -1))[arrivals]
    end[is_arrival] = numpy.where((before >= 0) & (trace.rank[before] == trace.rank[arrivals]), before, arrivals)
    return Matches(sends, receives, sent, end)


def message_rows(trace: Trace) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows that send a message, and rows that receive one."""
    is_send = trace.named(SENDS | IMMEDIATE_SENDS) & (trace.peer >= 0)
    return numpy.flatnonzero(is_send), numpy.flatnonzero(
        trace.named(RECEIVES | IMMEDIATE_RECEIVES) & (trace.peer != NOBODY)
    )


def message_keys(trace: Trace, rows: NDArray[Any], *, received: bool = False) -> NDArray[Any]:
    """Numbers of 64 bits, the same for messages from one rank to another with a tag in a communicator."""
    ends = (trace.rank[rows], trace.peer[rows])
    key = numpy.zeros(len(rows), "uint64")
    for column in (*(ends[::-1] if received else ends), trace.tag[rows], trace.comm[rows]):
        key ^= column.astype("int64").astype("uint64") + numpy.uint64(0x9E3779B97F4A7C15)  # the finish of SplitMix64
        key = (key ^ (key >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        key = (key ^ (key >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        key ^= key >> numpy.uint64(31)
    return key


def completions(trace: Trace) -> NDArray[Any]:
    """Wait or test that completed each row's request, -1 if that is not known; shape (rows,)."""
    found = numpy.full(len(trace), -1)
    known = trace.completion >= 0
    posts = numpy.flatnonzero(known & trace.named(IMMEDIATE | NONBLOCKING_COLLECTIVES))
    waits = numpy.flatnonzero(known & trace.named(WAITS | PROBES))
    if len(posts) and len(waits):
        keys = trace.rank.astype("int64") * (int(trace.completion.max()) + 1) + trace.completion
        order = waits[numpy.argsort(keys[waits], kind="stable")]
        at = order[numpy.searchsorted(keys[order], keys[posts]).clip(max=len(order) - 1)]
        found[posts] = numpy.where(keys[at] == keys[posts], at, -1)
    return found


def collective_turns(trace: Trace, rows: NDArray[Any]) -> NDArray[Any]:
    """Of each collective row its communicator times 2^32, and the calls of its rank there before it."""
    comm = trace.comm[rows].clip(0).astype("int64") << 32
    result: NDArray[Any] = comm | occurrence(comm | trace.rank[rows])
    return result


def _waits_of(trace: Trace, receives: NDArray[Any]) -> NDArray[Any]:
    """For each immediate receive (a row), the first later wait of its rank, peer and tag, -1 if there is none."""
    wait_of = numpy.full(len(receives), -1, dtype=int)
    waits = numpy.flatnonzero(trace.named(("MPI_Wait", "MPI_Waitany", "MPI_Test")) & (trace.peer >= 0))
    columns = (trace.rank, trace.peer, trace.tag)
    by_key: dict[tuple[int, ...], deque[int]] = defaultdict(deque)
    for row, *key in zip(waits.tolist(), *(column[waits].tolist() for column in columns), strict=True):
        by_key[tuple(key)].append(row)
    for i, (row, *key) in enumerate(
        zip(receives.tolist(), *(column[receives].tolist() for column in columns), strict=True)
    ):
        candidates = by_key[tuple(key)]
        while candidates and candidates[0] < row:
            candidates.popleft()
        if candidates:
            wait_of[i] = candidates.popleft()
    return wait_of


def pair_by_key(left: NDArray[Any], right: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Indices into two lists of keys, the i-th of a key on the left with the i-th of the same key on the right.

    left, right: shape (rows, columns of the key); the order within a key is that of the rows.
    """
    both = numpy.concatenate((left, right))
    if not len(both):
        return numpy.zeros(0, dtype=int), numpy.zeros(0, dtype=int)
    _, codes = numpy.unique(both, axis=0, return_inverse=True)
    codes = codes.reshape(-1)
    width = max(len(left), len(right)) + 1
    first, second = (part * width + occurrence(part) for part in (codes[: len(left)], codes[len(left) :]))
    _, at_left, at_right = numpy.intersect1d(first, second, assume_unique=True, return_indices=True)
    order = numpy.argsort(at_left)
    return at_left[order], at_right[order]


def occurrence(codes: NDArray[Any]) -> NDArray[Any]:
    """How many equal codes come before each one; shape as given."""
    order = numpy.argsort(codes, kind="stable")
    counted = numpy.empty(len(codes), dtype=int)
    counted[order] = numpy.arange(len(codes)) - numpy.searchsorted(codes[order], codes[order])
    return counted
