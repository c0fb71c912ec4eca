"""The connection to the agent of one node, and how the agent gets there: as source, over that connection.

The command line that starts it is short and always the same. What follows on its standard input is a loader and the
modules of the agent, which live in the memory of that process alone.
"""

import contextlib
import json
import queue
import secrets
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from importlib import resources
from typing import IO, Any

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.json_values import from_json
from lepaute.measure.node_agent.wire import ALIVE_S, Sender, Silence, WireError, receive
from lepaute.measure.schedulers.types import NodeAddress

PACKAGE = "lepaute.measure.node_agent"
#: Modules outside the package that the agent needs.
BESIDE = ("lepaute.kit.sessions",)
#: Reads the length of a program, the program, and runs it; the rest of the input is the program's.
_FIRST = "import sys;i=sys.stdin.buffer;exec(compile(i.read(int(i.readline())),'lepaute-agent','exec'))"
_LOADER = """
import importlib.abc, importlib.util, json, sys

SOURCES = json.loads({sources!r})

class Loader(importlib.abc.InspectLoader, importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in SOURCES:
            return importlib.util.spec_from_loader(name, self, is_package=SOURCES[name] is None)

    def is_package(self, name):
        return SOURCES[name] is None

    def get_source(self, name):
        return SOURCES[name] or ""

sys.meta_path.insert(0, Loader())
if sys.version_info < (3, 9):
    sys.exit("lepaute: Python %d.%d is too old for a node; 3.9 or newer is needed" % sys.version_info[:2])
from lepaute.measure.node_agent.main import main
main({nonce!r}, {root!r})
"""
#: A node that says nothing for so long is lost: its agent says every ALIVE_S that it lives.
SILENCE_S = 6 * ALIVE_S
#: How often that is looked at.
CHECK_S = 2 * ALIVE_S
#: What the shell of a node may print before its agent's first message.
_MAX_GREETING_BYTES = 1 << 16
_LEAVE_S = 10.0
_CLOSE_S = 1.0
#: Messages that wait to be sent: little memory, and enough that neither side waits for the other.
_QUEUED = 16
_LOOK_S = 0.2
_COMPLAINT_BYTES = 2000


def agent_program(nonce: str, root: str = "/") -> bytes:
    """Program that goes to the agent's standard input first.

    nonce: comes back in its first message, so that a greeting of the node's shell is not taken for one
    root : under which it looks for the system's control files
    """
    sources: dict[str, str | None] = dict.fromkeys(("lepaute", "lepaute.kit", "lepaute.measure", PACKAGE))
    for file in resources.files(PACKAGE).iterdir():
        if file.name.endswith(".py") and file.name != "__init__.py":
            sources[f"{PACKAGE}.{file.name.removesuffix('.py')}"] = file.read_text()
    for name in BESIDE:
        package, _, module = name.rpartition(".")
        sources[name] = resources.files(package).joinpath(f"{module}.py").read_text()
    program = _LOADER.format(sources=json.dumps(sources), nonce=nonce, root=root).encode()
    return str(len(program)).encode() + b"\n" + program


class NodeLost(EnvironmentProblem):
    """The connection to a node has ended, or its agent is silent."""


class NodeRefused(EnvironmentProblem):
    """The agent could not do what it was asked for."""


@dataclass(frozen=True, slots=True)
class Hello:
    """First message of an agent about its node.

    boot     : equal for all names of one machine; machine: its architecture
    temporary: the folder for temporary files; cpus: those that the agent may use
    """

    pid: int
    boot: str
    temporary: str
    machine: str = ""
    python: str = ""
    cpus: tuple[int, ...] = ()


@dataclass(slots=True)
class Answer:
    """What belongs to one request, as it comes; `done` holds the fields of its last message."""

    done: "Future[dict[str, Any]]" = field(default_factory=Future)
    on_piece: Callable[[str, Mapping[str, Any], bytes], None] | None = None


@dataclass(slots=True)
class _Outgoing:
    """A message that waits to be sent."""

    message: dict[str, Any]
    payload: bytes = b""
    sent: threading.Event = field(default_factory=threading.Event)


