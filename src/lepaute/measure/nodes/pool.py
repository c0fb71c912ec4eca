"""All connections of an experiment: made at once, kept alive, ended in order; and the clocks at their ends."""

import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from lepaute.measure.nodes.channel import CHECK_S, Channel, NodeLost, NodeRefused
from lepaute.measure.schedulers.types import NodeAddress

#: Connections that are being made at the same time: each is a process here until it is through.
FAN_OUT = 32
CONNECT_S = 60.0
_LOOK_S = 0.2
PROBES = 8


class Pool:
    """Context manager: the agents of some nodes, each with a folder of its own on its node.

    folder : its name, below the node's folder of temporary files; names of one machine get one each
    keep   : leave the folders where they are at the end
    on_lost: called with (node, why) when a connection ends too early; from another thread
    root   : under which agents look for the system's control files
    """

    def __init__(
        self,
        addresses: Sequence[NodeAddress],
        *,
        python: str,
        folder: str,
        keep: bool = False,
        on_lost: Callable[[str, str], None] | None = None,
        root: str = "/",
    ) -> None:
        self.channels: tuple[Channel, ...] = ()
        self._addresses = addresses
        self._python, self._root = python, root
        self._folder, self._keep = folder, keep
        self._on_lost = on_lost
        self._done = threading.Event()

    def __enter__(self) -> Self:
        """Connects to all. Raises NodeLost naming all that cannot be reached; none stays connected then."""
        self._opened: list[Channel] = []
        try:
            outcomes = self._connected()
            unreachable = [outcome for outcome in outcomes if isinstance(outcome, str)]
            if unreachable:
                more = f" (and {len(unreachable) - 3} more)" if len(unreachable) > 3 else ""
                raise NodeLost(
                    f"{'; '.join(unreachable[:3])}{more}; mend that, or leave the node out of --nodes (node[1-8]!node3)"
                )
            self.channels = tuple(outcome for outcome in outcomes if isinstance(outcome, Channel))
            self._make_folders()
        except BaseException:
            self._leave(self._opened)
            raise
        for channel in self.channels:
            if self._on_lost is not None:
                channel.when_lost(lambda why, name=channel.name: self._on_lost(name, why))  # type: ignore[misc]
        threading.Thread(target=self._keep_alive, daemon=True).start()
        return self

    def _connected(self) -> list[Channel | str]:
        """Every connection, or why there is none; a Ctrl-C does not wait for nodes that do not answer."""
        with ThreadPoolExecutor(FAN_OUT) as workers:
            try:
                opening = [workers.submit(self._open, address) for address in self._addresses]
                # A signal that comes just before a wait, or to another thread, does not end the wait.
                while wait(opening, _LOOK_S).not_done:
                    pass
                return [one.result() for one in opening]
            except BaseException:
                self._done.set()
                workers.shutdown(wait=False, cancel_futures=True)
                for channel in list(self._opened):
                    threading.Thread(target=channel.abandon, args=("it was not waited for",), daemon=True).start()
                raise

    def _open(self, address: NodeAddress) -> Channel | str:
        try:
            channel = Channel(address, python=self._python, root=self._root)
            self._opened.append(channel)
            if self._done.is_set():
                channel.abandon("it was not waited for")
            channel.wait_until_there(CONNECT_S)
        except NodeLost as problem:
            return str(problem)
        return channel

    def _make_folders(self) -> None:
        """The same path everywhere, so that ranks of MPI find their program; only names of one machine need several."""
        taken: set[tuple[str, str]] = set()
        for channel in self.channels:
            hello = channel.hello
            path = f"{hello.temporary}/{self._folder}"
            if (hello.boot, path) in taken:
                path = f"{path}-{channel.name}"
            taken.add((hello.boot, path))
            try:
                channel.folder = channel.call("folder", path=path, keep=self._keep)
            except NodeRefused as problem:
                raise NodeLost(f"{problem}; set TMPDIR on the node to a folder with room that can be written") from None

    def _keep_alive(self) -> None:
        while not self._done.wait(CHECK_S):
            for channel in self.channels:
                channel.check_alive()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave(self.channels)

    def _leave(self, channels: Sequence[Channel]) -> None:
        self._done.set()
        if channels:
            with ThreadPoolExecutor(FAN_OUT) as workers:
                list(workers.map(Channel.leave, channels))


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """offset_s: the node's clock minus the controller's; error_s: half the round trip, the bound of its error."""

    node: str
    offset_s: float
    error_s: float


def clock_offset(channel: Channel) -> ClockOffset:
    """The offset by the probe with the shortest round trip. Raises NodeLost.

    Source: F. Cristian, Probabilistic clock synchronization, Distributed Computing 3 (1989), section 3.
    """
    probes = [_probe(channel) for _ in range(PROBES)]
    sent, node_s, received = min(probes, key=lambda probe: probe[2] - probe[0])
    return ClockOffset(channel.name, node_s - (sent + received) / 2, (received - sent) / 2)


def _probe(channel: Channel) -> tuple[float, float, float]:
    """(sent, the node's clock, received) in seconds, sent and received by the controller's clock."""
    sent = time.time()
    answer = channel.result(channel.ask({"do": "clock"})[1], 30.0)
    received = time.time()
    node_s = answer.get("time_s") if isinstance(answer, dict) else None
    if not isinstance(node_s, float) or not math.isfinite(node_s):
        raise channel.give_up("its agent sent no time of its clock")
    return sent, node_s, received
