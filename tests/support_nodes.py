"""Nodes for tests: this machine under several names, each with an agent of its own."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from support_limits import HANG_S

from lepaute.measure.nodes.group import Nodes
from lepaute.measure.nodes.pool import Pool
from lepaute.measure.nodes.results import Result
from lepaute.measure.schedulers.types import NodeAddress


class Remembered:
    """A recorder that keeps what it is told."""

    def __init__(self) -> None:
        self.commands: list[Result] = []
        self.files: list[tuple[str, str, str, int]] = []

    def command(self, result: Result) -> None:
        self.commands.append(result)

    def file(self, node: str, what: str, path: str, size_bytes: int) -> None:
        self.files.append((node, what, path, size_bytes))


@contextmanager
def local_nodes(names: Sequence[str], folder: str, lost: list[tuple[str, str]] | None = None) -> Iterator[Nodes]:
    """Agents on this machine under these names; `folder` names their folders; `lost` is told of those that go."""
    addresses = [NodeAddress(name) for name in names]
    told = lost if lost is not None else []
    with Pool(addresses, python=sys.executable, folder=folder, on_lost=lambda *what: told.append(what)) as pool:
        yield Nodes(pool.channels, Remembered())


def check_stream(process: "subprocess.Popen[bytes]") -> None:
    """Asserts that `cat` on a node gives back what it is given, at once and unharmed, and ends with its input."""
    # Ten bytes, among them those that terminals and ssh's own escapes would take; the stream stays open.
    short = b"\n~.\x00\x03\x04\x11\x13\xff\n"
    os.write(process.stdin.fileno(), short)
    answer = b""
    while len(answer) < len(short):
        answer += os.read(process.stdout.fileno(), 100)
    assert answer == short
    data = os.urandom(1 << 20)
    writer = threading.Thread(target=lambda: (process.stdin.write(data), process.stdin.close()))
    writer.start()
    assert process.stdout.read() == data
    writer.join()
    assert process.wait(HANG_S) == 0
