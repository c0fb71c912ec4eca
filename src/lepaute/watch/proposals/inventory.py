"""What nodes share: chassis, rack, switch and the like, from a CSV file; and whether that explains which nodes changed.

node,chassis,rack,switch
dahu-[29-32],c8,r2,s1
"""

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lepaute.errors import InputError
from lepaute.kit.documents import read_text
from lepaute.watch.changelog import MOST_BYTES, NodeSet

#: The chance of saying that a group explains an event where it does not.
LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Inventory:
    """For each kind of group, such as "chassis", the names of groups by node, as the file has both."""

    groups: Mapping[str, Mapping[str, str]]

    def group_of(self, kind: str, cluster: str, node: str) -> str | None:
        """None where the inventory does not know the node, or says nothing of this kind about it."""
        known = self.groups[kind]
        for name in (node, f"{cluster}-{node}", node.removeprefix(f"{cluster}-")):
            if name in known:
                return known[name] or None
        return None


@dataclass(frozen=True, slots=True)
class SharedGroup:
    """A group in which more nodes changed than a random choice of as many nodes would have.

    changed, members : nodes of the group that changed, and all of it that were measured
    p_value          : of Fisher's hypergeometric test, times the number of groups tested
    """

    kind: str
    name: str
    changed: int
    members: int
    p_value: float

    def __str__(self) -> str:
        return f"{self.changed} of {self.members} nodes of {self.kind} {self.name} (p = {self.p_value:.2g})"


def read_inventory(path: Path) -> Inventory:
    """Reads the file: a column `node`, a node or a set such as node[1-4] or 13/14, and a column for each kind of group.

    Raises InputError, with file and line, where it cannot be read, has no such columns, or names a node twice.
    """
    groups: dict[str, dict[str, str]] = {}
    lines: dict[str, int] = {}
    try:
        text = read_text(path, "a CSV file of groups of nodes", MOST_BYTES).removeprefix("\ufeff")
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True, restval=None, restkey="")
        columns = [name.strip() for name in reader.fieldnames or ()]
        kinds = [name for name in columns if name and name != "node"]
        if "node" not in columns or not kinds or len(set(columns)) < len(columns):
            raise InputError(f"{path}:1: the first line has to be like node,chassis,rack,switch, each column once")
        reader.fieldnames = columns
        for kind in kinds:
            groups[kind] = {}
        for row in reader:
            _add(path, reader.line_num, row, groups, lines)
    except csv.Error as problem:
        raise InputError(f"{path} is not a CSV file: {problem}") from None
    if not lines:
        raise InputError(f"{path} names no node; give a line for each, such as node1,c1,r1,s1")
    return Inventory(groups)


def _add(
    path: Path,
    line: int,
    row: Mapping[str, str | None],
    groups: dict[str, dict[str, str]],
    lines: dict[str, int],
) -> None:
    if None in row.values() or "" in row:
        raise InputError(f"{path}:{line}: the line has not as many cells as the first one")
    text = (row["node"] or "").strip()
    try:
        names = NodeSet("all", text).names()
    except InputError as problem:
        raise InputError(f"{path}:{line}: {problem}") from None
    if names is None:
        raise InputError(f"{path}:{line}: the node is 'all'; name the nodes of each group")
    for node in sorted(names):
        if node in lines:
            raise InputError(f"{path}:{line}: node {node} is already on line {lines[node]}; name each node once")
        lines[node] = line
        for kind, by_node in groups.items():
            by_node[node] = (row[kind] or "").strip()


def shared_groups(
    inventory: Inventory, changed: Iterable[tuple[str, str]], measured: Iterable[tuple[str, str]]
) -> tuple[SharedGroup, ...]:
    """The groups that explain which (cluster, node) of all that were measured have changed, the clearest first.

    Every group with a changed node is tested, each kind among the nodes that it is known of; the p-values are
    multiplied by the number of groups tested (Bonferroni). Fewer than two changed nodes share nothing.
    """
    from scipy.stats import hypergeom

    every, hit = set(measured) | set(changed), set(changed)
    if len(hit) < 2:
        return ()
    tested: list[tuple[str, str, int, int, float]] = []
    for kind in inventory.groups:
        by_node = {node: name for node in every if (name := inventory.group_of(kind, *node)) is not None}
        total, drawn = len(by_node), sum(node in hit for node in by_node)
        for name in sorted({by_node[node] for node in by_node if node in hit}):
            members = [node for node, its in by_node.items() if its == name]
            inside = sum(node in hit for node in members)
            p = float(hypergeom.sf(inside - 1, total, len(members), drawn))
            tested.append((kind, name, inside, len(members), p))
    found = [
        SharedGroup(kind, name, inside, members, min(1.0, p * len(tested)))
        for kind, name, inside, members, p in tested
        if p * len(tested) <= LEVEL
    ]
    return tuple(sorted(found, key=lambda group: (group.p_value, group.kind, group.name)))
