"""Was a real run disturbed? The rule of `stats.disturbance`, fixed before any run.

Three of its witnesses are blind to how long the solver took: the CPU time of each rank against its wall time over the
solver, the CPU time that other processes used on the whole machine during the run (a neighbour takes memory bandwidth
and cache even where it leaves the core alone), and the time that the hypervisor took. Both come from /proc/stat, whose
granularity matters for short runs: in 64 quiet runs the CPU time of others came out between -0.04 and +0.03 s whatever
the length of the run. The sentinels around the run see what these do not: a slower host of a virtual machine, or a
lower clock.
"""

from dataclasses import dataclass

from lepaute.measure.machine_load import Load
from lepaute.stats import disturbance as common


@dataclass(frozen=True, slots=True)
class RankLoad:
    """What one rank of a run got from its core over the solver."""

    rank: int
    cpu: int
    wall_s: float
    cpu_s: float
    voluntary_switches: int
    involuntary_switches: int


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """What a node of a run did meanwhile."""

    name: str
    load: Load


def rule() -> dict[str, float]:
    """The constants of the rule, to be recorded (and hashed) with the predictions."""
    return {
        "minimum_cpu_share": common.MINIMUM_CPU_SHARE,
        "cpu_time_tolerance_s": common.CPU_TIME_TOLERANCE_S,
        "most_others_share": common.MAX_OTHERS_SHARE,
        "most_steal_share": common.MAX_STEAL_SHARE,
        "granularity_s": common.GRANULARITY_S,
        "most_sentinel_change": common.MAX_SENTINEL_CHANGE,
        "fewest_sentinels": common.SENTINELS_OF_A_LIMIT,
        "most_sd": common.MAX_SD,
        "least_slower": common.MIN_SLOWER,
    }


def disturbances(ranks: tuple[RankLoad, ...], machine: Load, nodes: tuple[NodeLoad, ...] = ()) -> tuple[str, ...]:
    """Why the run counts as disturbed, one short phrase a cause; empty when it does not.

    ranks may be empty (a user's xhpl does not report them); then only the load of the machine is judged.
    nodes: of a run on nodes, each of which is judged by itself in the place of `machine`, their sum
    """
    off_core = (cause for rank in ranks for cause in common.off_core_causes(rank.rank, rank.cpu_s, rank.wall_s))
    on_nodes = (f"{cause} on {node.name}" for node in nodes for cause in node.load.disturbances())
    return (*off_core, *(on_nodes if nodes else machine.disturbances()))
