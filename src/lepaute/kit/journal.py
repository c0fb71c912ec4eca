"""Files that only grow, line by line, each line on its way to the disk before the next is begun."""

import contextlib
import json
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


class Lines:
    """A file that grows by whole lines. A line cut short by a crash is cut off when the file is opened.

    Without a buffer: what a full disk refused must not come later, behind lines that were written meanwhile.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        drop_broken_end(path)
        # Not in append mode: a line goes where room was taken for it.
        self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), "r+b", buffering=0)
        self._end = self._file.seek(0, os.SEEK_END)
        self._reserved = 0

    @property
    def closed(self) -> bool:
        return self._file.closed

    def add(self, text: str) -> None:
        """Writes all of the text, or nothing of it; raises OSError then."""
        self._end = self._write(text.encode())
        if self._reserved > self._end:
            self._file.truncate(self._end)
        self._reserved = 0

    def reserve(self, count: int) -> None:
        """Takes room for that many bytes, which the next line fills; raises OSError if there is none.

        Until then the file ends with spaces, which a reader takes for a line that was cut short.
        """
        self._reserved = self._write(b" " * count)

    def _write(self, content: bytes) -> int:
        """Writes behind the last line, all or nothing; returns where it ends."""
        data, position = memoryview(content), self._end
        try:
            while data:
                written = os.pwrite(self._file.fileno(), data, position)
                data, position = data[written:], position + written
        except BaseException:  # a Ctrl-C as well
            with contextlib.suppress(OSError):
                self._file.truncate(self._end)
            raise
        return position

    def close(self) -> None:
        if self._reserved:
            with contextlib.suppress(OSError):
                self._file.truncate(self._end)
            self._reserved = 0
        self._file.close()


class Journal:
    """Objects, one a line of JSON; from any thread."""

    def __init__(self, path: Path) -> None:
        self._lines = Lines(path)
        self._lock = threading.Lock()

    def add(self, entry: Mapping[str, Any]) -> None:
        """Appends an entry; nothing once the journal is closed. Raises OSError, and leaves nothing of it then."""
        line = json.dumps(entry, separators=(",", ":"), default=str) + "\n"
        with self._lock:
            if not self._lines.closed:
                self._lines.add(line)

    def reserve(self, count: int) -> None:
        """Takes room for an entry of that many bytes; raises OSError if there is none."""
        with self._lock:
            self._lines.reserve(count)

    def close(self) -> None:
        with self._lock:
            self._lines.close()


def entries(path: Path) -> Iterator[dict[str, Any]]:
    """What a journal holds; nothing where there is no such file, nor of a line that was cut short or damaged.

    A machine that loses its power may leave zeros where lines were: they must not take the other lines along.
    """
    yield from (entry for entry in _lines(path) if entry is not None)


def damaged(path: Path) -> int:
    """How many lines of a journal are none that it can have written; the last, cut short, is not counted."""
    return sum(entry is None for entry in _lines(path))


def _lines(path: Path) -> Iterator[dict[str, Any] | None]:
    """The entry of every whole line; None for one that is damaged."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                return
            try:
                entry = json.loads(line.decode())
            except ValueError:
                entry = None
            yield entry if isinstance(entry, dict) else None


def drop_broken_end(path: Path) -> None:
    """Cuts off what follows the last line break."""
    if not path.is_file():
        return
    with path.open("r+b") as file:
        size = end = file.seek(0, os.SEEK_END)
        while end > 0:
            start = max(0, end - (1 << 16))
            file.seek(start)
            if (newline := file.read(end - start).rfind(b"\n")) >= 0:
                end = start + newline + 1
                break
            end = start
        if end < size:
            file.truncate(end)
