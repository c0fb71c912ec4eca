"""A slow run beside usual ones, piece by piece: what each piece of its graph takes in each of the runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.simulate.trace.graph import Graph
from lepaute.study.slow_job.course import CALL, MESSAGE, Course


@dataclass(frozen=True, slots=True)
class Pieces:
    """What a slow run consists of. Each piece adds its time to one node of the graph.

    node, rank  : of each piece;  date_s : in the slow run, when it began, nearly
    what        : codes into `whats`, pairs of a part (`course`) and a label
    touched, link : pieces of messages, and two nodes of the machine between which some of theirs went; shapes (n,),
                  (n, 2); a wait for several messages occurs once for each pair
    weight_s    : shape (pieces, 1 + usual runs); the slow run is the first
    time_s      : how long each run took
    followed    : share of the usual runs' ranks that made the same calls in the same order: the others' pieces have
                  those of the slow run, times the ratio of the sums of a rank's pieces of the same name
    """

    graph: Graph
    node: NDArray[Any]
    rank: NDArray[Any]
    date_s: NDArray[Any]
    what: NDArray[Any]
    whats: tuple[tuple[str, str], ...]
    touched: NDArray[Any]
    link: NDArray[Any]
    weight_s: NDArray[Any]
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
    plain, codes_of = _without_partners(names)
    return Pieces(
        slow.graph(),
        node,
        rank,
        date,
        codes_of[what],
        plain,
        touched,
        link,
        weight,
        numpy.array([course.time_s for course in courses]),
        1.0 - len(differing) / max(1, len(usual) * len(slow.ranks)),
    )


def _links(slow: Course, call: NDArray[Any], nodes: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """touched and link of Pieces; call: of each piece, -1 of those that are no messages."""
    single = numpy.flatnonzero(slow.link >= 0)
    calls = numpy.concatenate((slow.edges[0], single))
    partner = numpy.concatenate((slow.rank[slow.edges[1]], slow.link[single]))
    ends = numpy.sort(numpy.stack((nodes[slow.rank[calls]], nodes[partner]), axis=1), axis=1)
    triples = numpy.unique(numpy.column_stack((calls, ends)), axis=0)
    order = numpy.argsort(call)
    low, high = (numpy.searchsorted(call[order], triples[:, 0] + more) for more in (0, 1))
    repeats = high - low
    first = numpy.repeat(low - numpy.cumsum(repeats) + repeats, repeats)
    return order[first + numpy.arange(repeats.sum())], numpy.repeat(triples[:, 1:], repeats, axis=0)


def _without_partners(names: Sequence[tuple[str, str]]) -> tuple[tuple[tuple[str, str], ...], NDArray[Any]]:
    """The same without the partners of messages, which are links; and the new code of each."""
    fewer: dict[tuple[str, str], int] = {}
    codes = [fewer.setdefault((part, "" if part in (MESSAGE, CALL) else label), len(fewer)) for part, label in names]
    return tuple(fewer), numpy.array(codes, dtype=int)


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
