"""Programs that the controller starts on the node: their output as it comes, and their end."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from lepaute.kit.sessions import kill_session, session_members

from .wire import PIECE_BYTES

#: How long output is still waited for when a program has ended: what it left behind may hold its output open for ever.
_DRAIN_S = 0.2
#: What a program gets to end by itself before it is killed.
_GRACE_S = 1.0
#: A program that is there so long after it was killed waits for a device or a dead file server, perhaps for ever.
_UNKILLABLE_S = 15.0
#: How often a followed file is looked at where nothing is said of it.
_FOLLOW_S = 0.2
#: How often a program is asked whether it has ended, where the kernel cannot tell.
_POLL_S = 0.05

#: (event, fields, payload) to the controller.
Emit = Callable[[str, "dict[str, Any]", bytes], None]


class Processes:
    """All programs that run now, by the number of the controller's request."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._running: dict[int, Running] = {}
        self._lock = threading.Lock()

    def start(self, number: int, request: dict[str, Any]) -> None:
        running = Running(number, request, self._emit, self._ended)
        with self._lock:
            self._running[number] = running
        running.thread.start()

    def stop(self, number: int) -> None:
        """Ends a program and all that it started; nothing where it has ended already."""
        with self._lock:
            running = self._running.get(number)
        if running is not None:
            running.stop("stopped")

    def stop_all(self) -> None:
        with self._lock:
            left = list(self._running.values())
        for running in left:
            running.stop("stopped")
        deadline = time.monotonic() + 4 * _GRACE_S
        for running in left:
            running.thread.join(max(0.0, deadline - time.monotonic()))
            if running.thread.is_alive() and running.process is not None:
                # Its thread is held up by a controller that takes no more output.
                kill_session(running.process.pid)

    def _ended(self, number: int) -> None:
        with self._lock:
            self._running.pop(number, None)


