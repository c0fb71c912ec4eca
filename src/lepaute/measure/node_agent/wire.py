"""Messages between the controller and the agent of a node.

A message is one line of JSON, an object, and, where that has a `size`, as many bytes after it; the same both ways.
"""

from __future__ import annotations

import json
import threading
from typing import Any, BinaryIO

#: A line longer than this is no message: whatever sent it is not ours, or is broken.
MOST_LINE_BYTES = 16 << 20
#: Content is sent in pieces no longer than this, so that other messages get in between.
PIECE_BYTES = 1 << 16
#: Each side says that it lives this often at least; silence of this length means that the connection is cut.
ALIVE_S = 5.0
CUT_S = 60.0


class WireError(Exception):
    """What came over the connection is not a message."""


class Sender:
    """Writes messages to a stream; from any thread."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def send(self, message: dict[str, Any], payload: bytes = b"") -> None:
        """One message; raises OSError or ValueError where the other side is gone."""
        head = {**message, "size": len(payload)} if payload else message
        data = json.dumps(head, separators=(",", ":")).encode() + b"\n" + payload
        with self._lock:
            self._stream.write(data)
            self._stream.flush()


def receive(stream: BinaryIO) -> tuple[dict[str, Any], bytes] | None:
    """The next message and its payload; None at the end of the stream. Raises WireError for what is no message."""
    line = stream.readline(MOST_LINE_BYTES + 1)
    if not line.endswith(b"\n"):
        if line and len(line) > MOST_LINE_BYTES:
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
