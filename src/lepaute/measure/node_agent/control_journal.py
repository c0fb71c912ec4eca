"""What machine control changed on a node, and its return: on disk before a change, under a lock, with a watchdog."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import getpass
import json
import os
import re
import signal
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

from .system_files import SystemFiles, format_cpus, why

#: What was done, or could not be: {"control", "target", "before", "after", "message",
#: "status": done | unchanged | warning}.
Record = dict[str, Any]

_NUMBERED = re.compile(r"/(cpu|policy)([0-9]+)(?=/)")
_VERSION = 1
_BOOT = "proc/sys/kernel/random/boot_id"
#: What a journal may name: it is believed by a program that may run as root.
_TARGETS = re.compile(
    r"sys/devices/system/cpu/(smt/control|intel_pstate/no_turbo|cpufreq/boost"
    r"|(cpu[0-9]+/cpufreq|cpufreq/policy[0-9]+)/(boost|scaling_governor)|cpu[0-9]+/cpuidle/state[0-9]+/disable)"
)
_VALUE = re.compile(r"[\w.+-]{1,64}")
#: A dead holder's watchdog needs milliseconds to give the node its values back.
_PATIENCE_S = 2.0


class Change(NamedTuple):
    """A value that a control wants in a file of the system."""

    control: str
    target: str
    wanted: str


def record(
    control: str, target: str, status: str, message: str = "", before: str | None = None, after: str | None = None
) -> Record:
    """One record; before and after are null where there is no value."""
    said = {"status": status, "message": message}
    return {"control": control, "target": target, "before": before, "after": after, **said}


def warning(control: str, target: str, message: str) -> Record:
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


class Entry(NamedTuple):
    """A changed file: the value it had, and the one asked for."""

    control: str
    target: str
    before: str
    set_to: str


class Journal:
    """JSON lines: a header, and a line for each intended change.

    Every addition is on disk (fsync) when the call returns. Raises OSError.
    """

    def __init__(self, path: Path, files: SystemFiles) -> None:
        self.path = Path(path)
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

    def _append(self, lines: list[dict[str, Any]]) -> None:
        if self._descriptor is None or not lines:
            return
        os.write(self._descriptor, "".join(json.dumps(line) + "\n" for line in lines).encode())
        os.fsync(self._descriptor)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

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
                    target, before = str(fields["target"]), str(fields["before"])
                    if not _TARGETS.fullmatch(target) or not _VALUE.fullmatch(before):
                        raise ValueError
                    entry = Entry(str(fields["control"]), target, before, str(fields["wanted"]))
                    first = entries.get(entry.target)
                    entries[entry.target] = entry if first is None else entry._replace(before=first.before)
                elif fields.get("target") not in entries:  # of 0.1: what such a file read afterwards
                    raise ValueError
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                if number < len(lines) or not isinstance(error, json.JSONDecodeError):  # the last may be half a line
                    wrong.append(f"line {number} is not one of a journal of machine control and is left out")
        return list(entries.values()), wrong


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
    refused = False
    for entry in reversed(entries):
        current = _current_value(files, entry.target)
        if current == entry.before:
            continue
        if current not in {entry.set_to, None}:
            message = (
                f"somebody else set it to {current} in the meantime; left so "
                f"(it was {entry.before} before the experiment, {entry.set_to} during it)"
            )
            records.append(record(entry.control, entry.target, "warning", message, current, current))
            continue
        try:
            files.write(entry.target, entry.before)
        except OSError as error:
            refused = True
            message = f"cannot be set back to {entry.before}: {why(error)}"
            records.append(record(entry.control, entry.target, "warning", message, current, current))
            continue
        after = _current_value(files, entry.target)
        fine = after == entry.before
        message = "set back" if fine else f"set back to {entry.before}, but the kernel keeps {after}"
        records.append(record(entry.control, entry.target, "done" if fine else "warning", message, current, after))
    if not refused:
        try:
            path.unlink()
        except OSError as error:
            records.append(warning("undo", str(path), f"the journal cannot be removed: {why(error)}"))
    return records


def _current_value(files: SystemFiles, target: str) -> str | None:
    try:
        return files.setting(target)
    except OSError:
        return None


class NodeLock:
    """A lock on a file that ends with its last holder, whatever way it ends: no stale lock is possible.

    The file says who holds it. It stays when the lock is released: removing it would let two hold it at once.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self.descriptor: int | None = None

    def acquire(self) -> str | None:
        """None when the lock is ours now (or was already); else one sentence that names who has it.

        Raises OSError when the file can be neither made nor opened, nor locked.
        """
        if self.descriptor is not None:
            return None
        descriptor = _open(self.path)
        deadline_s = time.monotonic() + _PATIENCE_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                holder = _holder(descriptor)
                if _alive(holder.get("pid")) or time.monotonic() > deadline_s:
                    os.close(descriptor)
                    return _sentence(holder)
                time.sleep(0.02)
            except OSError:  # the file system has no locks
                os.close(descriptor)
                raise
        self.descriptor = descriptor
        _write_holder(descriptor)
        return None

    def release(self) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None


