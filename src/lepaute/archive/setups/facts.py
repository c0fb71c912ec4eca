"""A fact of a setup: one thing that could be otherwise, and how it was."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

#: Groups of facts, the most important first: the order of a comparison.
OUTCOME, EXPERIMENT, SCRIPT, NODES = "outcome", "experiment", "script", "nodes"
HARDWARE, SYSTEM, SOFTWARE, VARIABLES = "hardware", "system", "software", "variables"
CONTROL, COMMANDS, OTHER = "machine control", "commands", "other files"
GROUPS = (OUTCOME, EXPERIMENT, SCRIPT, NODES, HARDWARE, SYSTEM, SOFTWARE, VARIABLES, CONTROL, COMMANDS, OTHER)

#: A text, a set of things that are there or not, or the lines of a text.
Value = str | frozenset[str] | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fact:
    """How one thing was; group is one of GROUPS, what names the thing."""

    group: str
    what: str
    value: Value


def fields(text: str, separator: str = ":") -> dict[str, str]:
    """The first value of each "name: value" line."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        name, mark, value = line.partition(separator)
        if mark and (name := name.strip()) not in values:
            values[name] = value.strip()
    return values


def chosen(group: str, values: Mapping[str, str], names: Mapping[str, str]) -> list[Fact]:
    """Facts of those values that `names` has, by the name that it gives them."""
    return [Fact(group, label, values[name]) for name, label in names.items() if values.get(name)]


def counted(items: Iterable[str]) -> frozenset[str]:
    """The items as a set; those that occur more than once with their number."""
    count: dict[str, int] = {}
    for item in items:
        count[item] = count.get(item, 0) + 1
    return frozenset(item if number == 1 else f"{number} x {item}" for item, number in count.items())