class Running:
    """One program, in a session of its own; its thread sees it to its end."""

    def __init__(self, number: int, request: dict[str, Any], emit: Emit, ended: Callable[[int], None]) -> None:
        self.number = number
        self.request = request
        self.process: subprocess.Popen[bytes] | None = None
        self.thread = threading.Thread(target=self._live, args=(emit, ended), daemon=True)
        self._why: str | None = None
        self._wake_out, self._wake_in = os.pipe()

    def stop(self, why: str) -> None:
        """Lets the program's thread end it."""
        self._why = self._why or why
        with contextlib.suppress(OSError):  # its thread has ended, and closed the pipe
            os.write(self._wake_in, b"x")

    def _live(self, emit: Emit, ended: Callable[[int], None]) -> None:
        start, clock = datetime.now(timezone.utc).isoformat(), time.monotonic()  # noqa: UP017 - Python 3.9 on nodes
        facts: dict[str, Any] = {"id": self.number, "start": start}
        try:
            self._run(emit, facts)
        except OSError as problem:
            facts["error"] = f"{problem.filename or self.request['argv'][0]}: {problem.strerror}"
        except Exception as problem:  # noqa: BLE001 - a controller that waits must hear of any end
            facts["error"] = f"{type(problem).__name__}: {problem}"
        finally:
            os.close(self._wake_in)
            os.close(self._wake_out)
        facts.setdefault("duration_s", time.monotonic() - clock)
        ended(self.number)
        emit("end", facts, b"")

    def _run(self, emit: Emit, facts: dict[str, Any]) -> None:
        request = self.request
        argv = request["argv"]
        environment = {**os.environ, **request.get("environment", {})}
        if shutil.which(argv[0], path=environment.get("PATH")) is None and "/" not in argv[0]:
            raise FileNotFoundError(2, "there is no such program on this node", argv[0])
        followed = Followed(request.get("follow", ()), self.number, emit, request.get("follow_period_s") or _FOLLOW_S)

        began_s = time.monotonic()

        self.process = process = subprocess.Popen(
            argv,
            cwd=request.get("folder"),
            env=environment,
            stdin=subprocess.PIPE if "stdin" in request else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        limit_s = request.get("timeout_s")
        limit = None if limit_s is None else time.monotonic() + limit_s
        if "stdin" in request:
            threading.Thread(target=feed, args=(process, request["stdin"]), daemon=True).start()
        assert process.stdout is not None
        assert process.stderr is not None
        streams = {process.stdout.fileno(): "out", process.stderr.fileno(): "err"}
        # Looking for what it left behind reads /proc through, and is no part of the program's time.
        facts["duration_s"] = self._pump(process, streams, limit, followed, emit, facts) - began_s
        if left := session_members(process.pid):
            facts["left_behind"] = len(left)
            kill_session(process.pid)
        followed.end()
        facts["returncode"] = process.returncode
        if self._why is not None:
            facts["stopped"] = self._why

    def _pump(
        self,
        process: subprocess.Popen[bytes],
        streams: dict[int, str],
        limit: float | None,
        followed: Followed,
        emit: Emit,
        facts: dict[str, Any],
    ) -> float:
        """Passes output on until the program has ended, and returns when that was.

        Sleeps in between: nothing here ticks beside a measurement.
        """
        end = Ending(process.pid)
        asked: float | None = None  # when the program was asked to end
        ended: float | None = None
        while True:
            now = time.monotonic()
            if limit is not None and now >= limit and self._why is None:
                facts["timed_out"] = True
                self._why = "timed out"
            if self._why is not None and ended is None:
                if asked is None:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGTERM)
                    asked = now
                elif now - asked > _UNKILLABLE_S:
                    end.close()
                    raise OSError(
                        errno.EBUSY, "does not end, even killed: it waits in the kernel", str(self.request["argv"][0])
                    )
                elif now - asked > _GRACE_S:
                    kill_session(process.pid)
            waits = [end.period_s, followed.period_s, None if limit is None or self._why else limit - now]
            waits += [_DRAIN_S if ended else None, _GRACE_S / 4 if asked else None]
            timeout = min((max(0.0, wait) for wait in waits if wait is not None), default=None)
            watched = [*streams, *([] if self._why else [self._wake_out]), *([] if ended else end.watched)]
            readable, _, _ = select.select(watched, [], [], timeout)
            for stream in readable:
                if stream not in streams:
                    continue
                data = os.read(stream, PIECE_BYTES)
                if data:
                    emit(streams[stream], {"id": self.number}, data)
                else:
                    del streams[stream]
            followed.look()
            if ended is None and process.poll() is not None:
                ended = time.monotonic()
                end.close()
            if ended is not None and (not streams or (not readable and time.monotonic() - ended >= _DRAIN_S)):
                return ended


class Ending:
    """Tells when a process ends, without asking again and again where the kernel can (Linux 5.3)."""

    def __init__(self, pid: int) -> None:
        self.watched: list[int] = []
        self.period_s: float | None = None
        try:
            self.watched.append(os.pidfd_open(pid))
        except (AttributeError, OSError):
            self.period_s = _POLL_S

    def close(self) -> None:
        for descriptor in self.watched:
            os.close(descriptor)
        self.watched, self.period_s = [], None


def feed(process: subprocess.Popen[bytes], data: bytes) -> None:
    """Writes a program's standard input; one that does not read it all is its own affair."""
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.write(data)
    with contextlib.suppress(OSError):
        process.stdin.close()


class Followed:
    """Files that a program writes, sent as they grow: what was measured survives the node."""

    def __init__(self, paths: Any, number: int, emit: Emit, period_s: float) -> None:
        self._paths = [Path(path) for path in paths]
        self._sent = [0] * len(self._paths)
        self._number, self._emit = number, emit
        self._next = 0.0
        self._look_s = period_s
        self.period_s = period_s if self._paths else None

    def look(self) -> None:
        """Sends what is new, once a period at most."""
        if self._paths and time.monotonic() >= self._next:
            self._send()
            self._next = time.monotonic() + self._look_s

    def end(self) -> None:
        if self._paths:
            self._send()

    def _send(self) -> None:
        for index, path in enumerate(self._paths):
            with contextlib.suppress(OSError), path.open("rb") as file:
                file.seek(self._sent[index])
                while data := file.read(PIECE_BYTES):
                    self._emit("follow", {"id": self._number, "file": index}, data)
                    self._sent[index] += len(data)
