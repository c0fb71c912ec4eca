"""The agent's life: it answers the controller until the connection ends, and leaves the node as it found it."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from .control import Controls
from .facts import collect, layout_sources, machine_facts, machine_load
from .monitor import Monitor, ReferenceKernel
from .processes import Processes
from .system_files import SystemFiles
from .wire import ALIVE_S, CUT_S, PIECE_BYTES, Incoming, Sender, Silence, WireError, receive, send_file

#: How long the last message may take.
FAREWELL_S = 1.0


def now() -> dict[str, float]:
    """Wall clock (seconds since 1970) and monotonic clock, read next to each other."""
    return {"time_s": time.time(), "monotonic_s": time.monotonic()}


class Agent:
    """One connection of a controller to a node."""

    def __init__(self, sender: Sender, root: str) -> None:
        self._sender = sender
        self._files = SystemFiles(root)
        self._processes = Processes(self._event)
        self._incoming = Incoming()
        self._controls: Controls | None = None
        self._monitor: Monitor | None = None
        self._reference: ReferenceKernel | None = None
        self._folder: Path | None = None
        self._keep_folder = False
        self.silence = Silence(ALIVE_S)
        self._calls: dict[str, Callable[[dict[str, Any]], Any]] = {
            "control": self._control,
            "facts": lambda _arguments: machine_facts(),
            "folder": self._make_folder,
            "layout": lambda _arguments: layout_sources(self._files, sorted(os.sched_getaffinity(0))),
            "load": lambda _arguments: machine_load(),
            "monitor": self._start_monitor,
            "reference": self._run_reference,
            "stop": lambda _arguments: self._processes.stop_all(),
            "undo": self._undo,
            "unmonitor": self._stop_monitor,
        }

    def _event(self, event: str, fields: dict[str, Any], payload: bytes = b"") -> None:
        # The controller may be gone: then the reader notices as well, and everything is ended from there.
        with contextlib.suppress(OSError, ValueError):
            for first in range(0, max(len(payload), 1), PIECE_BYTES):
                self._sender.send({"event": event, **fields}, payload[first : first + PIECE_BYTES])

    def hello(self, nonce: str) -> None:
        self._event(
            "hello",
            {
                "nonce": nonce,
                "host": platform.node(),
                "python": platform.python_version(),
                "machine": platform.machine(),
                "pid": os.getpid(),
                "user": os.geteuid(),
                "cpus": sorted(os.sched_getaffinity(0)),
                "boot": boot_id(),
                "temporary": tempfile.gettempdir(),
                **now(),
            },
        )

    def take(self, message: dict[str, Any], payload: bytes) -> None:
        """Does what a message asks; a failure is reported and ends nothing."""
        number = message.get("id")
        what = message.get("do")
        try:
            if what == "start":
                self._start(message, payload)
            elif what == "stop":
                self._processes.stop(int(message["target"]))
            elif what == "put":
                if self._incoming.take(message["id"], message, payload):
                    self._event("end", {"id": number})
            elif what == "get":
                self._in_thread(message, self._get)
            elif what == "clock":
                self._event("end", {"id": number, "result": now()})
            elif what == "environment":
                self._in_thread(message, self._environment)
            elif what == "call":
                self._in_thread(message, self._call)
            elif what != "ping":
                self._event("end", {"id": number, "error": f"this agent cannot {what!r}"})
        except Exception as problem:  # noqa: BLE001 - an agent that ends would take every measurement with it
            self._event("end", {"id": number, "error": explain(problem)})

    def _in_thread(self, message: dict[str, Any], work: Callable[[dict[str, Any]], Any]) -> None:
        def live() -> None:
            try:
                fields = {"result": work(message)}
            except Exception as problem:  # noqa: BLE001 - the controller waits for an answer
                fields = {"error": explain(problem)}
            self._event("end", {"id": message["id"], **fields})

        threading.Thread(target=live, daemon=True).start()

    def _start(self, message: dict[str, Any], payload: bytes) -> None:
        if message.get("input"):
            message["stdin"] = payload
        if message.get("folder") is None and self._folder is not None:
            message["folder"] = str(self._folder)
        self._processes.start(message["id"], message)

    def _get(self, message: dict[str, Any]) -> int:
        return send_file(message["path"], message["most_bytes"], partial(self._event, "data", {"id": message["id"]}))

    def _environment(self, message: dict[str, Any]) -> list[str]:
        members = collect(self._files, environ=os.environ)
        for name, content in members.items():
            self._event("data", {"id": message["id"], "name": name}, content)
        return sorted(members)

    def _call(self, message: dict[str, Any]) -> Any:
        call = self._calls.get(message["what"])
        if call is None:
            raise LookupError(f"this agent cannot {message['what']!r}")
        return call(message.get("arguments", {}))

    def _make_folder(self, arguments: dict[str, Any]) -> str:
        """The folder in which this node works: made for us alone, removed at the end unless it is to be kept."""
        folder = Path(arguments["path"])
        folder.mkdir(mode=0o700, parents=True, exist_ok=bool(arguments.get("again")))
        self._folder, self._keep_folder = folder, bool(arguments.get("keep"))
        return str(folder)

    def _control(self, arguments: dict[str, Any]) -> list[dict[str, Any]]:
        if self._controls is None:
            self._controls = Controls(self._files, _journal_folder(self._files) / "controls.jsonl")
        return self._controls.apply(arguments["wanted"])

    def _undo(self, _arguments: dict[str, Any]) -> list[dict[str, Any]]:
        controls, self._controls = self._controls, None
        return [] if controls is None else controls.undo()

    def _run_reference(self, _arguments: dict[str, Any]) -> dict[str, float]:
        if self._reference is None:
            self._reference = ReferenceKernel()
        compute_s, memory_s = self._reference.measure()
        return {"compute_s": compute_s, "memory_s": memory_s}

    def _start_monitor(self, arguments: dict[str, Any]) -> Any:
        if self._monitor is not None:
            raise RuntimeError("this node is being monitored already")
        self._monitor = Monitor(self._files, arguments["period_s"], lambda row: self._event("monitor", {"row": row}))
        self._monitor.start()
        return {"columns": self._monitor.columns, "absent": [one._asdict() for one in self._monitor.absent]}

    def _stop_monitor(self, _arguments: dict[str, Any]) -> Any:
        monitor, self._monitor = self._monitor, None
        return None if monitor is None else monitor.stop()

    def leave(self) -> None:
        """Ends what runs, undoes what was changed, removes what was written; a step that fails stops no other."""
        with contextlib.ExitStack() as steps:  # from the last to the first
            if self._folder is not None and not self._keep_folder:
                steps.callback(shutil.rmtree, self._folder, ignore_errors=True)
            steps.callback(self._incoming.drop_all)
            steps.callback(self._undo, {})
            steps.callback(self._stop_monitor, {})
            steps.callback(self._processes.stop_all)


def _journal_folder(files: SystemFiles) -> Path:
    """Where the values from before a change are kept: the same for all experiments of a user, and of no other user.

    What lies there is written back to the system's files, so nobody else may have put it there.
    Raises PermissionError if somebody else has made the folder.
    """
    folder = files.path("run/lepaute")
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    folder = Path(tempfile.gettempdir()) / f"lepaute-controls-{os.geteuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if status.st_uid != os.geteuid() or status.st_mode & 0o077 or not folder.is_dir() or folder.is_symlink():
        raise PermissionError(1, "belongs to somebody else, or is open to others; remove it", str(folder))
    return folder


def explain(problem: Exception) -> str:
    if isinstance(problem, OSError) and problem.strerror:
        return f"{problem.filename}: {problem.strerror}" if problem.filename else problem.strerror
    return f"{type(problem).__name__}: {problem}"


def boot_id() -> str:
    """Equal for all names of one machine."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return platform.node()


