"""Untrusted text on a terminal: no escape sequences, no line breaks, cut to its width."""

import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

#: Bounds the work on a text of which only the beginning is shown.
_MAX_LOOKED_AT = 20_000
#: Columns where nothing is cut: more than a line that anybody prints.
UNLIMITED = 1_000_000


def printable(text: str) -> str:
    """The text on one line; what is not printable (escapes, control characters, marks that turn the direction of
    writing) as its code, tabs as spaces."""
    if text.isprintable():
        return text
    codes = (" " if char == "\t" else char.encode("unicode_escape").decode() for char in text)
    return "".join(char if char.isprintable() else code for char, code in zip(text, codes, strict=True))


def printable_lines(text: str) -> str:
    """As `printable`, of a text whose line breaks and tabs stay."""
    if text.isprintable():
        return text
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))


class PrintableStream:
    """A text stream that writes `printable_lines` of what it is given, and is the stream itself in all else.

    Rich, which draws with escape sequences of its own, writes to the stream behind it: give it printable text.
    is_elsewhere : whether what is being written is for standard error
    Raises OSError with the stream's name where writing fails.
    """

    def __init__(self, stream: Any, name: str) -> None:
        self._stream = stream
        self._name = name
        self.is_elsewhere: Callable[[], bool] = lambda: False
        self.rich_proxied_file = getattr(stream, "rich_proxied_file", stream)  # as Rich calls it

    def write(self, text: str) -> int:
        if self.is_elsewhere():
            return sys.stderr.write(text)
        with _named(self._name):
            self._stream.write(printable_lines(text))
        return len(text)

    def writelines(self, texts: Iterable[str]) -> None:
        for text in texts:
            self.write(text)

    def flush(self) -> None:
        with _named(self._name):
            self._stream.flush()

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self._stream, attribute)


def unfiltered(stream: Any) -> Any:
    """The stream behind, for escape sequences of ours."""
    return stream.rich_proxied_file if isinstance(stream, PrintableStream) else stream


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Puts the name of a stream into an OSError that has none."""
    try:
        yield
    except OSError as problem:
        if problem.filename is None and problem.errno is not None:
            problem.filename = name
        raise


def terminal_columns(stream: Any = None) -> int:
    """The width of the terminal that a stream is, or standard output: at least 40, or COLUMNS; UNLIMITED elsewhere."""
    if not (sys.stdout if stream is None else stream).isatty():
        return UNLIMITED
    return max(40, shutil.get_terminal_size((80, 24)).columns)


def fitted(text: str, width: int) -> str:
    """`printable(text)`, its end replaced by "..." where it takes more than `width` columns."""
    visible = printable(text[:_MAX_LOOKED_AT])
    if len(text) <= _MAX_LOOKED_AT and columns(visible) <= width:
        return visible
    kept, used = [], 0
    for char in visible:
        used += _columns(char)
        if used > width - 3:
            break
        kept.append(char)
    return "".join(kept) + "..."[:width]


def columns(text: str) -> int:
    """How many columns a printable text takes on a terminal."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
