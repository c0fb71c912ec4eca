"""A fitted network as the value of a platform."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lepaute.fit.network import FittedNetwork, FittedSegment
from lepaute.fit.node_link import node_link_Bps, over_link

if TYPE_CHECKING:
    from lepaute.platform.schema import Network


def network_model(fitted: FittedNetwork, between: FittedNetwork | None = None) -> "Network":
    """The network of the machines that were measured.

    fitted  : messages inside a node
    between : messages between nodes; None where they were not measured: then they cost what they cost inside
    """
    from lepaute.platform.schema import Network

    loopback: dict[str, Any] = {
        "shared": fitted.shared,
        "bandwidth_Bps": fitted.shared_bandwidth_Bps,
        "segments": None if between is None else _segments(fitted.segments),
    }
    if between is not None and fitted.noncontiguous is not None:
        loopback["noncontiguous"] = _segments(fitted.noncontiguous)
    remote, link = fitted, fitted.shared_bandwidth_Bps
    if between is not None:
        link = node_link_Bps(between)
        gaps = None if between.noncontiguous is None else over_link(between.noncontiguous, link)
        remote = replace(between, segments=over_link(between.segments, link), noncontiguous=gaps)
    return Network.model_validate(
        {
            "flow_factor": "bound",
            "node_link": {"bandwidth_Bps": link},
            "loopback": loopback,
            "remote": {"segments": _segments(remote.segments), "noncontiguous": _segments(remote.noncontiguous)},
            "costs": {
                "iprobe_s": fitted.iprobe_s,
                "test_s": fitted.test_s,
                "wtime_s": fitted.wtime_s,
                "iprobe_looks_first": fitted.iprobe_looks_first,
            },
        }
    )


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
    }
