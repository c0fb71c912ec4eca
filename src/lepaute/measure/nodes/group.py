"""Commands and files on a group of nodes: all at once, each node's result of its own; and work side by side on them."""

import contextlib
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from lepaute.errors import InputError, LepauteError
from lepaute.measure.node_agent.wire import PIECE_BYTES, WireError
from lepaute.measure.nodes.channel import Channel, NodeLost, NodeRefused
from lepaute.measure.nodes.results import CommandFailed, Output, Result, Results

#: Called with (node, index of the followed file, what was appended to it).
Follow = Callable[[str, int, bytes], None]

#: What a command gets to end when the controller is interrupted; the agents kill it after a second.
_STOP_S = 3.0
#: What an agent gets to tell the end of a command whose time is over; it kills the command after a second.
_TELL_S = 60.0
_FILE_S = 600.0
MAX_COLLECTED_BYTES = 1 << 30


class Recorder(Protocol):
    """Called for everything that is done on nodes."""

    def command(self, result: Result) -> None: ...

    def file(self, node: str, what: str, path: str, size_bytes: int) -> None: ...


class NoRecord:
    """Records nothing."""

    def command(self, result: Result) -> None: ...

    def file(self, node: str, what: str, path: str, size_bytes: int) -> None: ...


@dataclass(slots=True)
class Pending:
    """A command that runs on one node."""

    channel: Channel
    folder: str | None
    number: int
    done: "Future[dict[str, Any]]"
    out: Output = field(default_factory=Output)
    err: Output = field(default_factory=Output)


