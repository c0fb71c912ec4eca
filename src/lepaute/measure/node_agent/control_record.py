"""What machine control says of each thing it did, or could not do."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from .system_files import format_cpus

#: {"control", "target", "before", "after", "status": done | unchanged | warning, "message"}
Record = dict[str, Any]

_NUMBERED = re.compile(r"/(cpu|policy)([0-9]+)(?=/)")


class Change(NamedTuple):
    """A value that a control wants in a file of the system."""

    control: str
    target: str
    wanted: str


def record(
    control: str, target: str, status: str, message: str = "", before: str | None = None, after: str | None = None
) -> Record:
    """One record; before and after are null where there is no value."""
    return {
        "control": control,
        "target": target,
        "before": before,
        "after": after,
        "status": status,
        "message": message,
    }


def warning(control: str, target: str, message: str) -> Record:
    """The record of something that was wanted and is not so."""
    return record(control, target, "warning", message)


def fold(records: list[Record]) -> list[Record]:
    """One record for those that differ in nothing but the CPU in their target: .../cpu[0-63]/cpufreq/...

    The order is that of the first of each.
    """
    groups: dict[tuple[Any, ...], list[int]] = {}
    folded: dict[tuple[Any, ...], Record] = {}
    for one in records:
        target = str(one["target"])
        numbers = _NUMBERED.findall(target)
        place = _NUMBERED.sub(r"/\1[]", target, count=1) if numbers else target
        key = (place, *(one[name] for name in ("control", "before", "after", "status", "message")))
        folded.setdefault(key, {**one, "target": place})
        if numbers:
            groups.setdefault(key, []).append(int(numbers[0][1]))
    for key, cpus in groups.items():
        folded[key]["target"] = str(folded[key]["target"]).replace(
            "[]", str(cpus[0]) if len(cpus) == 1 else f"[{format_cpus(cpus)}]", 1
        )
    return list(folded.values())
