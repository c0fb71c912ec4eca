"""What the ranks of a recording do, as operations of the core, each that differs once; and their requests."""

import heapq
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute import _core
from lepaute.simulate.apps.own.rank import ANY
from lepaute.simulate.apps.replay.calls import CALLS
from lepaute.simulate.trace.table import COMPUTING, NOBODY

#: The place of no operation.
NONE = -1
#: Significant digits of own time between two calls: with few, few operations are told apart.
DIGITS = 4


class Operations:
    """The operations of all ranks, without repetitions.

    digits : significant ones of own time
    approximated : calls for whose algorithms others stand;  undecided : calls for which libraries take different ones
    by_rules : calls that were to be measured ones, and are not
    """

    def __init__(self, digits: int = DIGITS) -> None:
        self.digits = digits
        self.ops: list[tuple[Any, ...]] = []
        self.lists: dict[tuple[int, ...], int] = {}
        self.lines: dict[str, int] = {"": 0}
        self.kernels: dict[str, int] = {COMPUTING: 0}
        self.approximated: dict[str, None] = {}
        self.undecided: dict[str, None] = {}
        self.by_rules: dict[str, None] = {}
        self._numbers: dict[tuple[Any, ...], int] = {}

    def number(
        self,
        code: str,
        name: str,
        peer: int = 0,
        tag: int = 0,
        which: int = 0,
        sizes: tuple[float, ...] = (),
        algorithm: str = "usual",
        error: float = 0.0,
    ) -> int:
        """The place of an operation; peer, tag: -1 for any; name: the recorded call; sizes: up to three; error: as of
        `MeasuredCall`."""
        line = self.lines.setdefault(name, len(self.lines))
        m, n, k = (*sizes, 0.0, 0.0, 0.0)[:3]
        op = (code, algorithm, peer if peer >= 0 else ANY, tag if tag >= 0 else ANY, which, m, n, k, line, error)
        number = self._numbers.get(op)
        if number is None:
            number = self._numbers[op] = len(self.ops)
            self.ops.append(op)
        return number

    def number_each(self, columns: Sequence[NDArray[Any]], make: Callable[[int], int]) -> NDArray[Any]:
        """The operation's place for each row; rows with the same columns share one, which `make` gives for a row."""
        count = len(columns[0])
        kind = numpy.zeros(count, dtype="int64")
        for column in columns:
            _, codes = numpy.unique(column, return_inverse=True)
            codes = codes.reshape(-1)
            _, kind = numpy.unique(kind * (codes.max(initial=0) + 1) + codes, return_inverse=True)
            kind = kind.reshape(-1)
        _, first = numpy.unique(kind, return_index=True)
        numbers = numpy.array([make(at) for at in first.tolist()] or [0], dtype="int32")
        return numbers[kind] if count else numpy.zeros(0, dtype="int32")

    def wait(self, name: str, requests: Sequence[int]) -> int:
        """The place of a wait for them; NONE of none."""
        if not requests:
            return NONE
        return self.number("waitall", name, which=self.lists.setdefault(tuple(requests), len(self.lists)))

    def parameters(self, communicators: list[list[int]], rank_code: Sequence[Any], steps: int) -> Any:
        parameters = _core.ProgramParameters()
        parameters.ops = [_core.ProgramOp(*op) for op in self.ops]
        parameters.lists = [_core.ProgramList(list(numbers), []) for numbers in self.lists]
        parameters.communicators = communicators
        parameters.rank_code = rank_code
        parameters.kernels = list(self.kernels)
        parameters.lines = list(self.lines)
        parameters.step_count = steps
        parameters.by_date = any(op[0] in ("receive", "irecv") and op[2] == ANY for op in self.ops)
        return parameters


class Requests:
    """Requests of one rank that have begun; numbers are free again when they have been waited for."""

    def __init__(self, operations: Operations, rank: int = -1) -> None:
        self.rank = rank
        self._operations = operations
        self._free: list[int] = []
        self._count = 0
        self._by_completion: dict[int, list[int]] = defaultdict(list)
        self._by_name: dict[tuple[int, int], deque[int]] = defaultdict(deque)  # whose end the recording does not tell
        self._of_sendrecv: list[int] = []

    def begin(self, name: str, peer: int, tag: int, size: float, completion: int) -> int:
        number = self.begin_meeting(completion, peer, tag)
        code = CALLS[name].code
        return self._operations.number(code, name, peer, tag, number, (0.0 if code == "irecv" else size,))

    def begin_meeting(self, completion: int, peer: int = NONE, tag: int = NONE) -> int:
        """The number of a request: of a message, or of a collective operation that does not block."""
        number = self._new()
        if completion >= 0:
            self._by_completion[completion].append(number)
        else:
            self._by_name[peer, tag].append(number)
        return number

    def end(self, name: str, peer: int, tag: int, completion: int) -> int:
        """The wait for what a call ended; NONE if that is no request."""
        ended: list[int] = []
        if completion >= 0:
            ended = self._by_completion.pop(completion, [])
        elif name == "MPI_Waitall":
            ended = [number for queue in self._by_name.values() for number in queue]
            self._by_name.clear()
        elif peer >= 0 and self._by_name.get((peer, tag)):
            ended = [self._by_name[peer, tag].popleft()]
        return self._wait(name, ended)

    def send_of_both(self, name: str, peer: int, tag: int, size: float) -> int:
        if peer == NOBODY:
            return NONE
        number = self._new()
        self._of_sendrecv.append(number)
        return self._operations.number("isend", name, peer, tag, number, (size,))

    def receive_of_both(self, name: str, peer: int, tag: int) -> tuple[int, int]:
        name = name.removesuffix("_arrival")
        ended, self._of_sendrecv = self._of_sendrecv, []
        begun = NONE
        if peer != NOBODY:
            ended = [*ended, self._new()]
            begun = self._operations.number("irecv", name, peer, tag, ended[-1])
        return begun, self._wait(name, ended)

    def _new(self) -> int:
        if self._free:
            return heapq.heappop(self._free)
        self._count += 1
        return self._count - 1

    def _wait(self, name: str, ended: list[int]) -> int:
        for number in ended:
            heapq.heappush(self._free, number)
        return self._operations.wait(name, ended)
