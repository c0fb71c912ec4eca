"""The verdicts by other summaries of an mpirun: with and without Tukey's filter, medians and means."""

from typing import TYPE_CHECKING, Any

from lepaute.compare.verdicts import Verdict, verdicts
from lepaute.compare.wording import change, operation_name

if TYPE_CHECKING:
    from lepaute.compare.comparison import Comparison

#: Columns of `mpirun_summaries`, with their names.
WAYS = {
    "median_s": "median, filtered",
    "median_all_s": "median of all calls",
    "mean_s": "mean, filtered",
    "mean_all_s": "mean of all calls",
}


def other_ways(found: "Comparison") -> dict[str, tuple[Verdict, ...]]:
    """The verdicts by each summary that there is, by the names of WAYS, that of the comparison first."""
    others = {
        name: verdicts(
            *(found.summaries, found.left, found.right),
            margin=found.margin,
            value=value,
            correction=found.correction,
            primary=found.primary,
        )
        for value, name in WAYS.items()
        if value != found.value and value in found.summaries
    }
    return {WAYS[found.value]: found.verdicts, **others}


def changed_rows(found: "Comparison", ways: dict[str, tuple[Verdict, ...]]) -> list[dict[str, Any]]:
    """Rows whose outcome is not the same by every summary, each with its outcomes."""
    rows = []
    for each in zip(*ways.values(), strict=True):
        outcomes = [_side(one, found) for one in each]
        if len(set(outcomes)) > 1:
            first = each[0]
            name = {"operation": operation_name(first), "size_bytes": first.size_bytes}
            rows.append({**name, **dict(zip(ways, outcomes, strict=True))})
    return rows


def ways_rows(ways: dict[str, tuple[Verdict, ...]]) -> list[list[str]]:
    """The change by each summary, with its stars, a list a row."""
    return [[f"{change(one)} {one.stars}".rstrip() for one in each] for each in zip(*ways.values(), strict=True)]


def _side(verdict: Verdict, found: "Comparison") -> str:
    words = {"left faster": f"{found.left} faster", "right faster": f"{found.right} faster"}
    return words.get(verdict.outcome, verdict.outcome)
