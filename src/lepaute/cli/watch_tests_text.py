"""What `lepaute watch test` prints: what stands first, then what may be, then what is not known."""

import datetime as dt
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lepaute.kit.text import counted
from lepaute.watch.report.summary import absence_text, change_text, machines_text, suspicion_text

if TYPE_CHECKING:
    from lepaute.watch.report.summary import Regression, Summary, Suspicion, Waiting

#: Reports of a kind without --all.
MOST = 8
#: Factors of a report without --all.
MOST_FACTORS = 4


def summary_text(found: "Summary", *, everything: bool = False) -> str:
    """All sections that say something, and a last line that sums up."""
    lines: list[str] = []
    for title, reports in (
        (_regressions_title(found.regressions), [_regression(each, everything) for each in found.regressions]),
        (_suspicions_title(found), [_suspicion(each, everything) for each in found.suspicions]),
        (
            _title(len(found.absences), "machines that fail or do not report"),
            [f"  {absence_text(a)}" for a in found.absences],
        ),
        (_title(len(found.notices), "also worth a look"), [f"  {notice}" for notice in found.notices]),
        (_title(len(found.waiting), "not yet enough jobs to test"), [_waiting(w, everything) for w in found.waiting]),
    ):
        if reports:
            lines += [title, *_limited(reports, everything)]
    if found.regressions:
        lines.append("To record a cause: lepaute watch events propose, then accept")
    return "\n".join([*lines, _last_line(found)])


def _limited(reports: Sequence[str], everything: bool) -> list[str]:
    shown = list(reports) if everything else list(reports[:MOST])
    rest = len(reports) - len(shown)
    return shown + ([f"  and {rest} more; --all"] if rest else [])


def _title(count: int, what: str) -> str:
    return f"{what[:1].upper()}{what[1:]}:" if count else ""


def _regressions_title(regressions: "Sequence[Regression]") -> str:
    count = len(regressions)
    return f"{counted(count, 'open regression')}:"


def _suspicions_title(found: "Summary") -> str:
    older = f" ({found.older_suspicions} older: --since DATE)" if found.older_suspicions else ""
    return f"Suspicious tests, not confirmed{older}:"


def _factors(texts: Sequence[str], everything: bool) -> str:
    shown = texts if everything else texts[:MOST_FACTORS]
    rest = len(texts) - len(shown)
    return "; ".join(shown) + (f"; and {rest} more" if rest else "")


def _regression(each: "Regression", everything: bool) -> str:
    lines = [
        f"  {machines_text(each.machines)}, since {each.since}: "
        f"{_factors([change_text(change) for change in each.changes], everything)}",
    ]
    more = [f"alarm of {each.alarm}"]
    if each.archives:
        shown = each.archives if everything else each.archives[:1]
        more.append(f"archive {', '.join(archive[:12] for archive in shown)}")
    return "\n".join([*lines, f"    {'; '.join(more)}"])


def _suspicion(each: "Suspicion", everything: bool) -> str:
    shown = each.changes if everything else each.changes[:MOST_FACTORS]
    return f"  {suspicion_text(each, shown, len(each.changes) - len(shown))}"


def _waiting(each: "Waiting", everything: bool) -> str:
    more = counted(each.missing, "more job")
    return f"  {machines_text(each.machines)}: {more} ({_factors(each.factors, everything)})"


def _last_line(found: "Summary") -> str:
    count = len(found.regressions)
    stands = counted(count, "open regression") if count else "no open regression"
    days = "" if found.first is None else f", {span_text(found.first, found.last)}"
    clusters = ", ".join(each for each in found.clusters if each)
    return (
        f"{f'{clusters}: ' if clusters else ''}{counted(found.nodes, 'node')}, {counted(found.machines, 'CPU')}, "
        f"{counted(len(found.factors), 'factor')}{days}: {counted(found.tests, 'test')}, {stands}"
    )


def span_text(first: dt.date, last: dt.date | None) -> str:
    """2026-01-02 to 2026-03-01."""
    return f"{first}" if last in (None, first) else f"{first} to {last}"
