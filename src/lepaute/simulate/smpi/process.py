"""One process of SMPI: watched while it runs, and ended with all that it started when it must not go on."""

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from lepaute.errors import EnvironmentProblem, SimulationError
from lepaute.kit.command import AwakeTime, started
from lepaute.kit.sessions import kill_session

_LOOK_EVERY_S = 0.05
_LONGEST_LOOK_S = 2.0
_GRACE_S = 2.0
_KEPT_LINES = 2000


@dataclass(frozen=True, slots=True)
class Ended:
    """How the process ended.

    status : exit status, negative for a signal; stopped : why it was stopped by us, None if it ended by itself
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
    """Wall seconds that a process may take in all, and without any sign of progress, time in suspension excluded."""

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
    Raises EnvironmentProblem if it cannot be started. An interrupt ends the process as well.
    """
    began_s = time.monotonic()
    try:
        process = started(argv, environment, folder)
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
            if (seen := _read(progress_file)) not in ("", last):  # it is empty while it is written
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
            if peak := re.search(r"^VmHWM:\s+(\d+) kB$", status_text, re.MULTILINE):
                self.peak_rss_bytes = int(peak[1]) * 1024
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


def _read(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(encoding="ascii", errors="replace")
    return ""


def _date(seen: str) -> float:
    try:
        return float(seen.split(maxsplit=1)[0])
    except (ValueError, IndexError):
        return 0.0


_BOGUS = (
    "; results of BLAS are not computed: a loop that ends on a computed value, or a branch on one, cannot be emulated "
    "(docs/concepts/emulation.md)"
)
_MEMORY = "fold large allocations (--fold 1M), or take fewer ranks"
_REBUILD = "it has to be built with the compilers of 'lepaute emulate compilers'"

_LOG_LINE = re.compile(r"^\[[^\]]*\] .*\[\w+/(?:CRITICAL|ERROR|WARNING|INFO|VERBOSE|DEBUG)\]")
_CRITICAL = re.compile(r"\[\w+/CRITICAL\] (.*)")
_BACKTRACE = re.compile(r"^(?:\s*->.*|Backtrace \(displayed.*|Current backtrace:.*|)$")
#: Where SimGrid begins to speak of a crash; its guesses fill the rest of what is printed.
_CRASH = re.compile(r"^(?:Segmentation fault\.|Access violation or Bus error detected\.)$")
#: SimGrid's word for an access that the pages forbid, as those below each stack do.
_GUARDED = "Access violation"
_OURS = "simblas: "
_NO_MEMORY = re.compile(rf"{_OURS}an allocation of (\d+) bytes failed")
_REFUSED = re.compile(r"\[[^\]]*:(\d+):\(\d+\)[^\]]*\].*?(\w+) - returned (MPI_ERR_\w+)")
_ARGUMENT = re.compile(r"\[smpi_pmpi/WARNING\] PMPI_\w+: (.*)")


class OwnLines:
    """Separates a program's own lines on standard error from SimGrid's."""

    def __init__(self) -> None:
        self._crashed = False

    def keeps(self, line: str) -> bool:
        """Whether `line`, which comes after those asked about before, is the program's own."""
        self._crashed = self._crashed or _CRASH.match(line) is not None
        return not (self._crashed or line.startswith(_OURS) or _LOG_LINE.match(line) or _BACKTRACE.match(line))


def why_it_failed(ended: Ended, report: Mapping[str, Any] | None, ranks: int, *, has_blas: bool = True) -> str | None:
    """The reason; None if the program ended as it should.

    has_blas : whether it calls routines of BLAS or LAPACK, whose results are not computed
    """
    if ended.stopped is not None:
        return f"stopped, {ended.stopped}{_BOGUS if has_blas else ''}"
    if report is not None and report["aborted_rank"] >= 0:
        return f"rank {report['aborted_rank']} called MPI_Abort with code {report['abort_code']}: {_last_line(ended)}"
    if report is not None and report["exited_rank"] >= 0:
        status = f"rank {report['exited_rank']} ended with exit status {report['exit_code']}"
        return f"{status} before it called MPI_Finalize: {_last_line(ended)}"
    # What it printed tells nothing then: a program may speak of memory as it likes.
    if report is not None and report["finished_ranks"] == ranks and ended.status == 0:
        return None
    return _of_simgrid(ended, has_blas) or _of_status(ended, report, ranks, has_blas)


class AlgorithmError(SimulationError):
    """A run ended as it does where SMPI's version of a library's algorithm fails, which may be the program's fault."""


def may_be_an_algorithm(ended: Ended) -> bool:
    """Whether a run that failed may have failed so: by a signal, or in a deadlock."""
    by_signal = ended.status < 0 and ended.status != -signal.SIGKILL
    return ended.stopped is None and (by_signal or any("Deadlock detected" in line for line in ended.stderr))


def _of_simgrid(ended: Ended, has_blas: bool) -> str | None:
    """A reason that SimGrid, the loader or the allocator gave in words; None if they gave none."""
    text = "\n".join(ended.stderr)
    if match := _REFUSED.search(text):
        argument = _ARGUMENT.search(text)
        return f"{match[2]} of rank {match[1]} failed: {match[3]}{f', {argument[1].strip()}' if argument else ''}"
    if match := re.search(r"Not yet implemented: P?(MPI_\w+)", text):
        return f"this version of SimGrid has no {match[1]}; the program cannot be emulated with it"
    if "diskless host" in text:
        return "it opens a file by MPI, and the simulated nodes have no disks; leave it out, as by --skip FUNCTION"
    if re.search(r"\bDeadlock detected", text):
        return f"deadlock: every rank waits for a message that nobody sends{_BOGUS if has_blas else ''}"
    if match := re.search(r"dlopen failed[^:]*: ([^\n]*)", text):
        return f"it cannot be loaded ({match[1].strip()[:200]}); {_REBUILD}"
    if match := re.search(rf"{_OURS}(MPI is called within .*)", text):
        return f"{match[1]}; time computing alone in it"
    if match := _NO_MEMORY.search(text):
        return f"there was no memory for {int(match[1]):,} bytes; {_MEMORY}: {_last_line(ended)}"
    if re.search(r"bad_alloc|[Cc]annot allocate memory|[Oo]ut of memory|[Ff]ailed to (?:al|m)locate|mmap", text):
        return f"there is not enough memory; {_MEMORY}: {_last_line(ended)}"
    return None


def _of_status(ended: Ended, report: Mapping[str, Any] | None, ranks: int, has_blas: bool) -> str:
    if ended.status == -signal.SIGKILL:
        return f"it was killed from outside, as the system does when memory runs out; {_MEMORY}"
    if ended.status < 0:
        return _of_signal(ended, has_blas)
    if ended.status != 0:
        return f"it ended with exit status {ended.status}: {_last_line(ended)}"
    if report is None:
        return f"it ended without a report: {_last_line(ended)}"
    finished = f"{report['finished_ranks']} of {ranks} ranks"
    return f"it ended when {finished} had called MPI_Finalize, as each has to: {_last_line(ended)}"


def _of_signal(ended: Ended, has_blas: bool) -> str:
    name = signal.Signals(-ended.status).name
    bogus = f"; where it runs on a real machine{_BOGUS.replace(';', ',', 1)}" if has_blas else ""
    if any(_GUARDED in line for line in ended.stderr):
        return (
            f"it ended by {name}, as where a stack is too small (more: --stack, in KiB) or memory is written "
            f"that must not be: {_last_line(ended)}{bogus}"
        )
    told = [match[1] for match in map(_CRITICAL.search, ended.stderr) if match and not _BACKTRACE.match(match[1])]
    reason = f"SimGrid says: {told[-1][:300]}" if told else _last_line(ended)
    return f"it ended by {name}: {reason}{bogus}"


def _last_line(ended: Ended) -> str:
    lines = [line for line in (*ended.stdout[-5:], *filter(OwnLines().keeps, ended.stderr)) if line.strip()]
    return re.sub(r"\s+", " ", lines[-1].strip())[:300] if lines else "it printed nothing"
