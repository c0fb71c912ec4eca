"""Between the controller and the agent of a node: messages, files in pieces, and how long the other end is silent.

A message is one line of JSON, an object, and, where that has a `size`, as many bytes after it; the same both ways.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

#: A line longer than this is no message: whatever sent it is not ours, or is broken.
MAX_LINE_BYTES = 16 << 20
#: Content is sent in pieces no longer than this, so that other messages get in between.
PIECE_BYTES = 1 << 16
#: Each side says that it lives this often at least; silence of this length means that the connection is cut.
ALIVE_S = 5.0
CUT_S = 60.0


class WireError(Exception):
    """Error if what came over the connection is not a message."""


class Sender:
    """Writes messages to a stream; from any thread."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def send(self, message: dict[str, Any], payload: bytes = b"") -> None:
        """One message; raises OSError or ValueError if the other side is gone."""
        head = {**message, "size": len(payload)} if payload else message
        data = json.dumps(head, separators=(",", ":")).encode() + b"\n" + payload
        with self._lock:
            self._stream.write(data)
            self._stream.flush()


def receive(stream: BinaryIO) -> tuple[dict[str, Any], bytes] | None:
    """The next message and its payload; None at the end of the stream. Raises WireError for what is no message."""
    line = stream.readline(MAX_LINE_BYTES + 1)
    if not line.endswith(b"\n"):
        if line and len(line) > MAX_LINE_BYTES:
            raise WireError("a line without end")
        return None
    try:
        message = json.loads(line)
        size = message.get("size", 0)
    except (ValueError, RecursionError, AttributeError):
        raise WireError(f"no message: {line[:80]!r}") from None
    if type(size) is not int or not 0 <= size <= PIECE_BYTES:
        raise WireError(f"a message of size {str(size)[:40]}")
    payload = stream.read(size) if size else b""
    return None if len(payload) < size else (message, payload)


class Silence:
    """Seconds since heard() was last called, of which at most a period counts between two calls of seconds().

    period_s: how often seconds() is called, s
    """

    def __init__(self, period_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._period_s, self._clock = period_s, clock
        self._counted_s = 0.0
        self._looked_s = clock()
        self._lock = threading.Lock()

    def heard(self) -> None:
        with self._lock:
            self._counted_s, self._looked_s = 0.0, self._clock()

    def seconds(self) -> float:
        """The silence up to now; call it once a period."""
        with self._lock:
            now_s = self._clock()
            self._counted_s += min(now_s - self._looked_s, self._period_s)
            self._looked_s = now_s
            return self._counted_s


class Incoming:
    """Files that the controller is sending, by the number of its request; each appears whole or not at all."""

    def __init__(self) -> None:
        self._open: dict[int, Arriving | None] = {}  # None: refused, what still comes of it is passed over

    def take(self, number: int, message: dict[str, Any], piece: bytes) -> bool:
        """Takes a piece; True when the file is whole and in its place. Raises OSError, once a file."""
        last = not message.get("more")
        arriving = self._open.get(number)
        if number in self._open and arriving is None:
            if last:
                del self._open[number]
            return False
        try:
            if arriving is None:
                arriving = self._open[number] = Arriving(Path(message["path"]))
            arriving.file.write(piece)
            if last:
                arriving.place(message.get("mode", 0o644))
        except OSError:
            if arriving is not None:
                arriving.drop()
            self._open[number] = None
            if last:
                del self._open[number]
            raise
        if last:
            del self._open[number]
        return last

    def drop_all(self) -> None:
        for arriving in self._open.values():
            if arriving is not None:
                arriving.drop()
        self._open.clear()


class Arriving:
    """One file that is being written, under another name until it is whole."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".incoming-")
        self.path, self.temporary = path, Path(name)
        self.file: BinaryIO = os.fdopen(handle, "wb")

    def place(self, mode: int) -> None:
        self.file.close()
        self.temporary.chmod(mode)
        self.temporary.replace(self.path)

    def drop(self) -> None:
        with contextlib.suppress(OSError):
            self.file.close()
        with contextlib.suppress(OSError):
            self.temporary.unlink()


def send_file(path: str, most_bytes: int, emit: Callable[[bytes], None]) -> int:
    """Sends a file in pieces; its size. Raises OSError, also for one that is larger than `most_bytes`."""
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > most_bytes:
            raise OSError(27, f"has {size} bytes, more than the {most_bytes} that are collected", path)
        sent = 0
        while sent <= most_bytes and (piece := file.read(PIECE_BYTES)):
            emit(piece)
            sent += len(piece)
    return sent
