"""A recording, laid down as the core runs it: each rank's calls in their order, and its computing between them.

Receives name the sender and the tag that came, waits the requests that they ended. Computing is a kernel's where the
platform has a model of it; all other time between calls is the program's own, in seconds as recorded. A recording
is gone through in parts, of some ranks each, twice: `Survey` has what is to be known of all of them first.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from functools import partial
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute import _core
from lepaute.errors import InputError
from lepaute.kit.text import seconds
from lepaute.simulate.apps.own.laying import Laid
from lepaute.simulate.apps.replay.calls import BY_BLOCKS, CALLS, CREATION_BYTES, MEETINGS, TO_EACH_OTHER, Does, Rows
from lepaute.simulate.apps.replay.collectives import LIBRARIES, MEASURED, MeasuredCalls, parts_of
from lepaute.simulate.apps.replay.operations import DIGITS, NONE, Operations, Requests
from lepaute.simulate.trace.consistency import Consistency
from lepaute.simulate.trace.messages import BETWEEN_TWO, BLOCKING_OF, CREATIONS, SENDS, TESTS
from lepaute.simulate.trace.table import COMPUTING, GAPS, KERNEL, MPI, NOBODY, PHASE, WAITING, Trace, caveats_of

_MAX_TAG = 2**31 - 1


class Survey:
    """ranks, rows, names, metadata : of the recording;  meetings : how many calls are collective

    members : of each communicator as the core numbers them its ranks, in order; the first one has all ranks
    number : of the communicator by the recorded one;  consistency : of messages, and of collective operations
    Raises InputError for calls that cannot be replayed; with `operations`, for operations about which ranks disagree.
    """

    def __init__(self, parts: Iterable[Trace], where: str, *, operations: bool = True) -> None:
        self.where = where
        self.rows = self.meetings = 0
        self.names: set[str] = set()
        self.metadata: dict[str, Any] = {}
        self._tags, self._others = numpy.zeros(0, "int64"), numpy.zeros((0, 2), "int64")
        self.consistency = Consistency(where, operations=operations)
        unknown = ""
        for part in parts:
            _check(part, where)
            rows = Rows(part)
            self.rows += len(part)
            self.metadata = dict(part.metadata)
            self.names |= {part.names[code] for code in numpy.unique(part.name).tolist()}
            self._add_tags(part)
            self.consistency.add(part)
            self.meetings += int(numpy.isin(rows.does, MEETINGS).sum())
            unknown = unknown or self._unknown_members(rows)
        if not self.rows:
            raise InputError(f"{where}: it has no calls")
        self.ranks = self.consistency.ranks
        if unknown and self.ranks > 1:
            raise InputError(unknown)
        members: dict[int, list[int]] = defaultdict(list)
        for member in self.consistency.members.tolist():
            members[member >> 32].append(member & 0xFFFFFFFF)
        members[0] = list(range(self.ranks))
        self.number = {number: at for at, number in enumerate(sorted(members))}
        self.members = [members[number] for number in self.number]
        self.place_of = [{rank: place for place, rank in enumerate(group)} for group in self.members]

    @property
    def caveats(self) -> list[str]:
        omitted = ", ".join(map(str, self.metadata.get("omitted") or ()))
        lacking = self.consistency.lines() if self.metadata.get("ended_by") else []
        known = [f"{text} (the recording)" for text in caveats_of(self.metadata) if text not in lacking]
        lacking = [f"{text}: left out of the replay" for text in lacking]
        return [*known, *lacking, *([f"{omitted} left out of the recording"] if omitted else [])]

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

    def _unknown_members(self, rows: Rows) -> str:
        """What to say of the first operation whose ranks are not known."""
        trace = rows.trace
        alone = numpy.flatnonzero(numpy.isin(rows.does, MEETINGS) & (trace.comm < 0))
        if not len(alone):
            return ""
        row = alone[0]
        return (
            f"{self.where}: {trace.names[trace.name[row]]}, which rank {trace.rank[row]} calls at "
            f"{seconds(float(trace.start_s[row]))}, is of an intercommunicator (two groups), or of a communicator that "
            "the recording does not tell: its ranks are not known, and it cannot be replayed"
        )


def _check(trace: Trace, where: str) -> None:
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


#: Of what recording a test takes, so many times at least is between two tests where a program computes there.
_MIN_BETWEEN = 1.5
_STEP, _OWN, _FIRST, _SECOND = range(4)  # what a row can be, in this order


def laid_down(
    parts: Iterable[Trace],
    survey: Survey,
    modelled: Collection[str],
    library: str | MeasuredCalls,
    digits: int = DIGITS,
) -> Laid:
    """The program of a recording.

    modelled : kernels that take the time of the platform's models
    library  : one of LIBRARIES, whose rules choose the algorithms of collective operations, or measured calls
    digits   : significant ones of own time between two calls; fewer tell fewer operations apart
    Raises InputError if ranks do not call the same collective operations.
    """
    operations, step_of = Operations(digits), 1
    step = operations.number("step", "")
    code: list[Any] = [_core.ProgramRankCode([step], [(0, 1, 1)])] * survey.ranks
    for part in parts:
        rows = Rows(part, frozenset(modelled))
        if survey.metadata.get("ended_by"):
            rows.does[survey.consistency.lacking(part)] = Does.NOTHING  # what the run did not come to
        for rank, ops in RecordedPart(rows, survey, operations, library).lay(step):
            step_of = max(step_of, ops.count(step))
            code[rank] = _core.ProgramRankCode(ops, [(0, len(ops), 1)])
    parameters = operations.parameters(survey.members, code, step_of)
    del code
    try:
        _core.check_program(parameters)
    except ValueError as error:
        raise InputError(f"{survey.where}: {error}") from error
    events = 1.0 * survey.rows + survey.meetings * (2.0 * survey.ranks.bit_length())
    return Laid(
        parameters,
        step_of,
        events,
        len(operations.kernels) > 1,
        False,
        approximated=tuple(operations.approximated),
        undecided=tuple(operations.undecided),
        by_rules=tuple(operations.by_rules),
    )


class RecordedPart:
    """Some ranks of a recording, by what their calls do."""

    def __init__(self, rows: Rows, survey: Survey, operations: Operations, library: str | MeasuredCalls) -> None:
        self.trace, self.does = rows.trace, rows.does
        self.tag = survey.tags(rows.trace)
        self.survey, self.operations, self.library = survey, operations, library

    def lay(self, step: int) -> "Iterable[tuple[int, list[int]]]":
        """Each rank of the part, and the places of its operations."""
        placed = numpy.full((len(self.trace), 4), NONE, dtype="int32")
        between_s, last_s = self.seconds_between()
        self._place_steps(placed, step)
        placed[:, _OWN] = self._numbers_of(between_s)
        self._place_kernels(placed)
        self._place_blocking(placed)
        self._place_collectives(placed, self._place_requests(placed))
        last = self._numbers_of(last_s)
        for at, (rank, low, high) in enumerate(self._spans()):
            rows = placed[low:high].reshape(-1)
            ops = rows[rows >= 0].tolist()
            if last[at] >= 0:
                ops.append(int(last[at]))
            if step not in ops:
                ops.insert(0, step)
            yield rank, ops

    def _spans(self) -> list[tuple[int, int, int]]:
        """The ranks of the part, with the first row of each and that behind its last."""
        ranks, starts = numpy.unique(self.trace.rank, return_index=True)
        return list(zip(ranks.tolist(), starts.tolist(), [*starts[1:].tolist(), len(self.trace)], strict=True))

    def seconds_between(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Own time before each row that is something, 0 elsewhere; and that of each rank after all."""
        trace = self.trace
        counted = trace.kind != PHASE
        spans = self._spans()
        begins = numpy.zeros(self.survey.ranks)
        ends = numpy.full(self.survey.ranks, -numpy.inf)
        if trace.is_recording:
            for at, name in ((begins, "begins_s"), (ends, "ends_s")):
                known = trace.metadata.get(name) or ()
                at[: len(known)] = known[: len(at)]
        between_s, last_s = numpy.zeros(len(trace)), numpy.zeros(len(spans))
        recorder_s, test_s = trace.metadata.get("recorder_s") or (0.0, 0.0)
        # A program that computes between tests does so until it is done; one that waits has only its loop there.
        in_vain, loop_s = trace.named(TESTS) & (trace.n > 0), (trace.n - 1) * test_s
        more_s = numpy.where(in_vain & (trace.m * 1e-9 > _MIN_BETWEEN * loop_s), trace.m * 1e-9 - loop_s, 0.0)
        is_computing = (trace.kind == KERNEL) & (self.does == Does.NOTHING) & ~trace.named(GAPS | {WAITING})
        for place, (rank, low, high) in enumerate(spans):
            rows = numpy.arange(low, high)
            rows = rows[counted[rows]]
            if not len(rows):
                continue
            end = numpy.maximum.accumulate(trace.start_s[rows] + trace.duration_s[rows])
            gaps = numpy.maximum(trace.start_s[rows] - numpy.concatenate(([begins[rank]], end[:-1])) - recorder_s, 0.0)
            passed = numpy.cumsum(gaps) + numpy.cumsum(
                numpy.where(is_computing[rows], trace.duration_s[rows], more_s[rows])
            )
            told = ~numpy.isin(self.does[rows], (Does.NOTHING, Does.COMPUTES, Does.ARRIVES))
            at = passed[told]
            between_s[rows[told]] = numpy.diff(at, prepend=0.0)
            last_s[place] = passed[-1] - (at[-1] if len(at) else 0.0) + max(0.0, ends[rank] - end[-1])
        return between_s, last_s

    def _numbers_of(self, between_s: NDArray[Any]) -> NDArray[Any]:
        """Places of operations that take so long; -1 for none."""
        numbers = numpy.full(len(between_s), NONE, dtype="int32")
        rows = numpy.flatnonzero(between_s > 0.0)
        magnitude = 10.0 ** (numpy.floor(numpy.log10(between_s[rows])) - self.operations.digits + 1)
        rounded = numpy.rint(between_s[rows] / magnitude) * magnitude
        numbers[rows] = self.operations.number_each(
            [rounded], lambda at: self.operations.number("compute", COMPUTING, sizes=(0.0, float(rounded[at])))
        )
        return numbers

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
        placed[rows[numpy.diff(numpy.maximum.accumulate(beyond), prepend=-1) > 0], _STEP] = step

    def meetings(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Rows of collective operations, and of each the number of its group, how many members that has, and bytes."""
        rows, survey = numpy.flatnonzero(numpy.isin(self.does, MEETINGS)), self.survey
        which = numpy.array([survey.number[number] for number in self.trace.comm[rows].clip(0).tolist()], dtype="int64")
        members = numpy.array([len(group) for group in survey.members])[which]
        return rows, which, members, self._sizes_of_meetings(rows, members)

    def _place_collectives(self, placed: NDArray[Any], requests: dict[int, int]) -> None:
        """requests: of each row that does not block, the number of its request."""
        trace = self.trace
        rows, which, members, sizes = self.meetings()
        ends = numpy.array([requests.get(row, NONE) for row in rows.tolist()], dtype="int64")
        root = trace.peer[rows].astype("int64")

        def make(at: int, *, second: bool) -> int:
            name, group, request = trace.names[trace.name[rows[at]]], int(which[at]), int(ends[at])
            blocks = name not in BLOCKING_OF
            call = (CALLS[name].code, float(sizes[at]), int(members[at]))
            parts = parts_of(*call, self.library, blocks=blocks)
            if any(parts_of(*call, library, blocks=blocks) != parts for library in LIBRARIES):
                self.operations.undecided[name] = None
            if second and len(parts) == 1:
                return NONE
            part = parts[second]
            if part.stands_in:
                self.operations.approximated[name] = None
            if part.algorithm == MEASURED:
                name = f"{name} as measured of {part.source}"  # by which the core tells errors of means apart
            elif isinstance(self.library, MeasuredCalls):
                self.operations.by_rules[name] = None
            # The last part ends the request.
            tag = 0 if blocks else 1 + request if second or len(parts) == 1 else NONE
            index = self.survey.place_of[group].get(int(root[at]), 0)
            amounts = (float(round(part.size_bytes)), part.segment_bytes, part.fan_out)
            return self.operations.number(part.code, name, index, tag, group, amounts, part.algorithm, part.error)

        columns = [trace.name[rows], which, root, sizes, ends]
        placed[rows, _FIRST] = self.operations.number_each(columns, partial(make, second=False))
        placed[rows, _SECOND] = self.operations.number_each(columns, partial(make, second=True))

    def _sizes_of_meetings(self, rows: NDArray[Any], members: NDArray[Any]) -> NDArray[Any]:
        """Bytes of each row's operation, the same on all members: where they differ, their mean."""
        sizes = self.survey.consistency.mean_bytes(self.trace, rows)
        of_all, of_block, created = (self.trace.named(names)[rows] for names in (TO_EACH_OTHER, BY_BLOCKS, CREATIONS))
        sizes = numpy.where(of_all, sizes / members, numpy.where(of_block, sizes * members, sizes))
        result: NDArray[Any] = numpy.rint(numpy.where(created, float(CREATION_BYTES), sizes))
        return result

    def _place_blocking(self, placed: NDArray[Any]) -> None:
        trace = self.trace
        rows = numpy.flatnonzero(numpy.isin(self.does, (Does.BLOCKS, Does.LOOKS)) & (trace.peer != NOBODY))
        sizes = numpy.where(trace.named(SENDS)[rows], trace.size_bytes[rows], 0.0)

        def make(at: int) -> int:
            row = int(rows[at])
            name = trace.names[trace.name[row]]
            peer, tag, size = int(trace.peer[row]), int(self.tag[row]), float(sizes[at])
            return self.operations.number(CALLS[name].code, name, peer, tag, 0, (size,))

        columns = [trace.name[rows], trace.peer[rows], self.tag[rows], sizes]
        placed[rows, _FIRST] = self.operations.number_each(columns, make)

    def _place_requests(self, placed: NDArray[Any]) -> dict[int, int]:
        """Places of requests from their begin and end, rank by rank; those of collective operations by their rows."""
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
