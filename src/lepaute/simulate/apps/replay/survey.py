"""What has to be known of all ranks of a recording before the calls of any is laid down."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.errors import InputError
from lepaute.kit.text import seconds
from lepaute.simulate.apps.replay.calls import CALLS, MEETINGS, Rows
from lepaute.simulate.trace.consistency import Consistency
from lepaute.simulate.trace.messages import BETWEEN_TWO
from lepaute.simulate.trace.table import MPI, Trace

_MAX_TAG = 2**31 - 1


class Survey:
    """ranks, rows, names, metadata : of the recording;  meetings : how many calls are collective

    members : of each communicator its ranks, in order;  consistency : of messages, and of collective operations
    Raises InputError for calls that cannot be replayed.
    """

    def __init__(self, parts: Iterable[Trace], where: str) -> None:
        self.where = where
        self.rows = self.meetings = 0
        self.names: set[str] = set()
        self.members: dict[int, list[int]] = defaultdict(list)
        self.metadata: dict[str, Any] = {}
        self._tags, self._others = numpy.zeros(0, "int64"), numpy.zeros((0, 2), "int64")
        self.consistency = Consistency(where)
        unknown = ""
        for part in parts:
            check(part, where)
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
        for member in self.consistency.members.tolist():
            self.members[member >> 32].append(member & 0xFFFFFFFF)

    # ---- tags --------------------------------------------------------------------------------------------------------

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


def check(trace: Trace, where: str) -> None:
    """Raises InputError for a recording with calls that cannot be replayed."""
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