class Nodes:
    """Some or all nodes of an experiment; those that are lost drop out.

    Words of a command reach its program as they are, without a shell in between.
    """

    def __init__(
        self, channels: Sequence[Channel], recorder: Recorder, spares: Callable[[], bool] | None = None
    ) -> None:
        """spares: whether a node that fails where others do not is given up, instead of ending all by an exception."""
        self._all = tuple(channels)
        self._recorder = recorder
        self._spares = spares or (lambda: False)

    @property
    def channels(self) -> tuple[Channel, ...]:
        """Channels of the nodes that still answer."""
        return tuple(channel for channel in self._all if channel.lost is None)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(channel.name for channel in self.channels)

    @property
    def place(self) -> str:
        """The experiment's folder on the first node, to which relative paths belong."""
        return self._present()[0].folder

    def __len__(self) -> int:
        return len(self.channels)

    def __iter__(self) -> "Iterator[Nodes]":
        """The nodes one by one, each as a group of its own."""
        return (self._of([channel]) for channel in self.channels)

    def __getitem__(self, which: "str | int | slice") -> "Nodes":
        """A node, by name or position, or a slice of them, as a group. Raises InputError for one that is not there."""
        if isinstance(which, slice):
            return self._of(self._all[which])
        for position, channel in enumerate(self._all):
            if which in (channel.name, position, position - len(self._all)):
                return self._of([channel])
        raise InputError(f"there is no node {which!r} in this experiment; its nodes are {', '.join(self.names)}")

    def _of(self, channels: Sequence[Channel]) -> "Nodes":
        return Nodes(channels, self._recorder, self._spares)

    def run(
        self,
        *words: object,
        folder: str | Path | None = None,
        environment: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        stdin: str | bytes | None = None,
        check: bool = True,
        follow: Mapping[str, Follow] | None = None,
        follow_period_s: float | None = None,
    ) -> Results:
        """Runs a program on every node and returns when all have ended.

        words    : the program and its arguments; numbers and paths are written as text
        folder   : relative ones lie in the experiment's folder on the node
        timeout_s: after which a program is ended, and has failed
        check    : a failure raises CommandFailed; while a row of a design is measured, a node that fails where others
                   do not is given up instead, like one that dies
        follow   : files that the program writes on the node, and what to call with what it appends to them
        follow_period_s: between looks at them, each of which costs the node a little; a fifth of a second unless given
        Raises NodeLost when no node is left.
        """
        if not words:
            raise InputError("run() got no words; give a program and its arguments")
        argv = tuple(str(word) for word in words)
        if any("\0" in word for word in argv):
            raise InputError(f"a word of the command {argv[0][:40]!r} holds a NUL byte; no program can be given that")
        added = {name: str(value) for name, value in (environment or {}).items()}
        if timeout_s is not None and not (isinstance(timeout_s, int | float) and timeout_s > 0):
            raise InputError(f"timeout_s is {timeout_s!r}; give seconds, more than 0, or None")
        data = stdin.encode() if isinstance(stdin, str) else stdin
        message: dict[str, Any] = {"do": "start", "argv": argv, "environment": added, "timeout_s": timeout_s}
        if data is not None:
            if len(data) > PIECE_BYTES:
                raise InputError(f"standard input is limited to {PIECE_BYTES} bytes; write a file to the node instead")
            message["input"] = True
        if follow_period_s is not None:
            message["follow_period_s"] = follow_period_s
        started = []
        for channel in self._present():
            where = placed(channel, folder)
            files = [placed(channel, path) for path in follow or ()]
            started.append(
                self._start(
                    channel, {**message, "folder": where, "follow": files}, data or b"", list((follow or {}).values())
                )
            )
        results = self._wait(started, argv, added, None if timeout_s is None else timeout_s + _TELL_S)
        failed = [result for result in results.values() if check and not result.ok]
        if failed and not self._gave_up(
            {each.node: f"{argv[0]} failed: {each.complaint()}" for each in failed}, results
        ):
            raise CommandFailed(f"command '{argv[0]}' failed on {failed[0].node} ({failed[0].complaint()})", failed[0])
        results = Results({node: result for node, result in results.items() if result not in failed})
        if not results:
            raise NodeLost(f"{argv[0]}: {self.none_left()}")
        return results

    def shell(self, script: str, *arguments: object, shell: str = "sh", **options: Any) -> Results:
        """Runs a shell script; `arguments` are its "$1", "$2" ..., never part of its text. Options as for run()."""
        return self.run(shell, "-e", "-c", script, shell, *arguments, **options)

    def _start(self, channel: Channel, message: dict[str, Any], data: bytes, follow: Sequence[Follow]) -> Pending:
        out, err = Output(), Output()

        def on_piece(event: str, fields: Mapping[str, Any], piece: bytes) -> None:
            if event == "follow":
                follow[fields["file"]](channel.name, fields["file"], piece)
            else:
                (out if event == "out" else err).add(piece)

        number, done = channel.ask(message, data, on_piece)
        return Pending(channel, message["folder"], number, done, out, err)

    def _wait(
        self, started: Sequence[Pending], argv: tuple[str, ...], environment: Mapping[str, str], limit_s: float | None
    ) -> Results:
        """The results of all that end; commands that still run when this is interrupted are ended first.

        A node that has not told the end after limit_s is given up.
        """
        results: dict[str, Result] = {}
        latest_s = None if limit_s is None else time.monotonic() + limit_s

        def collect(pending: Pending, timeout_s: float | None) -> None:
            with contextlib.suppress(NodeLost):
                fields = pending.done.result(timeout_s)
                try:
                    result = result_of(pending, fields, argv, environment)
                except LepauteError:
                    raise
                except (TypeError, ValueError, OverflowError):
                    raise pending.channel.give_up(f"its agent sent no result of {argv[0]}") from None
                results[result.node] = result
                self._recorder.command(result)

        try:
            for pending in started:
                try:
                    collect(pending, None if latest_s is None else max(0.0, latest_s - time.monotonic()))
                except TimeoutError:
                    with contextlib.suppress(NodeLost):
                        raise pending.channel.give_up(f"its agent did not tell the end of {argv[0]}") from None
        except BaseException:
            left = [pending for pending in started if not pending.done.done()]
            for pending in left:
                pending.channel.send({"do": "stop", "target": pending.number})
            deadline = time.monotonic() + _STOP_S
            for pending in left:
                with contextlib.suppress(TimeoutError):
                    collect(pending, max(0.0, deadline - time.monotonic()))
            raise
        return Results(results)

    def write(self, path: str | Path, content: str | bytes, mode: int = 0o644) -> None:
        """Writes a file on every node, whole or not at all."""
        data = content.encode() if isinstance(content, str) else content
        answers = []
        for channel in self._present():
            answers.append((channel, send_file(channel, placed(channel, path), data, mode)))
            self._recorder.file(channel.name, "written", str(path), len(data))
        refused: dict[str, NodeRefused] = {}
        self._results(answers, _FILE_S, refused.__setitem__)
        if refused and not self._gave_up({node: str(problem) for node, problem in refused.items()}, self.names):
            raise next(iter(refused.values()))

    def put(self, local: str | Path, path: str | Path | None = None) -> None:
        """Copies a file of this machine to every node, with its permission to be executed; `path`: its name there."""
        local = Path(local)
        try:
            data, mode = local.read_bytes(), local.stat().st_mode & 0o777
        except OSError as problem:
            message = f"{local}: cannot be read ({problem.strerror}); give a file to copy to the nodes"
            raise InputError(message) from None
        self.write(path if path is not None else local.name, data, mode)

    def read(self, path: str | Path, most_bytes: int = MAX_COLLECTED_BYTES) -> dict[str, bytes]:
        """The content of a file, by node. Raises NodeRefused where a node has none, or one larger than `most_bytes`."""
        asked = []
        for channel in self._present():
            pieces = bytearray()

            def on_piece(_event: str, _fields: Mapping[str, Any], piece: bytes, pieces: bytearray = pieces) -> None:
                if len(pieces) > most_bytes + PIECE_BYTES:  # its agent stops there, if it is ours
                    raise WireError(f"more than the {most_bytes} bytes that it was asked for")
                pieces.extend(piece)

            message = {"do": "get", "path": placed(channel, path), "most_bytes": most_bytes}
            asked.append((channel, channel.ask(message, on_piece=on_piece)[1], pieces))
        contents = {}
        for channel, answer, pieces in asked:
            with contextlib.suppress(NodeLost):
                channel.result(answer, _FILE_S)
                contents[channel.name] = bytes(pieces)
                self._recorder.file(channel.name, "read", str(path), len(contents[channel.name]))
        return contents

    def call(
        self, what: str, timeout_s: float = 60.0, refused: Callable[[str], None] | None = None, **arguments: Any
    ) -> dict[str, Any]:
        """The results of one of the agent's own calls, by node; nodes that are lost are left out.

        refused: called for each node that refuses, which is left out too; without it the first one raises NodeRefused
        """
        message = {"do": "call", "what": what, "arguments": arguments}
        answers = [(channel, channel.ask(message)[1]) for channel in self._present()]
        return self._results(answers, timeout_s, refused and (lambda _node, problem: refused(str(problem))))

    def _results(
        self,
        answers: "Sequence[tuple[Channel, Future[dict[str, Any]]]]",
        timeout_s: float,
        refused: Callable[[str, NodeRefused], None] | None,
    ) -> dict[str, Any]:
        """Answers of nodes, by name; those that are lost, and those that refuse (as for `call`), are left out."""
        results = {}
        for channel, answer in answers:
            try:
                results[channel.name] = channel.result(answer, timeout_s)
            except NodeLost:
                continue
            except NodeRefused as problem:
                if refused is None:
                    raise
                refused(channel.name, problem)
        return results

    def _gave_up(self, failed: Mapping[str, str], tried: Collection[str]) -> bool:
        """Abandons the nodes that failed, each for its reason, where others did not and the caller spares nodes."""
        if len(failed) >= len(tried) or not self._spares():
            return False
        for channel in self.channels:
            if channel.name in failed:
                channel.abandon(failed[channel.name])
        return True

    def _present(self) -> tuple[Channel, ...]:
        if not (present := self.channels):
            raise NodeLost(self.none_left())
        return present

    def none_left(self) -> str:
        lost = [f"{channel.name}: {channel.lost}" for channel in self._all if channel.lost]
        more = f" (and {len(lost) - 3} more)" if len(lost) > 3 else ""
        return f"no node is left; {'; '.join(lost[:3]) or 'there were no nodes'}{more}"


