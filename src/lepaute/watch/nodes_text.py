"""Nodes as people write them."""

import re
from collections.abc import Iterable

from lepaute.watch.changelog import ALL

#: A name that a node set can be folded of; files from elsewhere have others.
_NODE = re.compile(r"[A-Za-z0-9._-]+")


def nodes_text(cluster: str, nodes: Iterable[str]) -> str:
    """Nodes of one cluster: dahu-[13-16], demo node7, or "all of dahu"."""
    from lepaute.kit.node_sets import fold_node_set

    names = sorted(set(nodes))
    if names == [ALL]:
        return f"all of {cluster}" if cluster else "all machines"
    if cluster and all(name.isdigit() for name in names):
        names = [f"{cluster}-{name}" for name in names]
    text = fold_node_set(tuple(names)) if all(map(_NODE.fullmatch, names)) else ", ".join(names)
    return text if not cluster or names[0].startswith(cluster) else f"{cluster} {text}"
