"""Which files decide where memory is and in which pages, and what is left of it in caches."""

from __future__ import annotations

from typing import Any

from .command_run import Run
from .control_record import Change, Record, record, warning
from .system_files import SystemFiles, why

_DROP = "proc/sys/vm/drop_caches"
#: A file server that is slow to take what has not been written yet.
_SYNC_LIMIT_S = 120.0


def page_placement(files: SystemFiles, settings: dict[str, Any]) -> tuple[list[Change], list[Record]]:
    """The parts that the kernel decides for the whole node; the policy goes with each command (see launch)."""
    name = "page_placement"
    targets = {
        "transparent_hugepage": "sys/kernel/mm/transparent_hugepage/enabled",
        "numa_balancing": "proc/sys/kernel/numa_balancing",
        "swappiness": "proc/sys/vm/swappiness",
    }
    changes, records = [], []
    for key, target in targets.items():
        if key not in settings:
            continue
        value = settings[key]
        if not files.exists(target):
            absent = key == "numa_balancing" and value is False
            message = "the kernel has no balancing between memory nodes" if absent else "the kernel does not have it"
            records.append(record(name, target, "unchanged" if absent else "warning", message))
        else:
            changes.append(Change(name, target, value if isinstance(value, str) else str(int(value))))
    return changes, records


def drop_caches(files: SystemFiles, run: Run) -> Record:
    """Writes back what is dirty, then empties the page cache and the caches of names: cannot be undone."""
    synced = run(["sync"], _SYNC_LIMIT_S)
    message = "" if synced.returncode == 0 else f"not all was written back first: {synced.problem or 'sync failed'}"
    try:
        files.write(_DROP, "3")
    except OSError as error:
        return warning("drop_caches", _DROP, f"the caches are as they were: {why(error)}")
    return record("drop_caches", _DROP, "warning" if message else "done", message, None, "3")
