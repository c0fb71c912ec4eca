"""Verdicts as sentences."""

from collections.abc import Sequence
from math import inf, isfinite

from lepaute.compare.guidelines import Violation
from lepaute.compare.summaries import SLOW
from lepaute.compare.verdicts import MOST_TIMES, Correction, Verdict
from lepaute.kit.text import (
    counted,
    exact_size,
    seconds,
    signed_percent,
    significant,
    value_and_interval,
    with_interval,
)
from lepaute.measure.comparison.cases import name_of
from lepaute.stats.decision import Decision


def sentence(verdict: Verdict, left: str, right: str) -> str:
    """Such as "Open MPI is faster by 12 % (9 to 15 %)": the share of the slower one's time that is saved; and who has
    more slow calls, where that is shown."""
    return f"{_of_medians(verdict, left, right)}{_of_slow_calls(verdict, left, right)}"


def _of_slow_calls(row: Verdict, left: str, right: str) -> str:
    if row.slow_calls is None:
        return ""
    names = {"left": left, "right": right}
    shares = sorted((row.left_slow, row.right_slow))
    more, less = (significant(100 * share) for share in reversed(shares))
    return f"; {names[row.slow_calls]} has more slow calls: {more} % against {less} % beyond {SLOW:g} medians"


def _of_medians(row: Verdict, left: str, right: str) -> str:
    decision, shown = row.decision, ""
    if decision.is_shown and row.ratio > 1:
        shown = f"{left} is faster by {_saved(1 / row.ratio, 1 / row.low, 1 / row.high)}"
    elif decision.is_shown:
        shown = f"{right} is faster by {_saved(row.ratio, row.high, row.low)}"
    needed = _needed(row) if row.forecast or row.forecast_sessions or row.outcome == "undecided" else ""
    return decision.words(
        shown,
        f"no difference above {100 * row.margin:g} %",
        f"no difference shown; {needed}",
        f"{_took([row], left, right)}not tested",
    ) + (f"; {needed}" if needed and row.outcome == "untested" else "")


def _took(rows: Sequence[Verdict], *labels: str) -> str:
    """By how much the same library took longer in all these rows, whether or not that is shown."""
    ratios = sorted(row.ratio for row in rows)
    if not (isfinite(sum(ratios)) and (ratios[0] > 1 or 0 < ratios[-1] < 1)):
        return ""
    slower = labels[ratios[0] > 1]
    ends = [significant(max(ratio, 1 / ratio)) for ratio in ratios]
    return f"{slower} took {' to '.join(dict.fromkeys((min(ends, key=float), max(ends, key=float))))} times as long, "


def operation_name(verdict: Verdict) -> str:
    """As MPI calls it: Bcast, or Ibcast where it is nonblocking."""
    return name_of(verdict.operation, verdict.form)


def answer(rows: Sequence[Verdict], left: str, right: str, scope: str, disturbed: str = "") -> str:
    """How many rows each library wins, in one sentence, and what that speaks of; disturbed: how many mpiruns were."""
    if not rows:
        return f"{left} and {right} were measured with no operation and size in common"
    if all(row.is_disturbed for row in rows):
        return f"{disturbed}: nothing is decided in {counted(len(rows), 'row')}; {scope}"
    outcomes = [row.outcome for row in rows]
    counts = [
        f"{left} is faster in {outcomes.count('left faster')}",
        f"{right} in {outcomes.count('right faster')}",
        f"no difference above {100 * rows[0].margin:g} % in {outcomes.count('no difference above the margin')}",
        f"{outcomes.count('undecided')} undecided",
    ]
    if untested := [row for row in rows if row.outcome == "untested"]:
        counts.append(f"{len(untested)} not tested")
    decision = Decision.of_several((row.decision for row in rows), "unknown")
    if len(untested) == len(rows):
        counts = [f"{_took(rows, left, right)}{decision.words('', '', '', 'none is tested')}"]
    elif not any(row.decision.is_decided for row in rows):
        counts = ["none is decided", *counts[4:]]
    parts = [
        *counts,
        *(
            f"{name} has more slow calls in {count}"
            for name, side in ((left, "left"), (right, "right"))
            if (count := sum(row.slow_calls == side for row in rows))
        ),
    ]
    return f"of {counted(len(rows), 'row')}, {', '.join(parts)}; {scope}"


def correction_sentence(correction: Correction) -> str:
    """What was done to the p-values of many rows."""
    how = "Benjamini and Hochberg: at most 5 % of the decided are false" if correction == "fdr" else "Holm"
    return f"corrected for all rows together ({how})"


def change(verdict: Verdict) -> str:
    """The right library's time against the left one's: "+12.1 % (+9.3 to +14.9 %)"."""
    high = verdict.high if verdict.low > 0 else inf
    return signed_percent(verdict.ratio - 1, verdict.low - 1, high - 1, "")


def violation_sentence(violation: Violation) -> str:
    """What a violated guideline costs."""
    size = "" if "(" in violation.guideline else f" at {exact_size(violation.size_bytes)}"
    ratio, bounds = value_and_interval(violation.ratio, violation.low, violation.high)
    return (
        f"{violation.guideline}{size} is violated: {violation.operation} takes {ratio} times as long "
        f"{f'({bounds})' if bounds else '(interval unlimited)'}, {seconds(violation.excess_s)} a call"
    )


def _saved(ratio: float, low_ratio: float, high_ratio: float) -> str:
    """From times of the faster over the slower library; the interval may be open."""
    saved, low, high = (100 * (1 - value) for value in (ratio, low_ratio, high_ratio))
    return with_interval(saved, min(low, high), max(low, high), "%", "")


def _needed(row: Verdict) -> str:
    made, what, forecast = len(row.session_ratios), "sessions", row.forecast_sessions
    if not made:
        made, what = min(row.left_mpiruns, row.right_mpiruns), "mpiruns of each library"
        forecast = row.forecast
    if forecast is None:
        return f"{made} {what} are too few to say how many would decide"
    if forecast.likely == inf:
        return f"more than {MOST_TIMES * made} {what} would be needed"
    upper = "many" if forecast.high == inf else f"{forecast.high:.0f}"
    return f"about {forecast.likely:.0f} {what} would decide ({forecast.low:.0f} to {upper})"
