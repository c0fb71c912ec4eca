"""Settings of groups of nodes: `groups.NAME.FIELD` by name, and another number of their nodes."""

import re
from collections.abc import Mapping
from typing import Any

from lepaute.errors import InputError
from lepaute.kit.documents import guess
from lepaute.simulate.platform.components import resized_tables, topology_for
from lepaute.simulate.platform.nodes import first_of
from lepaute.simulate.platform.schema import Platform
from lepaute.simulate.platform.values import MAX_NODES

_NODES = re.compile(r"groups\[(\d+)\]\.nodes")


def group_settings(platform: Platform, values: Mapping[str, Any]) -> tuple[Platform, dict[str, Any]]:
    """`platform` with as many nodes in its groups as `values` say, and `values` with groups by their place.

    nodes.count, tables of single nodes and the topology follow.
    Raises InputError for a group that is not there, and for numbers that tables or a topology by node do not fit.
    """
    placed = {_placed(platform, field): value for field, value in values.items()}
    if "nodes.count" in placed and "groups" not in placed:
        names = ", ".join(f"groups.{group.name}.nodes" for group in (platform.groups or ())[:3])
        raise InputError(f"nodes.count follows from the groups of {platform.name}; set {names}")
    topology = not any(field.startswith("topology") for field in placed)
    for field, value in placed.items():
        at = _NODES.fullmatch(field)
        if at and int(at[1]) < len(platform.groups or ()) and type(value) is int and 1 <= value <= MAX_NODES:
            platform = with_nodes(platform, int(at[1]), value, topology=topology)
    return platform, placed


def with_nodes(platform: Platform, place: int, nodes: int, *, topology: bool = True) -> Platform:
    """`platform` whose group at `place` has so many nodes; more take the models of single nodes that it has, in turn.

    topology : whether it follows too
    Raises InputError where the platform says something of single nodes, which would become others.
    """
    groups = list(platform.groups or ())
    group = groups[place]
    if nodes == group.nodes:
        return platform
    single = "kernels" if any(piece.per_cpu for model in platform.kernels for piece in model.pieces) else ""
    if topology and (platform.topology.changed or platform.topology.removed):
        single = "topology"
    if single:
        raise InputError(
            f"groups.{group.name}.nodes: {single} of {platform.name} says something of single nodes, whose numbers "
            f"would change; set {single} too, or write the platform anew"
        )
    had = group.nodes_of(platform, first_of(group, platform))
    kernels = group.kernels and tuple(resized_tables(model, had, nodes) for model in group.kernels)
    groups[place] = group.model_copy(update={"nodes": nodes, "kernels": kernels})
    count = sum(member.nodes for member in groups)
    update: dict[str, Any] = {"groups": tuple(groups), "nodes": platform.nodes.model_copy(update={"count": count})}
    if topology:
        update["topology"] = topology_for(platform.topology, count, platform.name)
    return platform.model_copy(update=update)


def _placed(platform: Platform, field: str) -> str:
    """groups[1].speed of groups.old.speed."""
    root, _, inner = field.partition(".")
    if root != "groups" or not inner:
        return field
    places = {group.name: place for place, group in enumerate(platform.groups or ())}
    # A name may have dots itself.
    name = max((known for known in places if f"{inner}.".startswith(f"{known}.")), key=len, default="")
    if not name:
        named = inner.partition(".")[0][:60]
        listed = ", ".join(list(places)[:20])
        raise InputError(f"{field[:80]}: there is no group {named}{guess(named, list(places))}; groups are {listed}")
    return f"groups[{places[name]}]{inner.removeprefix(name)}"
