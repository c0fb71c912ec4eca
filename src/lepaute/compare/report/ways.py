"""The verdicts by other summaries of an mpirun: with and without Tukey's filter, medians and means."""

from typing import TYPE_CHECKING, Any

from lepaute.compare.verdicts import Verdict, verdicts
from lepaute.compare.wording import change, operation_name

if TYPE_CHECKING:
    from lepaute.compare.comparison import Comparison

#: Columns of `mpirun_summaries`, with their names; the first is what the verdicts rest on.
WAYS = {
    "median_s": "median, filtered",
    "median_all_s": "median of all calls",
    "mean_s": "mean, filtered",
    "mean_all_s": "mean of all calls",
}


def other_ways(found: "Comparison") -> dict[str, tuple[Verdict, ...]]:
    """The verdicts by each column of WAYS, rows in the order of those of the comparison."""
    others = {
        value: verdicts(found.summaries, found.left, found.right, margin=found.margin, value=value)
        for value in list(WAYS)[1:]
    }
    return {next(iter(WAYS)): found.verdicts, **others}


def changed_rows(found: "Comparison", ways: dict[str, tuple[Verdict, ...]]) -> list[dict[str, Any]]:
    """Rows whose outcome is not the same by every summary, each with its outcomes."""
    rows = []
    for each in zip(*ways.values(), strict=True):
        outcomes = [_side(one, found) for one in each]
        if len(set(outcomes)) > 1:
            first = each[0]
            name = {"operation": operation_name(first), "size_bytes": first.size_bytes}
            rows.append({**name, **dict(zip(WAYS.values(), outcomes, strict=True))})
    return rows


def ways_rows(ways: dict[str, tuple[Verdict, ...]]) -> list[list[str]]:
    """The change by each summary, with its stars, a list a row."""
    return [[f"{change(one)} {one.stars}".rstrip() for one in each] for each in zip(*ways.values(), strict=True)]


def _side(verdict: Verdict, found: "Comparison") -> str:
    words = {"left faster": f"{found.left} faster", "right faster": f"{found.right} faster"}
    return words.get(verdict.outcome, verdict.outcome)
