"""One run of an external program: what was run, when, how long, and what it said, for the archive."""

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lepaute.errors import EnvironmentProblem
from lepaute.kit.sessions import kill_session

#: Longer output is cut in the middle when it is kept; a program that prints this much is broken anyway.
_MAX_OUTPUT = 1 << 20
#: What mpirun gets to end its ranks by itself before everything is killed.
_GRACE_S = 2.0
#: Between two looks at the time that a program had.
_LOOK_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class CommandRecord:
    """A finished command.

    start       : date of the start, ISO 8601, UTC
    environment : the variables that were added to those of this process
    """

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str
    start: str
    duration_s: float
    environment: tuple[tuple[str, str], ...] = ()


def run_command(
    argv: Sequence[str | os.PathLike[str]],
    *,
    what: str,
    timeout_s: float,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> CommandRecord:
    """Run a program to its end and return the record of a success.

    what       : what it does, for messages: "the dgemm probe"
    timeout_s  : in which neither it nor this process was suspended

    Raises EnvironmentProblem when it cannot be started, fails, or takes longer than timeout_s; nothing that it
    started is left running then. The message holds the program's own complaint.
    """
    words = tuple(os.fspath(word) for word in argv)
    added = dict(environment or {})
    start, clock = datetime.now(UTC).isoformat(), time.monotonic()
    try:
        process = started(words, added, folder)
    except OSError as problem:
        raise EnvironmentProblem(f"{what} cannot be started: {words[0]}: {problem.strerror}") from None
    try:
        stdout, stderr = _communicate(process, timeout_s)
    except subprocess.TimeoutExpired:
        end_session(process)
        raise EnvironmentProblem(
            f"{what} did not finish within {timeout_s:g} s and was stopped; is another program using the cores?"
        ) from None
    except BaseException:
        end_session(process)
        raise
    duration_s, status = time.monotonic() - clock, process.returncode
    if status != 0:
        ended = f"signal {-status}" if status < 0 else f"exit status {status}"
        raise EnvironmentProblem(f"{what} failed ({ended}): {complaint_of(_kept(stdout), _kept(stderr))}")
    return CommandRecord(words, status, _kept(stdout), _kept(stderr), start, duration_s, tuple(sorted(added.items())))


def started(words: Sequence[str], environment: Mapping[str, str], folder: Path | None) -> "subprocess.Popen[bytes]":
    """A process with both streams in pipes, in a session of its own, by which its children can be found: mpirun gives
    each rank its own process group. Raises OSError."""
    return subprocess.Popen(
        words,
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def _communicate(process: "subprocess.Popen[bytes]", timeout_s: float) -> tuple[bytes, bytes]:
    """Both streams to their end; raises TimeoutExpired after this many seconds in which it could run."""
    awake = AwakeTime(2.0 * _LOOK_EVERY_S)
    remaining_s = timeout_s
    while True:
        try:
            return process.communicate(timeout=min(remaining_s, _LOOK_EVERY_S))
        except subprocess.TimeoutExpired:
            remaining_s = timeout_s - awake.look(suspended=_is_suspended(process.pid))
            if remaining_s <= 0.0:
                raise


def _is_suspended(number: int) -> bool:
    try:
        status = Path(f"/proc/{number}/stat").read_text(errors="replace")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[:1] == ["T"]


def attempted(
    words: Sequence[str | Path], environment: Mapping[str, str], limit_s: float
) -> "subprocess.CompletedProcess[str] | None":
    """A short command that ended, in whatever way; None if it cannot be started or takes too long."""
    how: dict[str, Any] = {"capture_output": True, "text": True, "errors": "replace", "timeout": limit_s}
    try:
        return subprocess.run(words, env={**os.environ, **environment}, check=False, **how)
    except (OSError, subprocess.TimeoutExpired):
        return None


def complaint_of(stdout: str, stderr: str) -> str:
    """The line of a program's output that says what went wrong.

    Probes start their messages with their name, compilers with "error: "; mpirun puts framed paragraphs around them.
    """
    text = stderr.strip() or stdout.strip()
    lines = [line.strip() for line in text.splitlines() if line.strip(" -")]
    errors = [line for line in lines if line.startswith(("probe-", "xhpl-lepaute:", "E: "))]
    # Compilers draw the place below it, and make counts its own errors afterwards.
    errors = errors or [line for line in lines if "error: " in line or "undefined reference" in line]
    return " | ".join(errors[:2] or lines[-4:])[:600] or "it printed nothing"


def end_session(process: "subprocess.Popen[bytes]") -> None:
    """End a process that leads a session, and every other process of that session; reaps the leader."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=_GRACE_S)
    kill_session(process.pid)
    process.communicate()


def _kept(output: bytes) -> str:
    text = output.decode(errors="replace")
    if len(text) <= _MAX_OUTPUT:
        return text
    return f"{text[: _MAX_OUTPUT // 2]}\n[... cut ...]\n{text[-_MAX_OUTPUT // 2 :]}"


class AwakeTime:
    """Seconds of the wall clock during which this process, and another one, were not suspended.

    longest_s : that counts between two looks, s: more has passed where this process was suspended itself
    """

    def __init__(self, longest_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._longest_s, self._clock = longest_s, clock
        self._passed_s = 0.0
        self._looked_s = clock()

    def look(self, *, suspended: bool = False) -> float:
        """The seconds until now; none of those since the last look where the other one is suspended."""
        now_s = self._clock()
        if not suspended:
            self._passed_s += min(now_s - self._looked_s, self._longest_s)
        self._looked_s = now_s
        return self._passed_s
