"""A recording, laid down as the core runs it: each rank's calls in their order, and its computing between them.

Receives name the sender and the tag that came, waits the requests that they ended. Computing is a kernel's where the
platform has a model of it; all other time between calls is the program's own, in seconds as recorded.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute import _core
from lepaute.errors import InputError
from lepaute.kit.text import seconds
from lepaute.simulate.apps.own.laying import Laid
from lepaute.simulate.apps.replay.calls import BY_BLOCKS, CALLS, CREATION_BYTES, CREATIONS, TO_EACH_OTHER, Call, Does
from lepaute.simulate.apps.replay.collectives import parts_of
from lepaute.simulate.apps.replay.operations import NONE, Operations, Requests
from lepaute.trace.compare import without_work
from lepaute.trace.messages import (
    BETWEEN_TWO,
    BLOCKING_OF,
    IMMEDIATE_RECEIVES,
    IMMEDIATE_SENDS,
    RECEIVES,
    SENDS,
    occurrence,
)
from lepaute.trace.table import COMPUTING, KERNEL, MPI, NOBODY, PHASE, Trace

#: Own time between two calls is kept with so many significant digits, so that few operations are told apart.
DIGITS = 4
_MOST_TAG = 2**31 - 1
MEETINGS = (Does.MEETS, Does.BEGINS_MEETING)
_STEP, _OWN, _FIRST, _SECOND = range(4)  # what a row can be, in this order


def laid_down(trace: Trace, modelled: Collection[str], library: str, where: str) -> Laid:
    """The program of a recording.

    modelled : kernels that take the time of the platform's models
    library  : one of LIBRARIES, whose rules choose the algorithms of collective operations
    where    : the recording, for messages
    Raises InputError for calls that cannot be replayed, and for messages and collective operations that lack a side.
    """
    return Recorded(trace, frozenset(modelled), where, library).lay()


def check(trace: Trace, where: str) -> None:
    """Raises InputError for a recording with calls that cannot be replayed."""
    if not len(trace):
        raise InputError(f"{where}: it has no calls")
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


def _tags(trace: Trace) -> NDArray[Any]:
    """Tags that tell the messages of communicators apart, and that the core can hold; those of MPI_COMM_WORLD stay."""
    tag = trace.tag
    if tag.max(initial=0) > _MOST_TAG:  # of messages that collective operations are made of
        tag = numpy.unique(tag, return_inverse=True)[1].reshape(-1) + tag.min(initial=0).clip(-1)
    rows = numpy.flatnonzero((trace.comm > 0) & (tag >= 0) & trace.named(BETWEEN_TWO))
    if len(rows):
        taken = numpy.unique(tag[trace.comm <= 0])
        _, code = numpy.unique(trace.comm[rows].astype("int64") << 32 | tag[rows], return_inverse=True)
        code = code.reshape(-1)
        free = numpy.setdiff1d(numpy.arange(len(taken) + code.max() + 1), taken)
        tag = tag.copy()
        tag[rows] = free[code]
    return tag


@dataclass
class Recorded:
    """A recording by what its calls do; the other fields are those of `laid_down`.

    does, tag : of each row what the call is in a replay, and its tag
    """

    trace: Trace
    modelled: frozenset[str]
    where: str
    library: str
    operations: Operations = field(default_factory=Operations)
    groups: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        trace = self.trace
        self.ranks = max(trace.metadata.get("ranks") or 0, int(trace.rank.max()) + 1)
        self.calls = [CALLS.get(name, Call(Does.NOTHING)) for name in trace.names]
        does = numpy.array([call.does for call in self.calls], dtype="int8")[trace.name]
        does[trace.kind == PHASE] = Does.NOTHING
        is_modelled = (trace.kind == KERNEL) & trace.named(self.modelled) & ~without_work(trace)
        does[trace.kind == KERNEL] = Does.NOTHING
        does[is_modelled] = Does.COMPUTES
        self.does = does
        does[self._looks_in_vain()] = Does.NOTHING
        self.tag = _tags(trace)
        self.is_open = numpy.isin(does, (Does.BLOCKS, Does.BEGINS, Does.ARRIVES)) & trace.named(
            RECEIVES | IMMEDIATE_RECEIVES
        )

    def _looks_in_vain(self) -> NDArray[Any]:
        """Rows of probes that found nothing, and of those of which that is not known.

        A recording says which found something. A prediction's trace does not of MPI_Iprobe: the last ones did, which a
        receive of the message follows.
        """
        trace = self.trace
        rows = numpy.flatnonzero(self.does == Does.LOOKS)
        vain = (trace.n[rows] > 0) | (trace.peer[rows] < 0) | (trace.tag[rows] < 0)
        if not (trace.is_recording or "calls" in trace.metadata):
            calls = numpy.flatnonzero(self.does != Does.NOTHING)
            after = calls[numpy.searchsorted(calls, rows, side="right").clip(max=max(len(calls) - 1, 0))]
            same = [column[after] == column[rows] for column in (trace.rank, trace.peer, trace.tag)]
            found = trace.named(RECEIVES)[after] & same[0] & same[1] & same[2]
            vain |= trace.named("MPI_Iprobe")[rows] & ~found
        return rows[vain]

    def lay(self) -> Laid:
        """Goes through all rows."""
        check(self.trace, self.where)
        self._check_messages()
        step = self.operations.number("step", "")
        placed = numpy.full((len(self.trace), 4), NONE, dtype="int32")
        own_s, last_s = self._own_seconds()
        self._place_steps(placed, step)
        self._place_own(placed[:, _OWN], own_s)
        self._place_kernels(placed)
        self._place_blocking(placed)
        self._place_collectives(placed, self._place_requests(placed))
        last = self._numbers_of(last_s)
        starts = numpy.searchsorted(self.trace.rank, numpy.arange(self.ranks + 1))
        rank_code, steps = [], 1
        for rank in range(self.ranks):
            rows = placed[starts[rank] : starts[rank + 1]].reshape(-1)
            ops = rows[rows >= 0].tolist()
            if last[rank] >= 0:
                ops.append(int(last[rank]))
            if step not in ops:
                ops.insert(0, step)
            steps = max(steps, ops.count(step))
            rank_code.append(_core.ProgramRankCode(ops, [(0, len(ops), 1)]))
        return self._laid(rank_code, steps)

    def _laid(self, rank_code: Sequence[Any], steps: int) -> Laid:
        parameters = self.operations.parameters(self.groups, rank_code, steps)
        try:
            _core.check_program(parameters)
        except ValueError as error:
            raise InputError(f"{self.where}: {error}") from error
        meetings = int(numpy.isin(self.does, MEETINGS).sum())
        events = 1.0 * len(self.trace) + meetings * (2.0 * self.ranks.bit_length())
        return Laid(parameters, steps, events, len(self.operations.kernels) > 1, draws=False)

    # ---- computing ---------------------------------------------------------------------------------------------------

    def _own_seconds(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Own time before each row that is something, 0 elsewhere; and that of each rank after all."""
        trace = self.trace
        counted = trace.kind != PHASE
        begins = numpy.zeros(self.ranks)
        ends = numpy.full(self.ranks, -numpy.inf)
        if trace.is_recording:
            for at, name in ((begins, "begins_s"), (ends, "ends_s")):
                known = trace.metadata.get(name) or ()
                at[: len(known)] = known[: self.ranks]
        own_s, last_s = numpy.zeros(len(trace)), numpy.zeros(self.ranks)
        is_own = (trace.kind == KERNEL) & (self.does == Does.NOTHING)
        bounds = numpy.searchsorted(trace.rank, numpy.arange(self.ranks + 1))
        for rank in range(self.ranks):
            rows = numpy.arange(bounds[rank], bounds[rank + 1])
            rows = rows[counted[rows]]
            if not len(rows):
                continue
            end = numpy.maximum.accumulate(trace.start_s[rows] + trace.duration_s[rows])
            before = numpy.concatenate(([begins[rank]], end[:-1]))
            gaps = numpy.maximum(trace.start_s[rows] - before, 0.0)
            passed = numpy.cumsum(gaps) + numpy.cumsum(numpy.where(is_own[rows], trace.duration_s[rows], 0.0))
            told = numpy.isin(
                self.does[rows],
                (Does.BLOCKS, Does.BEGINS, Does.ENDS, Does.SENDS_AND_RECEIVES, Does.LOOKS, *MEETINGS),
            )
            at = passed[told]
            own_s[rows[told]] = numpy.diff(at, prepend=0.0)
            last_s[rank] = passed[-1] - (at[-1] if len(at) else 0.0) + max(0.0, ends[rank] - end[-1])
        return own_s, last_s

    def _numbers_of(self, own_s: NDArray[Any]) -> NDArray[Any]:
        """Places of operations that take so long; -1 for none."""
        numbers = numpy.full(len(own_s), NONE, dtype="int32")
        rows = numpy.flatnonzero(own_s > 0.0)
        magnitude = 10.0 ** (numpy.floor(numpy.log10(own_s[rows])) - DIGITS + 1)
        rounded = numpy.rint(own_s[rows] / magnitude) * magnitude
        numbers[rows] = self.operations.number_each(
            [rounded], lambda at: self.operations.number("compute", COMPUTING, sizes=(0.0, float(rounded[at]), 0.0))
        )
        return numbers

    def _place_own(self, placed: NDArray[Any], own_s: NDArray[Any]) -> None:
        placed[:] = self._numbers_of(own_s)

    def _place_kernels(self, placed: NDArray[Any]) -> None:
        trace = self.trace
        rows = numpy.flatnonzero(self.does == Does.COMPUTES)

        def make(at: int) -> int:
            row = int(rows[at])
            name = trace.names[trace.name[row]]
            kernels = self.operations.kernels
            which = kernels.setdefault(name, len(kernels))
            m, n, k = (max(0.0, float(getattr(trace, letter)[row])) for letter in "mnk")
            return self.operations.number("compute", name, which=which, sizes=(m, n, k))

        columns = [trace.name[rows], trace.m[rows], trace.n[rows], trace.k[rows]]
        placed[rows, _FIRST] = self.operations.number_each(columns, make)

    def _place_steps(self, placed: NDArray[Any], step: int) -> None:
        """A step begins with the first call that is beyond the steps before: look-ahead goes back and forth."""
        rows = numpy.flatnonzero((self.trace.step >= 0) & (self.does != Does.NOTHING))
        if not len(rows):
            return
        beyond = self.trace.rank[rows].astype("int64") << 32 | self.trace.step[rows]
        begins = numpy.diff(numpy.maximum.accumulate(beyond), prepend=-1) > 0
        placed[rows[begins], _STEP] = step

    # ---- communication -----------------------------------------------------------------------------------------------

    def meetings(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Rows of collective operations, and of each the number of its group in `groups`, which are found here, how
        many members that has, and bytes. Raises InputError where members are not known."""
        trace = self.trace
        rows = numpy.flatnonzero(numpy.isin(self.does, MEETINGS))
        unknown = rows[trace.comm[rows] < 0]
        if len(unknown) and self.ranks > 1:
            row = unknown[0]
            raise InputError(
                f"{self.where}: the ranks of {trace.names[trace.name[row]]}, which rank {trace.rank[row]} calls at "
                f"{seconds(float(trace.start_s[row]))}, are not known: the recording does not tell its communicator"
            )
        comm = trace.comm[rows].clip(0)
        some = numpy.unique(comm[comm > 0])  # of a part of a recording not all numbers
        self.groups = [
            list(range(self.ranks)),
            *(numpy.unique(trace.rank[rows[comm == group]]).tolist() for group in some),
        ]
        which = numpy.searchsorted(numpy.array([0, *some]), comm)
        members = numpy.array([len(group) for group in self.groups])[which]
        return rows, which, members, self._sizes_of_meetings(rows, which, members)

    def _place_collectives(self, placed: NDArray[Any], requests: dict[int, int]) -> None:
        """requests: of each row that does not block, the number of its request."""
        trace = self.trace
        rows, which, members, sizes = self.meetings()
        ends = numpy.array([requests.get(row, NONE) for row in rows.tolist()], dtype="int64")
        root = trace.peer[rows].astype("int64")
        place_of = [{rank: place for place, rank in enumerate(group)} for group in self.groups]

        def make(second: bool) -> Callable[[int], int]:
            def one(at: int) -> int:
                name, group, request = trace.names[trace.name[rows[at]]], int(which[at]), int(ends[at])
                blocks = name not in BLOCKING_OF
                parts = parts_of(CALLS[name].code, float(sizes[at]), int(members[at]), self.library, blocks=blocks)
                if second and len(parts) == 1:
                    return NONE
                part = parts[second]
                # The last part ends the request.
                tag = 0 if blocks else 1 + request if second or len(parts) == 1 else NONE
                index = place_of[group].get(int(root[at]), 0)
                size = (float(round(part.size_bytes)), 0.0, 0.0)
                return self.operations.number(part.code, name, index, tag, group, size, part.algorithm)

            return one

        columns = [trace.name[rows], which, root, sizes, ends]
        placed[rows, _FIRST] = self.operations.number_each(columns, make(second=False))
        placed[rows, _SECOND] = self.operations.number_each(columns, make(second=True))

    def _sizes_of_meetings(self, rows: NDArray[Any], which: NDArray[Any], members: NDArray[Any]) -> NDArray[Any]:
        """Of each row the bytes of its operation, the same on all members: where they differ, their mean."""
        trace = self.trace
        names, sizes = trace.name[rows], trace.size_bytes[rows]
        of_all, of_block, created = (
            numpy.array([name in chosen for name in trace.names] or [False])[names]
            for chosen in (TO_EACH_OTHER, BY_BLOCKS, CREATIONS)
        )
        sizes = numpy.where(of_all, sizes / members, numpy.where(of_block, sizes * members, sizes))
        sizes = numpy.where(created, float(CREATION_BYTES), sizes)
        _, member = numpy.unique(which.astype("int64") * self.ranks + trace.rank[rows], return_inverse=True)
        turn = occurrence(member.reshape(-1))
        _, operation = numpy.unique(which.astype("int64") * (len(rows) + 1) + turn, return_inverse=True)
        operation = operation.reshape(-1)
        counts = numpy.bincount(operation)
        means = numpy.bincount(operation, weights=sizes) / numpy.maximum(counts, 1)
        result: NDArray[Any] = numpy.rint(means)[operation] if len(rows) else sizes
        return result

    def _place_blocking(self, placed: NDArray[Any]) -> None:
        trace = self.trace
        rows = numpy.flatnonzero(numpy.isin(self.does, (Does.BLOCKS, Does.LOOKS)) & (trace.peer != NOBODY))

        def make(at: int) -> int:
            row = int(rows[at])
            name = trace.names[trace.name[row]]
            code = CALLS[name].code
            size = float(trace.size_bytes[row]) if code in ("send", "ssend") else 0.0
            return self.operations.number(code, name, int(trace.peer[row]), int(self.tag[row]), 0, (size, 0.0, 0.0))

        receives = ~trace.named(SENDS)[rows]
        columns = [
            trace.name[rows],
            trace.peer[rows],
            self.tag[rows],
            numpy.where(receives, 0.0, trace.size_bytes[rows]),
        ]
        placed[rows, _FIRST] = self.operations.number_each(columns, make)

    def _place_requests(self, placed: NDArray[Any]) -> dict[int, int]:
        """Of what begins and ends requests, rank by rank; those of collective operations by their rows."""
        trace = self.trace
        of_meetings: dict[int, int] = {}
        wanted = (Does.BEGINS, Does.ENDS, Does.SENDS_AND_RECEIVES, Does.ARRIVES, Does.BEGINS_MEETING)
        rows = numpy.flatnonzero(numpy.isin(self.does, wanted))
        columns = (self.does, trace.name, trace.rank, trace.peer, self.tag, trace.size_bytes, trace.completion)
        requests = Requests(self.operations)
        for row, does, name, rank, peer, tag, size, completion in zip(
            rows.tolist(), *(column[rows].tolist() for column in columns), strict=True
        ):
            if rank != requests.rank:
                requests = Requests(self.operations, rank)
            if does == Does.BEGINS:
                if peer != NOBODY:
                    placed[row, _FIRST] = requests.begin(trace.names[name], peer, tag, size, completion)
            elif does == Does.ENDS:
                placed[row, _FIRST] = requests.end(trace.names[name], peer, tag, completion)
            elif does == Does.BEGINS_MEETING:
                of_meetings[row] = requests.begin_meeting(completion)
            elif does == Does.SENDS_AND_RECEIVES:
                placed[row, _FIRST] = requests.send_of_both(trace.names[name], peer, tag, size)
            else:
                placed[row, _FIRST], placed[row, _SECOND] = requests.receive_of_both(trace.names[name], peer, tag)
        return of_meetings

    def _check_messages(self) -> None:
        """Raises InputError, with ranks and calls, where a message lacks a side."""
        trace = self.trace
        is_receive = self.is_open & (trace.peer != NOBODY)
        if (is_receive & ((trace.peer < 0) | (self.tag < 0))).any():
            return  # from any source: who gets which message is seen in the simulation
        is_send = trace.named(SENDS | IMMEDIATE_SENDS) & (trace.peer >= 0) & (trace.kind == MPI)
        sends, receives = numpy.flatnonzero(is_send), numpy.flatnonzero(is_receive)
        left = numpy.stack((trace.rank[sends], trace.peer[sends], self.tag[sends]), axis=1)
        right = numpy.stack((trace.peer[receives], trace.rank[receives], self.tag[receives]), axis=1)
        kinds, key = numpy.unique(numpy.concatenate((left, right)), axis=0, return_inverse=True)
        of_send, of_receive = numpy.split(key.reshape(-1), [len(sends)])
        surplus = numpy.bincount(of_send, minlength=len(kinds)) - numpy.bincount(of_receive, minlength=len(kinds))
        # A receive that waits tells most, and of these the first.
        for rows, of_row, lacking, does, other in (
            (receives, of_receive, -surplus, "waits for a message from", "sends"),
            (sends, of_send, surplus, "sends a message to", "receives"),
        ):
            alone = [int(rows[of_row == kind][-lacking[kind]]) for kind in numpy.flatnonzero(lacking > 0).tolist()]
            if alone:
                row = min(alone, key=lambda each: float(trace.start_s[each]))
                raise InputError(
                    f"{self.where}: rank {trace.rank[row]} {does} rank {trace.peer[row]}, tag {trace.tag[row]}, in "
                    f"{trace.names[trace.name[row]]} at {seconds(float(trace.start_s[row]))}, which that one never "
                    f"{other}: the recording is not complete"
                )
