"""What each call of a recording is in a replay: an operation of the program that the core runs, nothing, or refused."""

from enum import IntEnum, auto
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from lepaute.simulate.trace import messages
from lepaute.simulate.trace.compare import without_work
from lepaute.simulate.trace.table import KERNEL, MPI, Trace

#: Bytes to create a communicator: what each rank tells each other one.
CREATION_BYTES = 8


class Does(IntEnum):
    """Effect of a call."""

    NOTHING = auto()
    COMPUTES = auto()
    BLOCKS = auto()  # a send or a receive that is one operation
    BEGINS = auto()  # a request
    ENDS = auto()  # requests
    SENDS_AND_RECEIVES = auto()
    ARRIVES = auto()
    LOOKS = auto()  # for a message, until it is there
    MEETS = auto()  # all ranks of a communicator
    BEGINS_MEETING = auto()  # a request


class Call(NamedTuple):
    """does, and the operation of the core; of a collective one as `collectives` takes it."""

    does: Does
    code: str = ""


_IGNORED = frozenset(("MPI_Comm_free", "MPI_Comm_disconnect", "MPI_Request_free", "MPI_Cancel"))
_COLLECTIVES = {
    **{
        name: Call(Does.MEETS, "allgatherv" if name == "MPI_Allgatherv" else "allgather")
        for name in messages.ALL_TO_ALL
    },
    "MPI_Barrier": Call(Does.MEETS, "barrier"),
    "MPI_Bcast": Call(Does.MEETS, "bcast"),
    "MPI_Reduce": Call(Does.MEETS, "reduce"),
    "MPI_Allreduce": Call(Does.MEETS, "allreduce"),
    **dict.fromkeys(("MPI_Scan", "MPI_Exscan"), Call(Does.MEETS, "scan")),
    **{f"MPI_{code.capitalize()}": Call(Does.MEETS, code) for code in ("gather", "gatherv", "scatter", "scatterv")},
    "MPI_Alltoall": Call(Does.MEETS, "alltoall"),
    **dict.fromkeys(("MPI_Alltoallv", "MPI_Alltoallw"), Call(Does.MEETS, "alltoallv")),
    **{f"MPI_{code.capitalize()}": Call(Does.MEETS, code) for code in ("reduce_scatter", "reduce_scatter_block")},
}
CALLS = {
    **dict.fromkeys(("MPI_Send", "MPI_Rsend"), Call(Does.BLOCKS, "send")),
    "MPI_Ssend": Call(Does.BLOCKS, "ssend"),
    **dict.fromkeys(("MPI_Recv", "MPI_Mrecv"), Call(Does.BLOCKS, "receive")),
    # Nobody waits for the buffered ones; a synchronous one is waited for as any other.
    **dict.fromkeys(("MPI_Bsend", "MPI_Isend", "MPI_Issend", "MPI_Ibsend", "MPI_Irsend"), Call(Does.BEGINS, "isend")),
    **dict.fromkeys(messages.IMMEDIATE_RECEIVES, Call(Does.BEGINS, "irecv")),
    **dict.fromkeys(messages.SENDRECVS, Call(Does.SENDS_AND_RECEIVES, "isend")),
    "MPI_Sendrecv_arrival": Call(Does.ARRIVES, "irecv"),
    **dict.fromkeys(messages.WAITS | messages.TESTS, Call(Does.ENDS, "waitall")),
    **dict.fromkeys(messages.PROBES - messages.TESTS, Call(Does.LOOKS, "probe")),
    **_COLLECTIVES,
    **{name: Call(Does.BEGINS_MEETING, _COLLECTIVES[of].code) for name, of in messages.BLOCKING_OF.items()},
    **dict.fromkeys(_IGNORED, Call(Does.NOTHING)),
}
assert CALLS.keys() >= messages.COLLECTIVES


#: Whose recorded bytes are those to all others together, and those of one block.
TO_EACH_OTHER = frozenset(f"MPI_{form}{kind}" for form in ("Alltoall", "Ialltoall") for kind in ("", "v", "w"))
BY_BLOCKS = frozenset(("MPI_Reduce_scatter_block", "MPI_Ireduce_scatter_block"))


MEETINGS = (Does.MEETS, Does.BEGINS_MEETING)


class Rows:
    """does : of each row;  modelled : kernels that take the time of models."""

    def __init__(self, trace: Trace, modelled: frozenset[str] = frozenset()) -> None:
        self.trace = trace
        calls = [CALLS.get(name, Call(Does.NOTHING)) for name in trace.names]
        does = numpy.array([int(call.does) for call in calls] or [0], dtype="int8")[trace.name]
        does[trace.kind != MPI] = Does.NOTHING
        does[(trace.kind == KERNEL) & trace.named(modelled) & ~without_work(trace)] = Does.COMPUTES
        self.does: NDArray[Any] = does
        does[self._looks_in_vain()] = Does.NOTHING

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
            vain |= ~(trace.named(messages.RECEIVES)[after] & same[0] & same[1] & same[2])
        return rows[vain]
