"""An application whose course depends on what messages bring: the core asks each rank for its next operation."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from lepaute import _core
from lepaute.simulate.apps.own.laying import Laying, Track
from lepaute.simulate.apps.own.rank import ANY, Came, Carried, Communicator, Request
from lepaute.simulate.machine.core import KERNELS

_WITH_LISTS = frozenset({"waitall", "waitany", "exchange"})


class _Stepped(Track):
    """A rank that goes on step by step; `ops` are those that the core has not been given yet.

    last : what it has yielded last, and what that gave back at once
    """

    def __init__(self, rank: int, laying: Laying) -> None:
        super().__init__(rank, laying)
        self.last: Any = None
        self.given: Any = None
        self.sent = 0

    def close(self) -> None:
        """Nothing is kept."""


class Stepping(Laying):
    KNOWS_COURSE = False

    def begin(self) -> Any:
        """The parameters of the core, which then asks `next_of`."""
        everyone = tuple(range(self.application.ranks))
        self._groups[everyone] = 0
        for name in KERNELS:
            self._kernels.setdefault(name, len(self._kernels))
        self._tracks = [_Stepped(rank, self) for rank in everyone]
        self._carried: dict[tuple[int, int], Any] = {}
        self._split_off: dict[int, Any] = {}  # by rank, until it goes on
        self._told = 1  # communicators that the core knows
        for track in self._tracks:
            self._begin(track, everyone)
        parameters = _core.ProgramParameters()
        parameters.communicators = [list(everyone)]
        parameters.rank_code = [_core.ProgramRankCode([], []) for _ in everyone]
        parameters.kernels = list(self._kernels)
        parameters.by_date = True
        parameters.next = self.next_of
        parameters.line_of = lambda number: list(self._lines)[number]
        return parameters

    def next_of(self, rank: int, completed: "Sequence[_core.ProgramCame]") -> "_core.ProgramNext":
        """The next operation of a rank; completed: what the requests that it waited for have brought."""
        track = self._tracks[rank]
        if not track.ops:
            given = track.given if track.given is not None else self._brought(track.last, completed)
            course = track.course
            assert course is not None
            try:
                operation = course.send(given)
            except StopIteration:
                return _core.ProgramNext()
            except (Exception, SystemExit) as error:
                raise self._failure(error, track) from error
            self._take(track, operation, self._place_of(course))
        operation = self._ops[track.ops.pop(0)]
        code, which = operation[0], operation[4]
        numbers, sizes = list(self._lists)[which] if code in _WITH_LISTS else ((), ())
        new = [list(ranks) for ranks in islice(self._groups, self._told, None)]
        self._told += len(new)
        return _core.ProgramNext(self.core_op(operation), _core.ProgramList(list(numbers), list(sizes)), new)

    def _take(self, track: _Stepped, operation: Any, place: int) -> None:
        value = self._recorded(track, operation, place)
        track.last, track.given = operation, value if isinstance(value, Request) else None
        if operation.code in ("send", "ssend", "isend"):
            if isinstance(operation.what, Carried):
                self._carried[track.rank, track.sent] = operation.what.value
            track.sent += 1
        elif operation.code == "exchange":
            track.sent += len(operation.what.ranks)

    def _brought(self, operation: Any, completed: "Sequence[_core.ProgramCame]") -> Any:
        if operation is not None and operation.code == "split":
            return self._split_for(operation.what[0])
        if operation is not None and operation.code == "probe":
            return Came(completed[0].source, completed[0].tag, completed[0].bytes)
        if operation is None or operation.code not in ("receive", "waitall", "waitany"):
            return None
        requests = {} if operation.code == "receive" else {request.number: request for request in operation.what}
        found: dict[int, Came] = {}
        for each in completed:
            request, sent = requests.get(each.request), each.source == ANY
            value = None if sent else self._carried.pop((each.source, each.nth), None)
            found[each.request] = Came(-1 if sent else each.source, each.tag, each.bytes, value, request)
            if operation.code == "waitany" and request is not None:
                self._tracks[request.rank].end((request,))
        if operation.code == "waitall":
            brought = [found.get(request.number) for request in operation.what]
            received = [None if each is None or each.source < 0 else each for each in brought]
            return received if operation.m == 0.0 else received[0]
        return next(iter(found.values()), None)

    def _split_for(self, communicator: Communicator) -> Communicator | None:
        """A rank's part of the split of a communicator, in whose allgather it has heard of all others."""
        rank = communicator.ranks[communicator.rank]
        if rank not in self._split_off:
            self._split_off |= self._split_among(self._parked.pop(communicator.number))
        found: Communicator | None = self._split_off.pop(rank)
        return found
