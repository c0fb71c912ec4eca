"""Nodes that host the ranks of a run: the energy that they draw, and what they have together."""

from collections import Counter
from collections.abc import Sequence
from math import fsum
from typing import TYPE_CHECKING

from lepaute.simulate.platform.nodes import total_of

if TYPE_CHECKING:
    from lepaute.simulate.engine import SimulatedRun
    from lepaute.simulate.platform.schema import Platform
    from lepaute.simulate.prediction.prediction import Prediction


def energy_j(
    platform: "Platform", run: "SimulatedRun", cores: Sequence[int], threads: int, *, factor: float = 1.0
) -> float | None:
    """Joules of a run that lasts `factor` times as long as simulated; None if the power of a node is not known.

    cores : of each rank, node * cores per node + core
    All that is not computing: a rank inside MPI polls, on one core, and one that has ended waits there.
    """
    nodes = [core // platform.nodes.cores for core in cores]
    ranks_on, used, first, joules = Counter(nodes), set(nodes), 0, list[float]()
    for part, of_group_s in zip(platform.parts, run.group_computing_s or [run.computing_s], strict=True):
        hosting = used & set(range(first, first + part.nodes.count))
        first += part.nodes.count
        if not hosting:
            continue
        if part.power is None:
            return None
        time_s, computing_s = run.time_s * factor, of_group_s * factor
        energy = part.power.energy_j(
            part.nodes.cores,
            time_s=time_s,
            nodes=len(hosting),
            computing_core_s=threads * computing_s,
            communicating_core_s=max(0.0, sum(ranks_on[node] for node in hosting) * time_s - computing_s),
        )
        joules.append(energy)
    return fsum(joules)


def total_of_ranks(prediction: "Prediction", field: str, *, once: bool = False) -> float | None:
    """The sum over ranks of a field of their nodes, or once for each node; None where it is not known."""
    application, conditions = prediction.application, prediction.conditions
    if conditions is None:
        return None
    cores = conditions.mapping.cores(conditions.platform, application.ranks, application.threads_per_rank)
    nodes = [core // conditions.platform.nodes.cores for core in cores]
    return total_of(conditions.platform, set(nodes) if once else nodes, field) or None
