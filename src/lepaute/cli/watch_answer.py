"""What `lepaute watch test` and `replay` say: who has changed in the first line, then what that rests on."""

import datetime as dt
from collections.abc import Mapping, Sequence

from lepaute.cli.terminal import Meaning, answer_text, details_text
from lepaute.kit.text import counted, exact_number, p_text
from lepaute.watch.named_nodes import nodes_text
from lepaute.watch.report.history import ChangeAlarm, Day, alarms_answer, is_open
from lepaute.watch.report.summary import (
    CHANGED,
    FAILED,
    FINE,
    SILENT,
    UNKNOWN,
    Regression,
    Summary,
    absence_state,
    absence_text,
    change_text,
    machines_text,
    open_text,
    regression_nodes,
    since_text,
    suspicion_text,
)

#: Without --details: lines below the answer, reports that a line names, factors of a report.
MAX_FACTS, MAX_NAMED, MAX_FACTORS = 5, 2, 3
#: What a colour of the answer says of a verdict.
MEANING: Mapping[str, Meaning] = {CHANGED: "bad", FAILED: "bad", SILENT: "bad", FINE: "good"}
#: Suspicious tests of a day in the details of a replay.
MAX_SUSPICIONS = 2


def tested_text(summary: "Summary", false_alarms: float, width: int, *, details: bool) -> str:
    """The report of `watch test`, for so many columns; false_alarms : the share that is false, in expectation."""
    answer = _answer(summary)
    if details:
        return details_text(answer, "\n".join([*_sections(summary), _rests_on(summary, false_alarms)]), width)
    why = {notice.text: notice.reason for notice in summary.notices if notice.is_unknown}
    least = {text: seen for text, (reason, seen) in why.items() if reason in answer}
    rests = [
        *(("least", seen) for seen in least.values()),
        *_other_facts(summary),
        ("from", _rests_on(summary, false_alarms)),
    ]
    regressions = [_regression(known, MAX_FACTORS, is_first=at == 0) for at, known in enumerate(summary.regressions)]
    most = max(1, MAX_FACTS - len(rests))
    if len(regressions) > most:
        regressions[most - 1 :] = [f"{regressions[most - 1]}; and {len(regressions) - most} more; --details"]
    facts = [*(("open" if at else "also", text) for at, text in enumerate(regressions)), *rests]
    others = [notice.caveat for notice in summary.notices if notice.text not in answer and notice.text not in least]
    return answer_text(answer, facts, others, width)


def _answer(summary: "Summary") -> str:
    """1 open regression: demo node7 ...; or in how many machines nothing has, and how many cannot be judged."""
    blind = summary.unjudged
    unknown = f"{blind} of {counted(summary.machines, 'CPU')} cannot be judged" if blind else ""
    if text := open_text(summary.regressions, summary.notices):
        return "; ".join(filter(None, [text, unknown if blind < summary.machines else ""]))
    if blind >= summary.machines:
        if few := [notice.reason[0] for notice in summary.notices if notice.is_unknown]:
            return f"Unknown: {_limited(few, 1)}"
        return f"Nothing can be said of {counted(summary.machines, 'CPU')}: silent, or too few jobs"
    since = "" if summary.first is None else f" since {summary.first}"
    judged = counted(summary.machines - blind, "CPU")
    return "; ".join(filter(None, [f"No open regression in {judged}{since}", unknown]))


def _other_facts(summary: "Summary") -> list[tuple[str, str]]:
    """Single tests, who cannot be judged, and what is worth a look."""
    facts = []
    if summary.suspicions or summary.older_suspicions:
        named = [f"{machines_text(s.machines)}: {', '.join(map(change_text, s.changes))}" for s in summary.suspicions]
        recent = f"{counted(len(named), 'suspicious test')} of the latest days"
        older = f"; {summary.older_suspicions} older" if summary.older_suspicions else ""
        facts.append(("single", f"{recent}{f': {_limited(named, MAX_NAMED)}' if named else ''}{older}"))
    unknown = {
        state: [absence_text(absence) for absence in summary.absences if absence_state(absence) == state]
        for state in (FAILED, SILENT)
    }
    unknown[UNKNOWN] = [f"{machines_text(w.machines)}: {counted(w.missing, 'more job')}" for w in summary.waiting]
    facts += [(state, _limited(texts, MAX_NAMED)) for state, texts in unknown.items() if texts]
    if summary.worth_a_look.lines:
        label = summary.worth_a_look.label
        facts.append(("look", f"{_limited([str(line) for line in summary.worth_a_look.lines], MAX_NAMED)}. {label}"))
    return facts


def _rests_on(summary: "Summary", false_alarms: float) -> str:
    """6744 tests of demo: 12 nodes, 24 CPUs, 3 factors, 2026-01-02 to 2026-02-28; ..."""
    days = "" if summary.first is None else f", {_span(summary.first, summary.last)}"
    clusters = ", ".join(cluster for cluster in summary.clusters if cluster)
    sizes = f"{counted(summary.nodes, 'node')}, {counted(summary.machines, 'CPU')}"
    whose = f"{f'{clusters}: ' if clusters else ''}{sizes}, {counted(len(summary.factors), 'factor')}{days}"
    return f"{counted(summary.tests, 'test')} of {whose}; {_at_most(false_alarms)}"


