"""What differs between two setups, or between the nodes of one: values side by side, nodes that agree as one."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lepaute.archive.nodes import folded
from lepaute.archive.setups.facts import GROUPS, Value
from lepaute.archive.setups.setup import Setup

#: Differences of one thing are listed for no more pairs of values than this.
_MOST_PAIRS = 8


@dataclass(frozen=True, slots=True)
class Change:
    """A thing that is otherwise on the two sides.

    nodes_a, nodes_b: node sets; empty where the thing is about the whole experiment
    a, b            : the values; None where it is not there
    """

    group: str
    what: str
    nodes_a: str
    nodes_b: str
    a: Value | None
    b: Value | None


@dataclass(frozen=True, slots=True)
class Uneven:
    """A thing that is otherwise on some nodes of one setup: each value with its node set, the commonest first.

    None stands for nodes that say nothing about it, where others do.
    """

    group: str
    what: str
    values: tuple[tuple[str, Value | None], ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that differs; in the order of importance of the groups, then of names."""

    changes: tuple[Change, ...]
    uneven_a: tuple[Uneven, ...]
    uneven_b: tuple[Uneven, ...]

    @property
    def same(self) -> bool:
        """No difference between the two; their nodes may differ among each other in the same way."""
        return not self.changes


def compare(a: Setup, b: Setup) -> Comparison:
    """Both setups, thing by thing."""
    keys = sorted({*a.facts, *b.facts}, key=lambda key: (GROUPS.index(key[0]), key[1]))
    changes: list[Change] = []
    for key in keys:
        changes.extend(_changes(key, a.facts.get(key, {}), b.facts.get(key, {})))
    return Comparison(tuple(_settled(changes)), uneven(a), uneven(b))


def uneven(setup: Setup) -> tuple[Uneven, ...]:
    """What differs between the nodes of one setup."""
    things = []
    for (group, what), values in sorted(setup.facts.items(), key=lambda item: (GROUPS.index(item[0][0]), item[0][1])):
        by_node: Mapping[str, Value | None] = values
        if "" not in values:
            by_node = {**dict.fromkeys(setup.nodes), **values}
        if len(set(by_node.values())) > 1:
            sets = _by_value(by_node)
            things.append(Uneven(group, what, tuple((folded(nodes), value) for value, nodes in sets)))
    return tuple(things)


def _by_value(values: Mapping[str, Value | None]) -> list[tuple[Value | None, list[str]]]:
    """Values with their nodes, the commonest first; ties in the order of the nodes."""
    nodes: dict[Value | None, list[str]] = defaultdict(list)
    for node, value in values.items():
        nodes[value].append(node)
    return sorted(nodes.items(), key=lambda item: (-len(item[1]), min(item[1])))


def _changes(key: tuple[str, str], a: Mapping[str, Value], b: Mapping[str, Value]) -> Iterable[Change]:
    """The changes of one thing, given by node.

    Nodes of the same name are compared with each other; when the nodes are others, values with values: one that occurs
    on both sides is no difference, whichever node has it.
    """
    if a == b:
        return
    pairs: dict[tuple[Value | None, Value | None], tuple[list[str], list[str]]] = {}
    for node in a.keys() & b.keys():
        if a[node] != b[node]:
            _pair(pairs, a[node], b[node], [node], [node])
    alone_a, alone_b = {n: v for n, v in a.items() if n not in b}, {n: v for n, v in b.items() if n not in a}
    left_a = {node: value for node, value in alone_a.items() if value not in b.values()}
    left_b = {node: value for node, value in alone_b.items() if value not in a.values()}
    values_a, values_b = set(a.values()), set(b.values())
    if left_a and len(values_b) <= 1:
        for value, nodes in _by_value(left_a):
            _pair(pairs, value, next(iter(values_b), None), nodes, list(b))
    elif left_b and len(values_a) <= 1:
        for value, nodes in _by_value(left_b):
            _pair(pairs, next(iter(values_a), None), value, list(a), nodes)
    else:
        for value, nodes in _by_value(left_a):
            _pair(pairs, value, None, nodes, [])
        for value, nodes in _by_value(left_b):
            _pair(pairs, None, value, [], nodes)
    group, what = key
    ordered = sorted(pairs.items(), key=lambda item: -len(item[1][0]) - len(item[1][1]))
    for (old, new), (nodes_a, nodes_b) in ordered[:_MOST_PAIRS]:
        yield Change(group, what, folded(filter(None, nodes_a)), folded(filter(None, nodes_b)), old, new)


def _pair(
    pairs: dict[tuple[Value | None, Value | None], tuple[list[str], list[str]]],
    a: Value | None,
    b: Value | None,
    nodes_a: list[str],
    nodes_b: list[str],
) -> None:
    known_a, known_b = pairs.setdefault((a, b), ([], []))
    known_a.extend(nodes_a)
    known_b.extend(nodes_b)


def _settled(changes: list[Change]) -> list[Change]:
    """Without the order of a design's rows where the rows themselves differ: it says nothing more."""
    other_rows = {change.what for change in changes if change.what.endswith(": rows in any order")}
    order = {what.replace(": rows in any order", ": rows in their order") for what in other_rows}
    return [change for change in changes if change.what not in order]
