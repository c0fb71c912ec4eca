"""The values that a node had before machine control changed them, on disk before they are changed; and their return."""

from __future__ import annotations

import errno
import json
import os
import re
import time
from pathlib import Path
from typing import Any, NamedTuple

from .control_record import Change, Record, record, warning
from .system_files import SystemFiles, why

_VERSION = 1
#: A CPU that comes back takes a moment, and brings its files with it.
_SETTLING_S = 1.0
_BOOT = "proc/sys/kernel/random/boot_id"
#: What a journal may name: it is believed by a program that may run as root.
_TARGETS = re.compile(
    r"sys/devices/system/cpu/(smt/control|cpu[0-9]+/online|intel_pstate/no_turbo|cpufreq/boost"
    r"|(cpu[0-9]+/cpufreq|cpufreq/policy[0-9]+)/(boost|scaling_governor|scaling_min_freq|scaling_max_freq)"
    r"|cpu[0-9]+/cpuidle/state[0-9]+/disable)"
    r"|sys/kernel/mm/transparent_hugepage/enabled|proc/sys/kernel/numa_balancing|proc/sys/vm/swappiness"
)
_VALUE = re.compile(r"[\w.+-]{1,64}")


class Entry(NamedTuple):
    """A changed file: the value it had, the one asked for, and the one the kernel then gave (None: not known)."""

    control: str
    target: str
    before: str
    wanted: str
    after: str | None


class Journal:
    """JSON lines: a header, a line for each intended change, a line for each value then read back.

    Every addition is on disk (fsync) when the call returns. Raises OSError.
    """

    def __init__(self, path: Path, files: SystemFiles) -> None:
        self.path = Path(path)
        self.targets: list[str] = []  # of the changes intended through this object
        self._files = files
        self._descriptor: int | None = None

    def intend(self, changes: list[tuple[Change, str]]) -> None:
        """Changes that are about to be made, with the values before."""
        lines: list[dict[str, Any]] = []
        if self._descriptor is None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self.path, flags, 0o600)
            if os.fstat(descriptor).st_uid != os.geteuid():  # laid there by another user: undo would not believe it
                os.close(descriptor)
                raise PermissionError(errno.EPERM, "it belongs to another user")
            self._descriptor = descriptor
            lines.append({"journal": _VERSION, "boot": self._files.read_or(_BOOT), "pid": os.getpid()})
        for change, before in changes:
            lines.append({**change._asdict(), "before": before})
        self._append(lines)
        self.targets += [change.target for change, _ in changes]

    def settle(self, values: list[tuple[str, str]]) -> None:
        """What the files read after their change: (target, value)."""
        self._append([{"target": target, "after": after} for target, after in values])

    def _append(self, lines: list[dict[str, Any]]) -> None:
        if self._descriptor is None or not lines:
            return
        os.write(self._descriptor, "".join(json.dumps(line) + "\n" for line in lines).encode())
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Ends writing; the file stays."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            self.targets = []

    def read(self) -> tuple[list[Entry], list[str]]:
        """(the changes in the order they were made, one a target; what is wrong with the journal)."""
        entries: dict[str, Entry] = {}
        wrong = []
        same_boot = True
        with self.path.open("rb") as file:
            owner = os.fstat(file.fileno()).st_uid
            if owner not in {os.geteuid(), 0}:
                return [], [f"it belongs to user {owner} and is not believed"]
            lines = file.read().decode(errors="replace").splitlines()
        for number, line in enumerate(lines, 1):
            try:
                fields = json.loads(line)
                if "journal" in fields:
                    same_boot = fields.get("boot", "") == self._files.read_or(_BOOT)
                elif not same_boot:
                    continue  # what it tells of ended with that boot
                elif "before" in fields:
                    entry = _entry(fields)
                    first = entries.get(entry.target)
                    entries[entry.target] = entry if first is None else entry._replace(before=first.before)
                elif fields.get("target") in entries:
                    entries[fields["target"]] = entries[fields["target"]]._replace(after=str(fields["after"]))
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                if number < len(lines) or not isinstance(error, json.JSONDecodeError):  # the last may be half a line
                    wrong.append(f"line {number} is not one of a journal of machine control and is left out")
        return list(entries.values()), wrong