def _at_most(false_alarms: float) -> str:
    return f"at most {exact_number(100.0 * false_alarms)} % of alarms are expected to be false"


def _sections(summary: "Summary") -> list[str]:
    """Everything in full: what stands first, then what may be, then what is not known."""
    older = f" ({summary.older_suspicions} older: --since DATE)" if summary.older_suspicions else ""
    waiting = [
        f"  {machines_text(each.machines)}: {counted(each.missing, 'more job')} ({'; '.join(each.factors)})"
        for each in summary.waiting
    ]
    lines: list[str] = []
    for title, reports in (
        (counted(len(summary.regressions), "open regression"), [_in_full(report) for report in summary.regressions]),
        (f"Suspicious tests{older}", [f"  {suspicion_text(single, single.changes)}" for single in summary.suspicions]),
        ("Machines that fail or do not report", [f"  {absence_text(absence)}" for absence in summary.absences]),
        (summary.worth_a_look.label, [f"  {line}" for line in summary.worth_a_look.lines]),
        ("Also worth a look", [f"  {notice}" for notice in summary.notices]),
        ("Not yet enough jobs to test", waiting),
    ):
        if reports:
            lines += [f"{title}:", *reports]
    if summary.regressions or any(notice.is_worse for notice in summary.notices):
        lines.append("To record a cause: lepaute watch events propose, then accept")
    return lines


def _regression(regression: "Regression", most: int | None = None, *, is_first: bool = False) -> str:
    """is_first : the answer has its machines, its date and its first change"""
    alarm = f"alarm of {regression.alarm}"
    texts = list(map(change_text, regression.changes))
    if is_first:
        others = _limited(texts[1:], most)
        return f"{nodes_text('', regression.nodes)}: {f'{others}; ' if others else ''}{alarm}"
    return f"{regression_nodes(regression)}, {since_text(regression)}: {_limited(texts, most)}; {alarm}"


def _in_full(regression: "Regression") -> str:
    archives = f"; archive {', '.join(archive[:12] for archive in regression.archives)}" if regression.archives else ""
    return f"  {_regression(regression)}{archives}"


def _limited(texts: Sequence[str], most: int | None) -> str:
    more = 0 if most is None else len(texts[most:])
    return "; ".join(texts[:most]) + (f"; and {more} more" if more else "")


def _span(first: dt.date, last: dt.date | None) -> str:
    """2026-01-02 to 2026-03-01."""
    return f"{first}" if last in (None, first) else f"{first} to {last}"


def replayed_text(
    days: "Sequence[Day]",
    still_open: "Sequence[Regression]",
    tests: int,
    false_alarms: float,
    width: int,
    *,
    details: bool = False,
) -> str:
    """The report of `watch replay`: the alarms, the first ones named; with details a row for each, and every day."""
    answer = alarms_answer(days)
    suspicious = sum(day.suspicious_tests for day in days)
    span = f" on {counted(len(days), 'day')}, {_span(days[0].date, days[-1].date)}" if days else ""
    rests = f"{counted(tests, 'test')}{span}, {suspicious} suspicious; {_at_most(false_alarms)}"
    standing = [_regression(each, None if details else MAX_FACTORS) for each in still_open]
    if details:
        lines = [*(line for day in days for line in _lines(day)), *(f"open at the end: {text}" for text in standing)]
        return details_text(answer, "\n".join([*lines, rests]), width)
    alarms = [(day, alarm) for day in days for alarm in day.alarms]
    most = MAX_FACTS - 1 - bool(standing)
    shown = [f"{day.date}, {_alarm(each, MAX_FACTORS)}" for day, each in alarms[:most]]
    if len(alarms) > most:
        shown[-1] = f"{shown[-1]}; and {len(alarms) - most} more; --details"
    facts = [("alarm", text) for text in shown]
    if standing:
        is_it = len(alarms) == len(standing) == 1 and is_open(alarms[0][1], still_open)
        facts.append(("open", f"at the end: {'this one' if is_it else _limited(standing, 1)}"))
    return answer_text(answer, [*facts, ("from", rests)], (), width)


def _lines(day: "Day") -> list[str]:
    """A line for each alarm of a day and each of its suspicious tests, as far as they are shown."""
    lines = [f"{day.date}  alarm: {_alarm(alarm)}" for alarm in day.alarms]
    for suspicion in day.suspicions[:MAX_SUSPICIONS]:
        changes = "; ".join(map(change_text, suspicion.changes))
        lines.append(f"{day.date}  {machines_text(suspicion.machines)}: {changes}, {p_text(suspicion.p_value)}")
    if (more := len(day.suspicions) - MAX_SUSPICIONS) > 0:
        lines.append(f"{day.date}  and {more} more suspicious (--json has all)")
    return lines


def _alarm(alarm: "ChangeAlarm", most: int | None = None) -> str:
    changes = _limited(list(map(change_text, alarm.changes)), most)
    better = "" if alarm.worse else " (for the better)"
    return f"{machines_text(alarm.machines)}, {since_text(alarm)}: {changes}{better}"
