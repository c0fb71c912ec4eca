"""To which calls the messages of an SMPI trace belong.

The key of a link says who sends to whom with which tag, and there are exceptions, all as seen in SimGrid 3.32:

- Processes are numbered from 1, but the partner of MPI_Sendrecv is a rank of its communicator, which is not told. It is
  taken for a rank of the world where the message then finds its other end, and for unknown elsewhere. One with
  MPI_PROC_NULL on a side is not in the file at all, so that its partner finds nothing either.
- A receive of any tag has the tag -444; one from any source has none unless the program looks at the status. Both take
  the message that was sent first, of those that no other receive names.
- What is sent to MPI_PROC_NULL has the receiver -1. What is received from there ends with the sender -666: in MPI_Recv,
  or when it is waited for.
- MPI_Start knows no receiver. The receiver's end knows the sender.
- MPI_Irecv has no link: it gets the message that a wait of its rank ended with. Which one, where several were under
  way, is told by their sizes, else by their order.
- MPI_Test tells nothing of what it completed.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.simulate.trace.messages import IMMEDIATE_SENDS, PROBES, SENDS, WAITS, pair_by_key
from lepaute.simulate.trace.table import NOBODY

#: Special keys of links: a receive of any tag, whom a receive from MPI_PROC_NULL names, and whom a send to it does.
ANY_TAG, FROM_NULL, TO_NULL = -444, -666, -1
SENDRECV, START, RECV, IRECV = "MPI_Sendrecv", "MPI_Start", "MPI_Recv", "MPI_Irecv"
ENDING = WAITS | PROBES


@dataclass(frozen=True, slots=True)
class Rows:
    """Calls in the order in which they began; items: what a state says of its size, NaN if nothing."""

    names: list[str]
    rank: NDArray[Any]
    name: NDArray[Any]
    items: NDArray[Any]

    def named(self, names: "Iterable[str]") -> NDArray[Any]:
        """Which rows have one of these names."""
        chosen = set(names)
        mask: NDArray[Any] = numpy.array([name in chosen for name in self.names] or [False])[self.name]
        return mask


@dataclass(frozen=True, slots=True)
class Links:
    """Beginnings and ends of messages, each in the order of the file: the row, and what the key says."""

    start_row: NDArray[Any]
    start_source: NDArray[Any]
    start_target: NDArray[Any]
    start_tag: NDArray[Any]
    start_bytes: NDArray[Any]
    end_row: NDArray[Any]
    end_source: NDArray[Any]
    end_tag: NDArray[Any]


@dataclass(frozen=True, slots=True)
class _Attached:
    """Messages of rows as table.py has them, and for MPI_Sendrecv the row that received, and what."""

    columns: dict[str, NDArray[Any]]
    arrival_row: NDArray[Any]
    arrivals: dict[str, NDArray[Any]]
    warnings: list[str]


def attach(rows: Rows, links: Links) -> _Attached:
    """Peers, tags and sizes of all calls. Ranks are counted from 0, processes of keys from 1."""
    size_bytes, peer, tag = numpy.zeros(len(rows.rank)), numpy.full(len(rows.rank), -1), numpy.full(len(rows.rank), -1)
    target, ends, warnings = _both_ends(rows, links)
    sends = links.start_row
    size_bytes[sends] = numpy.where(target == NOBODY, 0, links.start_bytes)
    peer[sends], tag[sends] = target, links.start_tag

    received = rows.named((RECV,))[ends.row]
    at = ends.row[received]
    size_bytes[at], peer[at], tag[at] = ends.size_bytes[received], ends.source[received], ends.tag[received]
    waited = rows.named(ENDING)[ends.row]
    numpy.add.at(size_bytes, ends.row[waited], ends.size_bytes[waited])
    # MPI_Waitall says how many requests there are.
    many: NDArray[Any] = rows.named(("MPI_Waitall", "MPI_Testall"))[ends.row] & (rows.items[ends.row] != 1)
    alone = waited & (numpy.bincount(ends.row, minlength=len(rows.rank))[ends.row] == 1) & ~many
    peer[ends.row[alone]], tag[ends.row[alone]] = ends.source[alone], ends.tag[alone]

    posted, message, completion = _posted(rows, ends, numpy.flatnonzero(waited))
    peer[posted], tag[posted] = ends.source[message], ends.tag[message]
    room = rows.items[posted] * ends.item_bytes[message]
    size_bytes[posted] = numpy.where(room >= ends.size_bytes[message], room, ends.size_bytes[message])
    from_null = links.end_row[links.end_source == FROM_NULL]
    peer[from_null[rows.named((RECV,))[from_null]]] = NOBODY
    unknown = int(rows.named((IRECV,)).sum()) - len(posted)
    if unknown:
        warnings.append(f"what {unknown} calls of {IRECV} received, if anything, is unknown")
    arrived = rows.named((SENDRECV,))[ends.row]
    columns = {"size_bytes": size_bytes, "peer": peer, "tag": tag, "completion": completion}
    arrivals = {"size_bytes": ends.size_bytes[arrived], "peer": ends.source[arrived], "tag": ends.tag[arrived]}
    return _Attached(columns, ends.row[arrived], arrivals, warnings)


@dataclass(frozen=True, slots=True)
class _Ends:
    """Ends of messages, in the order of the file.

    source, tag: -1 if they are not known; source NOBODY where nothing was sent (MPI_PROC_NULL)
    size_bytes : 0 if the start is not known; item_bytes: of an item as the sender counts them, NaN if not known
    """

    row: NDArray[Any]
    source: NDArray[Any]
    tag: NDArray[Any]
    size_bytes: NDArray[Any]
    item_bytes: NDArray[Any]


def _both_ends(rows: Rows, links: Links) -> tuple[NDArray[Any], _Ends, list[str]]:
    """Rank that receives each start, -1 for none; the ends; and warnings."""
    is_sendrecv, is_start = rows.named((SENDRECV,)), rows.named((START,))
    target = _ranks(links.start_target, is_sendrecv[links.start_row])
    target[is_start[links.start_row]] = -1
    # A receive that MPI_Start begins is said to end there; it does not.
    is_end = ~is_start[links.end_row] & ((links.end_source != FROM_NULL) | rows.named(ENDING)[links.end_row])
    row, tag = links.end_row[is_end], links.end_tag[is_end]
    is_nobody = links.end_source[is_end] == FROM_NULL
    source = numpy.where(is_nobody, FROM_NULL, _ranks(links.end_source[is_end], is_sendrecv[row]))
    start_of = _starts_of(
        numpy.stack((rows.rank[links.start_row], target, links.start_tag), axis=1),
        numpy.stack((source, rows.rank[row], tag), axis=1),
        is_start[links.start_row],
    )
    has = start_of >= 0
    start = start_of[has]
    # ends and starts of messages of MPI_Sendrecv that have no other end
    matched = numpy.zeros(len(links.start_row), dtype=bool)
    matched[start] = True
    lost_ends = is_sendrecv[row] & (start_of < 0)
    lost_starts = is_sendrecv[links.start_row] & (target >= 0) & ~matched
    target[lost_starts] = -1
    source[lost_ends] = -1
    source[has] = rows.rank[links.start_row[start]]
    source[is_nobody] = NOBODY
    target[(links.start_target == TO_NULL) & ~(is_sendrecv | is_start)[links.start_row]] = NOBODY
    tag = numpy.where((tag == ANY_TAG) | is_nobody, -1, tag)
    tag[has] = links.start_tag[start]
    size_bytes, item_bytes = numpy.zeros(len(row)), numpy.full(len(row), numpy.nan)
    size_bytes[has] = links.start_bytes[start]
    items = rows.items[links.start_row[start]]  # as their calls count them
    counts = rows.named((SENDS | IMMEDIATE_SENDS) - {SENDRECV})[links.start_row[start]] & (items > 0)
    item_bytes[has] = numpy.divide(links.start_bytes[start], items, out=numpy.full(len(start), numpy.nan), where=counts)
    lost = int(lost_ends.sum() + lost_starts.sum())
    untold = "SMPI records only its rank in the communicator, and nothing for those with MPI_PROC_NULL on a side"
    warnings = [f"the peer of {lost} messages of {SENDRECV} is unknown: {untold}"]
    return target, _Ends(row, source, tag, size_bytes, item_bytes), warnings if lost else []


def _ranks(partner: NDArray[Any], is_rank: NDArray[Any]) -> NDArray[Any]:
    """Ranks of what keys call their partner; -1 for none."""
    return numpy.maximum(numpy.where(is_rank, partner, partner - 1), -1)


def _starts_of(starts: NDArray[Any], ends: NDArray[Any], is_open: NDArray[Any]) -> NDArray[Any]:
    """Place of the start of each end, -1 for none.

    starts, ends: shape (rows, 3), sender, receiver, tag; of an end, where not known, sender -1 and tag ANY_TAG
    is_open     : of each start, whether its receiver is not known
    The i-th start with a key goes with the i-th such end. At ranks with ends of no whole key, messages are followed.
    """
    start_of = numpy.full(len(ends), -1)
    if not len(starts) or not len(ends):
        return start_of
    free = numpy.ones(len(starts), dtype=bool)
    by_hand = numpy.unique(ends[(ends[:, 2] == ANY_TAG) | (ends[:, 0] == -1), 1])
    if len(by_hand):
        own_starts = numpy.flatnonzero(numpy.isin(starts[:, 1], by_hand))
        own_ends = numpy.flatnonzero(numpy.isin(ends[:, 1], by_hand))
        for end, start in _followed(starts[own_starts].tolist(), ends[own_ends].tolist()):
            start_of[own_ends[end]] = own_starts[start]
        free[start_of[start_of >= 0]] = False
    left, right = numpy.flatnonzero(free), numpy.flatnonzero(start_of < 0)
    at_start, at_end = pair_by_key(starts[left], ends[right])
    start_of[right[at_end]] = left[at_start]
    free[start_of[start_of >= 0]] = False
    left, right = numpy.flatnonzero(free & is_open), numpy.flatnonzero(start_of < 0)
    at_start, at_end = pair_by_key(starts[left][:, [0, 2]], ends[right][:, [0, 2]])
    start_of[right[at_end]] = left[at_start]
    return start_of


def _followed(starts: list[list[int]], ends: list[list[int]]) -> "Iterator[tuple[int, int]]":
    """Places of ends and their starts; one without sender or tag takes the first start that no later end names."""
    queues: dict[int, dict[tuple[int, int], deque[int]]] = defaultdict(lambda: defaultdict(deque))
    for place, (source, target, tag) in enumerate(starts):
        queues[target][source, tag].append(place)
    named = Counter(tuple(end) for end in ends)
    for place, (source, target, tag) in enumerate(ends):
        waiting = queues[target]
        if source >= 0 and tag != ANY_TAG:
            named[source, target, tag] -= 1
            if waiting.get((source, tag)):
                yield place, waiting[source, tag].popleft()
            continue
        fitting = [
            (queue[0], key)
            for key, queue in waiting.items()
            if source in (-1, key[0]) and tag in (ANY_TAG, key[1]) and len(queue) > named[key[0], target, key[1]]
        ]
        if fitting:
            yield place, waiting[min(fitting)[1]].popleft()


def _posted(rows: Rows, ends: _Ends, waited: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Rows of MPI_Irecv, and of each the end of its message; and of each row of the trace its completion.

    Those that are not known are left out: all of a rank that tests for completion, and all of a wait in which some
    received nothing. A wait in which no message ended is taken to end the oldest send.
    """
    ends_of: dict[int, list[int]] = defaultdict(list)
    for end, row in zip(waited.tolist(), ends.row[waited].tolist(), strict=True):
        ends_of[row].append(end)
    testing = set(numpy.unique(rows.rank[rows.named(PROBES - {"MPI_Iprobe", "MPI_Probe"})]).tolist())
    is_irecv, is_isend = rows.named((IRECV,)), rows.named(IMMEDIATE_SENDS)
    is_waitall = rows.named(("MPI_Waitall",))
    steps = numpy.flatnonzero(is_irecv | is_isend | rows.named(WAITS))
    pending: dict[int, list[int]] = defaultdict(list)
    sends: dict[int, deque[int]] = defaultdict(deque)
    completion = numpy.full(len(rows.rank), -1)
    matched: list[tuple[int, int]] = []
    for row, rank in zip(steps.tolist(), rows.rank[steps].tolist(), strict=True):
        if rank in testing:
            continue
        if is_irecv[row]:
            pending[rank].append(row)
        elif is_isend[row]:
            sends[rank].append(row)
        else:
            completion[row] = row
            waiting = pending[rank]
            is_all = is_waitall[row] and rows.items[row] >= len(waiting) + len(sends[rank])
            if is_all:
                completion[sends[rank]] = row
                sends[rank].clear()
            elif row not in ends_of and sends[rank]:
                completion[sends[rank].popleft()] = row
            if is_all and len(ends_of.get(row, [])) < len(waiting):
                waiting.clear()  # nobody knows which received something
            for end in ends_of.get(row, [])[: len(waiting)]:
                is_room = (rows.items[at] * ends.item_bytes[end] == ends.size_bytes[end] for at in waiting[:64])
                posted = waiting.pop(next((place for place, fits in enumerate(is_room) if fits), 0))
                matched.append((posted, end))
                completion[posted] = row
            if is_all:
                waiting.clear()
    pairs = numpy.array(matched or numpy.zeros((0, 2)), dtype=int).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1], completion
