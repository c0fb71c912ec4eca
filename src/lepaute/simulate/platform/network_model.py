"""The time of messages: a model a link class, piecewise in the size of the message."""

import math
from typing import Annotated, Literal

from annotated_types import Ge, Le

from lepaute.simulate.platform.values import (
    MAX_COUNTED,
    TOLERANCE,
    Check,
    Interval,
    NonNegative,
    Number,
    Overhead,
    Positive,
    Value,
    fault,
)


class NoiseMode(Value):
    """One normal distribution of a mixture: `mean` and `sd` of the logarithm of a message's duration over its mean."""

    weight: Positive
    mean: Annotated[Number, Ge(-20), Le(20)]
    sd: Annotated[Number, Ge(0), Le(3)]


def _shares_of_one(modes: tuple[NoiseMode, ...]) -> tuple[NoiseMode, ...]:
    if not modes:
        raise fault("is empty; a mixture needs at least one mode", remedy="Add a mode, or remove the noise.")
    total = math.fsum(mode.weight for mode in modes)
    if abs(total - 1.0) > TOLERANCE:
        raise fault(f"has weights that add up to {total:g}; as shares of the messages they must add up to 1")
    return modes


class MessageNoise(Value):
    """Noise of several modes, on all that a message costs: its overheads, latency and transfer.

    A run draws for each message a mode, by its weight, and exp(Z) with Z normal of that mode's mean and sd; the message
    takes its time without noise multiplied by that. The means are first shifted, all alike, so that the mean factor
    (sum of weight * exp(mean + sd^2 / 2)) is 1: noise never changes the mean duration of a message alone.
    """

    modes: Annotated[tuple[NoiseMode, ...], Check(after=_shares_of_one)]


class Segment(Value):
    """Messages of more than `above_bytes`, up to the next segment (the first one also holds 0 bytes).

    `latency_s` is that of the whole route, to which the latencies of cables times `cable_latency_factor` (null: 1) are
    added; `bandwidth_Bps` that of one flow alone. Noise: none, half-normal of `noise_relative_sd` on latency and
    transfer, or the modes of `noise`.
    """

    above_bytes: Annotated[int, Ge(0), Le(MAX_COUNTED)]
    protocol: Literal["eager", "detached", "rendezvous"]
    latency_s: NonNegative
    bandwidth_Bps: Positive  # noqa: N815 - the unit
    cable_latency_factor: NonNegative | None = None
    send: Overhead = (0.0, 0.0)
    isend: Overhead = (0.0, 0.0)
    receive: Overhead = (0.0, 0.0)
    noise_relative_sd: NonNegative = 0.0
    noise: MessageNoise | None = None

    def __post_init__(self) -> None:
        if self.noise is not None and self.noise_relative_sd:
            problem = f"is {self.noise_relative_sd:g}, but noise has modes too"
            raise fault(problem, "noise_relative_sd", remedy="Remove one of the two.")


