"""Where the ranks of a campaign run: this machine, or nodes, which ranks fill in their order; what watches them there.

On this machine a launcher binds its ranks; on nodes each rank binds itself (measure/experiment/ranks), since names of
one machine share its cores. Ranks that are started through ssh or by srun are no children of our agents: a core of each
counts as theirs, since ranks of MPI poll while they wait.
"""

import itertools
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from lepaute.errors import InputError
from lepaute.kit.mpi_launcher import OPEN_MPI, Start
from lepaute.kit.text import counted
from lepaute.measure.calibration.machines import layouts_of
from lepaute.measure.comparison.libraries import ReadyLibrary
from lepaute.measure.experiment.ranks import CPUS, SCRIPT, cpus_text, rank_script, start_of_ranks, write_hosts
from lepaute.measure.layout import Layout
from lepaute.measure.machine_load import Load, Sample, load_between, samples
from lepaute.measure.nodes.channel import NodeLost, NodeRefused
from lepaute.measure.nodes.group import Nodes, side_by_side
from lepaute.measure.nodes.results import check_programs_fit
from lepaute.measure.schedulers.types import RankLaunch

#: Open MPI passes variables that begin so to its ranks by itself, and refuses them where they are given twice.
_PASSED = ("OMPI_", "PMIX_", "PRTE_")


