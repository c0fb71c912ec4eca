"""What each row of a part of a recording is in a replay."""

from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.simulate.apps.replay.calls import CALLS, Call, Does
from lepaute.simulate.trace.compare import without_work
from lepaute.simulate.trace.messages import IMMEDIATE_RECEIVES, RECEIVES
from lepaute.simulate.trace.table import KERNEL, PHASE, Trace

MEETINGS = (Does.MEETS, Does.BEGINS_MEETING)


class Rows:
    """does : of each row;  is_open : whether it is a receive;  modelled : kernels that take the time of models."""

    def __init__(self, trace: Trace, modelled: frozenset[str] = frozenset()) -> None:
        self.trace = trace
        calls = [CALLS.get(name, Call(Does.NOTHING)) for name in trace.names]
        does = numpy.array([int(call.does) for call in calls] or [0], dtype="int8")[trace.name]
        does[trace.kind == PHASE] = Does.NOTHING
        is_modelled = (trace.kind == KERNEL) & trace.named(modelled) & ~without_work(trace)
        does[trace.kind == KERNEL] = Does.NOTHING
        does[is_modelled] = Does.COMPUTES
        self.does: NDArray[Any] = does
        does[self._looks_in_vain()] = Does.NOTHING
        self.is_open = numpy.isin(does, (Does.BLOCKS, Does.BEGINS, Does.ARRIVES)) & trace.named(
            RECEIVES | IMMEDIATE_RECEIVES
        )

    def _looks_in_vain(self) -> NDArray[Any]:
        """Rows of probes that found nothing, and of those of which that is not known.

        A recording says which found something. A prediction's trace does not: of its own the last ones did, which a
        receive of the message follows.
        """
        trace = self.trace
        rows = numpy.flatnonzero(self.does == Does.LOOKS)
        vain = (trace.n[rows] > 0) | (trace.peer[rows] < 0) | (trace.tag[rows] < 0)
        if not (trace.is_recording or "calls" in trace.metadata):
            calls = numpy.flatnonzero(self.does != Does.NOTHING)
            after = calls[numpy.searchsorted(calls, rows, side="right").clip(max=max(len(calls) - 1, 0))]
            same = [column[after] == column[rows] for column in (trace.rank, trace.peer, trace.tag)]
            vain |= ~(trace.named(RECEIVES)[after] & same[0] & same[1] & same[2])
        return rows[vain]
