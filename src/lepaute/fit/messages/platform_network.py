"""A fitted network as the value of a platform."""

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from lepaute.fit.messages.network import FittedNetwork
from lepaute.fit.messages.node_link import node_link_Bps, over_link
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
        remote = replace(between, segments=over_link(between.segments, link), noncontiguous=gaps)
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
        "range_bytes": network.sizes,
        "noncontiguous_range_bytes": network.noncontiguous_sizes,
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
