"""Was a real run disturbed by other load? A rule fixed before any run, blind to how long the solver took.

It looks at four things only, never at the duration that is being verified:

1. CPU time against wall time of each rank over the solver. Open MPI polls while it waits, so an undisturbed rank is
   on its core all the time: on the development machine cpu_s / wall_s was at least 0.996 in 64 quiet runs.
2. CPU time that other processes used on the whole machine during the run: a neighbour takes memory bandwidth and
   cache even where it leaves the core alone.
3. Time stolen by the hypervisor.

4. The sentinels around the run: a slower host of a virtual machine, or a lower clock, leaves no trace in 1 to 3.

2 and 3 are `measure.machine_load`'s, the same for calibrations. Both come from /proc/stat, whose granularity matters
for short runs (N = 2000 lasts half a second in all, the solver a tenth): in the same quiet runs the CPU time of others
came out between -0.04 and +0.03 s whatever the length of the run, hence the constant allowance there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from lepaute.measure import machine_load
from lepaute.measure.machine_load import Load

MINIMUM_CPU_SHARE = 0.97  # of a rank's wall time in the solver
CPU_TIME_TOLERANCE_S = 0.005  # a little more than one tick of a 250 Hz kernel: below it a short run cannot be judged
#: Between the sentinels before and after a run, and of both over those of the campaign so far: far beyond what a
#: machine wanders by all the time, which the interval has to cover.
MOST_SENTINEL_CHANGE = 0.10
FEWEST_SENTINELS = 6


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
        "most_sentinel_change": MOST_SENTINEL_CHANGE,
        "fewest_sentinels": FEWEST_SENTINELS,
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


def sentinel_disturbances(before_s: float, after_s: float, earlier_s: Sequence[float]) -> tuple[str, ...]:
    """Why a run counts as disturbed by the sentinels around it, with the seconds that they took; mostly empty.

    earlier_s: all sentinels of the campaign before this run, in any order. A machine that became faster again is no
    cause by these, since it is the earlier ones that were slow then.
    """
    causes = []
    change = after_s / before_s - 1.0
    if abs(change) > MOST_SENTINEL_CHANGE:
        way = "slower" if change > 0 else "faster"
        causes.append(f"the machine was {100 * abs(change):.0f} % {way} after the run than before (sentinels)")
    if len(earlier_s) >= FEWEST_SENTINELS:
        slower = (before_s + after_s) / 2.0 / median(earlier_s) - 1.0
        if slower > MOST_SENTINEL_CHANGE:
            causes.append(f"the machine was {100 * slower:.0f} % slower than in the campaign until then (sentinels)")
    return tuple(causes)