@dataclass(frozen=True)
class Place:
    """Nodes, in the order in which ranks fill them.

    slots : ranks that each takes; () on this machine, which takes any number
    launch: how ranks are started on nodes; None: by mpirun on this machine
    """

    nodes: Nodes
    layouts: Mapping[str, Layout]
    facts: Mapping[str, Mapping[str, Any]]
    slots: tuple[int, ...] = ()
    launch: RankLaunch | None = None

    @property
    def is_here(self) -> bool:
        return self.launch is None

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of all nodes, even if one is lost meanwhile."""
        return self.nodes.names

    @cached_property
    def machines(self) -> tuple[str, ...]:
        """For each node, what is equal for names of one machine."""
        return tuple(channel.hello.boot for channel in self.nodes.channels)

    def nodes_of(self, ranks: int) -> tuple[int, ...]:
        """The node of each rank, by its place among the nodes."""
        if self.is_here:
            return (0,) * ranks
        return tuple([node for node, slots in enumerate(self.slots) for _ in range(slots)][:ranks])

    def check(self, ranks: int) -> None:
        """Raises InputError if this many ranks do not fit."""
        if not self.is_here and ranks > sum(self.slots):
            raise InputError(
                f"--np is {ranks}; {counted(len(self.names), 'node')} with {max(self.slots)} ranks each take "
                f"{sum(self.slots)}; give more nodes, or a larger --ranks-per-node"
            )

    def cores(self, ranks: int) -> int:
        """Fewest cores for a rank on the machines that this many ranks run on."""
        return min(self._cores_of(machine) for machine in self._ranks_by_machine(ranks))

    def shares_cores(self, ranks: int) -> bool:
        """Whether some machine has more ranks than cores."""
        return any(count > self._cores_of(machine) for machine, count in self._ranks_by_machine(ranks).items())

    def _ranks_by_machine(self, ranks: int) -> Counter[str]:
        return Counter(self.machines[node] for node in self.nodes_of(ranks))

    def _cores_of(self, machine: str) -> int:
        return len(self.layouts[self.names[self.machines.index(machine)]].cores)

    def pus(self, ranks: int, *, spread: bool = False) -> tuple[int, ...]:
        """The hardware thread of each rank: the cores of its machine in turn, or with `spread` those of its sockets in
        turn, the first core of each socket before the second of any."""
        taken: Counter[str] = Counter()
        places = []
        for node in self.nodes_of(ranks):
            layout, machine = self.layouts[self.names[node]], self.machines[node]
            order = _spread(layout) if spread else [core.number for core in layout.cores]
            places.append(layout.pus([order[taken[machine] % len(order)]])[0])
            taken[machine] += 1
        return tuple(places)

    def equip(self, libraries: Sequence[ReadyLibrary]) -> None:
        """Puts the probes on the nodes. Raises EnvironmentProblem if they cannot run there."""
        if self.is_here:
            return
        check_programs_fit(self.nodes.channels)
        for library in libraries:
            for program in library.program.parent.glob("probe-*"):
                if program.suffix == "":
                    self.nodes.put(program, f"{library.key}/{program.name}")

    def program(self, library: ReadyLibrary, name: str) -> str:
        if self.is_here:
            return str(library.program.with_name(name))
        return f"{self.nodes.place}/{library.key}/{name}"

    def write(self, ranks: int, path: str, text: str) -> None:
        """Writes a file on the nodes of this many ranks; path: of the first, which is that of all."""
        self._used(ranks).write(path, text)

    def _used(self, ranks: int) -> Nodes:
        """Raises NodeLost where one of all nodes is lost: a campaign does not go on with others."""
        if len(self.nodes) < len(self.names):
            raise NodeLost(self.nodes.none_left().replace("no node is left", "a node was lost"))
        return self.nodes[: 1 + max(self.nodes_of(ranks))]

    def start(
        self,
        library: ReadyLibrary,
        ranks: int,
        pus: Sequence[int] | None,
        words: Sequence[str],
        base: str,
        variables: Mapping[str, str] | None = None,
    ) -> Start:
        """What starts the ranks of a program from the first node; writes what that needs on the nodes.

        pus: of each rank, None: ranks are not bound; base: a folder of this start; variables: of its ranks alone
        """
        launcher, own = library.named.launcher, library.named.environment
        if self.launch is None:
            start = launcher.start(ranks, cores=pus, use_scheduler=False)
            words = [*start.argv, *words]
            words = launcher.command(words, variables) if variables else words
            return Start(tuple(words), {**library.named.environment, **start.environment})
        used = 1 + max(self.nodes_of(ranks))
        if pus is not None:
            self.write(ranks, f"{base}/{CPUS}", cpus_text([[pu] for pu in pus]))
            self.write(ranks, f"{base}/{SCRIPT}", rank_script(base, words[0], {}))
            words = ["sh", f"{base}/{SCRIPT}", *words[1:]]
        if variables:  # not of the launcher
            words = ["env", *(f"{name}={value}" for name, value in variables.items()), *words]
        first, names, slots = self.nodes[0], self.names[:used], self.slots[:used]
        start = start_of_ranks(words, names, slots, ranks, self.launch, (), first.place, launcher)
        # What the controller's environment sets is part of what is compared; it is not that of the nodes.
        own = {**library.named.settings(os.environ), **own}
        argv = start.argv
        if self.launch.launcher != "srun":
            write_hosts(first, names, slots, self.launch, launcher)
            passed = {name: value for name, value in own.items() if not name.startswith(_PASSED)}
            argv = tuple(launcher.command(argv, passed if launcher.family == OPEN_MPI else own))
        return Start(argv, {**own, **start.environment})

    def fetch(self, ranks: int, files: Mapping[int, Mapping[str, Path]]) -> None:
        """Copies files of ranks that do not run on the first node; one that is not there stays as it is here.

        files: by rank, of paths there the paths here
        """
        places, limit = self.nodes_of(ranks), 1 << 30
        by_node: dict[int, list[int]] = {}
        for rank, node in enumerate(places):
            if node > 0:
                by_node.setdefault(node, []).append(rank)

        def copied(node: int) -> None:
            for rank in by_node[node]:
                for there, here in files[rank].items():
                    try:
                        content = next(iter(self.nodes[node].read(there, limit).values()), b"")
                    except NodeRefused:
                        continue
                    here.write_bytes(content)

        side_by_side([lambda _stopping, node=node: copied(node) for node in by_node], self.nodes)  # type: ignore[misc]

    def read(self, ranks: int, path_of: str) -> list[str]:
        """The text of a file of each rank, empty if there is none; path_of: with {rank}."""
        texts = []
        for rank, node in enumerate(self.nodes_of(ranks)):
            try:
                content = next(iter(self.nodes[node].read(path_of.format(rank=rank), 1 << 24).values()), b"")
            except NodeRefused:
                content = b""
            texts.append(content.decode(errors="replace"))
        return texts

    def samples(self, ranks: int) -> dict[str, Sample]:
        """Samples of each machine that this many ranks use, by the first of its names there."""
        if self.is_here:  # what this process uses counts as the campaign's own
            return samples(self.nodes, self.names[:1], time.process_time())
        first: dict[str, str] = {}
        for node in self.nodes_of(ranks):
            first.setdefault(self.machines[node], self.names[node])
        return samples(self._used(ranks), list(first.values()))

    def loads(self, ranks: int, before: Mapping[str, Sample]) -> dict[str, Load]:
        """Load of each of these machines since then."""
        after, counts, loads = self.samples(ranks), self._ranks_by_machine(ranks), {}
        for name, sample in before.items():
            load = load_between(sample, after[name], int(self.facts[name]["node_cores"]))
            if not self.is_here:
                load = load.with_own(min(counts[self.machines[self.names.index(name)]], load.cores) * load.wall_s)
            loads[name] = load
        return loads

    def causes(self, loads: Mapping[str, Load]) -> tuple[str, ...]:
        """Why a start counts as disturbed."""
        return tuple(
            cause if self.is_here else f"{cause} on {name}"
            for name, load in loads.items()
            for cause in load.disturbances()
        )

    def written(self, loads: Mapping[str, Load]) -> dict[str, Any]:
        return (
            asdict(next(iter(loads.values()))) if self.is_here else {name: asdict(each) for name, each in loads.items()}
        )


def _spread(layout: Layout) -> list[int]:
    """The cores of a node, one of each socket in turn; of one socket one of each half of its cores."""
    columns = itertools.zip_longest(*layout.sockets)
    if len(layout.sockets) > 1:
        return [core for column in columns for core in column if core is not None]
    cores = [core.number for core in layout.cores]
    half = (len(cores) + 1) // 2
    return [core for pair in itertools.zip_longest(cores[:half], cores[half:]) for core in pair if core is not None]


def place_of(nodes: Nodes, launch: RankLaunch | None, per_node: int | None, slots: Mapping[str, int]) -> Place:
    """The place that these nodes make.

    launch  : None on this machine
    per_node: ranks of each node, one on each core unless given; slots: of each host, from a hostfile
    Raises InputError if the hostfile has none for a node.
    """
    layouts, facts = layouts_of(nodes), nodes.call("facts")
    if missing := [name for name in nodes.names if name not in facts or name not in layouts]:
        raise NodeLost(f"{missing[0]} is lost")
    if launch is None:
        return Place(nodes, layouts, facts)
    if slots and (unknown := [name for name in nodes.names if name not in slots]):
        raise InputError(f"the hostfile has no slots for {unknown[0]}")
    counts = tuple(slots[name] if slots else per_node or len(layouts[name].cores) for name in nodes.names)
    return Place(nodes, layouts, facts, counts, launch)


#: Words for devices, by the beginnings of their paths.
_DEVICES = {
    "/dev/infiniband/": "InfiniBand or RoCE",
    "/dev/hfi1": "Omni-Path",
    "/dev/cxi": "Slingshot",
    "/dev/kgni": "Aries",
}


def network_of(shared: Sequence[str], places: Sequence[int], machines: Sequence[str]) -> str:
    """The transports between ranks, in words, from what the probe wrote of each (transports.h).

    places: the node of each rank; machines: of each node
    A connection links the ranks at its two ends, a shared segment those of one machine that map it, a device nodes;
    what ranks share with the launcher's daemons is ignored.
    """
    ends: dict[tuple[str, str], tuple[int, str]] = {}
    memory: dict[tuple[str, str], set[int]] = {}
    devices: set[str] = set()
    for rank, text in enumerate(shared):
        for kind, *words in (line.split(",") for line in text.splitlines()):
            if kind == "tcp" and len(words) == 3:
                ends[words[1], words[2]] = rank, words[0]
            elif kind == "memory" and len(words) > 1 and "pmix" not in words[1]:
                memory.setdefault((machines[places[rank]], words[0]), set()).add(rank)
            elif kind == "device" and words:
                devices.add(next((title for start, title in _DEVICES.items() if words[0].startswith(start)), words[0]))
    #: By whether the ranks are on one node.
    found: dict[bool, set[str]] = {True: set(), False: set()}
    for (mine, theirs), (rank, interface) in ends.items():
        other, _ = ends.get((theirs, mine), (rank, ""))
        if other != rank:
            found[places[rank] == places[other]].add(f"TCP over {interface}")
    for ranks in memory.values():
        nodes = [places[rank] for rank in ranks]
        found[True] |= {"shared memory"} if len(set(nodes)) < len(nodes) else set()
        found[False] |= {"shared memory of one machine"} if len(set(nodes)) > 1 else set()
    several = len(set(places)) > 1
    found[not several] |= devices
    inside, between = (", ".join(sorted(found[same])) or UNSEEN for same in (True, False))
    if not several:
        return f"{inside}, on one machine"
    shares = len(set(places)) < len(places)
    return f"between nodes {between}" + (f"; inside a node {inside}" if shares else "")


UNSEEN = "nothing that is seen"


#: The files that a cache's size is read from (mpirun.private_cache_bytes), a line "path:text" each.
_CACHE_FILES = """
cd / && for file in sys/devices/system/cpu/cpu0/topology/thread_siblings_list sys/devices/system/cpu/cpu0/cache/index*/*
do [ ! -f "$file" ] || printf '%s:%s\\n' "$file" "$(head -n 1 "$file" 2>/dev/null)"; done
"""


class NodeFiles:
    """What the first node says of its caches, read as `SystemFiles.read_or` reads it of this machine."""

    def __init__(self, nodes: Nodes) -> None:
        lines = nodes[0].shell(_CACHE_FILES, timeout_s=60.0, check=False).only.stdout.splitlines()
        self._texts = dict(line.partition(":")[::2] for line in lines)

    def read_or(self, path: str, default: str = "") -> str:
        return self._texts.get(path, default).strip()
