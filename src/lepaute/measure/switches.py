"""Which nodes hang on which switch, as far as that is known: the classes of distance between nodes. Pure; no I/O."""

from collections.abc import Sequence
from dataclasses import dataclass

from lepaute.errors import InputError
from lepaute.kit.node_sets import parse_node_set

#: Classes of links: between two nodes of one switch, and of two.
SAME_SWITCH, ACROSS = "same-switch", "across"


@dataclass(frozen=True, slots=True)
class Switches:
    """The switches that nodes hang on, each by the names of its nodes; no node hangs on two. Empty: not known.

    What is above these switches is not told apart: two nodes of different ones are across.
    """

    nodes: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for name in (name for each in self.nodes for name in each):
            if name in seen:
                raise InputError(f"--switches has node {name} twice; a node hangs on one switch")
            seen.add(name)

    def of(self, node: str) -> int | None:
        """The number of its switch, None where that is not known."""
        return next((number for number, names in enumerate(self.nodes) if node in names), None)

    def distance(self, first: str, second: str) -> str | None:
        """SAME_SWITCH or ACROSS, None where the switch of either is not known."""
        one, other = self.of(first), self.of(second)
        if one is None or other is None:
            return None
        return SAME_SWITCH if one == other else ACROSS

    def among(self, nodes: Sequence[str]) -> "Switches":
        """The same of these nodes alone; switches without any of them are left out, as are all where one is unknown."""
        kept = [tuple(name for name in names if name in nodes) for names in self.nodes]
        if any(self.of(name) is None for name in nodes):
            return Switches()
        return Switches(tuple(names for names in kept if names))


def switches_of(text: str) -> Switches:
    """Of `a,b;c,d`: the nodes of each switch, as node sets. Raises InputError for anything else."""
    parts = [part.strip() for part in text.split(";")]
    if not all(parts):
        raise InputError(f"--switches is {text[:60]!r}; give the nodes of each switch, such as node[1-16];node[17-32]")
    return Switches(tuple(parse_node_set(part) for part in parts))
