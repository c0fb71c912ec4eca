"""Which core of the machine each rank sits on, and the files that say so: hostfiles (Open MPI, MPICH, or a host a line)
and rankfiles (Open MPI)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from lepaute.errors import InputError
from lepaute.kit.documents import read_bytes
from lepaute.kit.hostfiles import IPV6, HostLines
from lepaute.kit.later import later
from lepaute.kit.numbers import path_of, whole
from lepaute.kit.text import counted, ranks_text
from lepaute.simulate.platform.nodes import cores_text, names_text, node_in_group

if TYPE_CHECKING:
    from lepaute.simulate.platform import schema
    from lepaute.simulate.platform.nodes import Nodes
else:
    schema = later("lepaute.simulate.platform.schema")

MASK = 2**64 - 1
MappingKind = Literal["sequential", "random", "rankfile"]
#: Most ranks of a simulation: each takes some hundred bytes before the first event.
MAX_RANKS = 1 << 22


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for one rank: the first of its cores on a node (index of the node, not its number)."""

    node: int
    core: int


@dataclass(frozen=True, slots=True)
class Mapping:
    """How ranks are laid on slots.

    kind : "sequential" takes the slots in their order, "random" as drawn from `seed`, "rankfile" as that has it
    slots : in the order of a hostfile or of the ranks of a rankfile; None for all slots of the platform, node by node
    """

    kind: MappingKind = "sequential"
    seed: int = 1
    slots: tuple[Slot, ...] | None = None
    source: str | None = None

    def __post_init__(self) -> None:
        kinds = get_args(MappingKind)
        if self.kind not in kinds:
            raise InputError(f"the mapping is {self.kind!r:.80}; it must be one of {', '.join(kinds)}")
        object.__setattr__(self, "seed", whole(self.seed, "the seed of the mapping", 0, MASK + 1, "0 to 2^64 - 1"))

    def cores(self, platform: "schema.Platform", ranks: int, threads: int = 1) -> list[int]:
        """Global core (node index * cores per node + core) of each rank, the first of its `threads` cores.

        Raises InputError when there are fewer slots than ranks.
        """
        if ranks > MAX_RANKS:
            raise InputError(f"{ranks} ranks are asked for; at most {MAX_RANKS} are simulated: take a smaller grid")
        slots = platform_slots(platform, ranks, threads) if self.slots is None else list(self.slots)
        if ranks > len(slots):
            source = self.source or "the hostfile"
            raise InputError(
                f"{source} has {len(slots)} slots, too few for {ranks} ranks; add hosts or take a smaller grid"
            )
        if self.kind == "random":
            slots = permuted(slots, self.seed)
        return [slot.node * platform.nodes.cores + slot.core for slot in slots[:ranks]]

    def to_dict(self, platform: "schema.Platform", ranks: int, threads: int) -> dict[str, Any]:
        """What repeats the mapping, as a prediction's parameters show it.

        `mapping_slots` (where a file gave them) are nodes and first cores, rank by rank: "1:0-31 2:0-31".
        """
        recorded: dict[str, Any] = {
            "mapping": self.kind if self.kind != "sequential" or self.slots is None else "hostfile"
        }
        if self.kind == "random":
            recorded["mapping_seed"] = self.seed
        if self.slots is not None:
            recorded["mapping_slots"] = _abbreviated(self.cores(platform, ranks, threads), platform)
        return recorded