class Channel:
    """One agent; requests from any thread, answers as futures.

    hello : once it has answered; folder: of the experiment on its node, once it is made
    """

    hello: Hello

    def __init__(self, address: NodeAddress, *, python: str, root: str = "/") -> None:
        self.address = address
        self.folder = ""
        self.on_monitor: Callable[[dict[str, Any]], None] = lambda _row: None
        self.lost: str | None = None
        self._on_lost: list[Callable[[str], None]] = []
        self._answers: dict[int, Answer] = {}
        self._lock = threading.Lock()
        self._next = 0
        self._leaving = False
        self._silence = Silence(CHECK_S)
        self._complaints: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the channel
        self._start(python, root)

    @property
    def name(self) -> str:
        return self.address.name

    def _start(self, python: str, root: str) -> None:
        argv = self.address.argv([python, "-I", "-c", _FIRST])
        try:
            # A session of its own: Ctrl-C here is answered by the controller, which ends things in order.
            self._process = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._complaints, start_new_session=True
            )
        except OSError as problem:
            self._complaints.close()
            raise NodeLost(f"{self.name}: {argv[0]} cannot be started: {problem.strerror}") from None
        assert self._process.stdin is not None
        self._sender = Sender(self._process.stdin)  # type: ignore[arg-type]  # a buffered binary stream
        self._nonce = secrets.token_hex(8)
        self._root = root
        self._started: Future[None] = Future()
        self._outgoing: queue.Queue[_Outgoing | None] = queue.Queue(_QUEUED)
        self._writer = threading.Thread(target=self._write, name=f"to node {self.name}", daemon=True)
        self._writer.start()
        threading.Thread(target=self._read, name=f"node {self.name}", daemon=True).start()

    def _write(self) -> None:
        """Writes what is to be sent, until told to end: no interrupt gets into the middle of a message here."""
        stream = self._process.stdin
        assert stream is not None
        with contextlib.suppress(OSError, ValueError):  # the reader notices as well, and says why
            stream.write(agent_program(self._nonce, self._root))
            stream.flush()
            while (outgoing := self._outgoing.get()) is not None:
                self._sender.send(outgoing.message, outgoing.payload)
                outgoing.sent.set()
        with contextlib.suppress(OSError, ValueError):
            stream.close()

    def wait_until_there(self, timeout_s: float) -> None:
        """Returns when the agent has answered; raises NodeLost with ssh's or srun's own words when it does not."""
        try:
            self._started.result(timeout_s)
        except TimeoutError:
            self.abandon(f"did not answer within {timeout_s:g} s")
            raise NodeLost(f"{self.name}: {self.lost}") from None

    def when_lost(self, call: Callable[[str], None]) -> None:
        """`call` gets the reason once the node is lost; at once where it is lost already."""
        with self._lock:
            if self.lost is None:
                self._on_lost.append(call)
                return
        call(self.lost)

    def ask(
        self,
        message: dict[str, Any],
        payload: bytes = b"",
        on_piece: Callable[[str, Mapping[str, Any], bytes], None] | None = None,
    ) -> tuple[int, "Future[dict[str, Any]]"]:
        """Sends a request; its number, and a future of the fields of the answer's last message.

        on_piece: called with (event, fields, payload) of the messages before it, on the channel's own thread
        The future raises NodeLost when the node is lost meanwhile.
        """
        answer = Answer(on_piece=on_piece)
        with self._lock:
            if self.lost is not None:
                answer.done.set_exception(NodeLost(f"{self.name}: {self.lost}"))
                return -1, answer.done
            self._next += 1
            number = self._next
            self._answers[number] = answer
        self.send({**message, "id": number}, payload)
        return number, answer.done

    def send(self, message: dict[str, Any], payload: bytes = b"") -> None:
        """Sends a message that has no answer, or a further piece of one; waits where the node takes nothing for now."""
        outgoing = _Outgoing(message, payload)
        while self.lost is None and self._writer.is_alive():
            with contextlib.suppress(queue.Full):
                self._outgoing.put(outgoing, timeout=_LOOK_S)
                return

    def call(self, what: str, timeout_s: float = 60.0, **arguments: Any) -> Any:
        """The result of a call; raises NodeLost or NodeRefused."""
        return self.result(self.ask({"do": "call", "what": what, "arguments": arguments})[1], timeout_s)

    def result(self, future: "Future[dict[str, Any]]", timeout_s: float) -> Any:
        """The result in an answer's last message; raises NodeRefused for an error in it.

        A node that does not answer in time is given up, and NodeLost raised.
        """
        try:
            fields = future.result(timeout_s)
        except TimeoutError:
            raise self.give_up(f"no answer within {timeout_s:g} s") from None
        if "error" in fields:
            raise NodeRefused(f"{self.name}: {fields['error']}")
        return fields.get("result")

    def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        why = None
        try:
            self._find_hello(stream)
            while (received := receive(stream)) is not None:  # type: ignore[arg-type]
                self._silence.heard()
                self._take(*received)
        except (WireError, LookupError, TypeError) as problem:
            why = f"its agent sent {problem if isinstance(problem, WireError) else 'an invalid message'}"
        except (OSError, ValueError) as problem:
            if isinstance(problem, InputError):
                why = _not_processed(problem)
            # Else what ssh or srun says of it is on standard error.
        except Exception as problem:  # noqa: BLE001 - whoever waits for this node must learn of it
            why = _not_processed(problem)
        self._lose(why or self._last_stderr_line() or "the connection ended")
        self._end()
        stream.close()
        self._complaints.close()

    def _find_hello(self, stream: IO[bytes]) -> None:
        """Passes over what the node's shell prints first."""
        passed = 0
        while passed < _MAX_GREETING_BYTES:
            line = stream.readline(_MAX_GREETING_BYTES)
            if not line:
                raise OSError("no agent")
            passed += len(line)
            if line.startswith(b"{") and self._nonce.encode() in line:
                with contextlib.suppress(ValueError):
                    self.hello = _parse_hello(json.loads(line))
                    self._silence.heard()
                    self._started.set_result(None)
                    return
        raise WireError("no greeting of an agent among the first output")

    def _take(self, message: dict[str, Any], payload: bytes) -> None:
        event = message.get("event")
        if event == "monitor":
            self.on_monitor(message["row"])
            return
        number = message.get("id")
        with self._lock:
            answer = self._answers.pop(number, None) if event == "end" else self._answers.get(number)  # type: ignore[arg-type]
        if answer is None:
            return
        if event == "end":
            answer.done.set_result(message)
        elif answer.on_piece is not None:
            answer.on_piece(str(event), message, payload)

    def check_alive(self) -> None:
        """Tells the agent that the controller is alive; abandons the node when its agent was silent for too long.

        To be called every CHECK_S.
        """
        if self.lost is not None:
            return
        silent_s = self._silence.seconds()
        if silent_s > SILENCE_S and self._started.done():
            self.abandon(f"its agent has been silent for {silent_s:.0f} s")
        else:
            with contextlib.suppress(queue.Full):  # what waits to be sent tells the agent as much
                self._outgoing.put_nowait(_Outgoing({"do": "ping"}))

    def abandon(self, why: str) -> None:
        """Gives the node up: ends the connection, from which the agent, if it lives, learns to clean up."""
        self._lose(why)
        self._end()

    def give_up(self, why: str) -> NodeLost:
        """Abandons the node; what to raise to whoever waits for it."""
        self.abandon(why)
        return NodeLost(f"{self.name}: {self.lost}")

    def leave(self) -> None:
        """Asks the agent to clean up and go, and waits until it has."""
        self._leaving = True
        if self.lost is None and self._started.done() and self._said_goodbye():
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_LEAVE_S)
        self._end()
        self._lose("left")

    def _said_goodbye(self) -> bool:
        """Whether the agent was asked to go: a node that hangs may take nothing more."""
        goodbye = _Outgoing({"do": "bye"})
        try:
            self._outgoing.put(goodbye, timeout=_CLOSE_S)
        except queue.Full:
            return False
        return goodbye.sent.wait(_CLOSE_S)

    def _end(self) -> None:
        """Closes the connection, at which an agent that lives cleans up; then ends what held it on this side."""
        with contextlib.suppress(queue.Full):
            self._outgoing.put_nowait(None)
        try:
            self._process.wait(_CLOSE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._writer.join(_CLOSE_S)

    def _lose(self, why: str) -> None:
        with self._lock:
            if self.lost is not None:
                return
            self.lost = why
            answers, self._answers = self._answers, {}
            callbacks, self._on_lost = self._on_lost, []
        problem = NodeLost(f"{self.name}: {why}")
        if not self._started.done():
            self._started.set_exception(problem)
        for answer in answers.values():
            answer.done.set_exception(problem)
        if not self._leaving:
            for call in callbacks:
                call(why)

    def _last_stderr_line(self) -> str:
        """The last line that ssh, srun or the interpreter wrote on standard error."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)  # its last words come before its end
        if self._complaints.closed:
            return ""
        self._complaints.seek(max(0, self._complaints.seek(0, 2) - _COMPLAINT_BYTES))
        lines = [line.strip() for line in self._complaints.read().decode(errors="replace").splitlines() if line.strip()]
        return lines[-1] if lines else ""


def _parse_hello(message: object) -> Hello:
    """An agent's first message. Raises WireError if something that the controller needs is missing."""
    try:
        hello = from_json(Hello, message, "greeting")
    except InputError as problem:
        raise WireError(f"an invalid {problem}") from None
    if not hello.temporary.startswith("/"):
        raise WireError("an invalid greeting: temporary is not an absolute path")
    return hello


def _not_processed(problem: Exception) -> str:
    return f"a message of its agent could not be processed ({type(problem).__name__}: {problem})"
