"""Schedules in GOAL, the text format of LogGOPSim, as traces of ours.

Of each rank the file has operations (send, recv, calc with nanoseconds) and which of them require that others are over
(requires) or have begun (irequires); what is not ordered goes on at once. A trace has an order: that in which a rank
would begin its operations if messages took no time and it computed one thing at a time. Sends and receives begin, and
are waited for by what requires them. The format has neither collective operations, which are spelt out as messages, nor
communicators, nor other calls. Source: LogGOPSim, src/LogGOPSim/txt2bin.re.
"""

import heapq
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lepaute.errors import InputError
from lepaute.kit.text import counted
from lepaute.simulate.trace.foreign import Calls, words_of
from lepaute.simulate.trace.table import MAX_RANKS, Trace

_RANKS = re.compile(r"num_ranks (\d{1,9})")
_RANK = re.compile(r"rank (\d{1,9}) ?\{")
_OPERATION = re.compile(
    r"(?:([A-Za-z]\w*) ?: ?)?(?:(calc) (\d{1,18})|(send|recv) (\d{1,18}) ?b (?:to|from) (-1|\d{1,10}))"
    r"((?: (?:tag|cpu|nic) (?:-1|\d{1,10}))*)"
)
_ORDER = re.compile(r"([A-Za-z]\w*) (i?requires) ([A-Za-z]\w*)")
_ANY = (-1, 2**32 - 1)


@dataclass(eq=False, slots=True)
class _Operation:
    """lacks: how many others it waits for; then, after: those that wait for its beginning, and for its end"""

    line: int
    rank: int
    kind: str
    amount: float
    peer: int
    tag: int
    requires: list["_Operation"] = field(default_factory=list)
    lacks: int = 0
    then: list["_Operation"] = field(default_factory=list)
    after: list["_Operation"] = field(default_factory=list)
    row: int = -1  # of its request, while it is open


def convert(path: Path, metadata: Mapping[str, Any] | None = None) -> Trace:
    """The trace of a schedule; raises InputError, one line with the number of the file's line."""
    reader = _Reader(path)
    known: dict[str, Any] = {"source": "simulation", "engine": "GOAL", "application": "a schedule"}
    further = counted(reader.further, "operation")
    known["warnings"] = [f"{further} on other cpus than 0, taken for that one"] if reader.further else []
    return _Run(str(path), reader.calls).calls_of(reader.operations).trace(known | {"ranks": reader.ranks}, metadata)


class _Reader:
    """The operations of all ranks; further: how many of them are for another processor."""

    def __init__(self, path: Path) -> None:
        self.ranks, self.rank, self.further, self.known = 0, -1, 0, set[int]()
        self.operations: list[_Operation] = []
        self.calls = Calls(str(path))
        self.labels: dict[str, _Operation] = {}
        for number, words in words_of(path):
            line = re.sub(r"/\*.*?\*/|//.*", "", " ".join(words)).strip()
            problem = self._take(number, line) if line else ""
            if problem:
                raise InputError(f"{path}, line {number}: {line[:60]!r}: {problem}")
        if self.rank >= 0:
            raise InputError(f"{path}: rank {self.rank} does not end, with a brace; the file is truncated")
        if len(self.known) < self.ranks:
            first = next(rank for rank in range(self.ranks) if rank not in self.known)
            raise InputError(f"{path}: has {len(self.known)} of {self.ranks} ranks, not rank {first}; it is truncated")

    def _take(self, number: int, line: str) -> str:
        """What is wrong with a line."""
        if self.rank >= 0:
            if line == "}":
                self.rank = -1
            elif match := _OPERATION.fullmatch(line):
                return self._operation(number, match)
            elif match := _ORDER.fullmatch(line):
                return self._order(*match.groups())
            else:
                return "neither an operation nor an order of two"
        elif match := _RANKS.fullmatch(line):
            if self.ranks or int(match[1]) > MAX_RANKS:
                return "said twice" if self.ranks else f"at most {MAX_RANKS} are simulated"
            self.ranks = int(match[1])
        elif (match := _RANK.fullmatch(line)) and int(match[1]) < self.ranks and int(match[1]) not in self.known:
            self.rank, self.labels = int(match[1]), {}
            self.known.add(self.rank)
        else:
            return f"not a rank, one of {self.ranks} (num_ranks), or that rank again"
        return ""

    def _operation(self, number: int, match: re.Match[str]) -> str:
        words = match[7].split()
        options = dict(zip(words[::2], words[1::2], strict=True))
        peer, tag = (-1 if each in _ANY else each for each in (int(match[6] or 0), int(options.get("tag", 0))))
        if peer >= self.ranks or (match[4] == "send" and min(peer, tag) < 0):
            return "there is no such rank or tag"
        operation = _Operation(number, self.rank, match[2] or match[4], float(match[3] or match[5]), peer, tag)
        self.further += options.get("cpu", "0") != "0"
        self.operations.append(operation)
        self.calls.account("" if operation.amount or operation.kind != "calc" else "calc| of 0")
        known = match[1] and self.labels.setdefault(match[1], operation) is not operation
        return "the label is defined twice" if known else ""

    def _order(self, label: str, order: str, other: str) -> str:
        if label not in self.labels or other not in self.labels:
            return "a label that is not defined above in this rank"
        self.calls.account()
        later, earlier = self.labels[label], self.labels[other]
        later.lacks += 1
        if order == "requires":
            later.requires.append(earlier)
        (earlier.after if order == "requires" else earlier.then).append(later)
        return ""