def _cover_all_sizes(segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
    if not segments:
        raise fault("is empty; every message size needs a segment", remedy="Add a segment with above_bytes 0.")
    if segments[0].above_bytes:
        raise fault(f"is {segments[0].above_bytes}; the first segment must begin at 0", 0, "above_bytes")
    for position in range(1, len(segments)):
        low, high = segments[position - 1].above_bytes, segments[position].above_bytes
        if high <= low:
            problem = f"is {high}, after {low}; segments must be in increasing order of size"
            raise fault(problem, position, "above_bytes", remedy="Put them in order.")
    return segments


Segments = Annotated[tuple[Segment, ...], Check(after=_cover_all_sizes)]


class NodeLink(Value):
    """The link of a node to the network, as wide in each direction."""

    bandwidth_Bps: Positive  # noqa: N815 - the unit


class BusyReceiver(Value):
    """Messages that reach a rank while it computes, and that it finds by MPI_Iprobe between pieces of computing.

    Their cost from the probe that finds them: the wait for that is simulated. All else as in Loopback.
    """

    segments: Segments
    range_bytes: Interval | None = None
    discrepancy_relative_sd: NonNegative | None = None
    overhead_relative_sd: NonNegative | None = None


class Loopback(Value):
    """Messages inside a node; `shared`: do concurrent ones slow each other. Segments null: those of remote.

    `noncontiguous`: messages sent from a derived datatype with gaps, such as columns of a matrix; null: as the others.
    `busy`: messages to a rank that computes between its probes for them; null: as the others.
    `range_bytes`, `noncontiguous_range_bytes`: smallest and largest size that the segments were fitted to, both
    inclusive; null: not known.
    `discrepancy_relative_sd`: standard deviation, between calibrations, of the time of a transfer over its mean; a run
    draws one factor on latency and time on the link for all messages of the class.
    `overhead_relative_sd`: the same of the CPU time of calls, `send`, `isend` and `receive`; null: as of transfers,
    since what is known of whole messages is known of both. Calls that move no message (`costs`) have that of loopback.
    """

    shared: bool = False
    bandwidth_Bps: Positive  # noqa: N815 - the unit
    segments: Segments | None = None
    noncontiguous: Segments | None = None
    busy: BusyReceiver | None = None
    range_bytes: Interval | None = None
    noncontiguous_range_bytes: Interval | None = None
    discrepancy_relative_sd: NonNegative | None = None
    overhead_relative_sd: NonNegative | None = None


class Remote(Value):
    """Messages between nodes; fields as in Loopback, but `busy`: a rendezvous while all other cores compute."""

    segments: Segments
    noncontiguous: Segments | None = None
    busy: BusyReceiver | None = None
    range_bytes: Interval | None = None
    noncontiguous_range_bytes: Interval | None = None
    discrepancy_relative_sd: NonNegative | None = None
    overhead_relative_sd: NonNegative | None = None


class Costs(Value):
    """Functions that move no message: the time of one call, and when MPI_Iprobe sees a message.

    `iprobe_looks_first`: MPI_Iprobe looks before it makes progress, so that it finds only what had come at the time of
    the rank's previous MPI call; a program that probes between pieces of work sees a message one piece later.
    """

    iprobe_s: NonNegative = 0.0
    test_s: NonNegative = 0.0
    wtime_s: NonNegative = 0.0
    iprobe_looks_first: bool = False


class Network(Value):
    """Messages, inside nodes and between them.

    `flow_factor` bound: a flow never exceeds its segment's bandwidth; scale: it gets its fair share times
    segment bandwidth / link bandwidth. `sharing` fair (what is left out means): of each link, its capacity divided by
    its flows; exact: max-min fair, which gives a flow what others that are held back elsewhere leave over.
    `progress` of rendezvous messages whose receive was posted before its rank computes: calls, they wait for its next
    MPI call; background, they do not; null, not known. For emulations.
    """

    flow_factor: Literal["bound", "scale"] = "bound"
    sharing: Literal["fair", "exact"] | None = None
    progress: Literal["calls", "background"] | None = None
    node_link: NodeLink
    loopback: Loopback
    remote: Remote
    costs: Costs = Costs.model_construct(iprobe_s=0.0, test_s=0.0, wtime_s=0.0)

    @property
    def loopback_segments(self) -> tuple[Segment, ...]:
        """The segments that hold inside a node."""
        return self.remote.segments if self.loopback.segments is None else self.loopback.segments

    @property
    def remote_noncontiguous(self) -> tuple[Segment, ...]:
        """The segments that hold between nodes for messages of a datatype with gaps."""
        return self.remote.segments if self.remote.noncontiguous is None else self.remote.noncontiguous

    @property
    def loopback_noncontiguous(self) -> tuple[Segment, ...]:
        """The segments that hold inside a node for messages of a datatype with gaps."""
        if self.loopback.noncontiguous is not None:
            return self.loopback.noncontiguous
        return self.remote_noncontiguous if self.loopback.segments is None else self.loopback.segments

    @property
    def loopback_busy(self) -> BusyReceiver | None:
        """Model inside a node for messages to a rank that computes between its probes; None: as for others."""
        return self.remote.busy if self.loopback.segments is None else self.loopback.busy

    @property
    def discrepancies(self) -> dict[str, float]:
        """Relative standard deviation of the factor that a run draws for transfers, by class of links."""
        return {link: (of and of.discrepancy_relative_sd) or 0.0 for link, of in self._stating_errors.items()}

    @property
    def overhead_errors(self) -> dict[str, float]:
        """Relative standard deviation of the factor that a run draws for overheads of calls, by class of links."""
        transfers = self.discrepancies
        return {
            link: transfers[link] if of is None or of.overhead_relative_sd is None else of.overhead_relative_sd
            for link, of in self._stating_errors.items()
        }

    @property
    def _stating_errors(self) -> "dict[str, Loopback | Remote | BusyReceiver | None]":
        remote = self.remote
        inside = remote if self.loopback.segments is None else self.loopback
        return {
            "loopback": inside,
            "remote": remote,
            "loopback_noncontiguous": inside,
            "remote_noncontiguous": remote,
            "loopback_busy": self.loopback_busy,
            "remote_busy": remote.busy,
        }

    @property
    def all_segments(self) -> tuple[Segment, ...]:
        """Segments of all classes of links; what two classes share comes twice."""
        classes = (self.loopback_segments, self.remote.segments, self.loopback_noncontiguous, self.remote_noncontiguous)
        busy = [each.segments for each in (self.loopback_busy, self.remote.busy) if each is not None]
        return tuple(segment for segments in (*classes, *busy) for segment in segments)

    @property
    def fitted_sizes(self) -> dict[str, tuple[int, int] | None]:
        """The sizes that the segments which hold were fitted to, by class of links; None if they are not known."""
        remote, loopback = self.remote, self.loopback
        beyond = remote.range_bytes if remote.noncontiguous is None else remote.noncontiguous_range_bytes
        inside = remote.range_bytes if loopback.segments is None else loopback.range_bytes
        gaps = beyond if loopback.segments is None else inside
        return {
            "loopback": inside,
            "remote": remote.range_bytes,
            "loopback_noncontiguous": gaps if loopback.noncontiguous is None else loopback.noncontiguous_range_bytes,
            "remote_noncontiguous": beyond,
            "loopback_busy": self.loopback_busy.range_bytes if self.loopback_busy else None,
            "remote_busy": remote.busy.range_bytes if remote.busy else None,
        }
