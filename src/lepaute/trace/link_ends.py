"""To which calls the messages of an SMPI trace belong.

The key of a link says who sends to whom with which tag, and there are exceptions, all as seen in SimGrid 3.32:

- Processes are numbered from 1, but the partner of MPI_Sendrecv is a rank of its communicator, which is not told. It is
  taken for a rank of the world where the message then finds its other end, and for unknown elsewhere. One with
  MPI_PROC_NULL on a side is not in the file at all, so that its partner finds nothing either.
- A receive from any tag has the tag -444; its sender is told.
- MPI_Start knows no receiver. The receiver's end knows the sender.
- MPI_Irecv has no link: it gets the message that a wait of its rank ended with. Which one, where several were under
  way, is told by their sizes, else by their order.
- MPI_Test tells nothing of what it completed.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lepaute.trace.messages import IMMEDIATE_SENDS, PROBES, SENDS, WAITS, pair_by_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

ANY_TAG = -444
SENDRECV, START, RECV, IRECV = "MPI_Sendrecv", "MPI_Start", "MPI_Recv", "MPI_Irecv"
ENDING = WAITS | PROBES


@dataclass(frozen=True, slots=True)
class Rows:
    """Calls in the order in which they began; items: what a state says of its size, NaN where nothing."""

    names: list[str]
    rank: "NDArray[Any]"
    name: "NDArray[Any]"
    items: "NDArray[Any]"

    def named(self, wanted: "Iterable[str]") -> "NDArray[Any]":
        """Which rows have one of these names."""
        import numpy

        chosen = set(wanted)
        mask: NDArray[Any] = numpy.array([name in chosen for name in self.names] or [False])[self.name]
        return mask


@dataclass(frozen=True, slots=True)
class Links:
    """Beginnings and ends of messages, each in the order of the file: the row, and what the key says."""

    start_row: "NDArray[Any]"
    start_source: "NDArray[Any]"
    start_target: "NDArray[Any]"
    start_tag: "NDArray[Any]"
    start_bytes: "NDArray[Any]"
    end_row: "NDArray[Any]"
    end_source: "NDArray[Any]"
    end_tag: "NDArray[Any]"


@dataclass(frozen=True, slots=True)
class Attached:
    """Of each row its message, as table.py has it; and for what MPI_Sendrecv received the row that did, and what."""

    size_bytes: "NDArray[Any]"
    peer: "NDArray[Any]"
    tag: "NDArray[Any]"
    arrival_row: "NDArray[Any]"
    arrival_bytes: "NDArray[Any]"
    arrival_peer: "NDArray[Any]"
    arrival_tag: "NDArray[Any]"
    warnings: list[str]


def attach(rows: Rows, links: Links) -> Attached:
    """Peers, tags and sizes of all calls. Ranks are counted from 0, processes of keys from 1."""
    import numpy

    size_bytes, peer, tag = numpy.zeros(len(rows.rank)), numpy.full(len(rows.rank), -1), numpy.full(len(rows.rank), -1)
    warnings: list[str] = []
    is_sendrecv, is_start = rows.named((SENDRECV,)), rows.named((START,))
    target = _ranks(links.start_target, is_sendrecv[links.start_row])
    target[is_start[links.start_row]] = -1
    # A receive that MPI_Start begins is said to end there; it does not.
    ended = numpy.flatnonzero(~is_start[links.end_row] & (links.end_source >= 0))
    end_row = links.end_row[ended]
    source, end_tag = _ranks(links.end_source[ended], is_sendrecv[end_row]), links.end_tag[ended]
    start_of = _starts_of(
        numpy.stack((rows.rank[links.start_row], target, links.start_tag), axis=1),
        numpy.stack((source, rows.rank[end_row], end_tag), axis=1),
        is_start[links.start_row],
    )
    lost = _unmatched(start_of, is_sendrecv[end_row], is_sendrecv[links.start_row] & (target >= 0))
    source[lost[0]], target[lost[1]] = -1, -1
    if lost[0].any() or lost[1].any():
        warnings.append(
            f"of {int(lost[0].sum() + lost[1].sum())} messages of {SENDRECV} no peer is known: SMPI tells "
            "only its rank in a communicator, and nothing of those with MPI_PROC_NULL on a side"
        )
    has = start_of >= 0
    end_bytes = numpy.where(has, links.start_bytes[start_of] if len(links.start_row) else 0.0, 0.0)
    end_tag = numpy.where((end_tag == ANY_TAG), -1, end_tag)
    if has.any():
        end_tag[has] = links.start_tag[start_of[has]]

    sends = links.start_row
    size_bytes[sends], peer[sends], tag[sends] = links.start_bytes, target, links.start_tag
    receives = rows.named((RECV,))[end_row]
    at = end_row[receives]
    size_bytes[at], peer[at], tag[at] = end_bytes[receives], source[receives], end_tag[receives]
    waits = rows.named(ENDING)[end_row]
    at = end_row[waits]
    numpy.add.at(size_bytes, at, end_bytes[waits])
    alone = waits & (numpy.bincount(end_row, minlength=len(rows.rank))[end_row] == 1) & _single(rows, end_row)
    peer[end_row[alone]], tag[end_row[alone]] = source[alone], end_tag[alone]

    unit = _bytes_of_an_item(rows, links)
    item_bytes = numpy.where(has, unit[start_of] if len(unit) else 1.0, 1.0)
    posted, message = _posted(rows, end_row[waits], end_bytes[waits], item_bytes[waits])
    chosen = numpy.flatnonzero(waits)[message]
    peer[posted], tag[posted] = source[chosen], end_tag[chosen]
    room = rows.items[posted] * item_bytes[chosen]
    size_bytes[posted] = numpy.where(room >= end_bytes[chosen], room, end_bytes[chosen])
    unknown = int(rows.named((IRECV,)).sum()) - len(posted)
    if unknown:
        warnings.append(f"of {unknown} calls of {IRECV} it is not known what they received, if they received something")
    arrivals = is_sendrecv[end_row]
    return Attached(
        size_bytes, peer, tag, end_row[arrivals], end_bytes[arrivals], source[arrivals], end_tag[arrivals], warnings
    )


def _ranks(partner: "NDArray[Any]", is_rank: "NDArray[Any]") -> "NDArray[Any]":
    """Ranks of what keys call their partner; -1 for none."""
    import numpy

    return numpy.maximum(numpy.where(is_rank, partner, partner - 1), -1)


def _single(rows: Rows, end_row: "NDArray[Any]") -> "NDArray[Any]":
    """Which of these calls wait for one request; MPI_Waitall says how many there are."""
    many: NDArray[Any] = rows.named(("MPI_Waitall", "MPI_Testall"))[end_row] & (rows.items[end_row] != 1)
    return ~many


def _starts_of(starts: "NDArray[Any]", ends: "NDArray[Any]", is_open: "NDArray[Any]") -> "NDArray[Any]":
    """Of each end the place of its start, -1 for none.

    starts, ends: shape (rows, 3), sender, receiver, tag; the tag of an end is ANY_TAG where it is not known
    is_open     : of each start, whether its receiver is not known
    The i-th start with a key goes with the i-th such end. A pair of ranks between which any tag was received is
    followed message by message, since such a receive takes what would be another's.
    """
    import numpy

    found = numpy.full(len(ends), -1)
    if not len(starts) or not len(ends):
        return found
    free = numpy.ones(len(starts), dtype=bool)
    any_tag = ends[:, 2] == ANY_TAG
    if any_tag.any():
        pairs = set(map(tuple, ends[any_tag, :2].tolist()))
        waiting: dict[tuple[int, ...], list[tuple[int, int]]] = defaultdict(list)
        for i, (*pair, tag) in enumerate(starts.tolist()):
            if tuple(pair) in pairs:
                waiting[tuple(pair)].append((i, tag))
        for i, (*pair, tag) in enumerate(ends.tolist()):
            queue = waiting.get(tuple(pair), [])
            place = next((j for j, (_, other) in enumerate(queue) if tag in (other, ANY_TAG)), None)
            if place is not None:
                found[i] = queue.pop(place)[0]
        free[found[found >= 0]] = False
    left, right = numpy.flatnonzero(free), numpy.flatnonzero(found < 0)
    at_start, at_end = pair_by_key(starts[left], ends[right])
    found[right[at_end]] = left[at_start]
    free[found[found >= 0]] = False
    left, right = numpy.flatnonzero(free & is_open), numpy.flatnonzero(found < 0)
    at_start, at_end = pair_by_key(starts[left][:, [0, 2]], ends[right][:, [0, 2]])
    found[right[at_end]] = left[at_start]
    return found


def _unmatched(
    start_of: "NDArray[Any]", end_is_sendrecv: "NDArray[Any]", start_is_sendrecv: "NDArray[Any]"
) -> "tuple[NDArray[Any], NDArray[Any]]":
    """Ends and starts of messages of MPI_Sendrecv that have no other end, as masks."""
    import numpy

    matched = numpy.zeros(len(start_is_sendrecv), dtype=bool)
    matched[start_of[start_of >= 0]] = True
    return end_is_sendrecv & (start_of < 0), start_is_sendrecv & ~matched


def _bytes_of_an_item(rows: Rows, links: Links) -> "NDArray[Any]":
    """Of each start, the bytes of an item as its call counts them; NaN where that is not known."""
    import numpy

    plain = rows.named((SENDS | IMMEDIATE_SENDS) - {SENDRECV})[links.start_row]
    items = rows.items[links.start_row]
    with numpy.errstate(divide="ignore", invalid="ignore"):
        return numpy.where(plain & (items > 0), links.start_bytes / items, numpy.nan)


def _posted(
    rows: Rows, end_row: "NDArray[Any]", end_bytes: "NDArray[Any]", item_bytes: "NDArray[Any]"
) -> "tuple[NDArray[Any], NDArray[Any]]":
    """Rows of MPI_Irecv, and for each the place in the ends of waits of its message; those that are not known are left
    out: all of a rank that tests for completion, and those of a wait for all in which some received nothing."""
    import numpy

    ends_of: dict[int, list[int]] = defaultdict(list)
    for place, row in enumerate(end_row.tolist()):
        ends_of[row].append(place)
    testing = set(numpy.unique(rows.rank[rows.named(PROBES - {"MPI_Iprobe", "MPI_Probe"})]).tolist())
    is_irecv, is_isend = rows.named((IRECV,)), rows.named(IMMEDIATE_SENDS)
    is_waitall = rows.named(("MPI_Waitall",))
    steps = numpy.flatnonzero(is_irecv | is_isend | rows.named(WAITS))
    pending: dict[int, list[int]] = defaultdict(list)
    sends: dict[int, int] = defaultdict(int)
    found: list[tuple[int, int]] = []
    for row, rank in zip(steps.tolist(), rows.rank[steps].tolist(), strict=True):
        if rank in testing:
            continue
        if is_irecv[row]:
            pending[rank].append(row)
        elif is_isend[row]:
            sends[rank] += 1
        else:
            waiting, ends = pending[rank], ends_of.get(row, [])
            is_all = is_waitall[row] and rows.items[row] >= len(waiting) + sends[rank]
            if is_all and len(ends) < len(waiting):
                waiting.clear()  # some had no sender (MPI_PROC_NULL), and nobody knows which
            for place in ends:
                if waiting:
                    one = waiting.pop(_best(rows, waiting, end_bytes[place], item_bytes[place]))
                    found.append((one, place))
            if is_all:
                waiting.clear()
                sends[rank] = 0
    pairs = numpy.array(found or numpy.zeros((0, 2)), dtype=int).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _best(rows: Rows, waiting: list[int], size_bytes: float, item_bytes: float) -> int:
    """Place of the receive whose room is that of the message, else of the first."""
    if len(waiting) > 1:
        for place, row in enumerate(waiting[:64]):
            if rows.items[row] * item_bytes == size_bytes:
                return place
    return 0
