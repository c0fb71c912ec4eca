"""A platform with another number of nodes."""

import math
from typing import TYPE_CHECKING, Any

from lepaute.errors import InputError

if TYPE_CHECKING:
    from lepaute.platform.schema import KernelModel, Nodes, PerCpu, Platform, Topology


#: A table of single CPUs is continued up to so many rows; beyond, new nodes have the coefficients of no CPU.
MOST_ROWS = 50_000


def resized(platform: "Platform", nodes: int, *, topology: bool = True) -> "Platform":
    """`platform` with `nodes` nodes: nodes beyond those that it has are as these, in turn.

    topology : whether the topology grows or shrinks too; False where the caller replaces it
    Raises InputError where the topology has no form with so many nodes.
    """
    from lepaute.platform.schema import Assumption

    had = platform.nodes
    if nodes == had.count:
        return platform
    update: dict[str, Any] = {
        "nodes": had.model_copy(update={"count": nodes}),
        "kernels": tuple(_resized_tables(model, had, nodes) for model in platform.kernels),
    }
    if topology:
        update["topology"] = topology_for(platform.topology, nodes, platform.name)
    if (population := platform.population) is not None:
        update["population"] = population.model_copy(
            update={
                "group_of_node": _in_turn(population.group_of_node, nodes),
                "scale_of_cpu": _in_turn(population.scale_of_cpu, nodes * had.cpus),
            }
        )
    tables = [piece.per_cpu for model in platform.kernels for piece in model.pieces if piece.per_cpu is not None]
    if nodes > had.count and tables:
        first, last = had.first_number, had.first_number + had.count - 1
        as_which = (
            f"as nodes {first} to {last}, in turn"
            if all(_continues(table, had, nodes) for table in tables)
            else ("all alike, as the typical cpu")
        )
        what = f"nodes {last + 1} to {had.first_number + nodes - 1}: {as_which}"
        update["assumed"] = (*(platform.assumed or ()), Assumption(what=what, source=f"nodes.count set to {nodes}"))
    return platform.model_copy(update=update)


def topology_for(topology: "Topology", nodes: int, name: str) -> "Topology":
    """`topology` with `nodes` nodes: one switch has any number, a fat tree grows or shrinks at its top.

    name : of the platform, for messages
    Raises InputError where there is no such form.
    """
    from lepaute.platform.schema import Topology

    if topology.kind == "switch" or topology.node_count == nodes:
        return topology
    if topology.kind == "fat-tree":
        levels, children, parents, cables = (part.split(",") for part in (topology.parameters or "").split(";"))
        below = math.prod(map(int, children[:-1]))
        named = topology.changed or topology.removed  # parts of the tree as it is
        if nodes % below == 0 and not named:
            parts = (levels, [*children[:-1], str(nodes // below)], parents, cables)
            parameters = ";".join(",".join(part) for part in parts)
            return Topology.model_validate(topology.model_dump() | {"parameters": parameters})
        remedy = "set the whole topology too" if named else f"take a multiple of {below}"
        raise InputError(
            f"the topology of {name} is a fat tree {topology.parameters}{' with changed parts' if named else ''}; with "
            f"{nodes} nodes it has no such form: {remedy}, or one switch: topology={{kind: switch}}"
        )
    stated = "the nodes that its links name" if topology.node_count is None else f"{topology.node_count} nodes"
    raise InputError(
        f"the topology of {name} is a {topology.kind} for {stated}, which {nodes} nodes do not fill; give that number, "
        "or one switch: topology={kind: switch}"
    )


def _resized_tables(model: "KernelModel", had: "Nodes", nodes: int) -> "KernelModel":
    """`model` whose tables `per_cpu` have rows for the new nodes, and none for nodes that are gone."""
    if all(piece.per_cpu is None for piece in model.pieces):
        return model
    pieces = []
    for piece in model.pieces:
        table = piece.per_cpu
        if table is not None:
            by_node: dict[int, list[tuple[float, ...]]] = {}
            for row in table.rows:
                by_node.setdefault(int(row[0]) - had.first_number, []).append(row)
            named = nodes if nodes < had.count or _continues(table, had, nodes) else had.count
            rows = tuple(
                (float(had.first_number + node), *row[1:])
                for node in range(named)
                for row in by_node.get(node % had.count, ())
            )
            piece = piece.model_copy(update={"per_cpu": table.model_copy(update={"rows": rows})})  # noqa: PLW2901
        pieces.append(piece)
    return model.model_copy(update={"pieces": tuple(pieces)})


def _continues(table: "PerCpu", had: "Nodes", nodes: int) -> bool:
    """Whether a table continued to so many nodes is small enough."""
    return len(table.rows) * nodes <= MOST_ROWS * had.count


def _in_turn(values: "tuple[Any, ...] | None", count: int) -> "tuple[Any, ...] | None":
    """The first `count` of `values`, again from the first where there are fewer."""
    return None if not values else tuple(values[position % len(values)] for position in range(count))
