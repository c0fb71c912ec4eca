"""What is said against the observations of a node, between two dates, and how it gets into their rows."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from lepaute.errors import InputError

Kind = Literal["step", "drift", "temperature", "other user", "clock step", "throttling"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One reason to distrust, such as "node3: the reference kernel became 6.2 % slower at 14:02:31 UTC (p = 0.0005)".

    start_s, end_s : of the time in which it was so, seconds since the epoch, both included; for a step, the dates of
                     the last value before and of the first value after it
    """

    node: str
    kind: Kind
    start_s: float
    end_s: float
    message: str


def mark(rows_time_s: Sequence[float], rows_node: Sequence[str], verdicts: Iterable[Verdict]) -> list[str]:
    """The text of each observation's column `machine_changed`: "" where it is to be trusted.

    rows_time_s : date of each row, seconds since the epoch; rows_node : its node; both of one length
    A row within a verdict's time gets its kind. A step changes all that comes after it: the stretches between the
    steps of a node are numbered, and every row after the first step gets "segment 2 of 3", a row between the two dates
    of a step gets "step". Several texts are joined by "; ", in alphabetical order, so that rows with the same troubles
    are equal.
    Raises InputError where the lengths differ.
    """
    if len(rows_time_s) != len(rows_node):
        raise InputError(
            f"there are {len(rows_time_s)} dates and {len(rows_node)} nodes of rows; give one of each a row"
        )
    of_node: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        of_node.setdefault(verdict.node, []).append(verdict)
    steps = {node: sorted(v.end_s for v in mine if v.kind == "step") for node, mine in of_node.items()}
    # a text depends on nothing but the dates that a row lies between, and there are many more rows than dates
    edges = {node: sorted({date for v in mine for date in (v.start_s, v.end_s)}) for node, mine in of_node.items()}
    known: dict[tuple[str, int, int], str] = {}
    texts = []
    for time_s, node in zip(rows_time_s, rows_node, strict=True):
        if node not in edges:
            texts.append("")
            continue
        place = (node, bisect_left(edges[node], time_s), bisect_right(edges[node], time_s))
        if place not in known:
            known[place] = _text(time_s, of_node[node], steps[node])
        texts.append(known[place])
    return texts


def _text(time_s: float, verdicts: Sequence[Verdict], step_ends_s: Sequence[float]) -> str:
    texts: set[str] = set()
    for verdict in verdicts:
        # the first value after a step is of the new level
        last = time_s < verdict.end_s if verdict.kind == "step" else time_s <= verdict.end_s
        first = time_s > verdict.start_s if verdict.kind == "step" else time_s >= verdict.start_s
        if first and last:
            texts.add(verdict.kind)
    segment = bisect_right(step_ends_s, time_s)
    if segment:
        texts.add(f"segment {segment + 1} of {len(step_ends_s) + 1}")
    return "; ".join(sorted(texts))


def clock(time_s: float) -> str:
    """The time of day in UTC, to the second: "14:02:31"."""
    return f"{datetime.fromtimestamp(time_s, UTC):%H:%M:%S}"


def when(start_s: float, end_s: float) -> str:
    """ "at 14:02:31 UTC", or "from 14:02:31 to 14:05:00 UTC" where these differ."""
    first, last = clock(start_s), clock(end_s)
    return f"at {first} UTC" if first == last else f"from {first} to {last} UTC"
