"""Messages whose receiver computes between its probes for them: what they cost from the probe that finds them.

Measured by the ring under iprobe+dgemm: MPI_Recv after the successful MPI_Iprobe, while the sender waits in MPI_Send.
The wait for that probe is no cost of the message: it follows from the pieces that a program computes, and is simulated.
    eager                : the message has come by itself; what changes is MPI_Recv, which copies it
    detached, rendezvous : the transfer begins with MPI_Recv, and is all that it does
"""

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

from lepaute.fit.messages.conditions import FEWEST, receives_after_probes
from lepaute.fit.messages.network import FittedNetwork, fit_segments, size_range
from lepaute.fit.messages.segment import relative_line

if TYPE_CHECKING:
    import pandas


def with_busy_receivers(idle: FittedNetwork, frames: "Sequence[pandas.DataFrame]") -> FittedNetwork:
    """The network with segments of messages to busy receivers; as it was where the ring has too few of them.

    idle   : with its limits
    frames : ring observations of the same class of links
    """
    receives = receives_after_probes(frames)
    assert idle.limits is not None
    eager_bytes = idle.limits.eager_bytes
    copies, above = receives.within(-1.0, eager_bytes), receives.within(eager_bytes, inf)
    if len(above if eager_bytes < inf else copies) < FEWEST:
        return idle
    segments = [part for part in idle.segments if part.protocol == "eager"]
    if len(copies) >= FEWEST:
        taking = relative_line(copies, copies.capped_s)
        segments = [replace(part, receive=taking) for part in segments]
    if len(above):
        nothing = receives.within(inf, inf)
        first, *others = fit_segments(above, nothing, nothing, idle.limits, pairs=False)
        segments += [replace(first, above_bytes=int(eager_bytes) if segments else 0), *others]
    return replace(idle, busy=tuple(segments), busy_sizes=size_range(receives))