def main(nonce: str, root: str = "/") -> None:
    """Serves the controller at standard input and output until it says goodbye or is gone."""
    source, out = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # What a library prints must not get between the messages.
    os.dup2(2, 1)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)  # Ctrl-C at the controller ends a command there, not the agent here
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0))
    sender = Sender(out)
    agent = Agent(sender, root)
    agent.hello(nonce)
    threading.Thread(target=_tell_alive, args=(sender,), daemon=True).start()
    threading.Thread(target=_watch_controller, args=(agent,), daemon=True).start()
    try:
        while (received := receive(source)) is not None:
            agent.silence.heard()
            message, payload = received
            if message.get("do") == "bye":
                break
            agent.take(message, payload)
    except WireError as problem:
        print(f"lepaute agent: {problem}", file=sys.stderr)
    finally:
        # A batch system sends it more than once, and _tell_alive does so too: what is begun here is done to its end.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with contextlib.suppress(Exception):
            agent.leave()
        farewell = threading.Thread(target=_say_left, args=(sender,), daemon=True)
        farewell.start()
        farewell.join(FAREWELL_S)  # a controller that stands still takes nothing
        # Not sys.exit: a thread that still waits for something must not keep the node busy.
        os._exit(0)


def _say_left(sender: Sender) -> None:
    with contextlib.suppress(OSError, ValueError):
        sender.send({"event": "left"})


def _tell_alive(sender: Sender) -> None:
    """Tells the controller that this node lives; ends the agent when the connection has ended."""
    while True:
        time.sleep(ALIVE_S)
        try:
            sender.send({"event": "alive"})
        except (OSError, ValueError):
            os.kill(os.getpid(), signal.SIGTERM)
            return


def _watch_controller(agent: Agent) -> None:
    """Ends the agent when the controller is silent for long. Sends nothing, so a full connection cannot block it."""
    while agent.silence.seconds() <= CUT_S:
        time.sleep(ALIVE_S)
    os.kill(os.getpid(), signal.SIGTERM)
