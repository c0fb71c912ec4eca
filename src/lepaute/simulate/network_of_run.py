"""The network of one run, for engines that read it from a platform: as the core draws it for the native one."""

from typing import TYPE_CHECKING

from lepaute import _core

if TYPE_CHECKING:
    from lepaute.platform.network_model import Network, Segment
    from lepaute.simulate.layers import Layers


def network_of_run(network: "Network", seed: int, layers: "Layers") -> "Network":
    """`network` with the times of transfers multiplied by the factors that the run of `seed` draws.

    Messages of datatypes with gaps and those to busy receivers keep their times: no other engine knows them.
    """
    if not layers.network or not any(network.discrepancies.values()):
        return network
    inside, between = (
        _core.transfer_factor(link, network.discrepancies[link], seed) for link in ("loopback", "remote")
    )
    remote = network.remote.model_copy(update={"segments": _slower(network.remote.segments, between)})
    loopback = network.loopback
    if loopback.segments is not None:
        loopback = loopback.model_copy(update={"segments": _slower(loopback.segments, inside)})
    return network.model_copy(update={"remote": remote, "loopback": loopback})


def _slower(segments: "tuple[Segment, ...]", factor: float) -> "tuple[Segment, ...]":
    return tuple(
        segment.model_copy(
            update={"latency_s": segment.latency_s * factor, "bandwidth_Bps": segment.bandwidth_Bps / factor}
        )
        for segment in segments
    )
