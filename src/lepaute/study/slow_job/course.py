"""What a run did, as calls of MPI and what each rank did before each of them: the graph that is replayed."""

from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.errors import InputError
from lepaute.kit.text import counted
from lepaute.simulate.trace.breakdown import with_own_code
from lepaute.simulate.trace.graph import Graph, edges_of
from lepaute.simulate.trace.messages import COLLECTIVES, NONBLOCKING_COLLECTIVES, PROBES, TESTS
from lepaute.simulate.trace.table import COMPUTING, GAPS, PHASE, SLEEPING, WAITING, Trace

#: Longer recordings are refused: the graph takes some hundred bytes a call, and minutes.
MAX_CALLS = 2_000_000
#: What a part of a run is, by what takes the time.
COMPUTE, NO_CORE, ASLEEP, PROBING, UNRECORDED, MESSAGE, COLLECTIVE, CALL = (
    "computing",
    "waiting for a core",
    "sleeping or I/O",
    "probing",
    "not recorded",
    "messages",
    "collective operations",
    "calls",
)


@dataclass(frozen=True, slots=True)
class Course:
    """A run. Calls are in the order of ranks, then time; a rank with n calls has n + 1 slots: before each, and at last.

    rank, key, sized_key : of each call; key is equal for calls of the same name and partner, sized_key where the size
                is, too: it may depend on numbers, as in HPL's row swaps
    start_s, end_s : of each call;  weight_s : what it took beyond waiting;  peer : of a message, -1 elsewhere
    sent_s    : when the last call began for which a message waits, -inf of other calls
    call_what : of each call, its part of the run and its name
    slot, piece_what, seconds : pieces of what ranks did in a slot
    last_s    : when each rank ended
    edges     : of calls, the first does not end before the second begins;  joins, awaits : call, collective operation
    """

    trace: Trace
    ranks: tuple[int, ...]
    rank: NDArray[Any]
    key: NDArray[Any]
    sized_key: NDArray[Any]
    start_s: NDArray[Any]
    end_s: NDArray[Any]
    weight_s: NDArray[Any]
    peer: NDArray[Any]
    sent_s: NDArray[Any]
    call_what: tuple[tuple[str, str], ...]
    slot: NDArray[Any]
    piece_what: tuple[tuple[str, str], ...]
    seconds: NDArray[Any]
    last_s: NDArray[Any]
    edges: tuple[NDArray[Any], NDArray[Any]]
    joins: tuple[NDArray[Any], NDArray[Any]]
    awaits: tuple[NDArray[Any], NDArray[Any]]

    @property
    def time_s(self) -> float:
        """From the beginning of the trace to the end of the last rank."""
        return float(self.last_s.max())

    @property
    def slots(self) -> int:
        return len(self.rank) + len(self.ranks)

    @property
    def slot_rank(self) -> NDArray[Any]:
        """The rank of each slot; the slots of a rank follow each other."""
        calls = numpy.bincount(numpy.searchsorted(self.ranks, self.rank), minlength=len(self.ranks))
        return numpy.repeat(numpy.array(self.ranks), calls + 1)

    @property
    def flights(self) -> NDArray[Any]:
        """Calls that wait for messages, in order."""
        return numpy.unique(self.edges[0])

    def graph(self) -> Graph:
        """Nodes: the slots, the calls, then for each of `flights` the arrival of its messages and the call itself, then
        the collective operations; a slot's end is where its call begins, and a call of `flights` ends with the later of
        the two."""
        calls, slots, flights = len(self.rank), self.slots, self.flights
        place = numpy.arange(calls) + numpy.searchsorted(self.ranks, self.rank)
        call = slots + numpy.arange(calls)
        arrival = slots + calls + numpy.arange(len(flights))
        itself, operation = arrival + len(flights), slots + calls + 2 * len(flights)
        arrives = arrival[numpy.searchsorted(flights, self.edges[0])]
        before = [place, call, place[self.edges[1]], place[self.joins[0]], operation + self.awaits[1]]
        after = [call, place + 1, arrives, operation + self.joins[1], call[self.awaits[0]]]
        before += [arrival, place[flights], itself]
        after += [call[flights], itself, call[flights]]
        optional = numpy.repeat(
            [False, False, True, False, True, False, False, False], [len(nodes) for nodes in before]
        )
        operations = int(self.joins[1].max(initial=-1)) + 1
        ends = numpy.full(slots, -numpy.inf)
        ends[place] = self.start_s
        last = numpy.flatnonzero(numpy.isinf(ends))
        ends[last] = self.last_s
        met = numpy.full(operations, -numpy.inf)
        numpy.maximum.at(met, self.joins[1], self.start_s[self.joins[0]])
        dates = numpy.concatenate((ends, self.end_s, numpy.tile(self.end_s[flights], 2), met))
        return Graph(operation + operations, numpy.concatenate(before), numpy.concatenate(after), optional, dates)


