"""Verdicts as sentences."""

from collections.abc import Sequence
from math import inf, isfinite

from lepaute.compare.guidelines import Violation
from lepaute.compare.sessions import LEAST as LEAST_SESSIONS
from lepaute.compare.summaries import SLOW
from lepaute.compare.verdicts import MOST_TIMES, Correction, Forecast, Verdict
from lepaute.kit.text import counted, exact_size, seconds, three_digits
from lepaute.measure.comparison.cases import name_of


def sentence(verdict: Verdict, left: str, right: str) -> str:
    """Such as "Open MPI is faster by 12 % (9 to 15 %)": the share of the slower one's time that is saved; and who has
    more slow calls, where that is shown."""
    return f"{_of_medians(verdict, left, right)}{_of_slow_calls(verdict, left, right)}"


def _of_slow_calls(verdict: Verdict, left: str, right: str) -> str:
    if verdict.slow_calls is None:
        return ""
    names = {"left": left, "right": right}
    shares = sorted((verdict.left_slow, verdict.right_slow))
    more, less = (three_digits(100 * share) for share in reversed(shares))
    return f"; {names[verdict.slow_calls]} has more slow calls: {more} % against {less} % beyond {SLOW:g} medians"


def _of_medians(verdict: Verdict, left: str, right: str) -> str:
    outcome = verdict.outcome
    if outcome == "left faster":
        return f"{left} is faster by {_saved(1 / verdict.ratio, 1 / verdict.low, 1 / verdict.high)}"
    if outcome == "right faster":
        return f"{right} is faster by {_saved(verdict.ratio, verdict.high, verdict.low)}"
    if outcome == "no difference above the margin":
        return f"no difference above {100 * verdict.margin:g} %"
    if single := _of_single_runs([verdict], (left, right)):
        return f"{single} in these two runs, one run each: not tested"
    return f"no difference shown; {_needed(verdict)}"


def _of_single_runs(rows: Sequence[Verdict], names: tuple[str, str]) -> str:
    """How many times as long the slower one takes, where there is one run of each, of which no test can tell anything;
    else nothing."""
    if any(row.session_ratios or {row.left_mpiruns, row.right_mpiruns} != {1} for row in rows):
        return ""
    ratios = sorted(row.ratio for row in rows)
    power = -1 if ratios[-1] < 1 else 1
    ends = dict.fromkeys(three_digits(ratio**power) for ratio in (ratios[0], ratios[-1])[::power])
    return f"{names[power > 0]} takes {' to '.join(ends)} times as long"


def operation_name(verdict: Verdict) -> str:
    """As MPI calls it: Bcast, or Ibcast where it is nonblocking."""
    return name_of(verdict.operation, verdict.form)


def answer(verdicts: Sequence[Verdict], left: str, right: str, scope: str) -> str:
    """How many rows each library wins, in one sentence, and what that speaks of."""
    if not verdicts:
        return f"{left} and {right} were measured with no operation and size in common"
    outcomes = [one.outcome for one in verdicts]
    counts = [
        f"{left} is faster in {outcomes.count('left faster')}",
        f"{right} in {outcomes.count('right faster')}",
        f"no difference above {100 * verdicts[0].margin:g} % in {outcomes.count('no difference above the margin')}",
        f"{outcomes.count('undecided')} undecided",
    ]
    if {*outcomes} == {"undecided"}:
        single = _of_single_runs(verdicts, (left, right))
        counts = [f"none is tested, with one run each; {single} in these two" if single else "none is decided"]
    parts = [
        *counts,
        *(
            f"{name} has more slow calls in {count}"
            for name, side in ((left, "left"), (right, "right"))
            if (count := sum(one.slow_calls == side for one in verdicts))
        ),
    ]
    return f"of {counted(len(verdicts), 'row')}, {', '.join(parts)}; {scope}"


def correction_sentence(correction: Correction) -> str:
    """What was done to the p-values of many rows."""
    how = "Benjamini and Hochberg: at most 5 % of the decided are false" if correction == "fdr" else "Holm"
    return f"corrected for all rows together ({how})"


def change(verdict: Verdict) -> str:
    """The right library's time against the left one's: "+12.1 % (+9.3 to +15 %)"."""
    if not (isfinite(verdict.low) and isfinite(verdict.high) and verdict.low > 0):
        return f"{100 * (verdict.ratio - 1):+.3g} %, interval unlimited"
    low, high = 100 * (verdict.low - 1), 100 * (verdict.high - 1)
    return f"{100 * (verdict.ratio - 1):+.3g} % ({low:+.3g} to {high:+.3g} %)"


def violation_sentence(violation: Violation) -> str:
    """What a violated guideline costs."""
    size = "" if "(" in violation.guideline else f" at {exact_size(violation.size_bytes)}"
    return (
        f"{violation.guideline}{size} is violated: {violation.operation} takes {violation.ratio:.3g} times as long "
        f"({violation.low:.3g} to {violation.high:.3g}), {seconds(violation.excess_s)} a call"
    )


def _saved(ratio: float, low_ratio: float, high_ratio: float) -> str:
    """From times of the faster over the slower library; the interval may be open."""
    saved, low, high = (100 * (1 - value) for value in (ratio, low_ratio, high_ratio))
    bounds = sorted((low, high))
    return f"{three_digits(saved)} % ({three_digits(bounds[0])} to {three_digits(bounds[1])} %)"


def _needed(row: Verdict) -> str:
    if row.session_ratios:
        return _sessions_needed(len(row.session_ratios), row.forecast_sessions)
    made = min(row.left_mpiruns, row.right_mpiruns)
    forecast = row.forecast
    if forecast is None:
        few = "1 mpirun of each library is" if made == 1 else f"{made} mpiruns of each library are"
        return f"{few} too few to say how many would decide"
    if forecast.likely == inf:
        return f"more than {100 * made} mpiruns of each library would be needed"
    upper = "many" if forecast.high == inf else f"{forecast.high:.0f}"
    return f"about {forecast.likely:.0f} mpiruns of each library would decide ({forecast.low:.0f} to {upper})"


def _sessions_needed(made: int, forecast: Forecast | None) -> str:
    few = f"{counted(made, 'session')}, and {LEAST_SESSIONS} are needed; " if made < LEAST_SESSIONS else ""
    if forecast is None:
        return f"{few}too few to say how many sessions would decide"
    if forecast.likely == inf:
        return f"{few}more than {MOST_TIMES * made} sessions would be needed"
    upper = "many" if forecast.high == inf else f"{forecast.high:.0f}"
    return f"{few}about {forecast.likely:.0f} sessions would decide ({forecast.low:.0f} to {upper})"
