"""An application of one's own, laid down: its `run` is gone through once for each rank, before anything is simulated.

What a rank yields becomes places in one list of operations for all, and steps that repeat each other are kept once.
`split` is the only operation that ranks meet in here; all others meet in the simulation.
"""

import heapq
import random
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import CodeType, GeneratorType, TracebackType
from typing import Any, ClassVar, Never, NoReturn

from lepaute import _core
from lepaute.errors import InputError
from lepaute.kit.later import later
from lepaute.kit.python_files import Program, program_of
from lepaute.simulate.apps.own.rank import ANY, Carried, Communicator, Me, Operation, Request
from lepaute.simulate.apps.own.values import Cost, costs_of
from lepaute.simulate.machine.core import KERNELS

collectives = later("lepaute.simulate.apps.replay.collectives")

#: What the engine handles for an operation, about: events.
_EVENTS = {"compute": 0.2, "step": 0.1, "send": 2.0, "ssend": 2.0, "isend": 2.0, "waitall": 0.5}
_OF_ALL = frozenset(
    ("barrier", "allreduce", "allgather", "allgatherv", "alltoall", "alltoallv", "reduce_scatter", "scan")
)
#: Operations of a rank, but for steps that repeat each other: more are of a program that does not end.
MAX_OPERATIONS = 2**23


class Asked(InputError):
    """A program uses what only the simulation tells."""


class Unasked:
    """What `yield` gives back where the program may not ask, since its course is laid down before the simulation."""

    __slots__ = ("_line",)

    def __init__(self, line: str) -> None:
        object.__setattr__(self, "_line", line)

    def __getattribute__(self, name: str) -> Any:
        if name != "__class__":
            _refuse_to_tell(object.__getattribute__(self, "_line"))
        return Unasked


def _refuse_to_tell(line: str) -> NoReturn:
    raise Asked(f"{line}: the program uses what this yield gives back; its course depends on what comes")


def _asked(self: Unasked, *_: object) -> Never:
    _refuse_to_tell(object.__getattribute__(self, "_line"))


_ASKING = (
    "add bool call contains eq float ge getitem gt index int iter le len lt mul ne next radd repr rmul rsub str sub"
)
for _name in _ASKING.split():
    setattr(Unasked, f"__{_name}__", _asked)
Unasked.__hash__ = _asked  # type: ignore[method-assign,assignment]


class Track:
    """One rank on its way through `run`.

    parts : first operation, how many, how often: what has been closed
    """

    def __init__(self, rank: int, laying: "Laying") -> None:
        self.rank = rank
        self.ops: list[int] = []
        self.parts: list[tuple[int, int, int]] = []
        self.steps = 0
        self._laying = laying
        self._begun = 0  # operations before the part that is open
        self._free: list[int] = []
        self._requests = 0
        self.course: GeneratorType[Any, Any, Any] | None = None

    def begin_step(self) -> None:
        self.close()
        self.ops.append(self._laying.step)
        self.steps += 1

    def draws(self) -> None:
        """The course depends on random numbers."""
        self._laying.draws = True

    def close(self) -> None:
        """Ends a part; one that repeats the part before it only counts there."""
        count = len(self.ops) - self._begun
        if count == 0:
            return
        if self.parts:
            first, before, times = self.parts[-1]
            if before == count and self.ops[first : first + count] == self.ops[self._begun :]:
                self.parts[-1] = (first, count, times + 1)
                del self.ops[self._begun :]
                return
        self.parts.append((self._begun, count, 1))
        self._begun = len(self.ops)

    def new_request(self) -> Request:
        """With the lowest free number, so that steps that do the same have the same numbers."""
        if self._free:
            return Request(self.rank, heapq.heappop(self._free))
        self._requests += 1
        return Request(self.rank, self._requests - 1)

    def end(self, requests: tuple[Request, ...]) -> None:
        """All of them have been waited for."""
        for request in requests:
            if request.is_open:
                request.is_open = False
                heapq.heappush(self._free, request.number)