def course_of(trace: Trace, where: str) -> Course:
    """The course of a trace; raises InputError for one that has no calls of MPI, or too many."""
    trace = with_own_code(trace)
    trace = trace.where((trace.thread == 0) & (trace.kind != PHASE))
    # How often a rank looks depends on when messages come: only tests that completed a request are calls here.
    looks = trace.named(PROBES) & (trace.completion < 0) & ((trace.n > 0) | ~trace.named(TESTS))
    is_call = trace.named(name for name in trace.names if name.startswith("MPI_")) & ~looks
    rows = numpy.flatnonzero(is_call)
    if not len(rows):
        raise InputError(f"{where}: has no calls of MPI, by which runs are compared; record the program's ranks")
    if len(rows) > MAX_CALLS:
        raise InputError(f"{where}: has {counted(len(rows), 'call')} of MPI; at most {MAX_CALLS} are replayed")
    ranks = numpy.array(trace.ranks)
    start, end = _in_order(trace, ranks)
    number = numpy.full(len(trace), -1)
    number[rows] = numpy.arange(len(rows))
    waits = edges_of(trace)
    row, other = number[waits.row], number[waits.other]
    known = (row >= 0) & (other >= 0)
    row, other = row[known], other[known]
    member, joined = number[waits.member], waits.joined
    waiting, awaited = number[waits.waiting], waits.awaited
    begun, ended = start[rows], end[rows]
    peer = numpy.where(trace.peer[rows] >= 0, trace.peer[rows], -1)
    sent = numpy.full(len(rows), -numpy.inf)
    numpy.maximum.at(sent, row, begun[other])
    ready = numpy.maximum(begun, sent)
    met = numpy.full(int(joined.max(initial=-1)) + 1, -numpy.inf)
    numpy.maximum.at(met, joined, begun[member])
    numpy.maximum.at(ready, waiting, met[awaited])
    slot, what, seconds, last = _pieces(trace, rows, looks, start, end, ranks)
    return Course(
        trace,
        tuple(ranks.tolist()),
        trace.rank[rows],
        *_keys(trace, rows),
        begun,
        ended,
        numpy.maximum(ended - ready, 0.0),
        peer,
        sent,
        tuple(_call_parts(trace, rows, numpy.isfinite(sent) | (peer >= 0))),
        slot,
        what,
        seconds,
        last,
        (row, other),
        (member, joined),
        (waiting, awaited),
    )


