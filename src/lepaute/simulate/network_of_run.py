"""The network of one run, for engines that read it from a platform: as the core draws it for the native one."""

from typing import TYPE_CHECKING

from lepaute import _core

if TYPE_CHECKING:
    from lepaute.platform.network_model import Network, Segment
    from lepaute.platform.schema import Platform
    from lepaute.platform.topology import CableModel, Topology
    from lepaute.simulate.layers import Layers


def with_network_of_run(platform: "Platform", seed: int, layers: "Layers") -> "Platform":
    """`platform` with transfers slower by the factors that the run of `seed` draws, and so the links between nodes.

    Messages of datatypes with gaps and those to busy receivers keep their times: no other engine knows them.
    """
    network = platform.network
    if not layers.network or not any(network.discrepancies.values()):
        return platform
    inside, between = (
        _core.transfer_factor(link, network.discrepancies[link], seed) for link in ("loopback", "remote")
    )
    return platform.model_copy(
        update={
            "network": _slower_network(network, inside, between),
            "topology": _slower_topology(platform.topology, between),
        }
    )


def _slower_network(network: "Network", inside: float, between: float) -> "Network":
    remote = network.remote.model_copy(update={"segments": _slower(network.remote.segments, between)})
    link = network.node_link.model_copy(update={"bandwidth_Bps": network.node_link.bandwidth_Bps / between})
    loopback = network.loopback
    if loopback.segments is None:
        inside = between
    else:
        loopback = loopback.model_copy(update={"segments": _slower(loopback.segments, inside)})
    loopback = loopback.model_copy(update={"bandwidth_Bps": loopback.bandwidth_Bps / inside})
    return network.model_copy(update={"remote": remote, "loopback": loopback, "node_link": link})


def _slower(segments: "tuple[Segment, ...]", factor: float) -> "tuple[Segment, ...]":
    return tuple(
        segment.model_copy(
            update={"latency_s": segment.latency_s * factor, "bandwidth_Bps": segment.bandwidth_Bps / factor}
        )
        for segment in segments
    )


def _slower_topology(topology: "Topology", factor: float) -> "Topology":
    def slower(cable: "CableModel") -> "CableModel":
        if cable.bandwidth_Bps is None:
            return cable
        return cable.model_copy(update={"bandwidth_Bps": cable.bandwidth_Bps / factor})

    update: dict[str, object] = {
        name: tuple(slower(cable) for cable in cables)
        for name in ("levels", "changed", "links")
        if (cables := getattr(topology, name))
    }
    if topology.limiters is not None:
        widths = topology.limiters.model_dump(exclude_none=True)
        update["limiters"] = topology.limiters.model_copy(
            update={name: width_Bps / factor for name, width_Bps in widths.items()}
        )
    return topology.model_copy(update=update)
