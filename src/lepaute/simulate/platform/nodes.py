"""The nodes of a platform: what each is, and groups of nodes that differ.

A group says what is special about its nodes; all else is as the platform says. `parts_of` gives the platform of like
nodes that a group is, so that what reads a platform of like nodes reads each of them.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any, Literal

from annotated_types import Ge, Le, Len

from lepaute.errors import InputError
from lepaute.simulate.platform.kernel_model import KernelModel, PerCpu
from lepaute.simulate.platform.topology import SWITCH, CableModel, Topology
from lepaute.simulate.platform.values import (
    MAX_CORES,
    Check,
    CoreCount,
    Count,
    NodeCount,
    NonNegative,
    Positive,
    Value,
    fault,
)

if TYPE_CHECKING:
    from lepaute.simulate.platform.schema import Platform

#: Of one platform.
MAX_GROUPS = 1000
#: In a message.
_MAX_NAMED = 6
#: Topologies in which the link of a node is not a cable of its own.
_WITHOUT_CABLE = {"torus": "a node is joined by a cable to each neighbour", "routes": "route_links has the links"}


class Nodes(Value):
    """The nodes: `count` of them, numbered from `first_number`, each with `cores` cores on `cpus` CPUs.

    A cpu is what models tell apart: a core, a processor, or the node. `sockets`: processors whose cores share caches,
    memory and power; null where that is the whole node. CPUs of a socket are numbered consecutively.
    `memory_bandwidth_Bps`, `core_memory_bandwidth_Bps`: of STREAM's triad on all cores at once, and on one core alone.
    `cpu_model`: the processor, as the kernel of the nodes calls it; null: not known.
    Where there are groups, what is said here holds for those that do not say otherwise, and no group has more cores,
    CPUs or sockets.
    """

    count: NodeCount
    first_number: Annotated[int, Ge(0), Le(2**31)] = 0
    cores: CoreCount
    cpus: CoreCount = 1
    core_to_cpu: Literal["modulo", "block"] = "modulo"
    sockets: CoreCount | None = None
    memory_bytes: Count | None = None
    memory_bandwidth_Bps: Positive | None = None  # noqa: N815 - the unit
    core_memory_bandwidth_Bps: Positive | None = None  # noqa: N815
    peak_flops_per_core: Positive | None = None
    cpu_model: Annotated[str, Len(1, 200)] | None = None

    def cpu_of_core(self, core: int) -> int:
        """The cpu, 0 to cpus - 1, that holds `core`."""
        return core % self.cpus if self.core_to_cpu == "modulo" else core // (self.cores // self.cpus)

    def socket_of_cpu(self, cpu: int) -> int:
        """The socket, 0 to sockets - 1, of a cpu; the first one where CPUs are not of one socket."""
        return cpu // max(1, self.cpus // (self.sockets or 1)) if self.cpus > 1 else 0

    def __post_init__(self) -> None:
        if self.count * self.cores > MAX_CORES:
            raise fault(f"is {self.cores}; {self.count} nodes have at most {MAX_CORES} cores together", "cores")
        _check_divisible(self)


def _check_divisible(nodes: Nodes, *at: str | int) -> None:
    sockets, cpus = nodes.sockets or 1, nodes.cpus if nodes.cpus > 1 else 0
    for field, parts, what, total in (
        ("cpus", nodes.cpus, "cores", nodes.cores),
        ("sockets", sockets, "cores", nodes.cores),
        ("sockets", sockets, "CPUs", cpus),
    ):
        if total % parts:
            raise fault(f"is {parts}; {total} {what} cannot be divided evenly among them", *at, field)


class Power(Value):
    """Electric power that one node draws: all cores idle, all computing, all communicating (waiting included).

    In between it is linear in the number of cores that do each.
    """

    idle_W: NonNegative  # noqa: N815 - the unit
    computing_W: NonNegative  # noqa: N815 - the unit
    communicating_W: NonNegative  # noqa: N815 - the unit

    def __post_init__(self) -> None:
        for name in ("computing_W", "communicating_W"):
            if getattr(self, name) < self.idle_W:
                problem = f"is {getattr(self, name):g}; a busy node draws no less power than an idle one"
                raise fault(f"{problem} ({self.idle_W:g} W)", name)

    def energy_j(
        self, cores: int, *, time_s: float, nodes: int, computing_core_s: float, communicating_core_s: float
    ) -> float:
        """Joules that `nodes` nodes of this many cores draw in `time_s` seconds, of which their cores spend the given
        core-seconds busy. Being linear in busy cores, only the totals matter."""
        computing_W, communicating_W = (
            (busy - self.idle_W) / cores for busy in (self.computing_W, self.communicating_W)
        )
        return nodes * self.idle_W * time_s + computing_W * computing_core_s + communicating_W * communicating_core_s


class NodeGroup(Value):
    """Like nodes of a platform whose nodes differ; what is null is as the platform says.

    `name`: a hostfile names its nodes by it and their number, such as old-3;  `nodes`: how many there are
    `first_number`: of its first node, in names and in per_cpu tables of its kernels; null: nodes.first_number
    `speed`: of the platform's kernels here, times this: 1.5 takes two thirds of the time
    `kernels`: models of the kernels that have others here, in the place of the platform's, which must have one
    `link`: of a node to the network: at most as wide as network.node_link; `latency_s` is added to that of messages
    `power`: of a node here
    """

    name: Annotated[str, Check(pattern=r"^[A-Za-z]([A-Za-z0-9._-]*[A-Za-z])?$"), Len(1, 60)]
    nodes: NodeCount
    first_number: Annotated[int, Ge(0), Le(2**31)] | None = None
    cores: CoreCount | None = None
    cpus: CoreCount | None = None
    core_to_cpu: Literal["modulo", "block"] | None = None
    sockets: CoreCount | None = None
    memory_bytes: Count | None = None
    memory_bandwidth_Bps: Positive | None = None  # noqa: N815 - the unit
    core_memory_bandwidth_Bps: Positive | None = None  # noqa: N815
    peak_flops_per_core: Positive | None = None
    cpu_model: Annotated[str, Len(1, 200)] | None = None
    speed: Positive | None = None
    kernels: tuple[KernelModel, ...] | None = None
    link: CableModel | None = None
    power: Power | None = None

    def nodes_of(self, platform: "Platform", first_number: int) -> Nodes:
        """Its nodes; first_number : of the first, among all of the platform."""
        names = {field.name for field in fields(Nodes)} & {field.name for field in fields(self)} - {"first_number"}
        special = {name: value for name in names if (value := getattr(self, name)) is not None}
        return platform.nodes.model_copy(update=special | {"count": self.nodes, "first_number": first_number})


def parts_of(platform: "Platform") -> "tuple[Platform, ...]":
    """A platform for each group, of like nodes at one switch under the numbers that they have in `platform`."""
    if platform.groups is None:
        return (platform,)
    parts = []
    first = platform.nodes.first_number
    for group in platform.groups:
        numbers = range(first, first + group.nodes)
        special = {(model.kernel, model.threads): model for model in group.kernels or ()}
        shift = first - first_of(group, platform)
        kernels = tuple(
            _numbered(special[key], numbers, shift)
            if (key := (model.kernel, model.threads)) in special
            else _numbered(_at_speed(model, group.speed), numbers, 0)
            for model in platform.kernels
        )
        part = {
            "nodes": group.nodes_of(platform, first),
            "kernels": kernels,
            "power": group.power or platform.power,
            "topology": SWITCH,
            "groups": None,
        }
        parts.append(platform.model_copy(update=part))
        first += group.nodes
    return tuple(parts)


def first_of(group: NodeGroup, platform: "Platform") -> int:
    """The number of its first node within the group."""
    return platform.nodes.first_number if group.first_number is None else group.first_number


def node_in_group(platform: "Platform", prefix: str, number: int, index: int) -> int:
    """The index of the node of a host called `prefix` and `number`: of the group of that name, with or without a dash
    before the number; `index` where no group has it, -1 where that group has no such number."""
    before = 0
    for group in platform.groups or ():
        if prefix in (group.name, f"{group.name}-"):
            inside = number - first_of(group, platform)
            return before + inside if 0 <= inside < group.nodes else -1
        before += group.nodes
    return index


def names_text(platform: "Platform") -> str:
    """What follows "nodes": have the numbers 1 to 4, or are old-1 to old-2 and new-1 to new-2."""
    if platform.groups is None:
        nodes = platform.nodes
        return f"have the numbers {nodes.first_number} to {nodes.first_number + nodes.count - 1}"
    spans = []
    for group in platform.groups[:_MAX_NAMED]:
        first = first_of(group, platform)
        spans.append(f"{group.name}-{first}" + (f" to {group.name}-{first + group.nodes - 1}" * (group.nodes > 1)))
    return f"are {', '.join(spans)}" + (" and others" if len(platform.groups) > _MAX_NAMED else "")


def cores_text(platform: "Platform") -> str:
    """Such as 4 x 8 cores; of groups, each of them."""
    sizes = [f"{part.nodes.count} x {part.nodes.cores}" for part in platform.parts]
    return f"{' + '.join(sizes[:_MAX_NAMED])}{' + …' if len(sizes) > _MAX_NAMED else ''} cores"


def with_links(platform: "Platform") -> "Platform":
    """`platform` whose topology says what links of groups are, as changed cables of nodes; the groups do no longer."""
    groups, first, cables = [], platform.nodes.first_number, list[dict[str, Any]]()
    for group in platform.groups or ():
        if group.link is not None:
            values = group.link.model_dump(exclude_none=True)
            cables += [{"name": f"n{first + node}", **values} for node in range(group.nodes)]
        groups.append(group.model_copy(update={"link": None}))
        first += group.nodes
    if not cables:
        return platform
    topology = platform.topology.model_dump()
    topology["changed"] = [*cables, *(topology["changed"] or ())]  # what the file says of single cables comes last
    changed = {"topology": Topology.model_validate(topology), "groups": tuple(groups)}
    return platform.model_copy(update=changed).variant_of(platform)


def _numbered(model: KernelModel, numbers: range, shift: int) -> KernelModel:
    """`model` with the rows of its tables that are of these nodes, their numbers shifted."""
    if all(piece.per_cpu is None for piece in model.pieces):
        return model
    pieces = []
    for piece in model.pieces:
        table = piece.per_cpu
        if table is not None:
            rows = tuple((row[0] + shift, *row[1:]) for row in table.rows if row[0] + shift in numbers)
            table = table.model_copy(update={"rows": rows}) if rows else None
        pieces.append(piece.model_copy(update={"per_cpu": table}))
    return model.model_copy(update={"pieces": tuple(pieces)})


def _at_speed(model: KernelModel, speed: float | None) -> KernelModel:
    if speed is None or speed == 1.0:
        return model
    return model.model_copy(update={"pieces": tuple(piece.lengthened(1.0 / speed) for piece in model.pieces)})


def scaled_links(groups: "tuple[NodeGroup, ...] | None", field: str, factor: float) -> "tuple[NodeGroup, ...] | None":
    """The groups whose links have `factor` times the bandwidth_Bps or latency_s, where they have one of their own."""

    def scaled(group: NodeGroup) -> NodeGroup:
        if group.link is None or getattr(group.link, field) is None:
            return group
        link = group.link.model_copy(update={field: getattr(group.link, field) * factor})
        return group.model_copy(update={"link": link})

    return groups and tuple(map(scaled, groups))


def total_of(platform: "Platform", indices: Collection[int], field: str) -> float | None:
    """The sum of a field of Nodes over nodes, by index, each as often as it is given; None if one is not known."""
    if platform.groups is None:
        value = getattr(platform.nodes, field)
        return None if value is None else value * len(indices)
    values = [getattr(platform.node(index), field) for index in indices]
    return None if None in values else sum(values)


def most_ranks(platform: "Platform", threads: int) -> int:
    """As many ranks of so many threads as fit."""
    return sum(part.nodes.count * (part.nodes.cores // threads) for part in platform.parts)


def check_same_memory(platform: "Platform", what: str) -> None:
    """Raises InputError, in the name of what knows one kind of memory, where nodes share it in different ways."""
    known = ("cores", "memory_bandwidth_Bps", "core_memory_bandwidth_Bps")
    if len({tuple(getattr(part.nodes, field) for field in known) for part in platform.parts}) > 1:
        raise InputError(
            f"platform {platform.name} has groups of nodes whose cores share memory in different ways, for which there "
            f"is no {what}; take a platform of like nodes"
        )


def fullest_nodes(platform: "Platform", ranks: int, threads: int) -> Iterator[tuple[int, int]]:
    """Ranks of the fullest node of each group that ranks reach, one node after the other, and the memory of a node."""
    for part in platform.parts:
        per_node = max(1, part.nodes.cores // threads)
        if ranks > 0 and part.nodes.memory_bytes is not None:
            yield min(ranks, per_node), part.nodes.memory_bytes
        ranks -= per_node * part.nodes.count


def refuse_groups(platform: "Platform", what: str) -> None:
    """Raises InputError for a platform with groups, in the name of what knows only like nodes."""
    if platform.groups is not None:
        raise InputError(
            f"platform {platform.name} has groups of nodes that differ, for which there are no {what}; take a platform "
            "of like nodes"
        )


def check_groups(platform: "Platform") -> None:
    """Raises the fault of groups that do not fit together, or to what the platform says."""
    if platform.groups is None:
        return
    nodes, topology, names = platform.nodes, platform.topology, set[str]()
    if (total := sum(group.nodes for group in platform.groups)) != nodes.count:
        problem = f"have {total} nodes in all; nodes.count is {nodes.count}"
        raise fault(problem, "groups", remedy="Make them equal.")
    if platform.population is not None:
        problem = "is of nodes that are alike, and there are groups"
        raise fault(problem, "population", remedy="Remove one of the two.")
    for position, group in enumerate(platform.groups):
        at = ("groups", position)
        if group.name in names:
            raise fault(f"is {group.name}, as that of another group", *at, "name")
        names.add(group.name)
        for field in ("cores", "cpus", "sockets"):
            most, value = getattr(nodes, field) or 1, getattr(group, field) or 1
            if value > most:
                problem = f"is {value}; nodes.{field}, the most of any node, is {most}"
                raise fault(problem, *at, field, remedy=f"Raise nodes.{field}, and give the others theirs.")
        part = group.nodes_of(platform, first_of(group, platform))
        _check_divisible(part, *at)
        check_models(group.kernels or (), part, *at, "kernels")
        known = {(model.kernel, model.threads) for model in platform.kernels}
        for number, model in enumerate(group.kernels or ()):
            if (model.kernel, model.threads) not in known:
                problem = f"is a model of {model.kernel} for {model.threads} threads, which other nodes have none for"
                raise fault(problem, *at, "kernels", number, remedy="Give the platform's kernels one, too.")
        if group.link is not None and (where := topology.kind) in _WITHOUT_CABLE:
            problem = f"is of a cable to each node; in topology {where} {_WITHOUT_CABLE[where]}"
            raise fault(problem, *at, "link", remedy="Say it in topology.")
        width, link_Bps = platform.network.node_link.bandwidth_Bps, group.link and group.link.bandwidth_Bps
        if link_Bps and link_Bps > width:
            problem = f"is {link_Bps:g}; network is that of the widest links, and its node_link has {width:g}"
            raise fault(problem, *at, "link", "bandwidth_Bps", remedy="Describe the network of the widest links.")


def check_models(models: Sequence[KernelModel], nodes: Nodes, *at: str | int) -> None:
    """Raises the fault of two models of one kernel, and of rows of nodes and CPUs that are not there."""
    seen = set()
    for position, model in enumerate(models):
        if (key := (model.kernel, model.threads)) in seen:
            problem = f"is a second model of {model.kernel} for {model.threads} threads"
            raise fault(problem, *at, position, remedy="Remove one.")
        seen.add(key)
        for number, piece in enumerate(model.pieces):
            if piece.per_cpu is not None:
                _check_rows_exist(piece.per_cpu, nodes, *at, position, "pieces", number, "per_cpu")


def _check_rows_exist(table: PerCpu, nodes: Nodes, *at: str | int) -> None:
    numbers = range(nodes.first_number, nodes.first_number + nodes.count)
    unit, units = table.columns[1], nodes.cpus
    if table.by_socket:
        units = nodes.sockets or 1
        if nodes.cpus % units:
            raise fault("are of sockets, which share a cpu here", *at, "columns", remedy="Give nodes.cpus that differ.")
    for position, (node, number, *_) in enumerate(table.rows):
        if node not in numbers or number not in range(units):
            names = f"{unit}s" if table.by_socket else "CPUs"
            valid = f"valid are nodes {numbers[0]} to {numbers[-1]} with {names} 0 to {units - 1}"
            what = f"is for node {node:g}, {unit} {number:g}; {valid}"
            raise fault(what, *at, "rows", position, remedy="Correct the row.")
