"""Ending a process together with all that it started.

Travels to the nodes with their agent: nothing but the standard library of Python 3.9.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

#: How long killed processes are waited for: they end when they are next scheduled.
_GRACE_S = 2.0


def kill_session(session: int) -> None:
    """Kill every process of a session."""
    # Again until none is left: a killed process may have forked meanwhile.
    deadline = time.monotonic() + _GRACE_S
    while (members := session_members(session)) and time.monotonic() < deadline:
        for pid in members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def session_members(session: int) -> list[int]:
    """Processes of a session that still run; those that only wait to be collected do not."""
    members = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            # The name, in parentheses, may hold anything: the fields are counted from its end.
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except (OSError, UnicodeDecodeError):
            continue
        if len(fields) > 3 and int(fields[3]) == session and fields[0] != "Z":
            members.append(int(entry.name))
    return members
