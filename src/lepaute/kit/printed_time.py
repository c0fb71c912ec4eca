"""What programs print: the time, found by a regular expression of the user's; what launchers put before each line."""

import re
from collections.abc import Sequence
from math import inf

from lepaute.errors import InputError

#: Of the option that takes it.
PATTERN_HELP = r"regular expression for the seconds that the program prints: 'time: (\S+) s'"

#: What launchers put before each line of a rank: [0] of -prepend-rank, [1,0]<stdout>: of --tag-output, 0: of srun -l.
_PREFIX = re.compile(r"(\[(?:[^\]\s,]*,)?\d+\](?:<std(?:out|err)>:|(?=\s|$))|\s*\d+:(?=\s)) ?")


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


def without_prefix(lines: list[str], heading: re.Pattern[str]) -> tuple[list[str], tuple[str, ...]]:
    """Lines without what a launcher put before each, where it did so before a heading; a sentence on those left out.

    heading : begins with it. What other ranks printed, or that one on standard error, becomes a comment.
    """
    matches = [_PREFIX.match(line) for line in lines]
    first = next((match for match in matches if match and heading.match(match.string[match.end() :].strip())), None)
    if first is None or any(heading.match(line.strip()) for line in lines):
        return lines, ()
    others = [at for at, match in enumerate(matches, 1) if match and match[1].strip() != first[1].strip()]
    plain = [line[match.end() :] if match else line for line, match in zip(lines, matches, strict=True)]
    for at in others:
        plain[at - 1] = "#"
    text = f"{lines_text(others)} left out, as the launcher's {first[1].strip()} is not before them"
    return plain, (text,) if others else ()


def lines_text(numbers: Sequence[int]) -> str:
    """Lines 4, 5, ...: of many the first ones."""
    return f"line{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers[:5]))}{', ...' * (len(numbers) > 5)}"
