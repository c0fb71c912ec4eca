"""Nodes of a store by the names that people and schedulers have for them; all commands find their nodes here."""

import re
from collections.abc import Iterable, Sequence

from lepaute.errors import InputError
from lepaute.kit.node_sets import fold_node_set
from lepaute.watch.changelog import ALL, NodeSet, names_of_node
from lepaute.watch.values import Node

#: A name that a node set can be folded of; files from elsewhere have others.
_NODE = re.compile(r"[A-Za-z0-9._-]+")


def nodes_text(cluster: str, nodes: Iterable[str]) -> str:
    """Nodes of one cluster: dahu-[13-16], demo node7, or "all of dahu"."""
    names = sorted(set(nodes))
    if names == [ALL]:
        return f"all of {cluster}" if cluster else "all machines"
    if cluster and all(name.isdigit() for name in names):
        names = [f"{cluster}-{name}" for name in names]
    text = fold_node_set(tuple(names)) if all(map(_NODE.fullmatch, names)) else ", ".join(names)
    return text if not cluster or names[0].startswith(cluster) else f"{cluster} {text}"


def nodes_named(known: Iterable[Node], text: str, cluster: str | None = None) -> dict[str, tuple[Node, ...]]:
    """Each name of a set, and the nodes that it means: none, or one of each cluster that has it.

    cluster : whose nodes are meant; None: of any
    Raises InputError for what is no set, and where no node is of the cluster.
    """
    nodes = sorted(set(known))
    clusters = sorted({of for of, _ in nodes})
    if cluster is not None and cluster not in clusters:
        named = ", ".join(of or "nodes of none" for of in clusters)[:200]
        raise InputError(f"the store has no cluster {cluster[:80]!r}; it has {named or 'no values yet'}")
    candidates = [node for node in nodes if cluster in (None, node[0])]
    names = NodeSet(ALL, text).names()
    if names is None:
        names = tuple(name for _, name in candidates)
    return {name: _of_name(candidates, name) for name in names}


def the_node(name: str, found: Sequence[Node], known: Iterable[Node]) -> Node:
    """The only node that the name means; raises InputError if it means none, or nodes of several clusters."""
    if not found:
        raise InputError(f"the store has no node {name[:80]}; it has {known_text(known)}")
    if len(found) > 1:
        clusters = ", ".join(cluster or "none" for cluster, _ in found)
        raise InputError(f"node {name[:80]} is of several clusters: {clusters}; give --cluster")
    return found[0]


def known_text(known: Iterable[Node]) -> str:
    """What a store has: dahu-[1-32], gros-[1-124]."""
    nodes = sorted(set(known))
    parts = [nodes_text(each, (node for of, node in nodes if of == each)) for each in sorted({of for of, _ in nodes})]
    return ", ".join(parts)[:200] or "no values yet"


def _of_name(nodes: Sequence[Node], name: str) -> tuple[Node, ...]:
    """A node that is called so in the store goes before one of its cluster that is also known by the name."""
    exact = [node for node in nodes if node[1] == name]
    others = [node for node in nodes if name in names_of_node(*node) and node[0] not in {of for of, _ in exact}]
    return tuple(sorted(exact + others))
