"""The energy that a run takes, from what a node draws and from how long its cores compute and communicate."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lepaute.platform.schema import Platform, Power


def energy_of_run(
    platform: "Platform", *, nodes: int, ranks: int, time_s: float, computing_s: float, threads: int = 1
) -> float | None:
    """Joules of the `nodes` that hold a rank, from start to end of the run; None where the platform has no power.

    computing_s : seconds inside kernels, over all ranks
    threads : cores that each rank computes on; it communicates on one of them
    """
    if platform.power is None:
        return None
    return energy_j(
        platform.power,
        platform.nodes.cores,
        time_s=time_s,
        nodes=nodes,
        computing_core_s=threads * computing_s,
        # All that is not computing: a rank inside MPI polls, and one that has ended waits for the others in MPI.
        communicating_core_s=max(0.0, ranks * time_s - computing_s),
    )


def energy_j(
    power: "Power",
    cores_per_node: int,
    *,
    time_s: float,
    nodes: int,
    computing_core_s: float,
    communicating_core_s: float,
) -> float:
    """Joules that `nodes` nodes draw in `time_s` seconds, of which their cores spend the given core-seconds busy.

    The power of a node is linear in its busy cores: idle_W + (computing_W - idle_W) * computing / cores
    + (communicating_W - idle_W) * communicating / cores. Being linear, only the totals matter.
    """
    per_computing_core_W = (power.computing_W - power.idle_W) / cores_per_node
    per_communicating_core_W = (power.communicating_W - power.idle_W) / cores_per_node
    return (
        nodes * power.idle_W * time_s
        + per_computing_core_W * computing_core_s
        + per_communicating_core_W * communicating_core_s
    )
