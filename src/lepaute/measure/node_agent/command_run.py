"""A short command of the node's own system, with a time limit and without a shell."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable
from typing import NamedTuple


class Ran(NamedTuple):
    """What came of a command; `returncode` is None where it did not start or did not end in time (`problem`)."""

    returncode: int | None
    stdout: bytes
    stderr: bytes = b""
    problem: str = ""


#: Runs a command line for at most so many seconds; never raises.
Run = Callable[[list[str], float], Ran]


def run_command(argv: list[str], limit_s: float) -> Ran:
    """Runs it in a session of its own, so that what it started ends with it when its time is over."""
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env=_environment(),
        )
    except FileNotFoundError:
        return Ran(None, b"", b"", f"{argv[0]} is not installed")
    except OSError as error:
        return Ran(None, b"", b"", f"{argv[0]} does not start: {error.strerror}")
    try:
        stdout, stderr = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        try:
            stdout, stderr = process.communicate(timeout=1.0)
        except subprocess.TimeoutExpired:  # in an uninterruptible wait, of a dead file server for instance
            stdout, stderr = b"", b""
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
        return Ran(None, stdout, stderr, f"{argv[0]} did not end within {limit_s:g} s")
    return Ran(process.returncode, stdout, stderr)


def _environment() -> dict[str, str]:
    """That of this process, with messages that can be compared between nodes, and the tools of administrators.

    The path of an ordinary user of some systems has no folder with lspci, dmidecode or ldconfig.
    """
    path = os.environ.get("PATH", os.defpath)
    return {**os.environ, "LC_ALL": "C", "PATH": f"{path}:/usr/sbin:/sbin"}