@dataclass(frozen=True)
class Laid:
    """An application as the core takes it.

    steps, events : the most steps of a rank; what the engine handles, about
    asks          : whether its course depends on what messages bring: it has no parameters then
    reads         : SHA-256 of the files that `run` has read
    unseeded      : what in it no seed repeats, as app.py:12: random.random()
    approximated  : calls for whose algorithms others stand;  undecided : calls for which libraries take different ones
    by_rules      : calls that were to take measured times, and follow rules
    """

    parameters: Any
    steps: int
    events: float
    uses_kernels: bool
    draws: bool
    asks: bool = False
    reads: Mapping[str, str] = field(default_factory=dict)
    unseeded: tuple[str, ...] = ()
    approximated: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    by_rules: tuple[str, ...] = ()

    def caveats(self, application: Any) -> list[str]:
        """Caveats for the reader: what no seed repeats, and files that are read when nobody can write that down."""
        program, more = program_of(type(application)), len(self.unseeded) - 1
        return [
            *(
                f"{call}{f' (and {more} more)' if more else ''} gives another value in each run, whatever the seed: "
                "the prediction cannot be repeated; draw from me.random"
                for call in self.unseeded[:1]
            ),
            *(
                f"{file} is read while it is simulated, and --resume sees no change of it; read it before"
                for file in (set() if program is None else program.unseen)
            ),
        ]


@dataclass
class _Parked:
    track: Track
    communicator: Communicator
    colour: int | None
    key: int
    line: str


