"""A fitted network as the value of a platform."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Any

from lepaute.fit.messages.network import LARGE_BYTES, FittedNetwork
from lepaute.fit.messages.segment import FittedSegment

if TYPE_CHECKING:
    from lepaute.platform.schema import Network


def network_model(
    fitted: FittedNetwork,
    between: FittedNetwork | None = None,
    link_Bps: float | None = None,
) -> "Network":
    """The network of the machines that were measured.

    fitted   : messages inside a node
    between  : messages between nodes; None where they were not measured: then they cost what they cost inside
    link_Bps : bandwidth of the link of a node, None for what the fastest large messages between nodes make use of
    """
    from lepaute.platform.schema import Network

    loopback: dict[str, Any] = {
        "shared": fitted.shared,
        "bandwidth_Bps": fitted.shared_bandwidth_Bps,
        "segments": None,
    }
    remote, link = fitted, fitted.shared_bandwidth_Bps
    if between is not None:
        loopback |= _class(fitted)
        link = node_link_Bps(between) if link_Bps is None else link_Bps
        gaps = None if between.noncontiguous is None else over_link(between.noncontiguous, link)
        busy = None if between.busy is None else over_link(between.busy, link)
        remote = replace(between, segments=over_link(between.segments, link), noncontiguous=gaps, busy=busy)
    return Network.model_validate(
        {
            "flow_factor": "bound",
            "node_link": {"bandwidth_Bps": link},
            "loopback": loopback,
            "remote": _class(remote),
            "costs": {
                "iprobe_s": fitted.iprobe_s,
                "test_s": fitted.test_s,
                "wtime_s": fitted.wtime_s,
                "iprobe_looks_first": fitted.iprobe_looks_first,
            },
        }
    )


def _class(network: FittedNetwork) -> dict[str, Any]:
    """The segments of a class of links, and the sizes that they were fitted to."""
    return {
        "segments": _segments(network.segments),
        "noncontiguous": _segments(network.noncontiguous),
        "busy": _busy(network),
        "range_bytes": network.sizes,
        "noncontiguous_range_bytes": network.noncontiguous_sizes,
        "discrepancy_relative_sd": network.start_relative_sd or None,
    }


def _busy(network: FittedNetwork) -> dict[str, Any] | None:
    """What a start of mpirun does to all of its messages it does to these."""
    if network.busy is None:
        return None
    return {
        "segments": _segments(network.busy),
        "range_bytes": network.busy_sizes,
        "discrepancy_relative_sd": network.start_relative_sd or None,
    }


def _segments(parts: tuple[FittedSegment, ...] | None) -> list[dict[str, Any]] | None:
    return None if parts is None else [_segment(part) for part in parts]


def _segment(part: FittedSegment) -> dict[str, Any]:
    return {
        "above_bytes": part.above_bytes,
        "protocol": part.protocol,
        "latency_s": part.latency_s,
        "bandwidth_Bps": part.bandwidth_Bps,
        "send": list(part.send),
        "isend": list(part.isend),
        "receive": list(part.receive),
        "noise_relative_sd": part.noise_relative_sd,
        "noise": {"modes": [asdict(mode) for mode in part.modes]} if part.modes else None,
    }


def node_link_Bps(between: FittedNetwork) -> float:  # noqa: N802 - the unit
    """Bytes per second of the link: what the fastest of the large messages makes use of.

    Messages of one core at a time do not show whether several would get more; a link that one flow fills is assumed.
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
