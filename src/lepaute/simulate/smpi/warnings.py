"""What a reader of an emulation must know: what SMPI cannot do, and what had no model."""

from typing import TYPE_CHECKING

from lepaute.simulate.smpi.emulate import Options
from lepaute.simulate.smpi.emulated_run import EmulatedRun
from lepaute.simulate.warnings import outside

if TYPE_CHECKING:
    from lepaute.platform.schema import Platform

WTIME_SHARE = 0.01  # of the computing time
LEAST_SHARE = 0.001  # of it; below, an extrapolation is not worth a sentence


def program_warnings(run: EmulatedRun, platform: "Platform", options: Options) -> list[str]:
    """Sentences about the run of a program."""
    return [*run.warnings, *routine_warnings(run, platform), *_of_clock(run), *_of_computing(run, options)]


def network_warnings(platform: "Platform") -> list[str]:
    """What SMPI does not do as the platform says."""
    network = platform.network
    warnings = []
    if network.flow_factor == "bound":
        warnings.append(
            "SMPI scales the share of a flow by its factor (flow_factor scale), where this platform bounds it: "
            "concurrent messages differ; for a comparison, --set network.flow_factor=scale"
        )
    if network.loopback.shared:
        warnings.append("messages inside a node do not slow each other under SMPI, as they do on this platform")
    if network.loopback.noncontiguous is not None or network.remote.noncontiguous is not None:
        warnings.append("SMPI has no segments of their own for messages with gaps; they take those of the others")
    if network.loopback.busy is not None or network.remote.busy is not None:
        warnings.append(
            "SMPI has no segments of their own for messages to ranks that compute between probes: they cost what "
            "others do, as with --set network.loopback.busy=null --set network.remote.busy=null"
        )
    if any(segment.noise_relative_sd or segment.noise for segment in network.all_segments):
        warnings.append("the noise of messages is not drawn under SMPI")
    if network.costs.iprobe_looks_first:
        warnings.append(
            "MPI_Iprobe finds what has come by its end under SMPI; on this platform by the previous MPI call"
        )
    return warnings


def routine_warnings(run: EmulatedRun, platform: "Platform") -> list[str]:
    """What was charged without a model, outside of the range of one, or not at all."""
    warnings = []
    for name, use in run.kernels.items():
        if use.extrapolated_time_s > LEAST_SHARE * run.computing_s:
            calls = f"{100.0 * use.extrapolated_time_s / use.time_s:.0f} % of {name} time"
            warnings.append(f"{calls} is outside the fitted ranges: {outside(name, use, platform)}")
    rated = {name: use for name, use in run.fallback.items() if use.time_s > 0.0}
    if rated:
        share = 100.0 * sum(use.time_s for use in rated.values()) / max(run.computing_s, 1e-300)
        names = ", ".join(f"{name} ({use.calls} calls)" for name, use in sorted(rated.items()))
        warnings.append(f"no model of {names}: {share:.2g} % of the computing, from operations over the rate of dgemm")
    free = {name: use.unmodelled_calls for name, use in (run.fallback | run.kernels).items() if use.unmodelled_calls}
    if free:
        names = ", ".join(f"{name} ({calls} calls)" for name, calls in sorted(free.items()))
        warnings.append(f"neither a model nor operations to count: {names}; taken to cost nothing")
    return warnings


def _of_clock(run: EmulatedRun) -> list[str]:
    if run.wtime_s <= WTIME_SHARE * run.computing_s or run.wtime_s == 0.0:
        return []
    return [f"{100.0 * run.wtime_s / run.computing_s:.2g} % of the computing is calls of MPI_Wtime"]


def _of_computing(run: EmulatedRun, options: Options) -> list[str]:
    if options.computing == "measured":
        return ["computing outside of BLAS was timed on this machine, and taken to be as fast on the platform"]
    if not run.kernels and not run.fallback:
        return [
            "the program called no BLAS or LAPACK routine, so that its computing costs nothing; "
            "with --computing measured it is timed on this machine"
        ]
    return []
