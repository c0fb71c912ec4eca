"""What people write behind the values of an HPL.dat. HPL does not read it, but it tells where a line is missing."""

import re
from collections.abc import Sequence
from typing import NamedTuple

#: By the number of the line, as in HPL's own file and in Lepaute's; of counts without the "# " or "number " before.
_LABELS = {
    5: r"of (?:problems?|matrix) sizes?",
    6: r"^ns?\b",
    7: r"of (?:nbs?\b|block)",
    8: r"^nbs?\b",
    9: r"^pmap\b|process mapping",
    10: r"of process grids?",
    11: r"^ps?\b",
    12: r"^qs?\b",
    13: r"^threshold",
    14: r"of panel fact",
    15: r"^pfacts?\b",
    16: r"stopping criteri",
    17: r"^nbmins?\b",
    18: r"panels in recursion",
    19: r"^ndivs?\b",
    20: r"of recursive (?:panel )?fact",
    21: r"^rfacts?\b",
    22: r"of broadcasts?",
    23: r"^bcasts?\b",
    24: r"of look-?ahead",
    25: r"^depths?\b",
    26: r"^swap\b",
    27: r"swapping threshold",
    28: r"^l1\b",
    29: r"^u\b",
    30: r"^equil",
    31: r"align",
}
_PATTERNS = {line: re.compile(pattern, re.IGNORECASE) for line, pattern in _LABELS.items()}


class Misplaced(NamedTuple):
    """A line whose label is that of another line."""

    line: int
    label: str
    home: int


def first_misplaced(lines: Sequence[str]) -> Misplaced | None:
    """The first of the lines, from the file's first on, that has the label of another one."""
    for number, text in enumerate(lines, start=1):
        words = text.split()
        while words and re.match(r"[+-]?\.?[0-9]", words[0]):
            words.pop(0)
        label = " ".join(words)[:80]
        homes = [line for line, pattern in _PATTERNS.items() if pattern.search(label)]
        if homes and number not in homes and number >= min(_PATTERNS):
            return Misplaced(number, label, homes[0])
    return None
