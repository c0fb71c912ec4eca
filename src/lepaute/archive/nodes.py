"""Names of nodes, short: node1 node2 node3 become node[1-3]."""

import re
from collections import defaultdict
from collections.abc import Iterable

#: The last number of a name, with what is before and after it; a longer one is a name, not a number to count by.
_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})([^0-9]*)", re.DOTALL)


def folded(names: Iterable[str]) -> str:
    """The names as one node set, in the notation of ClusterShell; sorted, each once; empty for none.

    Not ClusterShell's: names in untrusted archives may be anything, and this folds without parsing sets.
    """
    numbered: dict[tuple[str, str, int], set[int]] = defaultdict(set)
    plain = set()
    for name in names:
        match = _NUMBERED.fullmatch(name)
        if match is None:
            plain.add(name)
            continue
        before, digits, after = match.groups()
        # Numbers with leading zeros only fold with those of their own width.
        width = len(digits) if digits.startswith("0") else 0
        numbered[before, after, width].add(int(digits))
    sets = [
        (before, _set(before, after, width, members)) for (before, after, width), members in sorted(numbered.items())
    ]
    return ",".join(text for _, text in sorted([*sets, *((name, name) for name in plain)]))


def _set(before: str, after: str, width: int, numbers: set[int]) -> str:
    ranges = []
    for first, last in _ranges(sorted(numbers)):
        ranges.append(f"{first:0{width}}" if first == last else f"{first:0{width}}-{last:0{width}}")
    inner = ",".join(ranges)
    return f"{before}[{inner}]{after}" if len(numbers) > 1 else f"{before}{inner}{after}"


def _ranges(numbers: list[int]) -> Iterable[tuple[int, int]]:
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1:
            yield first, last
            first = number
        last = number
    yield first, last