def _entry(fields: dict[str, Any]) -> Entry:
    target, before = str(fields["target"]), str(fields["before"])
    if not _TARGETS.fullmatch(target) or not _VALUE.fullmatch(before):
        raise ValueError
    return Entry(str(fields["control"]), target, before, str(fields["wanted"]), None)


def undo_journal(path: Path, files: SystemFiles) -> list[Record]:
    """Gives every file of the journal its value from before, in reverse order, and removes the journal.

    A value that is neither the one set nor the one before was set by somebody else: it stays, with a warning. The
    journal stays where a value could not be written, for a next attempt. No journal: no records. Never raises.
    """
    try:
        entries, wrong = Journal(path, files).read()
    except FileNotFoundError:
        return []
    except OSError as error:
        return [warning("undo", str(path), f"the journal of machine control cannot be read: {why(error)}")]
    records = [warning("undo", str(path), message) for message in wrong]
    # All are read first: giving back one (turbo) may change what another (the frequency limit) reads.
    remaining = [(entry, _current(files, entry.target)) for entry in reversed(entries)]
    todo: list[tuple[Entry, str | None]] = []
    for entry, current in remaining:
        if current is not None and entry.after is not None and current not in {entry.after, entry.before}:
            message = (
                f"somebody else set it to {current} in the meantime; left so "
                f"(it was {entry.before} before the experiment, {entry.after} during it)"
            )
            records.append(record(entry.control, entry.target, "warning", message, current, current))
        elif current != entry.before:
            todo.append((entry, current))
    restored, refused = _write_back(files, todo)
    for entry, current, reason in refused:
        message = f"cannot be set back to {entry.before}: {reason}"
        records.append(record(entry.control, entry.target, "warning", message, current, current))
    deadline_s = time.monotonic() + _SETTLING_S
    for entry, current in restored:
        after = _current(files, entry.target)
        if after != entry.before:  # another control held it when it was written first
            after = _again(files, entry, deadline_s)
        fine = after == entry.before
        message = "set back" if fine else f"set back to {entry.before}, but the kernel keeps {after}"
        records.append(record(entry.control, entry.target, "done" if fine else "warning", message, current, after))
    if not refused:
        try:
            path.unlink()
        except OSError as error:
            records.append(warning("undo", str(path), f"the journal cannot be removed: {why(error)}"))
    return records


def _write_back(
    files: SystemFiles, todo: list[tuple[Entry, str | None]]
) -> tuple[list[tuple[Entry, str | None]], list[tuple[Entry, str | None, str]]]:
    """(those written, those refused and why). One that is refused is tried again as long as another one succeeds.

    A limit may not pass the other limit before that one is back; a CPU has no files before it is on line again.
    """
    written: list[tuple[Entry, str | None]] = []
    while True:
        refused: list[tuple[Entry, str | None, str]] = []
        for entry, current in todo:
            try:
                files.write(entry.target, entry.before)
                written.append((entry, current))
            except OSError as error:
                refused.append((entry, current, why(error)))
        if not refused or len(refused) == len(todo):
            return written, refused
        todo = [(entry, current) for entry, current, _ in refused]


def _current(files: SystemFiles, target: str) -> str | None:
    try:
        return files.setting(target)
    except OSError:
        return None


def _again(files: SystemFiles, entry: Entry, deadline_s: float) -> str | None:
    try:
        files.write(entry.target, entry.before)
    except OSError:
        return _current(files, entry.target)
    while (current := _current(files, entry.target)) != entry.before and time.monotonic() < deadline_s:
        time.sleep(0.02)
    return current
