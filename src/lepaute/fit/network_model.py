"""A fitted network as the value of a platform."""

from typing import TYPE_CHECKING, Any

from lepaute.fit.network import FittedNetwork, FittedSegment

if TYPE_CHECKING:
    from lepaute.platform.schema import Network


def network_model(fitted: FittedNetwork) -> "Network":
    """The network of a machine of one node: messages between nodes were not measured and cost what they cost inside."""
    from lepaute.platform.schema import Network

    return Network.model_validate(
        {
            "flow_factor": "bound",
            "node_link": {"bandwidth_Bps": fitted.shared_bandwidth_Bps},
            "loopback": {"shared": fitted.shared, "bandwidth_Bps": fitted.shared_bandwidth_Bps, "segments": None},
            "remote": {
                "segments": [_segment(part) for part in fitted.segments],
                "noncontiguous": None if fitted.noncontiguous is None else [_segment(p) for p in fitted.noncontiguous],
            },
            "costs": {
                "iprobe_s": fitted.iprobe_s,
                "test_s": fitted.test_s,
                "wtime_s": fitted.wtime_s,
                "iprobe_looks_first": fitted.iprobe_looks_first,
            },
        }
    )


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
