"""Verdicts as sentences."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, inf, isfinite, log, nan
from operator import itemgetter

from lepaute.kit.text import counted, exact_size, seconds, significant, value_and_interval
from lepaute.measure.compare.guidelines import Violation
from lepaute.measure.compare.summaries import SLOW
from lepaute.measure.compare.verdicts import MAX_TIMES, NORMAL, RATE, SIGNIFICANT, Correction, Tested, Verdict
from lepaute.measure.comparison.cases import name_of, plain_operation
from lepaute.stats.decision import Decision
from lepaute.stats.student import student_quantile

#: Rows that a sentence names, and a gate.
MAX_NAMED, _MAX_NAMED = 4, 5
#: With which a gate says what it would have seen.
POWER = 0.8


def sentence(row: Verdict, left: str, right: str) -> str:
    """Such as "mpich took 1.135 times as long (1.098 to 1.171): openmpi is faster"."""
    ratio, interval = _ratio_and_interval(row)
    return f"{right} took {ratio} times as long{interval}: {outcome_words(row, left, right)}"


def ratio_text(row: Tested | Violation) -> str:
    """Ratio of times, with its interval, such as "1.135 (1.098 to 1.171)", or the spread inside single runs."""
    return "".join(_ratio_and_interval(row))


def _ratio_and_interval(row: Tested | Violation) -> tuple[str, str]:
    """Without an interval, by the spread inside single runs, if it is known."""
    spread = getattr(row, "spread", (nan, nan))
    has_interval = isfinite(row.high) and row.low > 0
    low, high = (row.low, row.high) if has_interval else spread
    ratio, bounds = value_and_interval(row.ratio, low, high)
    ratio = ratio if bounds else significant(row.ratio)
    return ratio, f" ({'' if has_interval else 'by minima and maxima '}{bounds})" if bounds else ""


def outcome_words(row: Verdict, left: str, right: str) -> str:
    """Who is faster, as far as that is shown, and who has more slow calls, where that is."""
    return f"{_of_medians(row, left, right)}{_slow_calls_text(row, left, right)}"


def amount(row: Verdict, time_s: float) -> str:
    """A time of a row as people read it: of a rate, the rate."""
    if row.form == RATE:
        return f"{significant(row.size_bytes / time_s / 1e6)} MB/s" if time_s > 0 else "0 MB/s"
    return seconds(time_s)


def _slow_calls_text(row: Verdict, left: str, right: str) -> str:
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
        "; ".join(filter(None, ("no difference shown", needed))),
    )


def _took(rows: Sequence[Verdict], left: str, right: str) -> str:
    """How many times as long the right library took, at least and at most, in rows that are not tested."""
    ends = sorted(row.ratio for row in rows)
    texts = dict.fromkeys(significant(end) for end in (ends[0], ends[-1]) if isfinite(end))
    among = "both rows" if len(rows) == 2 else f"{'all ' if rows[1:] else ''}{counted(len(rows), 'row')}"
    if not texts:
        return f"of {among}, none has a ratio"
    return f"in {among} {right} took {' to '.join(texts)} times as long as {left}"


def operation_name(row: Verdict) -> str:
    """As MPI calls it: Bcast, or Ibcast where it is nonblocking."""
    return name_of(row.operation, row.form)


def answer(rows: Sequence[Verdict], left: str, right: str, scope: str, disturbed: str = "") -> str:
    """How many rows each library wins, in one sentence, and what that speaks of; disturbed: how many mpiruns were."""
    if not rows:
        return f"{left} and {right} were measured with no operation and size in common"
    if all(row.is_disturbed for row in rows):
        return f"{disturbed}: nothing is decided in {counted(len(rows), 'row')}; {scope}"
    of = Counter(row.outcome for row in rows)
    counts = [f"{left} is faster in {of['left faster']}", f"{right} in {of['right faster']}"]
    if equal := of["no difference above the margin"]:
        counts.append(f"no difference above {100 * rows[0].margin:g} % in {equal}")
    counts += [f"{of['undecided']} undecided"] * bool(of["undecided"])
    if not any(row.decision.is_decided for row in rows):
        counts = ["none is decided"]
    counts += [f"{of['untested']} not tested"] * bool(of["untested"])
    decision = Decision.of_several((row.decision for row in rows), "unknown")
    slow = [
        f"{name} has more slow calls in {count}"
        for name, side in ((left, "left"), (right, "right"))
        if (count := sum(row.slow_calls == side for row in rows))
    ]
    if of["untested"] == len(rows):
        return "; ".join([_took(rows, left, right), decision.words("", "", "", "not tested"), *slow, scope])
    bad, _, of_all, *_ = disturbed.split() or "0 of 1".split()
    scope = f"{disturbed.partition(' by ')[0]}; {scope}" if 2 * int(bad) >= int(of_all) else scope
    return f"of {counted(len(rows), 'row')}, {', '.join([*counts, *slow])}; {scope}"


def order_sentence(what: str, groups: Iterable[tuple[str, Sequence[Verdict]]], first: str, second: str) -> str:
    """Whether the faster library of a row depends on the group of verdicts; what: by which groups differ."""
    rows: dict[tuple[str, str, int], dict[str, list[str]]] = {}
    for name, verdicts in groups:
        for verdict in verdicts:
            row = plain_operation(verdict.operation), verdict.form, verdict.size_bytes
            rows.setdefault(row, {}).setdefault(verdict.outcome, []).append(name)
    changed = [
        f"{name_of(operation, form)} of {exact_size(size)} ({first} with {', '.join(sides['left faster'])}, "
        f"{second} with {', '.join(sides['right faster'])})"
        for (operation, form, size), sides in rows.items()
        if {"left faster", "right faster"} <= set(sides)
    ]
    if not changed:
        return f"{what} is not shown to change the order of {first} and {second} in any row"
    more = f" and {len(changed) - MAX_NAMED} more" if len(changed) > MAX_NAMED else ""
    return f"the faster library depends on {what} in {', '.join(changed[:MAX_NAMED])}{more}"


def correction_sentence(correction: Correction) -> str:
    """Sentence on the correction of the p-values of many rows."""
    how = "Benjamini and Hochberg: at most 5 % of the decided are false" if correction == "fdr" else "Holm"
    return f"corrected for all rows together ({how})"


def violation_sentence(violation: Violation) -> str:
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
    if forecast is None and row.session_ratios:
        return ""
    if forecast is None:
        return f"{made} {what} are too few to say how many would decide"
    if forecast.likely == inf:
        return f"more than {MAX_TIMES * made} {what} would be needed"
    upper = "many" if forecast.high == inf else f"{forecast.high:.0f}"
    return f"about {forecast.likely:.0f} {what} would decide ({forecast.low:.0f} to {upper})"


@dataclass(frozen=True, slots=True)
class Gate:
    """Whether a library became slower by more than what is allowed, for a pipeline that has to stop then.

    rows: of each whether it takes longer by more than the share; cannot_fail: why it stops none, or empty
    """

    right: str
    share: float
    rows: tuple[tuple[Decision, Verdict], ...]
    cannot_fail: str = ""

    @property
    def decision(self) -> Decision:
        """Whether it is slower in any row."""
        return Decision.of_several(decision for decision, _ in self.rows)

    def status(self, *, strict: bool = False) -> int:
        """Exit status, as `Decision.status`; if it cannot fail a build 0, or 3 if strict."""
        return 3 * strict if self.cannot_fail else self.decision.status("for", strict=strict)

    @property
    def sentence(self) -> str:
        """The answer, why it may not count, and what it could not have seen, in one line."""
        limit = f"{100 * self.share:g} %"
        words = {"undecided": "undecided", "not tested": "unknown"}
        open_rows = "".join(f"; {word}: {_named(rows)}" for word, name in words.items() if (rows := self.of(name)))
        slower, none = f"{self.right} is slower by more than {limit}", counted(len(self.rows), "row")
        not_shown = f"{self.right} is not shown to be slower by more than {limit}{open_rows or ': no row'}"
        shown = f"{slower} in {_named(self.of('for'))}{open_rows}"
        answer = self.decision.pick(shown, f"{slower} in none of {none}", not_shown, not_shown)
        cannot = f"this cannot fail a build: {self.cannot_fail}; " if self.cannot_fail else ""
        return f"{cannot}{answer}{self._unseen}"

    @property
    def _unseen(self) -> str:
        seen = sorted(((self.smallest_seen(row), row) for _, row in self.rows), key=itemgetter(0))
        if not seen:
            return ""
        (middle, _), (worst, row) = seen[(len(seen) - 1) // 2], seen[-1]
        texts = ["none" if each == inf else f"{significant(100 * each)} %" for each in (middle, worst)]
        at_worst = f", {texts[1]} in {_row_name(row)}" if len(seen) > 1 and texts[1] != texts[0] else ""
        return f"; smallest slowdown that would be seen with a chance of 80 %: {texts[0]} in the median row{at_worst}"

    def smallest_seen(self, row: Verdict) -> float:
        """The share by which the right library must be slower to be shown to be, with a chance of POWER; inf for none.

        The shift must exceed what is significant among all rows, and its interval's lower end the limit.
        """
        if row.outcome == "untested" or not (row.low > 0 and isfinite(row.high)):
            return inf
        half, days = log(row.ratio / row.low), len(row.session_ratios)
        normal = [NORMAL.inv_cdf(level) for level in (1 - SIGNIFICANT / 2 / len(self.rows), 0.975, POWER)]
        single, usual, power = [student_quantile(NORMAL.cdf(z), days - 1) for z in normal] if days > 1 else normal
        needed = max(half * single / usual, log(1 + self.share) + half)
        return exp(needed + half * power / usual) - 1

    def of(self, answer: str) -> tuple[Verdict, ...]:
        """The rows that are decided so."""
        return tuple(row for decision, row in self.rows if decision.answer == answer)


def gate(verdicts: tuple[Verdict, ...], right: str, share: float, cannot_fail: str = "") -> Gate:
    """share: of the left library's time, 0.05 for 5 %"""
    limit = 1 + share
    slower = (Decision.of(row.decision.is_shown and row.low > limit, row.high <= limit, row.weaknesses)
              for row in verdicts)  # fmt: skip
    return Gate(right, share, tuple(zip(slower, verdicts, strict=True)), cannot_fail)


def _row_name(one: Verdict) -> str:
    return f"{name_of(one.operation, one.form)} of {exact_size(one.size_bytes)}"


def _named(rows: tuple[Verdict, ...]) -> str:
    names = [_row_name(row) for row in rows[:_MAX_NAMED]]
    more = [f"{len(rows) - _MAX_NAMED} more"] if len(rows) > _MAX_NAMED else []
    return f"{counted(len(rows), 'row')}: {', '.join([*names, *more])}"
