"""The one root of the system's control and status files, and short commands of the system.

All that reads or writes below /sys, /proc, /dev and /etc goes through it, so that tests run on a made-up tree, where
the real machine has no frequency or power control, or must not be touched.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

_CPU_FOLDERS = "sys/devices/system/cpu"


class SystemFiles:
    """The files below a root, named relative to it: `sys/devices/system/cpu/online`, `proc/meminfo`.

    Names that are absolute or climb ("..") raise ValueError: a name may come from a journal that others wrote.
    """

    def __init__(self, root: str | Path = "/") -> None:
        self.root = Path(root)

    def path(self, name: str) -> Path:
        if name.startswith("/") or ".." in name.split("/"):
            raise ValueError(f"{name!r} is not a name below the root of the system's files")
        return self.root / name

    def exists(self, name: str) -> bool:
        return self.path(name).exists()

    def read(self, name: str) -> str:
        """The text of a file. Raises OSError."""
        return self.path(name).read_text(encoding="utf-8", errors="replace")

    def read_or(self, name: str, default: str = "") -> str:
        """The text of a file, stripped, or the default where it cannot be read."""
        try:
            return self.read(name).strip()
        except OSError:
            return default

    def setting(self, name: str) -> str:
        """The value of a control file: its text stripped. Raises OSError."""
        return self.read(name).strip()

    def write(self, name: str, value: str) -> None:
        """One write of the value to a file that is there (none is ever made). Raises OSError."""
        descriptor = os.open(self.path(name), os.O_WRONLY | os.O_TRUNC)
        try:
            os.write(descriptor, value.encode())
        finally:
            os.close(descriptor)

    def open(self, name: str, flags: int = os.O_RDONLY) -> int:
        """A file descriptor that commands do not inherit. Raises OSError."""
        return os.open(self.path(name), flags | os.O_CLOEXEC)

    def glob(self, pattern: str) -> list[str]:
        """Names that match, numbers in them in numerical order (cpu2 before cpu10)."""
        self.path(pattern)
        return sorted([str(path.relative_to(self.root)) for path in self.root.glob(pattern)], key=natural_order)

    def cpus(self, which: str = "online") -> list[int]:
        """Logical CPUs that are `online`, `present` or `offline`; empty if the kernel does not tell."""
        return parse_cpus(self.read_or(f"{_CPU_FOLDERS}/{which}"))

    def siblings(self, cpu: int) -> list[int]:
        """The logical CPUs of the same core, itself among them."""
        return parse_cpus(self.read_or(f"{_CPU_FOLDERS}/cpu{cpu}/topology/thread_siblings_list")) or [cpu]

    def cores(self) -> list[int]:
        """One logical CPU a physical core: the lowest that is online."""
        online = self.cpus()
        online_set = set(online)
        return [cpu for cpu in online if cpu == min(online_set.intersection(self.siblings(cpu)), default=cpu)]


def natural_order(name: str) -> list[tuple[int, int, str]]:
    """A key to sort names by, in which the numbers in them count as numbers."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.findall(r"[0-9]+|[^0-9]+", name)]


def parse_cpus(text: str) -> list[int]:
    """The kernel's list form: "0-2,8" is [0, 1, 2, 8]; what is not in that form is left out."""
    cpus: list[int] = []
    for part in text.strip().split(","):
        low, _, high = part.partition("-")
        if low.isdecimal() and (not high or high.isdecimal()):
            cpus.extend(range(int(low), int(high or low) + 1))
    return cpus


def format_cpus(cpus: list[int]) -> str:
    """The kernel's list form of some CPU numbers."""
    parts: list[str] = []
    run: list[int] = []
    for cpu in [*sorted(set(cpus)), -1]:
        if run and cpu != run[-1] + 1:
            parts.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}")
            run = []
        run.append(cpu)
    return ",".join(parts)


def why(error: OSError) -> str:
    """A failure of a system file in words that tell what to do about it."""
    if error.errno in {errno.EACCES, errno.EPERM}:
        return "permission denied (it takes root)" if os.geteuid() != 0 else "refused even to root (by the firmware?)"
    if error.errno == errno.EROFS:
        return "read-only here (inside a container?)"
    if error.errno == errno.ENOENT:
        return "the kernel or the hardware does not have it"
    return (error.strerror or str(error)).lower()


class Ran(NamedTuple):
    """Outcome of a command; `returncode` is None if it did not start or did not end in time (`problem`)."""

    returncode: int | None
    stdout: bytes
    stderr: bytes = b""
    problem: str = ""


#: Runs a command line for at most this many seconds; never raises.
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
    """Environment of this process, with messages that can be compared between nodes, and the tools of administrators.

    The path of an ordinary user of some systems has no folder with lspci, dmidecode or ldconfig.
    """
    path = os.environ.get("PATH", os.defpath)
    return {**os.environ, "LC_ALL": "C", "PATH": f"{path}:/usr/sbin:/sbin"}
