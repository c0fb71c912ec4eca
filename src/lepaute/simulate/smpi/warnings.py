"""What a reader of an emulation must know: what SMPI cannot do, and what had no model."""

from pathlib import Path
from typing import TYPE_CHECKING

from lepaute.kit.text import counted, significant, size_text
from lepaute.simulate.platform.nodes import with_links
from lepaute.simulate.platform.simgrid.exporting import MAX_NODES_WITH_ROUTES, holds_loopback
from lepaute.simulate.platform.simgrid.zones import cables_add_latency
from lepaute.simulate.smpi.emulated_run import MIN_SHARE as MIN_OWN_SHARE
from lepaute.simulate.smpi.emulated_run import EmulatedRun, Slowdowns

if TYPE_CHECKING:
    from lepaute.simulate.platform.schema import Platform
    from lepaute.simulate.smpi.emulate import Options

WTIME_SHARE = 0.01  # of the computing time
PACKING_SHARE = 0.01  # of it
MIN_SHARE = 0.001  # of it; below, an extrapolation is not worth a sentence


def program_warnings(run: EmulatedRun, platform: "Platform", options: "Options") -> list[str]:
    warnings = [*run.warnings, *_routine_warnings(run, platform)]
    if run.threads:
        warnings.append(
            f"the ranks started {counted(run.threads, 'thread')} of their own, whose computing takes no simulated "
            "time, and waiting for which may count as computing: the time means little; give each rank one thread "
            "(OMP_NUM_THREADS=1)"
        )
    receives, low, high = run.put_off
    if receives and platform.network.progress is None:
        sizes = size_text(low) if low == high else f"{size_text(low)} to {size_text(high)}"
        warnings.append(
            f"{receives} receives of {sizes}, posted before their rank computed, were taken to wait for its next MPI "
            "call, as MPI libraries do; the platform does not say (network.progress: calls or background)"
        )
    messages, size_bytes, packing_s = run.gapped
    if run.computing_s > 0.0 and packing_s > PACKING_SHARE * run.computing_s:
        warnings.append(
            f"{messages} messages, {size_text(size_bytes)} in all, have datatypes with gaps, which SMPI packs and "
            f"unpacks in no time: packing alone takes some {significant(packing_s, 2)} s of CPU time here, over all "
            f"ranks, {significant(100.0 * packing_s / run.computing_s, 2)} % of the computing"
        )
    if run.computing_s > 0.0 and run.wtime_s > WTIME_SHARE * run.computing_s:
        warnings.append(
            f"{significant(100.0 * run.wtime_s / run.computing_s, 2)} % of the computing is calls of MPI_Wtime"
        )
    return [*warnings, *_of_computing(run, platform, options)]


def network_warnings(platform: "Platform") -> list[str]:
    network = platform.network
    warnings = []
    if network.flow_factor == "bound":
        warnings.append(
            "messages that share a link divide it otherwise under SMPI: it scales the share of each "
            "(flow_factor scale), where this platform bounds it; for a comparison, --set network.flow_factor=scale"
        )
    if network.loopback.shared:
        warnings.append("messages inside a node do not slow each other under SMPI, as they do on this platform")
    if network.loopback.noncontiguous is not None or network.remote.noncontiguous is not None:
        warnings.append("messages with gaps cost what others do under SMPI, which has no segments for them")
    if network.loopback.busy is not None or network.remote.busy is not None:
        warnings.append(
            "messages to ranks that compute between probes cost what others do under SMPI: it has no segments "
            "for them, as with --set network.loopback.busy=null --set network.remote.busy=null"
        )
    large = platform.nodes.count > MAX_NODES_WITH_ROUTES
    if large and cables_add_latency(with_links(platform).topology) and not holds_loopback(platform):
        warnings.append(f"latencies of cables are not charged under SMPI on more than {MAX_NODES_WITH_ROUTES} nodes")
    if any(segment.noise_relative_sd or segment.noise for segment in network.all_segments):
        warnings.append("the noise of messages is not drawn under SMPI")
    if network.costs.iprobe_looks_first:
        warnings.append(
            "MPI_Iprobe finds what has come by its end under SMPI; on this platform by the previous MPI call"
        )
    return warnings


