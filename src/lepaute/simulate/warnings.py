"""What a reader of a prediction must be told: what was not modelled, extrapolated or clipped."""

from typing import TYPE_CHECKING, Any

from lepaute.simulate.hpl import Hpl

if TYPE_CHECKING:
    from lepaute.platform.schema import Platform

SMALL_SHARE = 0.005  # of a kernel's time; below it, an extrapolation is not worth a sentence


def warnings_of(hpl: Hpl, platform: "Platform", kernels: dict[str, Any], fullest: int) -> list[str]:
    """Sentences; `kernels` is the use of each kernel (a core KernelUse) in one of the runs.

    fullest : ranks on the node that has most of them
    """
    told = []
    draws_days = platform.population is not None and platform.population.draw != "none"
    if (
        not draws_days
        and platform.days is None
        and all(model.discrepancy_relative_sd == 0.0 for model in platform.kernels)
    ):
        told.append("the interval covers call noise only: the platform has neither a day nor a discrepancy layer")
    unknown = [f"{name} ({use.unmodelled_calls} calls)" for name, use in kernels.items() if use.unmodelled_calls]
    if unknown:
        told.append(f"not modelled by the platform, so taken to cost nothing: {', '.join(sorted(unknown))}")
    total_s = sum(use.time_s for use in kernels.values())
    for name, use in kernels.items():
        if use.extrapolated_time_s > max(SMALL_SHARE * use.time_s, SMALL_SHARE * 0.1 * total_s):
            share = 100.0 * use.extrapolated_time_s / use.time_s
            told.append(f"{share:.0f} % of {name} time is outside the fitted ranges: {outside(name, use, platform)}")
        if use.clipped_means > 0.01 * use.calls:
            told.append(f"{use.clipped_means} of {use.calls} durations of {name} were below zero and taken as zero")
    if hpl.ranks > fullest:  # some messages cross nodes
        told += link_warnings(platform)
    told += memory_warnings(hpl, platform, fullest)
    return told


def link_warnings(platform: "Platform") -> list[str]:
    """A link of the nodes that is slower than the messages that were fitted: alone, they keep their fitted time."""
    link_Bps = platform.network.node_link.bandwidth_Bps
    fitted_Bps = platform.network.remote.segments[-1].bandwidth_Bps
    if fitted_Bps <= 1.01 * link_Bps:
        return []
    return [
        f"node_link has {link_Bps:.3g} B/s, long messages were fitted at {fitted_Bps:.3g} B/s and keep that: the link "
        "limits nothing; for a slower network change network.remote.segments as well"
    ]


def outside(name: str, use: Any, platform: "Platform") -> str:
    """Which parameters left the fitted ranges, and those ranges: "k = 64..64, fitted in 128..2048"."""
    fitted = [
        piece.range
        for model in platform.kernels
        if model.kernel == name
        for piece in model.pieces
        if piece.range is not None
    ]
    parts = []
    for letter in "mnk":
        pairs = [bounds for piece in fitted for name_, bounds in piece.items() if name_ == letter]
        if not pairs:
            continue
        low, high = min(low for low, _ in pairs), max(high for _, high in pairs)
        met_low, met_high = getattr(use.outside_low, letter), getattr(use.outside_high, letter)
        if met_low < low or met_high > high:
            parts.append(f"{letter} = {met_low:.0f}..{met_high:.0f}, fitted in {low:.0f}..{high:.0f}")
    return "; ".join(parts) or "between the fitted regions"


def memory_warnings(hpl: Hpl, platform: "Platform", fullest: int) -> list[str]:
    """A sentence when the part of the matrix that `fullest` ranks hold does not fit into their node."""
    there = platform.nodes.memory_bytes
    needed = hpl.memory_bytes / hpl.ranks * fullest
    if there is None or needed <= there:
        return []
    return [
        f"the matrix needs {needed / 1e9:.1f} GB on the node with most ranks ({fullest}), "
        f"a node of {platform.name} has {there / 1e9:.1f} GB: the real run would not fit"
    ]
