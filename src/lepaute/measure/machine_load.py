"""What else the machine did while a probe ran: CPU time of others, and time stolen by the hypervisor."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from lepaute.measure.node_agent.facts import machine_load
from lepaute.measure.nodes.channel import NodeLost
from lepaute.measure.nodes.group import Nodes
from lepaute.stats.disturbance import disturbers, load_causes

#: Repetitions of what other load disturbed, at the end of its block: load that stays cannot be outlived.
MAX_REPETITIONS = 2


@dataclass(frozen=True, slots=True)
class Sample:
    """Cumulated seconds at one moment: busy and stolen of all cores together, and CPU of our own ended children."""

    monotonic_s: float
    busy_s: float
    steal_s: float
    own_s: float


@dataclass(frozen=True, slots=True)
class Load:
    """Load of the machine between two samples, in seconds of CPU time of all its cores together."""

    wall_s: float
    cores: int
    own_cpu_s: float
    others_cpu_s: float  # a little negative where the ticks missed our short processes
    steal_s: float

    def disturbances(self) -> tuple[str, ...]:
        """Why a measurement in this time counts as disturbed; empty when it does not."""
        return load_causes(self.wall_s, self.cores, self.others_cpu_s, self.steal_s)

    def with_own(self, own_cpu_s: float) -> "Load":
        """The same, where it is known that so much of the CPU time was our own."""
        return replace(self, own_cpu_s=own_cpu_s, others_cpu_s=self.own_cpu_s + self.others_cpu_s - own_cpu_s)


def sample() -> Sample:
    """The counters now. Children count as ours from the moment they have been waited for."""
    return Sample(**machine_load())


def samples(nodes: Nodes, names: Sequence[str], own_s: float = 0.0) -> dict[str, Sample]:
    """Loads of nodes; own_s: CPU time of this process, if it shares the node. Raises NodeLost if one is lost."""
    counters = nodes.call("load")
    if lost := [name for name in names if name not in counters]:
        raise NodeLost(f"{lost[0]} is lost")
    return {name: Sample(**{**counters[name], "own_s": counters[name]["own_s"] + own_s}) for name in names}


def load_between(before: Sample, after: Sample, cores: int) -> Load:
    own_s = after.own_s - before.own_s
    return Load(
        wall_s=after.monotonic_s - before.monotonic_s,
        cores=cores,
        own_cpu_s=own_s,
        others_cpu_s=after.busy_s - before.busy_s - own_s,
        steal_s=after.steal_s - before.steal_s,
    )


def disturbance_warnings(attempts: Collection[Sequence[bool | Sequence[str]]], what: str, member: str) -> list[str]:
    """What an archive says of measurements that were disturbed at first, none where none was.

    attempts: at each measurement, in their order, whether it was disturbed, or better its causes
    what, member: such as probe runs, blocks.json
    """
    disturbed = [attempt for attempt in attempts if attempt[0]]
    if not disturbed:
        return []
    causes = ["; ".join(first) for first, *_ in disturbed if not isinstance(first, bool)]
    return [
        f"{len(disturbed)} of {len(attempts)} {what} were disturbed {disturbers(causes)} ({member}): "
        f"{sum(len(each) > 1 for each in disturbed)} repeated, "
        f"{sum(all(each) for each in disturbed)} without an undisturbed attempt"
    ]
