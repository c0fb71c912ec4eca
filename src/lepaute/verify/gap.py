"""What a real run that took longer or shorter than predicted may come from, in the order in which to look."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lepaute.platform import Platform
    from lepaute.verify.campaign import Case

LEAST_TOLD = 0.03  # of the predicted time; a smaller gap needs no cause
#: More than a core of 2026 does in double precision: about 5 GHz times 32 operations a cycle.
MOST_OF_A_CORE_FLOPS = 250e9
MOSTLY = 0.6  # of the predicted time


def largest_gap(
    cases: "list[Case]", rows: list[dict[Any, Any]], platform: "Platform"
) -> "tuple[Case, list[str]] | None":
    """The case furthest off, of those that are not inside their interval, with lines: the gap, and its likely causes in
    order; None where there is none. A case that no machine can have made does not count.

    rows: of comparison.compare, in the order of the cases
    """
    off = [
        (case, row["measured_time_s"] / row["predicted_time_s"], row)
        for case, row in zip(cases, rows, strict=True)
        if row["inside_interval"] is not True
        and row["predicted_time_s"] > 0.0
        and impossible(case, row["measured_time_s"], platform) is None
    ]
    off = [one for one in off if abs(one[1] - 1.0) >= LEAST_TOLD]
    if not off:
        return None
    case, ratio, row = max(off, key=lambda one: max(one[1], 1.0 / one[1]))
    return case, [_gap(case, ratio, row), f"  look at, in this order: {'; '.join(_causes(case, ratio, platform))}"]


def impossible(case: "Case", measured_s: float, platform: "Platform") -> str | None:
    """In words, that the cores of a run did more than cores can; None where they did not."""
    hpl = case.hpl
    flops = hpl.flop_count / measured_s / (hpl.ranks * hpl.threads_per_rank)
    peak_flops = platform.nodes.peak_flops_per_core
    if flops <= (1.2 * peak_flops if peak_flops else MOST_OF_A_CORE_FLOPS):
        return None
    threads = hpl.threads_per_rank * case.prediction.time_s.mean / measured_s
    return (
        f"{case.label}: {flops / 1e9:.4g} Gflop/s on each core, of which a rank has {hpl.threads_per_rank} here, is "
        f"more than any core does. Is it about --threads-per-rank {threads:.0f}, or a GPU?"
    )


def _gap(case: "Case", ratio: float, row: dict[Any, Any]) -> str:
    measured, predicted = (row["flop_count"] / row[key] / 1e9 for key in ("measured_time_s", "predicted_time_s"))
    how = f"{100 * (ratio - 1):.0f} % longer" if ratio > 1 else f"{100 * (1 - ratio):.0f} % shorter"
    return (
        f"{case.label}: the real run took {how} than predicted ({row['measured_time_s']:.4g} s, not "
        f"{row['predicted_time_s']:.4g} s): {measured:.4g} Gflop/s, {abs(predicted - measured):.3g} "
        f"{'less' if ratio > 1 else 'more'} than predicted"
    )


def _causes(case: "Case", ratio: float, platform: "Platform") -> list[str]:
    """What may explain it; what would touch the larger part of the predicted time first."""
    breakdown, hpl = case.prediction.breakdown, case.hpl
    computing = 1.0 if breakdown is None else breakdown.shares["compute"]
    cores = ["the clock frequency", "the BLAS library and its threads (--threads-per-rank)"]
    messages = ["the MPI library and network", "where the ranks ran (--ranks-per-node)"]
    causes = [*cores, *messages] if computing >= MOSTLY else [*messages, *cores]
    if hpl.ranks == 1:
        causes = cores
    if ratio > 1.0:
        causes.insert(2, "other load on the nodes")
        per_node = min(hpl.ranks, platform.nodes.cores // hpl.threads_per_rank or 1)
        memory = platform.nodes.memory_bytes
        if memory is not None and 8.0 * hpl.n**2 / hpl.ranks * per_node > 0.8 * memory:
            causes.insert(0, "memory: the matrix fills more than 80 % of that of a node")
    if case.prediction.extrapolated_share:
        causes.append("kernels outside the sizes that the platform was fitted to")
    return causes
