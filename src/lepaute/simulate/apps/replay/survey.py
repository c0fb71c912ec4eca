"""What has to be known of all ranks of a recording before the calls of any is laid down."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.errors import InputError
from lepaute.kit.text import seconds
from lepaute.simulate.apps.replay.calls import CALLS, MEETINGS, Rows
from lepaute.simulate.trace.messages import BETWEEN_TWO, IMMEDIATE_SENDS, SENDS, occurrence, pair_by_key
from lepaute.simulate.trace.table import MPI, NOBODY, Trace, caveats_of

_MAX_TAG = 2**31 - 1


class Survey:
    """ranks, rows, names, metadata : of the recording;  meetings : how many calls are collective

    members : of each communicator its ranks, in order; sizes : of each of its operations the mean of the bytes
    Raises InputError for calls that cannot be replayed.
    """

    def __init__(self, parts: Iterable[Trace], where: str) -> None:
        self.where = where
        self.rows = self.meetings = 0
        self.names: set[str] = set()
        self.members: dict[int, list[int]] = defaultdict(list)
        self.metadata: dict[str, Any] = {}
        self._sums: dict[int, tuple[NDArray[Any], NDArray[Any]]] = {}
        self._tags, self._others = numpy.zeros(0, "int64"), numpy.zeros((0, 2), "int64")
        self._keys, self._surplus = numpy.zeros((0, 4), "int64"), numpy.zeros(0, "int64")
        self._from_any = False
        unknown, last = "", -1
        for part in parts:
            check(part, where)
            rows = Rows(part)
            self.rows += len(part)
            self.metadata = dict(part.metadata)
            self.names |= {part.names[code] for code in numpy.unique(part.name).tolist()}
            last = max(last, int(part.rank.max(initial=-1)))
            self._add_tags(part)
            self._add_messages(rows)
            unknown = self._add_meetings(rows) or unknown
        if not self.rows:
            raise InputError(f"{where}: it has no calls")
        self.ranks = max(self.metadata.get("ranks") or 0, last + 1)
        if unknown and self.ranks > 1:
            raise InputError(unknown)
        self.sizes = {comm: sums / numpy.maximum(counts, 1) for comm, (sums, counts) in self._sums.items()}
        del self._sums

    @property
    def caveats(self) -> list[str]:
        omitted = ", ".join(map(str, self.metadata.get("omitted") or ()))
        texts = [f"{text} (the recording)" for text in caveats_of(self.metadata)]
        return [*texts, *([f"{omitted} left out of the recording"] if omitted else [])]

    def _add_tags(self, trace: Trace) -> None:
        is_other = (trace.comm > 0) & (trace.tag >= 0) & trace.named(BETWEEN_TWO)
        self._tags = numpy.union1d(self._tags, trace.tag[~is_other])
        pairs = numpy.stack((trace.comm[is_other], trace.tag[is_other]), axis=1)
        self._others = numpy.unique(numpy.concatenate((self._others, pairs)), axis=0)

    def tags(self, trace: Trace) -> NDArray[Any]:
        """Tags that tell the messages of communicators apart, and that the core can hold; others are as they were.

        Those of messages that collective operations are made of are larger than the core's.
        """
        tag = trace.tag
        own = self._tags
        if own.max(initial=0) > _MAX_TAG:
            own = numpy.arange(len(own)) + own.min(initial=0).clip(-1)
            tag = own[numpy.searchsorted(self._tags, tag).clip(max=len(own) - 1)]
        if len(self._others):
            is_other = (trace.comm > 0) & (trace.tag >= 0) & trace.named(BETWEEN_TWO)
            free = numpy.setdiff1d(numpy.arange(len(own) + len(self._others)), own)
            width = _MAX_TAG * 4
            code = numpy.searchsorted(
                self._others[:, 0] * width + self._others[:, 1],
                trace.comm[is_other].astype("int64") * width + trace.tag[is_other],
            )
            tag = tag.copy()
            tag[is_other] = free[code]
        return tag

    def _add_meetings(self, rows: Rows) -> str:
        """What to say where the members of one are not known."""
        trace = rows.trace
        met = numpy.flatnonzero(numpy.isin(rows.does, MEETINGS))
        self.meetings += len(met)
        comm, turn = trace.comm[met], turns(trace, met)
        for number in numpy.unique(comm.clip(0)).tolist():
            own = met[comm.clip(0) == number]
            at = turn[comm.clip(0) == number]
            self.members[number] += numpy.unique(trace.rank[own]).tolist()
            sums, counts = self._sums.get(number, (numpy.zeros(0), numpy.zeros(0)))
            more = max(0, int(at.max(initial=-1)) + 1 - len(sums))
            sums, counts = (numpy.concatenate((each, numpy.zeros(more))) for each in (sums, counts))
            sums += numpy.bincount(at, weights=trace.size_bytes[own], minlength=len(sums))
            counts += numpy.bincount(at, minlength=len(counts))
            self._sums[number] = sums, counts
        if not (comm < 0).any():
            return ""
        row = met[comm < 0][0]
        return (
            f"{self.where}: the ranks of {trace.names[trace.name[row]]}, which rank {trace.rank[row]} calls at "
            f"{seconds(float(trace.start_s[row]))}, are not known: the recording does not tell its communicator"
        )

    def _add_messages(self, rows: Rows) -> None:
        sends, receives = _ends(rows)
        trace = rows.trace
        self._from_any |= bool(((trace.peer[receives] < 0) | (trace.tag[receives] < 0)).any())
        if self._from_any:
            return  # who gets which message is seen in the simulation
        keys = numpy.concatenate(
            (self._keys, _keys(trace, sends, by_sender=True), _keys(trace, receives, by_sender=False))
        )
        counts = numpy.concatenate((self._surplus, numpy.ones(len(sends)), -numpy.ones(len(receives))))
        kinds, key = numpy.unique(keys, axis=0, return_inverse=True)
        surplus = numpy.bincount(key.reshape(-1), weights=counts, minlength=len(kinds)).astype("int64")
        self._keys, self._surplus = kinds[surplus != 0], surplus[surplus != 0]

    def check_complete(self, parts: Iterable[Trace]) -> None:
        """Raises InputError for messages that lack a side: a receive that waits tells most, and of these the first."""
        if self._from_any or not self._surplus.any():
            return
        for sign, does, other in ((-1, "waits for a message from", "sends"), (1, "sends a message to", "receives")):
            lacking = {
                tuple(key): abs(int(n))
                for key, n in zip(self._keys.tolist(), self._surplus, strict=True)
                if n * sign > 0
            }
            alone: list[tuple[float, str]] = []
            for trace in parts if lacking else ():
                chosen = _ends(Rows(trace))[0 if sign > 0 else 1]
                keys = list(map(tuple, _keys(trace, chosen, by_sender=sign > 0).tolist()))
                rows_of: dict[tuple[int, ...], list[int]] = defaultdict(list)
                for row, key in zip(chosen.tolist(), keys, strict=True):
                    if key in lacking:
                        rows_of[key].append(row)
                for key, found in rows_of.items():
                    row = found[-min(lacking[key], len(found))]
                    start_s, name = float(trace.start_s[row]), trace.names[trace.name[row]]
                    text = f"rank {trace.rank[row]} {does} rank {trace.peer[row]}, tag {trace.tag[row]}, in {name} at "
                    alone.append((start_s, f"{text}{seconds(start_s)}, which that one never {other}"))
            if alone:
                raise InputError(f"{self.where}: {min(alone)[1]}: the recording is not complete")


def without_unfinished(trace: Trace) -> Trace:
    """A recording that ended early, without what was under way then: messages and meetings that lack a side."""
    rows = Rows(trace)
    sends, receives = _ends(rows)
    sent, received = pair_by_key(_keys(trace, sends, by_sender=True), _keys(trace, receives, by_sender=False))
    keep = numpy.ones(len(trace), dtype=bool)
    keep[sends] = keep[receives] = False
    keep[sends[sent]] = keep[receives[received]] = True
    met = numpy.flatnonzero(numpy.isin(rows.does, MEETINGS))
    comm, turn = trace.comm[met].clip(0), turns(trace, met)
    for number in numpy.unique(comm).tolist():
        in_group = comm == number
        ranks, counts = numpy.unique(trace.rank[met[in_group]], return_counts=True)
        everybody = number > 0 or len(ranks) == trace.metadata.get("ranks", len(ranks))
        keep[met[in_group & (turn >= (counts.min() if everybody else 0))]] = False
    return trace.where(keep)


def turns(trace: Trace, met: NDArray[Any]) -> NDArray[Any]:
    """For each of these rows, how many calls of its rank in its communicator come before."""
    return occurrence(trace.comm[met].clip(0).astype("int64") << 32 | trace.rank[met])


def _ends(rows: Rows) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows that send a message, and rows that receive one."""
    trace = rows.trace
    is_send = trace.named(SENDS | IMMEDIATE_SENDS) & (trace.peer >= 0) & (trace.kind == MPI)
    return numpy.flatnonzero(is_send), numpy.flatnonzero(rows.is_open & (trace.peer != NOBODY))


