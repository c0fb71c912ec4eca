"""Machines of the question capacity: their nodes, alike or of several groups, what they cost and what they set."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import fsum
from typing import TYPE_CHECKING, Any

from lepaute.errors import InputError
from lepaute.simulate.platform.values import MAX_CORES
from lepaute.study.ready import grid_text

if TYPE_CHECKING:
    from lepaute.study.capacity import Part
    from lepaute.study.fields import NodeNumbers

NODE = "node"


@dataclass(frozen=True, slots=True)
class PricedMachine:
    """Parts put together; fields: what it sets."""

    name: str
    price: float
    watts: float
    fields: Mapping[str, Any]


def choices_of(
    parts: "Mapping[str, Part]", kinds: Mapping[str, Sequence[str]], nodes: "NodeNumbers"
) -> Iterator[tuple[str, ...]]:
    """Names of the parts of each machine: one of each kind; nodes of each group, in the order of `nodes`, first.

    Raises InputError for a group without a part, and where all nodes are alike and parts are of groups only.
    """
    groups: list[str | None] = [*nodes] if isinstance(nodes, Mapping) else [None]
    places = [[name for name in kinds[NODE] if parts[name].group == group] for group in groups]
    for group, names in zip(groups, places, strict=True):
        if not names:
            of = "without a group" if group is None else f"with group: {group}"
            raise InputError(f"no part of the kind {NODE} is {of}, for capacity.nodes {nodes}; add one")
    yield from product(*places, *(names for kind, names in kinds.items() if kind != NODE))


def machine_of(parts: "Mapping[str, Part]", names: Sequence[str], nodes: "NodeNumbers") -> PricedMachine:
    """The machine of these parts; nodes : how many, or of each group.

    Raises InputError for more ranks than a platform has cores, and where two parts set a field to different values.
    """
    counts = dict(zip(names, nodes.values(), strict=False)) if isinstance(nodes, Mapping) else {names[0]: nodes}
    total, values = sum(counts.values()), dict[str, Any]()
    for name in names:
        for path, value in parts[name].set.items():
            if path in values and values[path] != value:
                raise InputError(f"part {name} sets {path} to {value!r:.40}, and another part to {values[path]!r:.40}")
            values[path] = value
    if isinstance(nodes, Mapping):
        values |= {f"platform.groups.{group}.nodes": count for group, count in nodes.items()}
    else:
        values["platform.nodes.count"] = nodes
    ranks = [count * (parts[name].ranks or 0) for name, count in counts.items()]
    if all(ranks):
        if sum(ranks) > MAX_CORES:
            raise InputError(
                f"{total} nodes of {sum(ranks)} ranks are more cores than the {MAX_CORES} of a platform at most"
            )
        values.setdefault("application.grid", grid_text(sum(ranks)))
    price = fsum(parts[name].count(counts.get(name, total)) * parts[name].price for name in names)
    watts = fsum(parts[name].count(counts.get(name, total)) * parts[name].watts for name in names)
    usual = Counter(part.kind for part in parts.values())
    others = [name for name in names if name not in counts and usual[parts[name].kind] > 1]
    of_nodes = " + ".join(f"{count} x {name}" for name, count in counts.items())
    return PricedMachine(", ".join([of_nodes, *others]), price, watts, values)
