"""The link of a node, as messages between nodes show it: how wide it is, and what of their time is spent on it."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf

from lepaute.fit.messages.network import LARGE_BYTES, FittedNetwork
from lepaute.fit.messages.segment import FittedSegment


def node_link_Bps(between: FittedNetwork) -> float:  # noqa: N802 - the unit
    """Bytes per second of the link: what the fastest of the large messages makes use of.

    Messages of one core at a time cannot tell whether several would get more; a link that one flow fills is assumed.
    """
    bounds = [part.above_bytes for part in between.segments] + [inf]
    uppers = [high for _, high in pairwise(bounds)]
    return max(
        1.0 / _per_byte_s(part) for part, high in zip(between.segments, uppers, strict=True) if high > LARGE_BYTES
    )


def over_link(segments: Sequence[FittedSegment], link_Bps: float) -> tuple[FittedSegment, ...]:
    """The same segments, in which every byte takes the time that it needs on the link.

    Where the calls of a message were measured to take all the time of its bytes, the link was at work meanwhile: so
    much is moved from the overheads to the link, and the time of a message alone stays the same. A segment whose bytes
    are faster than the link, as a few small ones may be, gets all of their time as transfer.
    """
    return tuple(_over_link(part, link_Bps) for part in segments)


def _over_link(part: FittedSegment, link_Bps: float) -> FittedSegment:
    if part.bandwidth_Bps <= link_Bps:
        return part
    whole_s = _per_byte_s(part)
    on_link_s = min(whole_s, 1.0 / link_Bps)
    calls_s = part.send[1] + part.receive[1]
    left = (whole_s - on_link_s) / calls_s if calls_s > 0 else 0.0
    return replace(
        part,
        bandwidth_Bps=1.0 / on_link_s,
        send=(part.send[0], part.send[1] * left),
        receive=(part.receive[0], part.receive[1] * left),
    )


def _per_byte_s(part: FittedSegment) -> float:
    """Of a message alone, from the beginning of the send to the end of the receive; > 0."""
    return 1.0 / part.bandwidth_Bps + part.send[1] + part.receive[1]