def platform_slots(platform: "schema.Platform", ranks: int, threads: int = 1) -> list[Slot]:
    """The slots of the nodes that `ranks` ranks of `threads` threads fill, node by node; all slots of each such node.

    Raises InputError when the machine has fewer cores than ranks * threads needs.
    """
    room = [(part.nodes.count, part.nodes.cores // threads) for part in platform.parts]
    if ranks > sum(count * slots for count, slots in room):
        of_threads, fewer = (f" of {threads} threads", " or --threads-per-rank") if threads > 1 else ("", "")
        raise InputError(
            f"{ranks_text(ranks)}{of_threads} do not fit on platform {platform.name}, which has "
            f"{cores_text(platform)}; take fewer ranks{fewer}, another platform or "
            f"--set {'nodes.count' if platform.groups is None else f'groups.{platform.groups[0].name}.nodes'}=N"
        )
    slots: list[Slot] = []
    node = 0
    for count, per_node in room:
        filled = min(count, -(-(ranks - len(slots)) // per_node)) if per_node else 0
        slots += [Slot(node + at, slot * threads) for at in range(filled) for slot in range(per_node)]
        node += count
    return slots


def permuted(slots: list[Slot], seed: int) -> list[Slot]:
    """`slots` in an order drawn from `seed`, every order equally likely.

    The shuffle of Fisher and Yates over the SplitMix64 generator: ours, since those of the standard library may change
    between versions of Python, and a prediction repeats.
    """
    order = list(slots)
    draws = _splitmix64(seed)
    for last in range(len(order) - 1, 0, -1):
        limit = 2**64 - 2**64 % (last + 1)  # draws from there on would favour the first places
        chosen = next(draw for draw in draws if draw < limit) % (last + 1)
        order[last], order[chosen] = order[chosen], order[last]
    return order


def _splitmix64(state: int) -> Iterator[int]:
    """Whole numbers below 2^64, by the generator of that name (Steele, Lea and Flood, 2014)."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        draw = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        draw = ((draw ^ (draw >> 27)) * 0x94D049BB133111EB) & MASK
        yield draw ^ (draw >> 31)


def _abbreviated(cores: list[int], platform: "schema.Platform") -> str:
    """Global cores as "node number:cores", runs of successive cores of a node joined: "1:0-31 2:0-31"."""
    nodes = platform.nodes
    runs: list[list[int]] = []
    for core in cores:
        if runs and core == runs[-1][1] + 1 and core % nodes.cores:
            runs[-1][1] = core
        else:
            runs.append([core, core])
    words = []
    for first, last in runs:
        node, core = divmod(first, nodes.cores)
        span = f"{core}" if first == last else f"{core}-{last % nodes.cores}"
        words.append(f"{node + nodes.first_number}:{span}")
    return " ".join(words)


RANK_LINE = re.compile(r"rank\s+(?P<rank>[0-9]+)\s*=\s*(?P<host>\S{1,255})\s+slots?\s*=\s*(?P<cores>\S{1,1000})")
CORES = re.compile(r"(?:(?P<cpu>[0-9]+):)?(?:(?P<first>[0-9]+)(?:-(?P<last>[0-9]+))?|(?P<all>\*))")
TRAILING_NUMBER = re.compile(r"([0-9]+)$")
ADDRESS = re.compile(rf"[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+|{IPV6}")
#: Which node of the platform a host is: the one of the number at the end of its name, or one after the other.
BY_NUMBER, IN_ORDER = "by-number", "in-order"


def read_hostfile(
    path: str | Path, platform: "schema.Platform", threads: int = 1, *, seed: int | None = None, hosts: str = BY_NUMBER
) -> Mapping:
    """Ranks on the slots of the hostfile, in the order of its lines, or at random where a seed is given."""
    path = path_of(path, "the hostfile")
    text = read_bytes(path, "a hostfile").decode(errors="replace")
    slots = hostfile_slots(text, path.name, platform, threads, hosts=hosts)
    if seed is not None:
        return Mapping("random", seed, slots, path.name)
    return Mapping(slots=slots, source=path.name)


def read_rankfile(
    path: str | Path, platform: "schema.Platform", threads: int = 1, *, hosts: str = BY_NUMBER
) -> Mapping:
    path = path_of(path, "the rankfile")
    text = read_bytes(path, "a rankfile").decode(errors="replace")
    return Mapping("rankfile", slots=rankfile_slots(text, path.name, platform, threads, hosts=hosts), source=path.name)


def hostfile_slots(
    text: str, name: str, platform: "schema.Platform", threads: int = 1, *, hosts: str = BY_NUMBER
) -> tuple[Slot, ...]:
    """The slots of a hostfile in the order of its lines; a host that comes again goes on where it had stopped.

    hosts: which node each host is, BY_NUMBER or IN_ORDER
    Lines are as of `HostLines.hosts_and_slots`.
    Raises InputError, naming the line, for hosts that the platform does not have and for more slots than cores.
    """
    file = _File(text, name, platform, hosts)
    used: dict[int, int] = {}
    slots: list[Slot] = []
    for line in file.lines():
        names, count = file.hosts_and_slots(line)
        for host in names:
            node = file.node(host)
            first = used.get(node, 0)
            used[node] = first + count
            per_node = platform.node(node).cores // threads
            if used[node] > per_node:
                file.refuse(
                    f"host {host} has now {used[node]} slots, and a node of platform {platform.name} takes "
                    f"{per_node} ranks of {threads} threads; ranks that share a core are not simulated"
                )
            if len(slots) + count > MAX_RANKS:
                file.refuse(f"there are more than {MAX_RANKS} slots up to here; so many ranks are not simulated")
            slots += [Slot(node, slot * threads) for slot in range(first, used[node])]
    if not slots:
        raise InputError(f"{name}: names no host; write one a line, as host slots=N")
    return tuple(slots)


def rankfile_slots(
    text: str, name: str, platform: "schema.Platform", threads: int = 1, *, hosts: str = BY_NUMBER
) -> tuple[Slot, ...]:
    """The slot of each rank, from lines such as `rank 0=host slot=0:1` (cpu and core) or `slot=3` (core of the node).

    A rank may be given several cores (`slot=0-3`, `0:1,2`, `0:*`): it takes the first free ones, as many as it has
    threads; given one core only, it takes that and those behind it.
    Raises InputError, naming the line, for what the platform does not have, and for ranks or cores given twice.
    """
    file = _File(text, name, platform, hosts)
    taken: dict[tuple[int, int], int] = {}
    slots: dict[int, Slot] = {}
    for line in file.lines():
        match = RANK_LINE.fullmatch(line)
        if match is None:
            file.refuse(f"{line[:80]!r} is no line of a rankfile; write such as rank 0=host slot=0:1")
        rank = file.count(match["rank"], "the rank", high=MAX_RANKS)
        if rank in slots:
            file.refuse(f"rank {rank} is given a second place; remove one of its lines")
        if len(names := file.hosts(match["host"])) > 1:
            file.refuse(f"rank {rank} is given {counted(len(names), 'host')}; give one")
        node = file.node(names[0])
        cores = _cores(match["cores"], file, platform.node(node))
        if len(cores) == 1 and threads > 1:
            cores = list(range(cores[0], min(cores[0] + threads, platform.node(node).cores)))
        free = [core for core in cores if (node, core) not in taken][:threads]
        if len(free) < threads:
            holders = sorted({taken[node, core] for core in cores if (node, core) in taken})
            held = f", rank {holders[0]} has it" if holders else ""
            file.refuse(
                f"rank {rank} needs {counted(threads, 'core')} and finds {len(free)} free{held}; "
                "ranks that share a core are not simulated"
            )
        taken |= {(node, core): rank for core in free}
        slots[rank] = Slot(node, free[0])
    if not slots:
        raise InputError(f"{name}: places no rank; write lines such as rank 0=host slot=0:1")
    missing = next((rank for rank in range(len(slots)) if rank not in slots), None)
    if missing is not None:
        raise InputError(
            f"{name}: has no line for rank {missing}, but one for rank {max(slots)}; add the missing ranks"
        )
    return tuple(slots[rank] for rank in range(len(slots)))


def _cores(text: str, file: "_File", nodes: "Nodes") -> list[int]:
    """Cores of a node that a slot list names: `3`, `0-3`, `0:1`, `0:1,2`, `1:*`; a cpu holds until the next one."""
    platform = file.platform
    cpu: int | None = None
    cores: list[int] = []
    for item in text.split(","):
        match = CORES.fullmatch(item)
        if match is None:
            file.refuse(f"slot={text[:80]} is no list of cores; write such as 3, 0-3, 0:1 or 0:1,2")
        if match["cpu"] is not None:
            cpu = file.count(match["cpu"], "the cpu")
        known = [core for core in range(nodes.cores) if cpu is None or nodes.cpu_of_core(core) == cpu]
        if not known:
            file.refuse(f"slot={text}: there is no cpu {cpu}; a node of {platform.name} has {nodes.cpus}")
        first, last = 0, len(known) - 1
        if not match["all"]:
            first, last = (file.count(each, "the core") for each in (match["first"], match["last"] or match["first"]))
        if last >= len(known) or last < first:
            where = f"a node of {platform.name}" if cpu is None else f"its cpu {cpu}"
            file.refuse(f"slot={text}: {where} has cores 0 to {len(known) - 1}")
        cores += known[first : last + 1]
    return cores


class _File(HostLines):
    """A file of hosts that is read line by line, and its hosts as nodes of a platform: by the number at the end of the
    name, or in the order of the file."""

    def __init__(self, text: str, name: str, platform: "schema.Platform", hosts: str) -> None:
        super().__init__(text, name)
        self.platform = platform
        self._hosts = hosts
        self._name_of: dict[int, str] = {}
        self._in_order: dict[str, int] = {}

    def node(self, host: str) -> int:
        """The index of the node; raises InputError for a host the platform does not have, and for two that are one."""
        host = host.rpartition("@")[2]
        is_address = ADDRESS.fullmatch(host) is not None
        short = host if is_address else host.partition(".")[0]
        name, nodes = self.platform.name, self.platform.nodes
        if self._hosts == IN_ORDER:
            index = self._in_order.setdefault(short, len(self._in_order))
            if index >= nodes.count:
                self.refuse(f"{short} is host {index + 1}, and platform {name} has {counted(nodes.count, 'node')}")
            return index
        match = TRAILING_NUMBER.search(short)
        index = int(match[1]) - nodes.first_number if match else 0
        if match and self.platform.groups is not None:
            index = node_in_group(self.platform, short[: match.start()], int(match[1]), index)
        problem = ""
        if is_address:
            problem = f"{host} is an address, and a name that ends in the number of its node is needed"
        elif match is None and nodes.count > 1:
            problem = f"host {host} has no number at its end, so it is no node of {name}"
        elif not 0 <= index < nodes.count:
            problem = f"host {host} is no node of platform {name}, whose nodes {names_text(self.platform)}"
        elif self._name_of.setdefault(index, short) != short:
            problem = f"hosts {self._name_of[index]} and {host} are both node {match and match[1]}"
        if problem:
            self.refuse(f"{problem}; --map-hosts in-order takes hosts as nodes in the order of the file")
        return index
