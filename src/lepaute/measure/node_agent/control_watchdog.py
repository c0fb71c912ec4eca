"""A small process that gives a node its values back when the agent dies before it could."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import warnings
from pathlib import Path

from .control_journal import undo_journal
from .control_record import fold
from .system_files import SystemFiles


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
