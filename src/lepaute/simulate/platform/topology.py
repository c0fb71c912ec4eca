"""How the nodes are joined: a switch, a fat tree, a dragonfly, a torus, or an arbitrary graph.

Here are the fields and what can be told without building it; names of parts are checked in `simulate.topology`.
"""

import math
import re
from collections.abc import Iterator
from typing import Annotated, Final, Literal

from annotated_types import Len

from lepaute.errors import InputError
from lepaute.kit.quantities import ranges_of
from lepaute.kit.text import significant
from lepaute.simulate.platform.values import (
    MAX_CABLES,
    MAX_NODES,
    Check,
    CoreCount,
    NonNegative,
    Positive,
    Value,
    fault,
)

Name = Annotated[str, Len(1)]
#: So many characters are more than any topology of MAX_NODES nodes needs.
Parameters = Annotated[str, Len(1, 200)]
Kind = Literal["switch", "fat-tree", "dragonfly", "torus", "graph", "routes"]
Duplex = Literal["split", "shared"]

#: The fields that only some kinds have.
_OWN_FIELDS: Final = {
    "parameters": ("fat-tree", "dragonfly", "torus"),
    "cables": ("fat-tree",),
    "switches": ("graph",),
    "links": ("graph",),
    "routing": ("graph",),
    "route_links": ("routes",),
    "routes": ("routes",),
}
_NOTATIONS: Final = {
    "fat-tree": ("levels;children,...;parents,...;cables,...", "2;32,8;1,4;1,8"),
    "dragonfly": ("groups,cables;chassis,cables;routers,cables;nodes", "3,4;3,2;4,1;2"),
    "torus": ("size,size,...", "8,8,4"),
}


def numbers_between(text: str) -> tuple[int, ...]:
    """The numbers of a text such as "0-3,7": 0, 1, 2, 3, 7.  Raises a fault for any other text."""
    try:
        return tuple(number for each in ranges_of(text, "nodes") for number in each)
    except InputError:
        raise fault(f"is {text[:80]!r}; expected numbers such as 0-3,7, at most a million") from None


def _numbers(text: str) -> str:
    numbers_between(text)
    return text


class CableModel(Value):
    """A cable: `bandwidth_Bps` each way (null: that of network.node_link), and a latency on top of the network's."""

    bandwidth_Bps: Positive | None = None  # noqa: N815 - the unit
    latency_s: NonNegative | None = None


class NamedCable(CableModel):
    """Cables that differ from the others: all those of a switch, or those between two parts, such as n0-s1.0#2."""

    name: Name


class Limiters(Value):
    """What a node sends and receives together, and what passes through a switch, in all; null: no such limit."""

    node_bandwidth_Bps: Positive | None = None  # noqa: N815 - the unit
    switch_bandwidth_Bps: Positive | None = None  # noqa: N815 - the unit


class Switch(Value):
    """A switch of a graph, with one cable to each of `nodes` (numbers, such as "1-32,40")."""

    name: Name
    nodes: Annotated[str, Check(after=_numbers)] | None = None


class GraphLink(CableModel):
    """`cables` cables between two switches, or a switch and a node (n<number>), of a graph."""

    between: tuple[Name, Name]
    cables: CoreCount = 1
    duplex: Duplex | None = None


class Topology(Value):
    """How the nodes are joined; `switch`: one switch.  `levels`: cables from the nodes up, the last for all above.

    `routes`: of each two nodes, counted from 0, a row: from, to, and the places of links in `route_links`, from 0.
    """

    kind: Kind = "switch"
    parameters: Parameters | None = None
    cables: Literal["all", "first"] | None = None
    switches: tuple[Switch, ...] | None = None
    links: tuple[GraphLink, ...] | None = None
    routing: Literal["hops", "latency"] | None = None
    route_links: tuple[NamedCable, ...] | None = None
    routes: tuple[tuple[int, ...], ...] | None = None
    levels: tuple[CableModel, ...] | None = None
    duplex: Duplex | None = None
    limiters: Limiters | None = None
    changed: tuple[NamedCable, ...] | None = None
    removed: tuple[Name, ...] | None = None

    @property
    def sizes(self) -> tuple[tuple[int, ...], ...]:
        """The numbers of `parameters`, a tuple for each of its parts between semicolons; empty if it has none."""
        if self.parameters is None:
            return ()
        return tuple(tuple(map(int, part.split(","))) for part in self.parameters.split(";"))

    @property
    def node_count(self) -> int | None:
        """The number of nodes that the parameters say; None for kinds of any number."""
        sizes = self.sizes
        if self.kind == "fat-tree":
            return math.prod(sizes[1])
        if self.kind == "dragonfly":
            return math.prod(part[0] for part in sizes)
        return math.prod(sizes[0]) if self.kind == "torus" else None

    @property
    def is_switch(self) -> bool:
        return self.kind == "switch"

    def __post_init__(self) -> None:
        for field, kinds in _OWN_FIELDS.items():
            if getattr(self, field) is not None and self.kind not in kinds:
                problem = f"is not a field of a {self.kind}; it belongs to a {' or '.join(kinds)}"
                raise fault(problem, field, remedy="Remove it.")
        if self.kind in _NOTATIONS:
            _check_parameters(self.kind, self.parameters)
            nodes, switches, cables = self.node_count or 0, sum(switch_counts(self)), _cable_bound(self)
            if nodes > MAX_NODES or switches > MAX_NODES or cables > MAX_CABLES:
                of = f"of more than {MAX_NODES} nodes or switches, or of more than {MAX_CABLES} cables"
                raise fault(f"is {self.parameters!r}, a {self.kind} {of}", "parameters")
        if self.kind == "graph" and not self.switches and not self.links:
            raise fault("is missing; a graph needs switches, links, or both", "links", remedy="Add them.")


