"""What differs between two setups, or between the nodes of one: values side by side, nodes that agree as one."""

import difflib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from lepaute.kit.node_sets import folded
from lepaute.kit.printable import fitted, printable
from lepaute.kit.text import counted
from lepaute.measure.archive.setups import Setup
from lepaute.measure.archive.setups.facts import COMMANDS, GROUPS, OTHER, SCRIPT, Value

#: Differences of one thing are listed for no more pairs of values than this.
_MAX_PAIRS = 8


@dataclass(frozen=True, slots=True)
class Change:
    """A thing that is otherwise on the two sides.

    nodes_a, nodes_b: node sets; empty if the thing is about the whole experiment
    a, b            : the values; None if it is not there
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
    changes = [change for key in keys for change in _changes(key, a.facts.get(key, {}), b.facts.get(key, {}))]
    # The order of a design's rows says nothing more where the rows themselves differ.
    other_rows = {change.what for change in changes if change.what.endswith(": rows in any order")}
    order = {what.replace(": rows in any order", ": rows in their order") for what in other_rows}
    return Comparison(tuple(change for change in changes if change.what not in order), uneven(a), uneven(b))


def uneven(setup: Setup) -> tuple[Uneven, ...]:
    """Differences between the nodes of one setup."""
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
    pairs: dict[tuple[Value | None, Value | None], tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    rows: list[tuple[Value | None, Value | None, list[str], list[str]]]
    rows = [(a[node], b[node], [node], [node]) for node in a.keys() & b.keys() if a[node] != b[node]]
    values_a, values_b = set(a.values()), set(b.values())
    alone_a = _by_value({node: value for node, value in a.items() if node not in b and value not in values_b})
    alone_b = _by_value({node: value for node, value in b.items() if node not in a and value not in values_a})
    if alone_a and len(values_b) <= 1:
        rows += [(value, next(iter(values_b), None), nodes, list(b)) for value, nodes in alone_a]
    elif alone_b and len(values_a) <= 1:
        rows += [(next(iter(values_a), None), value, list(a), nodes) for value, nodes in alone_b]
    else:
        rows += [(value, None, nodes, []) for value, nodes in alone_a]
        rows += [(None, value, [], nodes) for value, nodes in alone_b]
    for old, new, nodes_a, nodes_b in rows:
        pairs[old, new][0].extend(nodes_a)
        pairs[old, new][1].extend(nodes_b)
    group, what = key
    ordered = sorted(pairs.items(), key=lambda item: -len(item[1][0]) - len(item[1][1]))
    for (old, new), (nodes_a, nodes_b) in ordered[:_MAX_PAIRS]:
        yield Change(group, what, folded(filter(None, nodes_a)), folded(filter(None, nodes_b)), old, new)


#: Without --all: lines of a group, lines of a text's difference, characters of a value, of such a line, of a change.
MAX_LINES, MAX_DIFF_LINES, MAX_VALUE, MAX_TEXT, MAX_CHANGE = 14, 24, 160, 96, 300
#: Limits of the sentence: differences that it names, and characters of each.
MAX_NAMED, MAX_SHORT = 3, 60
#: difflib takes time with the square of the lines: longer texts are only counted.
_MAX_COMPARED_LINES = 2000


def comparison_lines(comparison: Comparison, unread: Sequence[str], *, everything: bool) -> Iterator[str]:
    """The lines of a report, grouped; with `everything` nothing is cut."""
    report = _Report(everything)
    if comparison.same:
        yield "no difference between the two setups (results are not compared)"
    for group, changes in groupby(comparison.changes, lambda change: change.group):
        members = list(changes)
        yield f"{group} ({len(members)})"
        lines = [line for change in members for line in report.change(change)]
        yield from lines if group in (SCRIPT, COMMANDS) else report.cut(lines, MAX_LINES)
    for side, things in (("A", comparison.uneven_a), ("B", comparison.uneven_b)):
        if things:
            yield f"nodes of {side} that differ from each other ({len(things)})"
            yield from report.cut(list(map(report.uneven, things)), MAX_LINES)
    for problem in unread:
        yield report.fitted(f"not compared: {problem}")


def comparison_sentence(comparison: Comparison) -> str:
    """How many things differ, and the first: 5 differences between the setups: seed 7 -> 8, software and 3 more."""
    if not comparison.changes:
        return "No differences between the setups"
    *named, last = [_short(change) for change in comparison.changes[:MAX_NAMED]]
    more = len(comparison.changes) - MAX_NAMED
    listed = f"{', '.join([*named, last])} and {more} more" if more > 0 else " and ".join([*named[-1:], last])
    if more <= 0 and len(named) > 1:
        listed = f"{', '.join(named[:-1])}, {listed}"
    return f"{counted(len(comparison.changes), 'difference')} between the setups: {listed}"


def _short(change: Change) -> str:
    """seed 7 -> 8; of texts and sets only what differs."""
    sides = (change.a, change.b)
    plain = all(side is None or not isinstance(side, tuple | frozenset) for side in sides)
    return fitted(f"{change.what} {_shown(change.a)} -> {_shown(change.b)}" if plain else change.what, MAX_SHORT)


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """The comparison as values for JSON; sets as sorted lists, texts as lists of lines."""

    def json(value: Any) -> Any:
        return sorted(value) if isinstance(value, frozenset) else list(value) if isinstance(value, tuple) else value

    def within(things: Sequence[Uneven]) -> list[dict[str, Any]]:
        return [
            asdict(thing) | {"values": [{"nodes": nodes, "value": json(value)} for nodes, value in thing.values]}
            for thing in things
        ]

    return {
        "same": comparison.same,
        "differences": [{key: json(value) for key, value in asdict(change).items()} for change in comparison.changes],
        "within_a": within(comparison.uneven_a),
        "within_b": within(comparison.uneven_b),
    }


@dataclass(frozen=True, slots=True)
class _Report:
    everything: bool

    def fitted(self, text: str, most: int = MAX_CHANGE) -> str:
        return fitted(text, 10_000 if self.everything else most)

    def cut(self, lines: list[str], most: int, indent: str = "  ") -> Iterator[str]:
        kept = lines if self.everything else lines[:most]
        yield from kept
        if len(kept) < len(lines):
            yield f"{indent}... {len(lines) - len(kept)} lines more (--all)"

    def change(self, change: Change) -> Iterator[str]:
        where = change.nodes_a or change.nodes_b
        if change.nodes_a and change.nodes_b and change.nodes_a != change.nodes_b:
            where = f"{change.nodes_a} -> {change.nodes_b}"
        head = f"{where}: {change.what}" if where else change.what
        a, b = change.a, change.b
        missing = " (not in A)" if a is None else " (not in B)" if b is None else ""
        if isinstance(a, tuple | None) and isinstance(b, tuple | None):
            yield from self._text(head, missing, a or (), b or (), counted_only=change.group == OTHER)
        elif isinstance(a, frozenset | None) and isinstance(b, frozenset | None):
            items = [f"- {item}" for item in sorted((a or frozenset()) - (b or frozenset()))]
            items += [f"+ {item}" for item in sorted((b or frozenset()) - (a or frozenset()))]
            yield self.fitted(f"  {head}{missing}: {', '.join(items) or 'empty'}")
        else:
            yield self.fitted(f"  {head}: {_shown(a)} -> {_shown(b)}")

    def _text(
        self, head: str, missing: str, a: tuple[str, ...], b: tuple[str, ...], *, counted_only: bool
    ) -> Iterator[str]:
        """The unified difference of two texts; of unknown files only how much differs."""
        if max(len(a), len(b)) > _MAX_COMPARED_LINES:
            yield self.fitted(f"  {head}: differs; {len(a)} and {len(b)} lines, too many to compare here")
            return
        lines = [line.rstrip("\n") for line in difflib.unified_diff(a, b, lineterm="", n=1)][2:]
        changed = sum(line[:1] in "+-" for line in lines)
        yield self.fitted(f"  {head}{missing}: {changed} lines")
        if self.everything or not counted_only:
            shown = [f"    {self.fitted(line, MAX_TEXT)}" for line in lines]
            yield from self.cut(shown, MAX_DIFF_LINES, "    ")

    def uneven(self, thing: Uneven) -> str:
        sets = [value for _, value in thing.values if isinstance(value, frozenset)]
        common = frozenset.intersection(*sets) if sets else frozenset()
        parts = []
        for nodes, value in thing.values[: None if self.everything else 4]:
            # Of sets only what not all nodes have.
            text = ", ".join(sorted(value - common)) or "no more" if isinstance(value, frozenset) else _shown(value)
            parts.append(f"{nodes} {self.fitted(text, MAX_VALUE)}")
        if len(parts) < len(thing.values):
            parts.append(f"{len(thing.values) - len(parts)} more values")
        return printable(f"  {thing.what}: {'; '.join(parts)}")


def _shown(value: Value | None) -> str:
    if value is None:
        return "(none)"
    if isinstance(value, frozenset):
        return ", ".join(sorted(value)) or "(empty)"
    return f"a text of {len(value)} lines" if isinstance(value, tuple) else value or "(empty)"
