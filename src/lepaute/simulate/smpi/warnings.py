"""What a reader of an emulation must be told: what SMPI cannot do, and what had no model."""

from typing import TYPE_CHECKING

from lepaute.simulate.smpi.emulate import EmulatedRun

if TYPE_CHECKING:
    from lepaute.platform.schema import Platform

WTIME_SHARE = 0.01  # of the computing time


def emulation_warnings(run: EmulatedRun, platform: "Platform") -> list[str]:
    """Sentences."""
    return [*_of_network(platform), *_of_routines(run), *_of_clock(run)]


def _of_network(platform: "Platform") -> list[str]:
    network = platform.network
    told = []
    if network.flow_factor == "bound":
        told.append(
            "SMPI scales the share of a flow by its factor (flow_factor scale), where this platform bounds it: "
            "concurrent messages differ; for a comparison, --set network.flow_factor=scale"
        )
    if network.loopback.shared:
        told.append("messages inside a node do not slow each other under SMPI, as they do on this platform")
    if network.loopback.noncontiguous is not None or network.remote.noncontiguous is not None:
        told.append("SMPI has no segments of their own for messages with gaps; they take those of the others")
    if any(segment.noise_relative_sd for segment in (*network.loopback_segments, *network.remote.segments)):
        told.append("the noise of messages is not drawn under SMPI")
    if network.costs.iprobe_looks_first:
        told.append("MPI_Iprobe finds what has come by its end under SMPI; on this platform by the previous MPI call")
    return told


def _of_routines(run: EmulatedRun) -> list[str]:
    told = []
    rated = {name: use for name, use in run.fallback.items() if use.time_s > 0.0}
    if rated:
        share = 100.0 * sum(use.time_s for use in rated.values()) / max(run.computing_s, 1e-300)
        names = ", ".join(f"{name} ({use.calls} calls)" for name, use in sorted(rated.items()))
        told.append(f"no model of {names}: {share:.2g} % of the computing, from operations over the rate of dgemm")
    free = [f"{name} ({use.unmodelled_calls} calls)" for name, use in run.fallback.items() if use.unmodelled_calls]
    if free:
        told.append(f"neither a model nor operations of {', '.join(sorted(free))}: taken to cost nothing")
    return told


def _of_clock(run: EmulatedRun) -> list[str]:
    if run.wtime_s <= WTIME_SHARE * run.computing_s or run.wtime_s == 0.0:
        return []
    return [f"{100.0 * run.wtime_s / run.computing_s:.2g} % of the computing is calls of MPI_Wtime"]