class _Run:
    """All ranks at once, messages in no time."""

    def __init__(self, where: str, calls: Calls) -> None:
        self.where, self.calls = where, calls
        self.events: list[tuple[float, int, _Operation, bool]] = []  # time, number, of what the beginning or the end
        self.count = 0
        self.open: dict[tuple[str, int], list[_Operation]] = defaultdict(list)  # messages without a side, by receiver

    def calls_of(self, operations: list[_Operation]) -> Calls:
        free_s: dict[int, float] = defaultdict(float)
        self._push(0.0, [one for one in operations if not one.lacks])
        while self.events:
            time_s, _, operation, is_end = heapq.heappop(self.events)
            if is_end:
                self._free(time_s, operation.after)
            elif free_s[operation.rank] > time_s:
                self._push(free_s[operation.rank], [operation])
            else:
                free_s[operation.rank] = time_s + self._begin(operation, time_s)
        for (kind, _), alone in self.open.items():
            for operation in alone:
                what = "receives what nobody sends" if kind == "recv" else "sends what nobody receives"
                raise InputError(f"{self.where}, line {operation.line}: rank {operation.rank} {what}")
        of_rank: dict[int, list[_Operation]] = defaultdict(list)
        for operation in operations:
            if operation.lacks:
                raise InputError(f"{self.where}, line {operation.line}: requires what does not begin before it")
            of_rank[operation.rank].append(operation)
        for rank, mine in of_rank.items():
            self._wait(rank, mine)
        return self.calls

    def _push(self, time_s: float, operations: list[_Operation], is_end: bool = False) -> None:
        for operation in operations:
            self.count += 1
            heapq.heappush(self.events, (time_s, self.count, operation, is_end))

    def _free(self, time_s: float, operations: list[_Operation]) -> None:
        for operation in operations:
            operation.lacks -= 1
            if not operation.lacks:
                self._push(time_s, [operation])

    def _begin(self, operation: _Operation, time_s: float) -> float:
        """Seconds that the rank computes."""
        kind, rank = operation.kind, operation.rank
        self._wait(rank, operation.requires)
        self._free(time_s, operation.then)
        if kind == "calc":
            duration_s = operation.amount * 1e-9
            self.calls.compute(rank, duration_s)
            self._push(time_s + duration_s, [operation], True)
            return duration_s
        name, other = ("MPI_Isend", "recv") if kind == "send" else ("MPI_Irecv", "send")
        operation.row = self.calls.add(rank, name, operation.peer, operation.amount, operation.tag)
        target = operation.peer if kind == "send" else rank
        match = next((one for one in self.open[other, target] if _are_one(operation, one)), None)
        if match is None:
            self.open[kind, target].append(operation)
        else:
            self.open[other, target].remove(match)
            if operation.amount != match.amount:
                texts = (f"line {end.line}: {end.kind} of {end.amount:.0f} bytes" for end in (operation, match))
                raise InputError(f"{self.where}, {', which is one message with '.join(texts)}")
        if kind == "send" or match:
            self._push(time_s, [operation], True)
        if kind == "send" and match:
            self._push(time_s, [match], True)
        return 0.0

    def _wait(self, rank: int, operations: list[_Operation]) -> None:
        rows = [one.row for one in operations if one.row >= 0]
        if rows:
            self.calls.end(rows, self.calls.add(rank, "MPI_Waitall"))
        for operation in operations:
            operation.row = -1


def _are_one(one: _Operation, other: _Operation) -> bool:
    send, receive = (one, other) if one.kind == "send" else (other, one)
    return receive.peer in (-1, send.rank) and receive.tag in (-1, send.tag)