def _in_order(trace: Trace, ranks: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Start and end of each row, where no row of a rank begins before those before it have ended."""
    start, end = trace.start_s.copy(), trace.end_s
    for rank in ranks.tolist():
        low, high = numpy.searchsorted(trace.rank, (rank, rank + 1))
        ended = numpy.maximum.accumulate(end[low:high])
        start[low + 1 : high] = numpy.maximum(start[low + 1 : high], ended[:-1])
        end[low:high] = numpy.maximum(ended, start[low:high])
    return start, end


def _keys(trace: Trace, rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """key and sized_key of Course; waits for several requests differ in what came together."""
    names = numpy.array([hash_of(name) for name in trace.names], dtype="uint64")[trace.name[rows]]
    single = ~trace.named(("MPI_Waitany", "MPI_Waitsome"))[rows]
    peer = numpy.where(single, trace.peer[rows], -1).astype("int64").astype("uint64")
    size = numpy.where(single, trace.size_bytes[rows], 0).astype("int64").astype("uint64")
    key = (names * numpy.uint64(31) + peer) * numpy.uint64(0x9E3779B97F4A7C15)
    return key, key + size


def hash_of(text: str) -> int:
    """A number of 64 bits, the same in every process: FNV-1a."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & (1 << 64) - 1
    return value


def _call_parts(trace: Trace, rows: NDArray[Any], is_message: NDArray[Any]) -> list[tuple[str, str]]:
    collective = trace.named(COLLECTIVES | NONBLOCKING_COLLECTIVES)[rows]
    sizes = numpy.where(collective, trace.size_bytes[rows], -1 - is_message)
    parts: dict[tuple[int, float], tuple[str, str]] = {}
    for name, size in set(zip(trace.name[rows].tolist(), sizes.tolist(), strict=True)):
        call = trace.names[name]
        if size >= 0:
            parts[name, size] = (COLLECTIVE, f"{call} of {int(size)} bytes" if size else call)
        else:
            parts[name, size] = (MESSAGE if size < -1 else CALL, "")
    return [parts[pair] for pair in zip(trace.name[rows].tolist(), sizes.tolist(), strict=True)]


def _pieces(
    trace: Trace, rows: NDArray[Any], looks: NDArray[Any], start: NDArray[Any], end: NDArray[Any], ranks: NDArray[Any]
) -> tuple[NDArray[Any], tuple[tuple[str, str], ...], NDArray[Any], NDArray[Any]]:
    """slot, piece_what, seconds and last_s of Course."""
    slots: list[NDArray[Any]] = []
    whats: list[tuple[str, str]] = []
    seconds: list[NDArray[Any]] = []
    lasts = numpy.zeros(len(ranks))
    is_call = numpy.zeros(len(trace), dtype=bool)
    is_call[rows] = True
    computing = trace.named(COMPUTING)
    known = {WAITING: (NO_CORE, ""), SLEEPING: (ASLEEP, ""), **{name: (UNRECORDED, name) for name in GAPS}}
    for at, rank in enumerate(ranks.tolist()):
        low, high = (int(place) for place in numpy.searchsorted(trace.rank, (rank, rank + 1)))
        lasts[at] = end[low:high].max()
        calls = low + numpy.flatnonzero(is_call[low:high])
        pieces = low + numpy.flatnonzero(~is_call[low:high])
        first = int(numpy.searchsorted(rows, low)) + at  # the rank's first slot
        place = numpy.searchsorted(calls, pieces)
        is_program = computing[pieces]
        names = ["the beginning", *(trace.names[code] for code in trace.name[calls].tolist()), "the end"]
        for row, where, is_code in zip(pieces.tolist(), place.tolist(), is_program.tolist(), strict=True):
            name = trace.names[int(trace.name[row])]
            if looks[row]:
                whats.append((PROBING, name))
            elif is_code:
                whats.append((COMPUTE, f"its code between {names[where]} and {names[where + 1]}"))
            else:
                whats.append(known.get(name) or (COMPUTE, name))
        slots.append(first + place)
        seconds.append(end[pieces] - start[pieces])
        # What no row accounts for: a simulation may leave some time out, and ranks may begin later than others.
        bounds_low = numpy.concatenate(([0.0], end[calls]))
        bounds_high = numpy.concatenate((start[calls], [lasts[at]]))
        missing_s = bounds_high - bounds_low - numpy.bincount(place, seconds[-1], minlength=len(calls) + 1)
        gap = numpy.flatnonzero(numpy.abs(missing_s) > 1e-12)
        slots.append(first + gap)
        seconds.append(missing_s[gap])
        whats.extend([(UNRECORDED, "")] * len(gap))
    return numpy.concatenate(slots), tuple(whats), numpy.concatenate(seconds), lasts
