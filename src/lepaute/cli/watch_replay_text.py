"""What `lepaute watch replay` prints: a line for each report, day by day, and a last line that sums up."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lepaute.kit.text import counted
from lepaute.watch.report.summary import change_text, machines_text

if TYPE_CHECKING:
    from lepaute.watch.report.history import Day
    from lepaute.watch.report.summary import Regression

#: Of suspicious tests a day.
MOST_SUSPICIONS = 2


def replay_text(days: "Sequence[Day]", left: "Sequence[Regression]", *, tests: int, everything: bool, most: int) -> str:
    """The days with an alarm; with `everything` those with a suspicious test, too; and what is open at the end."""
    eventful = [day for day in days if day.alarms or (everything and day.suspicions)]
    shown = eventful if everything else eventful[:most]
    lines = [line for day in shown for line in _day_lines(day, everything=everything)]
    if len(eventful) > len(shown):
        lines.append(f"and {len(eventful) - len(shown)} more days; --all")
    lines += [
        f"open at the end: {machines_text(each.machines)}, since {each.since}: "
        f"{'; '.join(change_text(change) for change in each.changes)}"
        for each in left
    ]
    suspicious = sum(day.suspicious_tests for day in days)
    span = f", {days[0].date} to {days[-1].date}" if days else ""
    alarms = sum(len(day.alarms) for day in days)
    lines.append(
        f"{counted(len(days), 'day')}{span}: {counted(tests, 'test')}, {suspicious} suspicious, "
        f"{counted(alarms, 'alarm')}"
    )
    return "\n".join(lines)


def _day_lines(day: "Day", *, everything: bool) -> list[str]:
    lines = [
        f"{day.date}  ALARM {machines_text(each.machines)}, since {each.since}: "
        f"{'; '.join(change_text(change) for change in each.changes)}{'' if each.worse else ' (for the better)'}"
        for each in day.alarms
    ]
    if everything:
        shown = day.suspicions[:MOST_SUSPICIONS]
        lines += [
            f"{day.date}  {machines_text(each.machines)}: "
            f"{'; '.join(change_text(change) for change in each.changes)}, p = {each.p_value:.1g}"
            for each in shown
        ]
        if len(day.suspicions) > len(shown):
            lines.append(f"{day.date}  and {len(day.suspicions) - len(shown)} more suspicious (--json has all)")
    return lines
