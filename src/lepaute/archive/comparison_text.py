"""A comparison for a person, and as JSON."""

import difflib
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from lepaute.archive.comparison import Change, Comparison, Uneven
from lepaute.archive.setups.facts import COMMANDS, OTHER, SCRIPT, Value
from lepaute.kit.printable import fitted, wrapped

WIDTH = 100
#: Without --all: lines of a group, lines of a text's difference, characters of a value.
MOST_LINES, MOST_DIFF_LINES, MOST_VALUE = 14, 24, 160
#: difflib takes time with the square of the lines: longer texts are only counted.
_MOST_COMPARED_LINES = 2000


def comparison_lines(
    comparison: Comparison, unread: Sequence[str], *, everything: bool, width: int = WIDTH
) -> Iterator[str]:
    """The lines of a report, grouped, of at most `width` columns; with `everything` nothing is cut."""
    if comparison.same:
        yield "no difference between the two setups (results are not compared)"
    for group, changes in groupby(comparison.changes, lambda change: change.group):
        members = list(changes)
        yield f"{group} ({len(members)})"
        lines = [line for change in members for line in _change_lines(change, everything=everything, width=width)]
        kept = lines if everything or group in (SCRIPT, COMMANDS) else lines[:MOST_LINES]
        yield from kept
        if len(kept) < len(lines):
            yield f"  ... {len(lines) - len(kept)} lines more (--all)"
    for side, found_uneven in (("A", comparison.uneven_a), ("B", comparison.uneven_b)):
        if found_uneven:
            yield f"nodes of {side} that differ from each other ({len(found_uneven)})"
            lines = [
                line for thing in found_uneven for line in _uneven_lines(thing, everything=everything, width=width)
            ]
            yield from lines if everything else lines[:MOST_LINES]
            if not everything and len(lines) > MOST_LINES:
                yield f"  ... {len(lines) - MOST_LINES} lines more (--all)"
    for problem in unread:
        yield fitted(f"not compared: {problem}", 10_000 if everything else width)


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """The comparison as values for JSON; sets as sorted lists, texts as lists of lines."""
    changes = [
        {
            "group": change.group,
            "what": change.what,
            "nodes_a": change.nodes_a,
            "nodes_b": change.nodes_b,
            "a": _json(change.a),
            "b": _json(change.b),
        }
        for change in comparison.changes
    ]
    return {
        "same": comparison.same,
        "differences": changes,
        "within_a": [_uneven_json(thing) for thing in comparison.uneven_a],
        "within_b": [_uneven_json(thing) for thing in comparison.uneven_b],
    }


def _uneven_json(thing: Uneven) -> dict[str, Any]:
    values = [{"nodes": nodes, "value": _json(value)} for nodes, value in thing.values]
    return {"group": thing.group, "what": thing.what, "values": values}


def _json(value: Value | None) -> object:
    if isinstance(value, frozenset):
        return sorted(value)
    return list(value) if isinstance(value, tuple) else value


def _change_lines(change: Change, *, everything: bool, width: int) -> Iterator[str]:
    where = change.nodes_a or change.nodes_b
    if change.nodes_a and change.nodes_b and change.nodes_a != change.nodes_b:
        where = f"{change.nodes_a} -> {change.nodes_b}"
    head = f"{where}: {change.what}" if where else change.what
    a, b = change.a, change.b
    if isinstance(a, tuple | None) and isinstance(b, tuple | None):
        yield from _text_lines(head, a or (), b or (), change, everything=everything, width=width)
        return
    if isinstance(a, frozenset | None) and isinstance(b, frozenset | None):
        items = [f"- {item}" for item in sorted((a or frozenset()) - (b or frozenset()))]
        items += [f"+ {item}" for item in sorted((b or frozenset()) - (a or frozenset()))]
        note = " (not in A)" if a is None else " (not in B)" if b is None else ""
        yield from _paragraph(f"{head}{note}:", ",  ".join(items) or "empty", everything=everything, width=width)
        return
    yield from _paragraph(f"{head}:", f"{_shown(a)} -> {_shown(b)}", everything=everything, width=width)


def _text_lines(
    head: str, a: tuple[str, ...], b: tuple[str, ...], change: Change, *, everything: bool, width: int
) -> Iterator[str]:
    """The unified difference of two texts; of unknown files only how much differs."""
    if max(len(a), len(b)) > _MOST_COMPARED_LINES:
        yield fitted(f"  {head}: differs; {len(a)} and {len(b)} lines, too many to compare here", width)
        return
    lines = [line.rstrip("\n") for line in difflib.unified_diff(a, b, lineterm="", n=1)][2:]
    changed = sum(line[:1] in "+-" for line in lines)
    missing = " (not in A)" if change.a is None else " (not in B)" if change.b is None else ""
    yield fitted(f"  {head}{missing}: {changed} lines", width)
    if change.group == OTHER and not everything:
        return
    kept = lines if everything else lines[:MOST_DIFF_LINES]
    for line in kept:
        yield f"    {fitted(line, 10_000 if everything else width - 4)}"
    if len(kept) < len(lines):
        yield f"    ... {len(lines) - len(kept)} lines more (--all)"


def _uneven_lines(thing: Uneven, *, everything: bool, width: int) -> Iterator[str]:
    sets = [value for _, value in thing.values if isinstance(value, frozenset)]
    common = frozenset.intersection(*sets) if sets else frozenset()
    parts = []
    for nodes, value in thing.values[: None if everything else 4]:
        # Of sets only what not all nodes have.
        text = ", ".join(sorted(value - common)) or "no more" if isinstance(value, frozenset) else _shown(value)
        parts.append(f"{nodes} {text if everything else fitted(text, MOST_VALUE)}")
    if len(parts) < len(thing.values):
        parts.append(f"{len(thing.values) - len(parts)} more values")
    yield from _paragraph(f"{thing.what}:", ";  ".join(parts), everything=everything, width=width)


def _shown(value: Value | None) -> str:
    if value is None:
        return "(none)"
    if isinstance(value, frozenset):
        return ", ".join(sorted(value)) or "(empty)"
    if isinstance(value, tuple):
        return f"a text of {len(value)} lines"
    return value or "(empty)"


def _paragraph(head: str, content: str, *, everything: bool, width: int) -> list[str]:
    lines = wrapped(f"{head} {content}", width - 2, 10_000 if everything else 3)
    return [
        f"  {line}" if not place else f"      {line}"[: None if everything else width]
        for place, line in enumerate(lines)
    ]
