"""Files between the controller and the node."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from .wire import PIECE_BYTES


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
        """Removes what came in part."""
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
