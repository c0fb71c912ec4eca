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
    # Again until none is left: a killed process may have forked meanwhile.
    deadline = time.monotonic() + _GRACE_S
    while (members := session_members(session)) and time.monotonic() < deadline:
        for pid in members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def session_members(session: int) -> list[int]:
    """Processes of a session that still run; those that only wait to be collected do not."""
    return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _runs_in(pid, session)]


def _runs_in(pid: int, session: int) -> bool:
    # The kernel is asked first: a node has thousands of processes, and to read what /proc says of one takes ten times
    # as long. That it may not tell is no answer, since of processes of ours it always does.
    try:
        if os.getsid(pid) != session:
            return False
        # The name, in parentheses, may hold anything: the state is what follows its end.
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except (OSError, IndexError):
        return False