def _keys(trace: Trace, rows: NDArray[Any], *, by_sender: bool) -> NDArray[Any]:
    ends = (trace.rank[rows], trace.peer[rows])
    return numpy.stack((*(ends if by_sender else ends[::-1]), trace.tag[rows], trace.comm[rows]), axis=1).astype(
        "int64"
    )


def check(trace: Trace, where: str) -> None:
    """Raises InputError for a recording with calls that cannot be replayed."""
    _check_threads(trace, where)
    for code in numpy.unique(trace.name[trace.kind == MPI]).tolist():
        name = trace.names[code]
        if name not in CALLS:
            row = int(numpy.flatnonzero((trace.name == code) & (trace.kind == MPI))[0])
            raise InputError(
                f"{where}: {name}, which rank {trace.rank[row]} calls at {seconds(float(trace.start_s[row]))}, cannot "
                "be replayed"
            )
    unsized = sorted({name for name in trace.metadata.get("unsized", ()) if name in CALLS} & set(trace.names))
    if unsized:
        raise InputError(f"{where}: the sizes of {', '.join(unsized)} are not known; record the program, or emulate it")


def _check_threads(trace: Trace, where: str) -> None:
    """Raises InputError for calls of a rank's threads at the same time: a replay has one order of calls a rank."""
    calls = trace.where(trace.kind == MPI)
    for rank in calls.ranks if trace.thread.any() else ():
        called = calls.where(calls.rank == rank)
        ends_s = numpy.maximum.accumulate(called.end_s)
        longest = numpy.maximum.accumulate(numpy.where(called.end_s == ends_s, numpy.arange(len(called)), 0))[:-1]
        both = numpy.flatnonzero((called.start_s[1:] < ends_s[:-1]) & (called.thread[1:] != called.thread[longest]))
        if len(both):
            threads = [(called.thread[row], called.names[called.name[row]]) for row in (both[0] + 1, longest[both[0]])]
            at = seconds(float(called.start_s[both[0] + 1]))
            raise InputError(
                f"{where}: thread {threads[0][0]} of rank {rank} calls {threads[0][1]} at {at}, while its thread "
                f"{threads[1][0]} is in {threads[1][1]}: threads that are in calls at once cannot be replayed"
            )