def _routine_warnings(run: EmulatedRun, platform: "Platform") -> list[str]:
    """What was charged without a model, outside of the range of one, or not at all."""
    warnings = [
        use.extrapolated(name, platform)
        for name, use in run.kernels.items()
        if use.extrapolated_time_s > MIN_SHARE * run.computing_s
    ]
    rated = {name: use for name, use in run.fallback.items() if use.time_s > 0.0}
    if rated:
        share = 100.0 * sum(use.time_s for use in rated.values()) / max(run.computing_s, 1e-300)
        names = ", ".join(f"{name} ({use.calls} calls)" for name, use in sorted(rated.items()))
        warnings.append(
            f"no model of {names}: {significant(share, 2)} % of the computing, from operations over the rate of dgemm"
        )
    free = {name: use.unmodelled_calls for name, use in (run.fallback | run.kernels).items() if use.unmodelled_calls}
    if free:
        names = ", ".join(f"{name} ({calls} calls)" for name, calls in sorted(free.items()))
        warnings.append(f"neither a model nor operations to count: {names}; taken to cost nothing")
    return warnings


def _of_computing(run: EmulatedRun, platform: "Platform", options: "Options") -> list[str]:
    own = run.own
    if options.computing != "measured":
        share = own.measured_s / (own.measured_s + run.computing_s) if own.measured_s > 0.0 else 0.0
        if share <= MIN_OWN_SHARE:
            return []
        return [
            f"{100.0 * share:.0f} % of the computing was not charged: {significant(own.measured_s)} s of CPU time "
            "here, over all ranks, outside of BLAS and LAPACK; --computing measured charges it"
        ]
    if run.own_share <= MIN_OWN_SHARE:
        return []
    here, there = _this_processor(), platform.nodes.cpu_model
    machines = f" ({here}; there {there})" if here and there and here != there else ""
    speed = (
        f"{100.0 * run.own_share:.0f} % of the computing is the program's own, timed on this machine{machines}, and "
        "taken to be as fast on the platform"
    )
    warnings = [speed, *_of_memory(run, platform)]
    if options.folding.from_bytes is not None:
        warnings.append(
            "the program's own computing was timed on folded memory, which caches hold better than real one"
        )
    return warnings


def _this_processor() -> str:
    """As the kernel names it; "" if it does not."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def _of_memory(run: EmulatedRun, platform: "Platform") -> list[str]:
    """What is not known of ranks that share the memory of a node."""
    ranks, here, nodes = run.ranks_on_node, run.cores_timed, platform.nodes
    if ranks == 1 or (ranks <= here and nodes.memory_bandwidth_Bps is None):
        return []
    slowdowns = run.slowdowns or Slowdowns()
    if slowdowns.memory_share is None:
        bound = ""
        if nodes.memory_bandwidth_Bps and nodes.core_memory_bandwidth_Bps:
            most = ranks * nodes.core_memory_bandwidth_Bps / nodes.memory_bandwidth_Bps
            bound = f", up to {significant(max(1.0, most), 2)} times as long"
        return [
            f"{ranks} ranks share the memory of a node; how much of the program's own computing waits for memory was "
            f"not seen with {here} busy core{'s' if here > 1 else ''} here: taken as none, where it may take "
            f"longer{bound}; --memory-share"
        ]
    if nodes.memory_bandwidth_Bps is not None or slowdowns.memory_share < MIN_OWN_SHARE:
        return []
    return [
        f"{ranks} ranks share the memory of a node, whose bandwidth for all cores is not known: the "
        f"{100.0 * slowdowns.memory_share:.0f} % of the program's own computing that waits for memory is as slow as "
        f"with {here} busy cores here, and may take up to {significant(ranks / here, 2)} times as long; tell it "
        "(STREAM's triad) by --set nodes.memory_bandwidth_Bps=..."
    ]