@dataclass
class Laying:
    """State that all ranks share while an application is laid down.

    library : MPI library whose rules choose the algorithms of collective operations; None: always the same ones
    """

    KNOWS_COURSE: ClassVar[bool] = True
    application: Any
    seed: int
    library: str | None = None
    draws: bool = False
    by_date: bool = False
    _numbers: dict[Any, int] = field(default_factory=dict)  # of operations by what they are and where
    _ops: list[tuple[Any, ...]] = field(default_factory=list)
    _weights: list[float] = field(default_factory=list)
    _lists: dict[Any, int] = field(default_factory=dict)
    _groups: dict[tuple[int, ...], int] = field(default_factory=dict)
    _kernels: dict[str, int] = field(default_factory=dict)
    _lines: dict[str, int] = field(default_factory=lambda: {"": 0})
    _places: dict[tuple[CodeType, int], int] = field(default_factory=dict)
    _values: dict[int, Any] = field(default_factory=dict)  # what yield gives back at a place
    _texts: dict[int, str] = field(default_factory=dict)  # of places
    tracks: list[Track] = field(default_factory=list)
    _parked: dict[int, list[_Parked]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._kernels = {cost[0]: number for number, cost in enumerate(costs_of(self.application))}
        self.step = self._number(Operation("step"), 0, 0)

    def lay(self) -> Laid:
        """Goes through all ranks; raises InputError for what the program may not do, with the line."""
        everyone = tuple(range(self.application.ranks))
        self._groups[everyone] = 0
        tracks = self.tracks = [Track(rank, self) for rank in everyone]
        with Program.watched(self._progress):
            for track in tracks:
                self._begin(track, everyone)
                self._advance(track, None)
            self._meet()
        if not any(track.steps for track in tracks):
            for track in tracks:  # the whole is one step
                track.parts = [(first + 1, count, times) for first, count, times in track.parts]
                track.ops.insert(0, self.step)
                track.parts.insert(0, (0, 1, 1))
                track.steps = 1
        return self._laid(tracks)

    def _progress(self) -> tuple[int, str]:
        """Operations so far, and what is wrong with a rank that has too many."""
        longest = max(self.tracks, key=lambda track: len(track.ops))
        problem = ""
        if len(longest.ops) > MAX_OPERATIONS:
            course = longest.course
            place = "" if course is None else f"{self._texts[self._place_of(course)]}: "
            problem = (
                f"{place}rank {longest.rank} has more than {MAX_OPERATIONS} operations; does its run end? Of those "
                "in me.steps(n) equal ones are kept once"
            )
        return sum(len(track.ops) + track.steps for track in self.tracks), problem

    @staticmethod
    def laid_down(application: Any, seed: int) -> Laid:
        """An application laid down; twice, where something in it may not be repeated by the seed."""
        program = program_of(type(application))
        calls = [] if program is None else [draw for text in program.texts() for draw in text.draws]
        rng_states_before = _states_of_generators()
        hearing: AbstractContextManager[dict[str, str]] = nullcontext({}) if program is None else program.heard()
        with hearing as reads:
            laying, laid = _laid_once(application, seed)
            sure = [call for call, surely in calls if surely]
            doubtful = len(sure) < len(calls) or (not calls and _states_of_generators() != rng_states_before)
            if doubtful and (laid.asks or not _laid_once(application, seed)[0].does_as(laying)):
                sure = [call for call, _ in calls] or [f"{type(application).__name__}.run: a generator that all share"]
        return replace(laid, reads=dict(reads), unseeded=tuple(sure))

    def does_as(self, other: "Laying") -> bool:
        these, those = ([(track.ops, track.parts) for track in laying.tracks] for laying in (self, other))
        return self.listed() == other.listed() and these == those

    def listed(self) -> tuple[list[tuple[Any, ...]], list[Any], list[tuple[int, ...]], dict[int, str]]:
        """Operations as the core takes them, lists of requests or of neighbours and bytes, communicators, and the lines
        of the program by number, of what has been laid down."""
        return self._ops, list(self._lists), list(self._groups), self._texts

    def _begin(self, track: Track, everyone: tuple[int, ...]) -> None:
        course = self.application.run(Me(track, everyone, self.seed))
        if not isinstance(course, GeneratorType):
            kind = type(self.application).__name__
            raise InputError(f"{kind}.run yields nothing; it yields what the methods of me make: yield me.send(...)")
        track.course = course

    def _laid(self, tracks: list[Track]) -> Laid:
        parameters = _core.ProgramParameters()
        parameters.ops = [self.core_op(op) for op in self._ops]
        parameters.lists = [_core.ProgramList(list(numbers), list(sizes)) for numbers, sizes in self._lists]
        parameters.communicators = [list(group) for group in self._groups]
        parameters.rank_code = [_core.ProgramRankCode(track.ops, track.parts) for track in tracks]
        parameters.kernels = list(self._kernels)
        parameters.lines = list(self._lines)
        parameters.step_count = max(1, *(track.steps for track in tracks))
        parameters.by_date = self.by_date
        try:
            _core.check_program(parameters)
        except ValueError as error:
            raise InputError(str(error)) from error
        weights = self._weights
        events = sum(
            times * sum(weights[op] for op in track.ops[first : first + count])
            for track in tracks
            for first, count, times in track.parts
        )
        own = len(costs_of(self.application))
        return Laid(parameters, parameters.step_count, events, len(self._kernels) > own, self.draws)

    def _advance(self, track: Track, value: Any) -> None:
        """Goes on with a rank until it has ended, or waits in a split."""
        course = track.course
        assert course is not None
        send, numbers, ops = course.send, self._numbers, track.ops
        while True:
            try:
                operation = send(value)
            except StopIteration:
                track.course = None
                track.close()
                return
            except Asked:
                raise
            except (Exception, SystemExit) as error:
                raise self._failure(error, track) from error
            place = self._place_of(course)
            try:  # what has been seen here before, and needs nothing of the rank
                ops.append(numbers[operation, place])
                value = self._values[place]
                continue
            except (KeyError, TypeError):
                pass
            value = self._recorded(track, operation, place)
            if value is _PARKED:
                return

    def _place_of(self, course: Any) -> int:
        """Where a rank has just yielded."""
        while type(course.gi_yieldfrom) is GeneratorType:
            course = course.gi_yieldfrom
        frame = course.gi_frame
        place = self._places.get((frame.f_code, frame.f_lasti))
        return self._place(frame.f_code, frame.f_lasti, frame.f_lineno) if place is None else place

    def _failure(self, error: BaseException, track: Track) -> InputError:
        line = self._line_of(error.__traceback__)
        if isinstance(error, InputError):
            return InputError(f"{line}: {error}" if line else str(error))
        return InputError(f"{line or 'run'}: {Program.failure_text(error)}; on rank {track.rank}")

    def _recorded(self, track: Track, operation: Any, place: int) -> Any:
        line = self._texts[place]
        if type(operation) is not Operation:
            raise InputError(
                f"{line}: yields {operation!r:.60}; yield what the methods of me make, such as me.send(...)"
            )
        code, what = operation.code, operation.what
        if isinstance(what, Carried):
            operation, what = operation._replace(what=None), None
        if code == "split":
            communicator, colour, key = what
            track.ops.append(self._number(communicator.allgather(8), place, communicator.number))
            self._parked.setdefault(communicator.number, []).append(_Parked(track, communicator, colour, key, line))
            return _PARKED
        if code in ("isend", "irecv"):
            self.by_date |= code == "irecv" and operation.peer == ANY
            request = track.new_request()
            track.ops.append(self._number(operation, place, request.number, shared=False))
            return request
        if code in ("waitall", "waitany"):
            self.by_date |= code == "waitany"
            numbers = tuple(request.number for request in what if request.is_open)
            track.ops.append(
                self._number(operation._replace(what=numbers), place, self._intern_list(numbers, ()), shared=False)
            )
            if code == "waitall":
                track.end(what)
            return self._values[place]
        self.by_date |= code in ("receive", "probe") and operation.peer == ANY
        which = 0
        if isinstance(what, Communicator) and (operation.tag or self.library is not None):
            return self._begin_collective(track, operation, place)
        if code == "exchange":
            which = self._intern_list(what.ranks, what.sizes)
        elif code == "compute":
            which = self._kernel(what, line)
        elif isinstance(what, Communicator):
            which = what.number
        track.ops.append(self._number(operation, place, which))
        return self._values[place]

    @staticmethod
    def core_op(op: tuple[Any, ...]) -> "_core.ProgramOp":
        """An operation as the core has it, which knows no scan, and one form of what has blocks."""
        return _core.ProgramOp(_IN_CORE.get(op[0]) or collectives.BASE_OF.get(op[0], op[0]), *op[1:])

    def _begin_collective(self, track: Track, operation: Operation, place: int) -> Any:
        """A collective operation by a library's rules, or one that does not block, whose last part ends the request."""
        code, peer, tag, size_bytes, *_, what = operation
        parts = [operation]
        if self.library is not None and operation.algorithm == "usual":
            total = size_bytes * (what.size if code == "reduce_scatter" else 1)
            parts = [
                Operation(
                    *(part.code, peer, tag, float(round(part.size_bytes)), part.segment_bytes, part.fan_out),
                    *(part.algorithm, what),
                )
                for part in collectives.parts_of(code, total, what.size, self.library, blocks=not tag)
            ]
        request = None
        if tag:
            if not self.KNOWS_COURSE:
                raise InputError(f"{self._texts[place]}: start, in a program whose course depends on what comes")
            request = track.new_request()
            parts[-1] = parts[-1]._replace(tag=1 + request.number)
        for part in parts:
            track.ops.append(self._number(part, place, what.number, shared=False))
        return self._values[place] if request is None else request

    def _number(self, operation: Operation, place: int, which: int, *, shared: bool = True) -> int:
        """The place of an operation in the list of all. shared: whether an equal one of any rank is the same."""
        key = (operation, place) if shared else (operation, place, which)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._ops)
            code, peer, tag, m, n, k, algorithm, what = operation
            self._ops.append((code, algorithm, peer, tag, which, m, n, k, place))
            self._weights.append(_weight(code, what))
        return number

    def _intern_list(self, numbers: tuple[int, ...], sizes: tuple[float, ...]) -> int:
        return self._lists.setdefault((numbers, sizes), len(self._lists))

    def _kernel(self, what: Cost | str, line: str) -> int:
        name = what.name if isinstance(what, Cost) else what
        if isinstance(what, Cost):
            if name not in self._kernels:
                raise InputError(f"{line}: a Cost is a class attribute of the application, which gives it a name")
        elif name not in KERNELS:
            raise InputError(f"{line}: there is no kernel {name[:80]!r}; kernels are {', '.join(KERNELS)}")
        return self._kernels.setdefault(name, len(self._kernels))

    def _place(self, code: CodeType, at: int, line: int) -> int:
        text = f"{Path(code.co_filename).name}:{line}"
        number = self._lines.setdefault(text, len(self._lines))
        self._places[code, at] = number
        self._values.setdefault(number, Unasked(text))
        self._texts[number] = text
        return number

    @staticmethod
    def _line_of(traceback: TracebackType | None) -> str:
        """The innermost line of the user's own code."""
        found = ""
        while traceback is not None:
            frame = traceback.tb_frame
            if not str(frame.f_globals.get("__name__", "")).startswith("lepaute."):
                found = f"{Path(frame.f_code.co_filename).name}:{traceback.tb_lineno}"
            traceback = traceback.tb_next
        return found

    def _meet(self) -> None:
        """Lets those that wait in a split go on, as long as all of a communicator have come."""
        while self._parked:
            complete = [number for number, all_ in self._parked.items() if len(all_) == all_[0].communicator.size]
            if not complete:
                waiting = next(iter(self._parked.values()))
                there = {each.track.rank for each in waiting}
                missing = next(rank for rank in waiting[0].communicator.ranks if rank not in there)
                first = waiting[0]
                raise InputError(f"rank {first.track.rank} calls split ({first.line}), which rank {missing} leaves out")
            for number in complete:
                members = self._parked.pop(number)
                parts = self._split_among(members)
                for member in sorted(members, key=lambda each: each.track.rank):
                    self._advance(member.track, parts[member.track.rank])

    def _split_among(self, members: list[_Parked]) -> dict[int, Communicator | None]:
        groups: dict[int, list[_Parked]] = {}
        for each in sorted(members, key=lambda each: (each.key, each.communicator.rank)):
            if each.colour is not None:
                groups.setdefault(each.colour, []).append(each)
        given: dict[int, Communicator | None] = {member.track.rank: None for member in members}
        for group in groups.values():
            ranks = tuple(each.track.rank for each in group)
            number = self._groups.setdefault(ranks, len(self._groups))
            for index, each in enumerate(group):
                given[each.track.rank] = Communicator(ranks, index, number)
        return given


_IN_CORE = {"scan": "allreduce"}
_PARKED = object()


def _weight(code: str, what: Any) -> float:
    if code == "exchange":
        return 3.0 * len(what.ranks) + 1.0
    if isinstance(what, Communicator):
        return 2.0 * (what.size if code.startswith("alltoall") else what.size.bit_length()) if code in _OF_ALL else 3.0
    return _EVENTS.get(code, 1.0)


def _laid_once(application: Any, seed: int) -> tuple[Laying, Laid]:
    laying = Laying(application, seed, application.collectives)
    try:
        return laying, laying.lay()
    except Asked:
        return laying, Laid(None, 1, 2e4 * application.ranks, uses_kernels=True, draws=False, asks=True)


def _states_of_generators() -> list[Any]:
    """States of the random generators that all of a process share."""
    states: list[Any] = [random.getstate()]
    if "numpy.random" in sys.modules:
        _, words, position, *_ = sys.modules["numpy.random"].get_state()
        states += [words.tobytes(), position]
    return states
