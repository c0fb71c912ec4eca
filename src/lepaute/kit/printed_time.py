"""The time that a program prints, found by a regular expression of the user's."""

import re
from collections.abc import Sequence
from math import inf

from lepaute.errors import InputError

#: Of the option that takes it.
PATTERN_HELP = r"regular expression for the seconds that the program prints: 'time: (\S+) s'"


def checked_pattern(pattern: str) -> str:
    """`pattern`, a regular expression with one group; raises InputError for anything else."""
    try:
        groups = re.compile(pattern).groups
    except re.error as problem:
        raise InputError(f"the pattern '{pattern}' is no regular expression: {problem}") from None
    if groups != 1:
        raise InputError(
            f"the pattern '{pattern}' has {groups} groups; it needs one, around the seconds: 'time: (\\S+) s'"
        )
    return pattern


def value_in(lines: Sequence[str], pattern: str) -> float:
    """The number that the last match of `pattern` in `lines` holds; raises ValueError, a line, where there is none."""
    matches = [match[1] for line in lines for match in [re.search(pattern, line)] if match]
    if not matches:
        raise ValueError(f"the program printed nothing that matches '{pattern}' on standard output")
    try:
        value = float(matches[-1])
    except (TypeError, ValueError):  # None: of a group that an alternative leaves out
        raise ValueError(f"the program printed {matches[-1]!r:.80} for '{pattern}', which is not a number") from None
    if not 0.0 <= value < inf:
        raise ValueError(f"the program printed {matches[-1]!r:.80} for '{pattern}', which is no time")
    return value
