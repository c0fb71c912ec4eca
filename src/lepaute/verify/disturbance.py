"""Was a real run disturbed by other load? A rule fixed before any run, blind to how long the solver took.

It looks at three things only, never at the duration that is being verified:

1. CPU time against wall time of each rank over the solver. Open MPI polls while it waits, so an undisturbed rank is
   on its core all the time: on the development machine cpu_s / wall_s was at least 0.996 in 64 quiet runs.
2. CPU time that other processes used on the whole machine during the run: a neighbour takes memory bandwidth and
   cache even where it leaves the core alone.
3. Time stolen by the hypervisor.

2 and 3 are `measure.machine_load`'s, the same for calibrations. Both come from /proc/stat, whose granularity matters
for short runs (N = 2000 lasts half a second in all, the solver a tenth): in the same quiet runs the CPU time of others
came out between -0.04 and +0.03 s whatever the length of the run, hence the constant allowance there.
"""

from dataclasses import dataclass

from lepaute.measure import machine_load
from lepaute.measure.machine_load import Load

MINIMUM_CPU_SHARE = 0.97  # of a rank's wall time in the solver
CPU_TIME_TOLERANCE_S = 0.005  # a little more than one tick of a 250 Hz kernel: below it a short run cannot be judged


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
        "minimum_cpu_share": MINIMUM_CPU_SHARE,
        "cpu_time_tolerance_s": CPU_TIME_TOLERANCE_S,
        "most_others_share": machine_load.MOST_OTHERS_SHARE,
        "most_steal_share": machine_load.MOST_STEAL_SHARE,
        "granularity_s": machine_load.GRANULARITY_S,
    }


def disturbances(ranks: tuple[RankLoad, ...], machine: Load, nodes: tuple[NodeLoad, ...] = ()) -> tuple[str, ...]:
    """Why the run counts as disturbed, one short phrase a cause; empty when it does not.

    ranks may be empty (a user's xhpl does not report them); then only the load of the machine is judged.
    nodes: of a run on nodes, each of which is judged by itself in the place of `machine`, their sum
    """
    off_core = tuple(
        f"rank {rank.rank} was on its core for only {rank.cpu_s:.3f} of {rank.wall_s:.3f} s"
        for rank in ranks
        if rank.cpu_s < MINIMUM_CPU_SHARE * rank.wall_s - CPU_TIME_TOLERANCE_S
    )
    if nodes:
        return off_core + tuple(f"{node.name}: {cause}" for node in nodes for cause in node.load.disturbances())
    return off_core + machine.disturbances()
