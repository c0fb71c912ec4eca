"""Sets of nodes as people write them, node[1-32]; ClusterShell reads them. Names from untrusted files: `folded`."""

import re
from collections import defaultdict
from collections.abc import Iterable
from math import prod

from lepaute.errors import InputError, LepauteError

#: More nodes than this are a slip of the keyboard.
MAX_NODES = 10_000
#: A host name, or an alias of ssh's configuration; nothing that a shell or an option parser could take otherwise.
_NODE_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
#: Names, ranges, groups and set operators, and nothing else: ClusterShell puts the name of a group, such as it is, into
#: the shell commands that groups.conf configures, by default into a program of sed's, which could run commands itself.
_RANGE = r"[0-9]+(?:-[0-9]+(?:/[1-9][0-9]*)?)?"
_RANGES = rf"\[{_RANGE}(?:,{_RANGE})*\]"
_NAMES = rf"(?:[A-Za-z0-9._-]|{_RANGES})+"
_GROUP = rf"@(?:[A-Za-z0-9_][A-Za-z0-9_.-]*:)?(?:\*|[A-Za-z0-9_](?:[A-Za-z0-9_.-]|{_RANGES})*)"
_NODE_SET = re.compile(rf"(?:{_NAMES}|{_GROUP})(?:[,!&^](?:{_NAMES}|{_GROUP}))*")
_MAX_CHARACTERS = 10_000
#: Nodes of the groups in the file that ClusterShell's packages install, compute and gpu among them.
_OF_AN_EXAMPLE = re.compile(r"example[0-9]+")
#: The last number of a name, with what is before and after it; a longer one is a name, not a number to count by.
_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})([^0-9]*)", re.DOTALL)


def parse_node_set(text: str) -> tuple[str, ...]:
    """The nodes of a set such as `node[1-4,7]` or `@compute`, each once, in ClusterShell's order.

    Raises InputError for what is no set, has no or too many nodes, or names that no node can have.
    """
    if len(text) > _MAX_CHARACTERS or not _NODE_SET.fullmatch(text):
        raise InputError(f"{text[:60]!r} is not a set of nodes; give names and ranges such as node[1-4,7],login")
    if _upper_bound(text) > MAX_NODES:
        raise InputError(f"{text[:60]!r} names more than {MAX_NODES} nodes")
    from ClusterShell.NodeSet import NodeSet, NodeSetException
    from ClusterShell.NodeUtils import GroupResolverError, GroupSourceError
    from ClusterShell.RangeSet import RangeSetException

    try:
        nodes = NodeSet(text)
        if len(nodes) > MAX_NODES:
            raise InputError(f"{text[:60]!r} names more than {MAX_NODES} nodes")
        names = tuple(str(name) for name in nodes)
    except LepauteError:
        raise
    except (
        *(NodeSetException, RangeSetException, GroupResolverError, GroupSourceError, ValueError),
        AssertionError,  # a range of names that digits follow is too large
    ) as problem:
        raise InputError(f"{text[:60]!r} is not a set of nodes: {' '.join(str(problem).split())[:200]}") from None
    if not names:
        raise InputError(f"{text[:60]!r} is an empty set of nodes")
    if "@" in text and all(_OF_AN_EXAMPLE.fullmatch(name) for name in names):
        raise InputError(
            f"{text[:60]!r} names a group of the example that comes with ClusterShell; define it in "
            "/etc/clustershell/groups.d, or give the nodes"
        )
    return tuple(check_node_name(name) for name in names)


def check_node_name(name: str) -> str:
    """The name, if it can be one of a node; raises InputError otherwise."""
    if not _NODE_NAME.fullmatch(name):
        raise InputError(f"{name[:60]!r} is not a valid node name; give host names such as node[1-32]")
    return name


def fold_node_set(names: tuple[str, ...]) -> str:
    """The short form of a set, node[1-4,7]."""
    from ClusterShell.NodeSet import NodeSet

    return str(NodeSet.fromlist(list(names)))


def _upper_bound(text: str) -> int:
    """At least the number of names in the set's brackets, found without expanding them."""

    def numbers(item: str) -> int:
        ends = re.fullmatch(r"(\d+)-(\d+)(?:/\d+)?", item)
        if ends is None:
            return 1
        # ClusterShell does not count with numbers of many digits, and Python with those of thousands.
        return MAX_NODES + 1 if len(ends[0]) > 30 else max(int(ends[2]) - int(ends[1]) + 1, 1)

    parts = re.findall(r"(?:\[[^\]]*\]|[^\[,])+", text)
    brackets = (re.findall(r"\[([^\]]*)\]", part) for part in parts)
    return sum(prod(sum(map(numbers, ranges.split(","))) for ranges in part) for part in brackets)


def folded(names: Iterable[str]) -> str:
    """The names as one node set, in the notation of ClusterShell; sorted, each once; empty for none.

    Not ClusterShell's: names in untrusted archives may be anything, and this folds without parsing sets.
    """
    numbered: dict[tuple[str, str, int], set[int]] = defaultdict(set)
    sets = []
    for name in sorted(set(names)):
        if (match := _NUMBERED.fullmatch(name)) is None:
            sets.append((name, name))
            continue
        before, digits, after = match.groups()
        # Numbers with leading zeros only fold with those of their own width.
        numbered[before, after, len(digits) if digits.startswith("0") else 0].add(int(digits))
    for (before, after, width), numbers in sorted(numbered.items()):
        firsts = sorted(number for number in numbers if number - 1 not in numbers)
        lasts = sorted(number for number in numbers if number + 1 not in numbers)
        inner = ",".join(
            [f"{a:0{width}}" if a == b else f"{a:0{width}}-{b:0{width}}" for a, b in zip(firsts, lasts, strict=True)]
        )
        sets.append((before, f"{before}[{inner}]{after}" if len(numbers) > 1 else f"{before}{inner}{after}"))
    return ",".join(text for _, text in sorted(sets))