#: One switch with a cable to each node.
SWITCH = Topology.model_construct(kind="switch")


def _check_parameters(kind: Kind, parameters: str | None) -> None:
    form, example = _NOTATIONS[kind]
    expected = f"a {kind} is written {form}, such as {example}"
    if parameters is None:
        raise fault(f"is missing; {expected}", "parameters", remedy="Add it.")
    if not re.fullmatch(r"[1-9]\d{0,8}([,;][1-9]\d{0,8})*", parameters):
        raise fault(f"is {parameters!r}; {expected}", "parameters")
    sizes = [[int(number) for number in part.split(",")] for part in parameters.split(";")]
    lengths = [len(part) for part in sizes]
    if kind == "fat-tree" and lengths != [1, *[sizes[0][0]] * 3]:
        raise fault(f"is {parameters!r}; {expected}, with as many numbers in each part as levels", "parameters")
    if (kind == "dragonfly" and lengths != [2, 2, 2, 1]) or (kind == "torus" and len(lengths) != 1):
        raise fault(f"is {parameters!r}; {expected}", "parameters")
    if kind == "dragonfly" and (groups := sizes[0][0]) > (routers := sizes[1][0] * sizes[2][0]):
        problem = f"has {groups} groups of {routers} routers; a group needs at least one router per group"
        raise fault(problem, "parameters")


def _cable_bound(topology: Topology) -> int:
    """At least the number of cables, found without building them."""
    sizes = topology.sizes
    if topology.kind == "fat-tree":
        _, _, up, cables = sizes
        below = (topology.node_count or 0, *switch_counts(topology))
        return sum(count * parents * each for count, parents, each in zip(below, up, cables, strict=False))
    if topology.kind == "dragonfly":
        (groups, between), (chassis, black), (routers, green), (nodes,) = sizes
        return groups * (groups * between + chassis * routers * (nodes + chassis * black + routers * green))
    return len(sizes[0]) * (topology.node_count or 0)


def switch_counts(topology: Topology) -> tuple[int, ...]:
    """Number of switches, from the nodes up: a number a level of a fat tree, else one."""
    sizes = topology.sizes
    if topology.kind == "fat-tree":
        _, down, up, _ = sizes
        return tuple(math.prod(up[: level + 1]) * math.prod(down[level + 1 :]) for level in range(len(down)))
    if topology.kind == "dragonfly":
        return (math.prod(part[0] for part in sizes[:3]),)
    return {"switch": (1,), "torus": (0,)}.get(topology.kind, (len(topology.switches or ()),))


def topology_lines(topology: Topology) -> Iterator[str]:
    """Description of the topology, in lines for a person."""
    switches = " + ".join(map(str, switch_counts(topology)))
    parameters = "" if topology.parameters is None else f" {topology.parameters}"
    if topology.kind == "switch":
        yield "a single switch"
    elif topology.kind == "torus":
        yield f"torus{parameters}: every node is a router"
    elif topology.kind == "routes":
        yield f"{len(topology.routes or ())} routes over {len(topology.route_links or ())} links"
    else:
        yield f"{topology.kind}{parameters}: {switches} switches"
    if topology.cables == "first":
        yield "only the first of parallel cables is used"
    if topology.duplex == "shared":
        yield "both directions share the bandwidth of a cable"
    for number, level in enumerate(topology.levels or ()):
        if details := _cable(level):
            yield f"level {number}: {details}"
    for what in ("node", "switch"):
        if (limit := getattr(topology.limiters, f"{what}_bandwidth_Bps", None)) is not None:
            yield f"a {what} passes {significant(limit / 1e9, 4)} GB/s in all"
    for changed in topology.changed or ():
        yield f"{changed.name}: {_cable(changed)}"
    if topology.removed:
        yield f"removed: {', '.join(topology.removed)}"


def _cable(cable: CableModel) -> str:
    details = [] if cable.bandwidth_Bps is None else [f"{significant(cable.bandwidth_Bps / 1e9, 4)} GB/s"]
    if cable.latency_s is not None:
        details.append(f"{significant(cable.latency_s * 1e6, 4)} µs extra latency")
    return ", ".join(details)
