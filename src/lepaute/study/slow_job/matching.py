"""A slow run beside usual ones, piece by piece: what each piece of its graph takes in each of the runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.simulate.trace.graph import Graph
from lepaute.study.slow_job.course import MESSAGE, Course

#: Of the time that a message is usually under way: a call that takes less found it there, and one that ends later after
#: its send did not wait for it.
ARRIVED, LATE = 0.1, 1.5


@dataclass(frozen=True, slots=True)
class Pieces:
    """What a slow run consists of.

    rank        : of each piece;  date_s : in the slow run, when it began, nearly
    what        : codes into `whats`, pairs of a part (`course`) and a label
    touched, link : pieces of messages, and two nodes of the machine between which some of theirs went; shapes (n,),
                  (n, 2); a wait for several messages occurs once for each pair
    weight_s    : shape (pieces, 1 + usual runs); the slow run is the first
    node, piece, seconds : what pieces add to which nodes of the graph, seconds of shape (n, 1 + usual runs): that of a
                  piece, but of a call that waits for a message apart how long the message was under way and how long
                  the call takes where it is there; what a run does not show of these is as in the others
    time_s      : how long each run took
    followed    : share of the usual runs' ranks that made the same calls in the same order: the others' pieces have
                  those of the slow run, times the ratio of the sums of a rank's pieces of the same name
    """

    graph: Graph
    rank: NDArray[Any]
    date_s: NDArray[Any]
    what: NDArray[Any]
    whats: tuple[tuple[str, str], ...]
    touched: NDArray[Any]
    link: NDArray[Any]
    weight_s: NDArray[Any]
    node: NDArray[Any]
    piece: NDArray[Any]
    seconds: NDArray[Any]
    time_s: NDArray[Any]
    followed: float

    def of(self, *parts: str) -> NDArray[Any]:
        """Which pieces are of these parts; shape (pieces,), bool."""
        is_part = numpy.array([part in parts for part, _ in self.whats])
        result: NDArray[Any] = is_part[self.what]
        return result


def matched(slow: Course, usual: Sequence[Course]) -> Pieces:
    """The pieces of a run beside those of others on as many ranks."""
    courses = (slow, *usual)
    codes: dict[tuple[str, str], int] = {}
    nodes = numpy.array(slow.trace.metadata.get("nodes") or [0] * (max(slow.ranks) + 1))
    slow_calls = _by_rank(slow)
    calls, operations = len(slow.rank), slow.slots
    keys: list[NDArray[Any]] = []
    whats: list[NDArray[Any]] = []
    runs: list[NDArray[Any]] = []
    seconds: list[NDArray[Any]] = []
    sums: list[dict[tuple[int, int], float]] = []
    seen = numpy.full((3, calls, len(courses)), numpy.nan)
    differing: list[tuple[int, int]] = []
    for run, course in enumerate(courses):
        call_what = _coded(course.call_what, codes)
        piece_what = _coded(course.piece_what, codes)
        its_calls = _by_rank(course)
        same = {rank: numpy.array_equal(course.key[its_calls[rank]], slow.key[slow_calls[rank]]) for rank in slow.ranks}
        differing += [(run, rank) for rank, is_same in same.items() if not is_same]
        shift = {rank: slow_calls[rank].start - its_calls[rank].start for rank in slow.ranks}
        slot_rank = course.slot_rank
        moved = numpy.array([shift[rank] if same[rank] else -1 << 40 for rank in slot_rank.tolist()])
        place = course.slot + moved[course.slot]
        call_place = numpy.arange(len(course.rank)) + moved[_slots_of_calls(course)] + operations
        known = call_place >= 0
        seen[:, call_place[known] - operations, run] = numpy.stack((course.start_s, course.sent_s, course.end_s))[
            :, known
        ]
        keys += [place, call_place]
        whats += [piece_what, call_what]
        seconds += [course.seconds, course.weight_s]
        runs.append(numpy.full(len(place) + len(call_place), run))
        rank = numpy.concatenate((slot_rank[course.slot], course.rank))
        sums.append(_sums(rank, numpy.concatenate(whats[-2:]), numpy.concatenate(seconds[-2:])))
    key, what, run_of, second = (numpy.concatenate(parts) for parts in (keys, whats, runs, seconds))
    inside = key >= 0
    width = len(codes)
    distinct, piece = numpy.unique((key * width + what)[inside], return_inverse=True)
    weight = numpy.zeros((len(distinct), len(courses)))
    numpy.add.at(weight, (piece.reshape(-1), run_of[inside]), second[inside])
    node, what = distinct // width, distinct % width
    is_slot = node < operations
    slot_rank = slow.slot_rank
    rank = numpy.where(is_slot, slot_rank[node.clip(max=slow.slots - 1)], 0)
    call = (node - operations).clip(0)
    rank[~is_slot] = slow.rank[call[~is_slot]]
    for run, its_rank in differing:
        _scale(weight, rank, what, run, its_rank, sums)
    names = [name for name, _ in sorted(codes.items(), key=lambda item: item[1])]
    is_message = numpy.array([part == MESSAGE for part, _ in names])[what] & ~is_slot
    touched, link = _links(slow, numpy.where(is_message, call, -1), nodes)
    call_of_slot = numpy.minimum(node - numpy.searchsorted(slow.ranks, rank), calls - 1)
    date = numpy.where(is_slot, slow.start_s[call_of_slot.clip(0)], slow.start_s[call])
    entries = _entries(slow, node, is_message, weight, seen)
    return Pieces(
        slow.graph(),
        rank,
        date,
        what,
        tuple(names),
        touched,
        link,
        weight,
        *entries,
        numpy.array([course.time_s for course in courses]),
        1.0 - len(differing) / max(1, len(usual) * len(slow.ranks)),
    )


def _links(slow: Course, call: NDArray[Any], nodes: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """touched and link of Pieces; call: of each piece, -1 of those that are no messages."""
    single = numpy.flatnonzero(slow.peer >= 0)
    calls = numpy.concatenate((slow.edges[0], single))
    partner = numpy.concatenate((slow.rank[slow.edges[1]], slow.peer[single]))
    ends = numpy.sort(numpy.stack((nodes[slow.rank[calls]], nodes[partner]), axis=1), axis=1)
    triples = numpy.unique(numpy.column_stack((calls, ends)), axis=0)
    order = numpy.argsort(call)
    low, high = (numpy.searchsorted(call[order], triples[:, 0] + more) for more in (0, 1))
    repeats = high - low
    first = numpy.repeat(low - numpy.cumsum(repeats) + repeats, repeats)
    return order[first + numpy.arange(repeats.sum())], numpy.repeat(triples[:, 1:], repeats, axis=0)


def _entries(
    slow: Course, node: NDArray[Any], is_message: NDArray[Any], weight: NDArray[Any], seen: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """node, piece and seconds of Pieces; seen: start, sent and end of each call in each run, NaN where not known."""
    flights = slow.flights
    piece_of_call = numpy.full(len(slow.rank), -1)
    piece_of_call[node[is_message] - slow.slots] = numpy.flatnonzero(is_message)
    flights_at = numpy.flatnonzero(piece_of_call[flights] >= 0)
    pieces = piece_of_call[flights[flights_at]]
    start, sent, end = seen[:, flights[flights_at]]
    # Where the call began first, the message was under way from its send to the end of the call; else no longer.
    waited = sent >= start
    most = numpy.where(numpy.isfinite(sent), end - sent, numpy.inf)
    exact = numpy.where(waited, most, 0.0).sum(axis=1) / numpy.maximum(waited.sum(axis=1), 1)
    least = numpy.where(numpy.isnan(most), numpy.inf, most).min(axis=1)
    usual = numpy.where(waited.any(axis=1), exact, numpy.where(numpy.isinf(least), 0.0, least))[:, None]
    still = waited | ((end - start > ARRIVED * usual) & (most <= LATE * usual))
    under_way = numpy.where(still, most, numpy.minimum(most, usual))
    itself = numpy.where(still, 0.0, end - start)
    ratio = weight[pieces] / numpy.maximum(weight[pieces, :1], 1e-12)
    unknown = numpy.isnan(end)
    under_way, itself = (numpy.where(unknown, part[:, :1] * ratio, part) for part in (under_way, itself))
    simple = numpy.setdiff1d(numpy.arange(len(node)), pieces)
    arrival = slow.slots + len(slow.rank) + flights_at
    return (
        numpy.concatenate((node[simple], arrival, arrival + len(flights))),
        numpy.concatenate((simple, pieces, pieces)),
        numpy.concatenate((weight[simple], under_way, itself)),
    )


def _by_rank(course: Course) -> dict[int, slice]:
    bounds = numpy.searchsorted(course.rank, [*course.ranks, course.ranks[-1] + 1]).tolist()
    return {rank: slice(bounds[at], bounds[at + 1]) for at, rank in enumerate(course.ranks)}


def _slots_of_calls(course: Course) -> NDArray[Any]:
    place: NDArray[Any] = numpy.arange(len(course.rank)) + numpy.searchsorted(course.ranks, course.rank)
    return place


def _coded(parts: Sequence[tuple[str, str]], codes: dict[tuple[str, str], int]) -> NDArray[Any]:
    return numpy.array([codes.setdefault(part, len(codes)) for part in parts], dtype=int)


def _sums(rank: NDArray[Any], what: NDArray[Any], seconds: NDArray[Any]) -> dict[tuple[int, int], float]:
    pairs, place = numpy.unique(numpy.stack((rank, what), axis=1), axis=0, return_inverse=True)
    totals = numpy.bincount(place.reshape(-1), seconds, minlength=len(pairs))
    return {(int(first), int(second)): total for (first, second), total in zip(pairs, totals.tolist(), strict=True)}


def _scale(
    weight: NDArray[Any],
    rank: NDArray[Any],
    what: NDArray[Any],
    run: int,
    its_rank: int,
    sums: Sequence[dict[tuple[int, int], float]],
) -> None:
    """Gives the pieces of a rank that took another course in a run the slow run's times, scaled to that run's sums."""
    here = numpy.flatnonzero(rank == its_rank)
    for code in numpy.unique(what[here]).tolist():
        rows = here[what[here] == code]
        slow_s, usual_s = (sums[place].get((its_rank, code), 0.0) for place in (0, run))
        share = weight[rows, 0] / slow_s if slow_s > 0 else numpy.full(len(rows), 1.0 / len(rows))
        weight[rows, run] = share * usual_s
