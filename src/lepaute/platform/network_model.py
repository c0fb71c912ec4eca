"""The time of messages: a model a link class, piecewise in the size of the message."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from lepaute.platform.values import NonNegative, Overhead, Positive, Value, fault


class Segment(Value):
    """Messages of more than `above_bytes`, up to the next segment (the first one also holds 0 bytes).

    `latency_s` is that of the whole route; `bandwidth_Bps` that of one flow alone.
    """

    above_bytes: Annotated[int, Field(ge=0)]
    protocol: Literal["eager", "detached", "rendezvous"]
    latency_s: NonNegative
    bandwidth_Bps: Positive  # noqa: N815 - the unit
    send: Overhead = (0.0, 0.0)
    isend: Overhead = (0.0, 0.0)
    receive: Overhead = (0.0, 0.0)
    noise_relative_sd: NonNegative = 0.0


def _cover_all_sizes(segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
    if not segments:
        raise fault("is empty; every message size needs a segment", remedy="Add a segment with above_bytes 0.")
    if segments[0].above_bytes:
        raise fault(f"is {segments[0].above_bytes}; the first segment begins at 0", 0, "above_bytes")
    for position in range(1, len(segments)):
        low, high = segments[position - 1].above_bytes, segments[position].above_bytes
        if high <= low:
            raise fault(
                f"is {high}, after {low}; segments are in increasing order of size",
                position,
                "above_bytes",
                remedy="Put them in order.",
            )
    return segments


Segments = Annotated[tuple[Segment, ...], AfterValidator(_cover_all_sizes)]


class NodeLink(Value):
    """The link of a node to the network, as wide in each direction."""

    bandwidth_Bps: Positive  # noqa: N815 - the unit


class Loopback(Value):
    """Messages inside a node; `shared`: do concurrent ones slow each other. Segments null: those of remote.

    `noncontiguous`: messages sent from a derived datatype with gaps, such as columns of a matrix; null: as the others.
    """

    shared: bool = False
    bandwidth_Bps: Positive  # noqa: N815 - the unit
    segments: Segments | None = None
    noncontiguous: Segments | None = None


class Remote(Value):
    """Messages between nodes; `noncontiguous` as in Loopback."""

    segments: Segments
    noncontiguous: Segments | None = None


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
    """

    flow_factor: Literal["bound", "scale"] = "bound"
    sharing: Literal["fair", "exact"] | None = None
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