def placed(channel: Channel, path: str | Path | None) -> str | None:
    """A path on the node: relative ones lie in the experiment's folder there."""
    return (channel.folder or None) if path is None else str(Path(channel.folder or ".") / path)


def send_file(channel: Channel, path: str | None, data: bytes, mode: int) -> "Future[dict[str, Any]]":
    """Sends a file in pieces; the future ends when it is in its place."""
    message = {"do": "put", "path": path, "mode": mode}
    pieces = [data[first : first + PIECE_BYTES] for first in range(0, max(len(data), 1), PIECE_BYTES)]
    number, answer = channel.ask({**message, "more": len(pieces) > 1}, pieces[0])
    for position, piece in enumerate(pieces[1:], start=2):
        if answer.done():
            break  # it was refused, or the node is lost
        channel.send({**message, "id": number, "more": position < len(pieces)}, piece)
    return answer


def result_of(
    pending: Pending, fields: Mapping[str, Any], argv: tuple[str, ...], environment: Mapping[str, str]
) -> Result:
    returncode = fields.get("returncode")
    return Result(
        node=pending.channel.name,
        argv=argv,
        folder=pending.folder,
        returncode=returncode if isinstance(returncode, int) else None,
        stdout=pending.out.text(),
        stderr=pending.err.text(),
        start=str(fields.get("start", "")),
        duration_s=float(fields.get("duration_s", 0.0)),
        environment=environment,
        error=None if fields.get("error") is None else str(fields["error"]),
        timed_out=bool(fields.get("timed_out")),
        left_behind=int(fields.get("left_behind", 0)),
    )


def for_each_machine(nodes: Nodes, work: Callable[[Nodes, threading.Event], None]) -> None:
    """Does `work` on each node; a node that is lost meanwhile drops out, any other problem ends the work everywhere.

    work: gets the node, and an event that is set when it shall begin nothing more
    Raises the first problem, when nothing runs any more.
    """
    machines: dict[str, list[Nodes]] = {}
    for node in nodes:
        machines.setdefault(node.channels[0].hello.boot, []).append(node)

    def live(names: list[Nodes], stopping: threading.Event) -> None:
        for node in names:
            if stopping.is_set():
                return
            try:
                work(node, stopping)
            except NodeLost:
                if node.channels:
                    raise

    side_by_side([partial(live, names) for names in machines.values()], nodes)


def side_by_side(works: Sequence[Callable[[threading.Event], None]], nodes: Nodes) -> None:
    """Does all at the same time; a problem of one ends them everywhere.

    works: each gets an event that is set when it shall begin nothing more
    nodes: on which they start programs, which are ended then
    Raises the first problem, when nothing runs any more.
    """
    stopping = threading.Event()
    if len(works) < 2:  # here Ctrl-C ends the command that runs
        for work in works:
            work(stopping)
        return
    with ThreadPoolExecutor(len(works)) as workers:
        running = [workers.submit(work, stopping) for work in works]
        try:
            done, _ = wait(running, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
        except BaseException:
            stopping.set()
            if nodes.channels:
                nodes.call("stop")
            raise
