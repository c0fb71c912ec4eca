"""Verdicts as sentences."""

from collections.abc import Sequence
from math import inf, isfinite, nan

from lepaute.compare.guidelines import Violation
from lepaute.compare.summaries import SLOW
from lepaute.compare.verdicts import MOST_TIMES, RATE, Correction, Tested, Verdict
from lepaute.kit.text import counted, exact_size, seconds, significant, value_and_interval
from lepaute.measure.comparison.cases import name_of
from lepaute.stats.decision import Decision


def sentence(verdict: Verdict, left: str, right: str) -> str:
    """Such as "mpich took 1.135 times as long (1.098 to 1.171): openmpi is faster"."""
    ratio, interval = _ratio_and_interval(verdict)
    return f"{right} took {ratio} times as long{interval}: {verdict_words(verdict, left, right)}"


def ratio_text(verdict: Tested) -> str:
    """Of times, with its interval, such as "1.135 (1.098 to 1.171)", or the spread inside single runs."""
    return "".join(_ratio_and_interval(verdict))


def _ratio_and_interval(row: Tested) -> tuple[str, str]:
    """Without an interval, by the spread inside single runs, if it is known."""
    spread = getattr(row, "spread", (nan, nan))
    has_interval = isfinite(row.high) and row.low > 0
    low, high = (row.low, row.high) if has_interval else spread
    ratio, bounds = value_and_interval(row.ratio, low, high)
    return ratio, f" ({'' if has_interval else 'by minima and maxima '}{bounds})" if bounds else ""


def verdict_words(verdict: Verdict, left: str, right: str) -> str:
    """Who is faster, as far as that is shown, and who has more slow calls, where that is."""
    return f"{_of_medians(verdict, left, right)}{_of_slow_calls(verdict, left, right)}"


def amount(verdict: Verdict, time_s: float) -> str:
    """A time of a row as people read it: of a rate, the rate."""
    if verdict.form == RATE:
        return f"{significant(verdict.size_bytes / time_s / 1e6)} MB/s" if time_s > 0 else "0 MB/s"
    return seconds(time_s)


def _of_slow_calls(row: Verdict, left: str, right: str) -> str:
    if row.slow_calls is None:
        return ""
    names = {"left": left, "right": right}
    shares = sorted((row.left_slow, row.right_slow))
    more, less = (significant(100 * share) for share in reversed(shares))
    return f"; {names[row.slow_calls]} has more slow calls: {more} % against {less} % beyond {SLOW:g} medians"


def _of_medians(row: Verdict, left: str, right: str) -> str:
    needed = _needed(row) if row.forecast or row.forecast_sessions or row.outcome == "undecided" else ""
    if row.outcome == "untested":
        return f"{'; '.join(row.decision.reasons)}: not tested{needed and f'; {needed}'}"
    return row.decision.words(
        f"{left if row.ratio > 1 else right} is faster",
        f"no difference above {100 * row.margin:g} %",
        f"no difference shown; {needed}",
    )


def _took(rows: Sequence[Verdict], right: str) -> str:
    """How many times as long the right library took, at least and at most, whether or not that is shown."""
    ends = sorted(row.ratio for row in rows)
    texts = dict.fromkeys(significant(end) for end in (ends[0], ends[-1]) if isfinite(end))
    return f"{right} took {' to '.join(texts)} times as long, " if texts else ""


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
        counts = [f"{_took(rows, right)}{decision.words('', '', '', 'none is tested')}"]
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


def violation_sentence(violation: Violation) -> str:
    """What a violated guideline costs."""
    size = "" if "(" in violation.guideline else f" at {exact_size(violation.size_bytes)}"
    ratio, bounds = value_and_interval(violation.ratio, violation.low, violation.high)
    return (
        f"{violation.guideline}{size} is violated: {violation.operation} takes {ratio} times as long "
        f"{f'({bounds})' if bounds else '(interval unlimited)'}, {seconds(violation.excess_s)} a call"
    )


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
