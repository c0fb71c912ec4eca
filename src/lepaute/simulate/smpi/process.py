"""One process of SMPI: watched while it runs, and ended with all that it started when it must not go on."""

import contextlib
import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from lepaute.errors import EnvironmentProblem
from lepaute.kit.command import AwakeTime
from lepaute.kit.sessions import kill_session

_LOOK_EVERY_S = 0.05
_LONGEST_LOOK_S = 2.0
_GRACE_S = 2.0
_KEPT_LINES = 2000


@dataclass(frozen=True, slots=True)
class Ended:
    """How the process ended.

    status : exit status, negative for a signal; stopped : why it was stopped by us, None where it ended by itself
    peak_rss_bytes : looked at twenty times a second; a folded block counts once for each of its mappings
    """

    status: int
    stopped: str | None
    stdout: tuple[str, ...]
    stderr: tuple[str, ...]
    wall_s: float
    cpu_s: float
    peak_rss_bytes: int


@dataclass(frozen=True, slots=True)
class Limits:
    """Wall seconds that a process may take in all, and without any sign of progress; not those in which it is
    suspended."""

    timeout_s: float = 3600.0
    stall_s: float = 120.0


def run_watched(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: Path | None,
    limits: Limits,
    progress_file: Path,
    on_line: Callable[[str], None] | None = None,
    on_complaint: Callable[[str], None] | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> Ended:
    """Runs `argv` to its end, or until a limit is reached.

    progress_file : holds the simulated date and the number of MPI calls, written now and then by the process
    on_line, on_complaint : are given each line of standard output, and of standard error, as it comes
    on_progress : is given the simulated date when it has changed
    Raises EnvironmentProblem where it cannot be started. An interrupt ends the process as well.
    """
    began_s = time.monotonic()
    try:
        process = subprocess.Popen(
            list(argv),
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as problem:
        raise EnvironmentProblem(f"{argv[0]} cannot be started: {problem.strerror}") from None
    assert process.stdout is not None
    assert process.stderr is not None
    stdout: list[str] = []
    stderr: list[str] = []
    readers = [_reader(process.stdout, stdout, on_line), _reader(process.stderr, stderr, on_complaint)]
    stopped: str | None = None
    last, last_s = "", 0.0
    child = _Child(process)
    awake = AwakeTime(_LONGEST_LOOK_S)
    try:
        while not child.has_ended():
            now_s = awake.look(suspended=child.is_suspended)
            if (seen := _read(progress_file)) != last:
                last, last_s = seen, now_s
                if on_progress is not None:
                    on_progress(_date(seen))
            if now_s > limits.timeout_s:
                stopped = f"it took longer than {limits.timeout_s:g} s; simulated so far: {_date(last):.6g} s"
            elif now_s - last_s > limits.stall_s:
                still = f"for {limits.stall_s:g} s it made no MPI call and its simulated date stood still"
                stopped = f"{still}; simulated so far: {_date(last):.6g} s"
            if stopped is not None:
                break
            time.sleep(_LOOK_EVERY_S)
    finally:
        child.end()
        for reader in readers:
            reader.join(timeout=2.0)
    return Ended(
        child.process.returncode,
        stopped,
        tuple(stdout),
        tuple(stderr),
        time.monotonic() - began_s,
        child.cpu_s,
        child.peak_rss_bytes,
    )


class _Child:
    """The process, waited for by wait4, which tells its resource use."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self.cpu_s = 0.0
        self.peak_rss_bytes = 0
        self.is_suspended = False

    def has_ended(self) -> bool:
        if self.process.returncode is None:
            # What wait4 says of memory begins with that of the process which this one was forked from.
            status_text = _read(Path(f"/proc/{self.process.pid}/status"))
            self.peak_rss_bytes = _peak_rss_bytes(status_text) or self.peak_rss_bytes
            self.is_suspended = re.search(r"^State:\s+T", status_text, re.MULTILINE) is not None
            pid, status, used = os.wait4(self.process.pid, os.WNOHANG)
            if pid != 0:
                self.process.returncode = os.waitstatus_to_exitcode(status)
                self.cpu_s = used.ru_utime + used.ru_stime
                self.peak_rss_bytes = self.peak_rss_bytes or used.ru_maxrss * 1024
        return self.process.returncode is not None

    def end(self) -> None:
        """Ends it and all that it started."""
        for ask in (self.process.terminate, self.process.kill):
            deadline_s = time.monotonic() + _GRACE_S
            while not self.has_ended() and time.monotonic() < deadline_s:
                ask()
                time.sleep(_LOOK_EVERY_S)
        kill_session(self.process.pid)


def _reader(stream: IO[bytes], lines: list[str], on_line: Callable[[str], None] | None) -> threading.Thread:
    def read() -> None:
        for raw in stream:
            line = raw.decode(errors="replace").rstrip("\n")
            lines.append(line)
            if len(lines) > _KEPT_LINES:
                del lines[: _KEPT_LINES // 4]
            if on_line is not None:
                on_line(line)
        stream.close()

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread


def _peak_rss_bytes(status: str) -> int:
    """From the status of a process that runs, as Linux shows it; 0 where it does not say."""
    match = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    return int(match[1]) * 1024 if match else 0


def _read(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(encoding="ascii", errors="replace")
    return ""


def _date(seen: str) -> float:
    try:
        return float(seen.split(maxsplit=1)[0])
    except (ValueError, IndexError):
        return 0.0
