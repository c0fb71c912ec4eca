"""The invariant of every trace, whichever program wrote it: what begins ends, each send has its receive, all members
call the same collective operations, and ranks, roots and sizes agree.

Readers ask it of what they have read, and replays of recordings that they go through in parts. What contradicts itself
is refused; what lacks its other side is counted, in words for a reader, and refused by a replay.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.errors import InputError
from lepaute.kit.text import counted, ranks_text, seconds, tally
from lepaute.simulate.trace import messages
from lepaute.simulate.trace.table import MPI, NOBODY, Trace


def _with_nonblocking(names: frozenset[str]) -> frozenset[str]:
    return names | {name for name, blocking in messages.BLOCKING_OF.items() if blocking in names}


_ROOTED = _with_nonblocking(messages.FROM_ROOT | messages.TO_ROOT)
#: Operations of which all members give the same number of bytes.
_EQUAL_SIZES = _with_nonblocking(
    frozenset(f"MPI_{form}" for form in ("Bcast", "Reduce", "Allreduce", "Scan", "Exscan"))
)


def checked(trace: Trace, where: str, *, operations: bool = True, sizes: bool = True) -> Trace:
    """The trace, with a warning where calls lack their other side; raises InputError for what contradicts itself.

    operations : whether collective operations about which ranks disagree are refused;  sizes : whether too small
                 receives are, which a program may have survived
    Of a trace that is not the whole run (`whole`) only ranks and roots are checked.
    """
    ranks = max(trace.metadata.get("ranks") or 0, int(trace.rank.max(initial=-1)) + 1)
    if trace.is_recording and ranks > len(trace) + (1 << 16):  # those without a call take memory, too
        raise InputError(f"{where}: {ranks} ranks, and {counted(len(trace), 'call')}: most of them are missing")
    invariant = Consistency(where, operations=operations, sizes=sizes)
    if trace.metadata.get("whole") is not True:
        invariant.check_ranks(trace)
        return trace
    invariant.add(trace)
    known = list(trace.metadata.get("warnings") or ())
    more = [text for text in invariant.lines() if text not in known]
    return replace(trace, metadata={**trace.metadata, "warnings": [*known, *more]}) if more else trace


class Consistency:
    """What calls are held against that other ranks make, for parts that each have all calls of their ranks."""

    def __init__(self, where: str, *, operations: bool = True, sizes: bool = True) -> None:
        self.where, self.ranks, self._operations, self._sizes = where, 0, operations, sizes
        self._requests = self._short = 0
        # Of messages, by what names them: how many more are sent than received, and their bytes.
        self._keys, self._surplus, self._bytes = numpy.zeros(0, "uint64"), numpy.zeros(0, "int64"), numpy.zeros(0)
        self._from_any, self._to = False, Counter[int]()  # the same by receiver, where senders are not known
        # Of collective operations, by communicator and turn: routine, root, bytes, how many ranks call them, all bytes.
        self._turns, self._calls, self._names = numpy.zeros(0, "int64"), numpy.zeros((0, 5)), dict[str, int]()
        self.members = numpy.zeros(0, "int64")  # of communicators, 2^32 times their number and a rank

    def add(self, trace: Trace) -> None:
        """Raises InputError for ranks and roots that there are not, and for what ranks disagree about."""
        self.check_ranks(trace)
        self._add_requests(trace)
        self._add_messages(trace)
        self._add_operations(trace)

    def lines(self) -> list[str]:
        """How many calls lack what belongs to them, in one line; none where nothing does."""
        alone = numpy.array(list(self._to.values()), "int64") if self._from_any else self._surplus
        counts = {
            "send| without a receive": int(alone[alone > 0].sum()),
            "receive| without a send": int(-alone[alone < 0].sum()),
            "request| that no call ends": self._requests,
            "receive| too small for what was sent": self._short,
            "collective operation| that not all its ranks call": int(numpy.count_nonzero(self._are_short())),
        }
        parts = tally({what: count for what, count in counts.items() if count})
        return [f"not complete: {', '.join(parts)}"] if parts else []

    def check_ranks(self, trace: Trace) -> None:
        count = trace.metadata.get("ranks") or 0
        self.ranks = max(self.ranks, count, int(trace.rank.max(initial=-1)) + 1)
        beyond = numpy.flatnonzero((trace.kind == MPI) & (trace.peer >= self.ranks) & (count > 0))
        if len(beyond):
            row = int(beyond[0])
            role = "root" if trace.names[trace.name[row]] in _ROOTED else "peer"
            self._refuse(trace, row, f"its {role} is {trace.peer[row]}, and the trace has {ranks_text(self.ranks)}")

    def _refuse(self, trace: Trace, row: int, text: str) -> None:
        at = seconds(float(trace.start_s[row]))
        raise InputError(f"{self.where}: {trace.names[trace.name[row]]} of rank {trace.rank[row]} at {at}: {text}")

    # ---- requests ----------------------------------------------------------------------------------------------------

    def _add_requests(self, trace: Trace) -> None:
        """Those that neither a number nor, in traces without such, rank and tag join with the call that ends them."""
        is_open = (trace.kind == MPI) & (messages.completions(trace) < 0) & (trace.peer != NOBODY)
        begun = numpy.count_nonzero(is_open & trace.named(messages.IMMEDIATE | messages.NONBLOCKING_COLLECTIVES))
        by_name = trace.named("MPI_Waitall") | ((trace.peer >= 0) & trace.named(messages.WAITS | messages.TESTS))
        if (trace.completion >= 0).any() or not by_name.any():
            self._requests += max(0, int(begun - numpy.count_nonzero(trace.named("MPI_Request_free"))))

    # ---- messages ----------------------------------------------------------------------------------------------------

    def _add_messages(self, trace: Trace) -> None:
        sends, receives = messages.message_rows(trace)
        self._to.update(trace.peer[sends].tolist())
        self._to.subtract(Counter(trace.rank[receives].tolist()))
        self._from_any |= bool(((trace.peer[receives] < 0) | (trace.tag[receives] < 0)).any())
        rows = numpy.concatenate((numpy.full(len(self._keys), -1), sends, receives))
        keys = numpy.concatenate(
            (self._keys, messages.message_keys(trace, sends), messages.message_keys(trace, receives, received=True))
        )
        counts = numpy.concatenate((self._surplus, numpy.ones(len(sends)), -numpy.ones(len(receives))))
        room = trace.size_bytes[receives]  # 0 of those that do not tell it
        sizes = numpy.concatenate((self._bytes, trace.size_bytes[sends], -numpy.where(room > 0, room, numpy.inf)))
        kinds, key = numpy.unique(keys, return_inverse=True)
        surplus = numpy.rint(numpy.bincount(key, counts, len(kinds))).astype("int64")
        more = numpy.bincount(key, sizes, len(kinds))
        is_sized = not (self._from_any or trace.metadata.get("unsized"))
        larger = numpy.flatnonzero((surplus == 0) & (more > 0.5) & is_sized)
        self._short += len(larger)
        if len(larger) and self._sizes:
            row = int(rows[key == larger[0]].max())
            self._refuse(trace, row, f"{more[larger[0]]:.0f} bytes more are sent with this tag than are received")
        self._keys, self._surplus, self._bytes = (array[surplus != 0] for array in (kinds, surplus, more))

    def lacking(self, trace: Trace) -> NDArray[Any]:
        """Rows of calls that lack their other side: messages, and operations that not all ranks came to.

        A receive from any rank that ended has its sender: that of a run that was cut short never ended.
        """
        rows, turns = self._turns_of(trace)
        at = numpy.searchsorted(self._turns, turns)
        sends, receives = (self._alone(trace, received=received) for received in (False, True))
        return numpy.concatenate((sends, receives, rows[self._are_short()[at]]))

    def _alone(self, trace: Trace, *, received: bool) -> NDArray[Any]:
        """Rows of sends, or receives, without the other side: of those with one name the last."""
        rows = messages.message_rows(trace)[received]
        if not len(self._keys):
            return rows[:0]
        keys = messages.message_keys(trace, rows, received=received)
        at = numpy.searchsorted(self._keys, keys).clip(max=len(self._keys) - 1)
        surplus = numpy.where(self._keys[at] == keys, self._surplus[at] * (-1 if received else 1), 0)
        back = messages.occurrence(keys[::-1])[::-1]  # how many of the key come later
        return rows[back < surplus]

    def check_complete(self, parts: Iterable[Trace]) -> None:
        """Raises InputError for messages that lack a side: a receive that waits tells most, and of these the first."""
        if self._from_any or not len(self._keys):
            return  # who gets which message is seen in the simulation
        for received, does, other in (
            (True, "waits for a message from", "sends"),
            (False, "sends a message to", "receives"),
        ):
            alone: list[tuple[float, str]] = []
            for trace in parts:
                rows = self._alone(trace, received=received)
                for row in rows[numpy.argsort(trace.start_s[rows], kind="stable")][:1].tolist():
                    start_s, name = float(trace.start_s[row]), trace.names[trace.name[row]]
                    text = f"rank {trace.rank[row]} {does} rank {trace.peer[row]}, tag {trace.tag[row]}, in {name} at "
                    alone.append((start_s, f"{text}{seconds(start_s)}, which that one never {other}"))
            if alone:
                raise InputError(f"{self.where}: {min(alone)[1]}: the recording is not complete")

    # ---- collective operations ---------------------------------------------------------------------------------------

    def _turns_of(self, trace: Trace) -> tuple[NDArray[Any], NDArray[Any]]:
        """Collective rows, and of each its turn."""
        is_known = (trace.comm >= 0) | (self.ranks == 1)
        rows = numpy.flatnonzero(
            (trace.kind == MPI) & is_known & trace.named(messages.COLLECTIVES | messages.NONBLOCKING_COLLECTIVES)
        )
        return rows, messages.collective_turns(trace, rows)

    def mean_bytes(self, trace: Trace, rows: NDArray[Any]) -> NDArray[Any]:
        """Of each of these rows, all collective, the mean over the ranks that call the same operation."""
        known, turns = self._turns_of(trace)
        calls = self._calls[numpy.searchsorted(self._turns, turns[numpy.searchsorted(known, rows)])]
        mean: NDArray[Any] = calls[:, 4] / calls[:, 3]
        return mean

    def _add_operations(self, trace: Trace) -> None:
        rows, turns = self._turns_of(trace)
        self.members = numpy.union1d(self.members, turns >> 32 << 32 | trace.rank[rows])
        codes = numpy.array([self._names.setdefault(name, len(self._names)) for name in trace.names] or [0])
        rooted, sized = (trace.named(names)[rows] for names in (_ROOTED, _EQUAL_SIZES))
        root = numpy.where(rooted, trace.peer[rows], -1)
        size = numpy.where(sized, trace.size_bytes[rows], 0.0)
        columns = (codes[trace.name[rows]], root, size, numpy.ones(len(rows)), trace.size_bytes[rows])
        calls = numpy.column_stack(columns)
        turns, calls = (numpy.concatenate(both) for both in ((self._turns, turns), (self._calls, calls)))
        self._turns, first, turn = numpy.unique(turns, return_index=True, return_inverse=True)
        for column, name in enumerate(("routine", "root", "bytes")):
            differ = numpy.flatnonzero(calls[:, column] != calls[first[turn], column])
            if len(differ) and self._operations:
                at = int(differ[0])
                row = int(rows[at - len(turns) + len(rows)])
                pair = (calls[at, column], calls[first[turn[at]], column])
                this, other = (f"{value:.0f}" if column else list(self._names)[int(value)] for value in pair)
                where = f"call {int(turns[at] & 0xFFFFFFFF) + 1} of the rank in its communicator"
                self._refuse(trace, row, f"{where} has the {name} {this}, where another has {other}")
        self._calls = calls[first]
        for column in (3, 4):
            self._calls[:, column] = numpy.bincount(turn, calls[:, column], len(first))

    def _are_short(self) -> NDArray[Any]:
        comm = self._turns >> 32
        comms, members = numpy.unique(self.members >> 32, return_counts=True)
        wanted = numpy.where(comm == 0, self.ranks, members[numpy.searchsorted(comms, comm)])
        lacks: NDArray[Any] = self._calls[:, 3] < wanted
        return lacks