def _open(path: Path) -> int:
    """The file, for writing if it is ours, else for reading, which suffices for a lock.

    In two steps since kernels refuse O_CREAT on another user's file in a folder such as /tmp.
    """
    common = os.O_NOFOLLOW | os.O_CLOEXEC
    for flags in (os.O_RDWR, os.O_RDWR | os.O_CREAT | os.O_EXCL, os.O_RDONLY):
        try:
            return os.open(path, flags | common, 0o644)
        except (FileNotFoundError, FileExistsError, PermissionError):
            continue
    return os.open(path, os.O_RDONLY | common)


def _write_holder(descriptor: int) -> None:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    text = json.dumps({"pid": os.getpid(), "user": user, "since": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())})
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text.encode(), 0)
    except OSError:
        return  # opened for reading, or a full disk: the lock holds all the same, without a name


def _holder(descriptor: int) -> dict[str, Any]:
    try:
        holder = json.loads(os.pread(descriptor, 4096, 0))
    except (ValueError, OSError):
        return {}
    return holder if isinstance(holder, dict) else {}


def _alive(pid: object) -> bool:
    if not isinstance(pid, int) or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _sentence(holder: dict[str, Any]) -> str:
    if not holder:
        return "another experiment controls this node (it did not leave its name)"
    return (
        f"another experiment controls this node: process {holder.get('pid')} of user {holder.get('user')}, "
        f"since {holder.get('since')}"
    )


def report_path(journal: Path) -> Path:
    """Where the watchdog leaves what it did, for the next experiment on the node to tell."""
    return journal.with_name(journal.name + ".undone")


def guard(journal: Path, files: SystemFiles, keep: tuple[int, ...] = ()) -> int:
    """Starts the watchdog; returns the end of a pipe that must stay open as long as the agent is in control.

    When it is closed, by the agent or by the kernel at the agent's death of whatever cause, the watchdog undoes what
    the journal says and ends. It is in a session of its own, no child of the agent, and holds nothing of it but the
    descriptors to `keep` (the node's lock: nobody else can take control before the values are back).
    A kill of everything in the job's cgroup takes the watchdog too; then the next experiment undoes the rest.

    Better called while the process has a single thread: only the calling one goes on in a fork, and a lock that
    another one held stays locked there. The watchdog takes none but the interpreter's own. Raises OSError.
    """
    journal = Path(journal).absolute()
    files = SystemFiles(files.root.absolute()) if type(files) is SystemFiles else files
    read_end, write_end = os.pipe()
    with warnings.catch_warnings():  # of Python 3.12 on, of a fork beside threads: the docstring says it
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            child = os.fork()
        except OSError:
            os.close(read_end)
            os.close(write_end)
            raise
    if child == 0:
        try:
            os.setsid()
            if os.fork() == 0:
                _watch(journal, files, read_end, keep)
        finally:
            os._exit(0)
    os.close(read_end)
    os.waitpid(child, 0)
    return write_end


def _watch(journal: Path, files: SystemFiles, read_end: int, keep: tuple[int, ...]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)  # the end of a job is announced to all; this one has work left then
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    kept = {0, 1, 2, read_end, *keep}
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            with contextlib.suppress(OSError):  # the descriptor of the listing itself is gone
                os.close(int(name))
    os.chdir("/")
    while os.read(read_end, 64):
        pass
    records = fold(undo_journal(journal, files))
    if records:
        lines = "".join(json.dumps(one) + "\n" for one in records)
        report = report_path(journal)
        temporary = report.with_name(f"{report.name}.{os.getpid()}.tmp")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        os.write(descriptor, lines.encode())
        os.close(descriptor)
        temporary.replace(report)
