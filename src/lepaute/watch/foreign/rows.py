"""What the readers of other programs' files share: the file, its numbers, and rows of the table of factor values."""

import hashlib
import io
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from lepaute.errors import InputError
from lepaute.kit.documents import read_bytes
from lepaute.watch.values import KEY, check_values

#: Most bytes of a file, also after unpacking; a table of a million rows.
MAX_BYTES = 64 << 20
_SQLITE, _GZIP = b"SQLite format 3\0", b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Source:
    """A file of another program. data: its content, unpacked; of a database, or where it is not `whole`, the beginning.

    date_s: of what has no date in the file, where somebody has given one
    omitted: how many of what is in it have no rows, by what they are
    """

    path: Path
    data: bytes
    date_s: float | None = None
    whole: bool = True
    omitted: Counter[str] = field(default_factory=Counter)

    @property
    def name(self) -> str:
        """For messages."""
        return str(self.path)

    @property
    def is_database(self) -> bool:
        """Whether it is one of SQLite, which reads it itself, from `path`."""
        return self.data[: len(_SQLITE)] == _SQLITE

    @property
    def text(self) -> str:
        """The content as UTF-8, without a byte order mark; raises InputError, naming the line, for anything else."""
        try:
            return self.data.decode("utf-8-sig")
        except UnicodeDecodeError as problem:
            raise self._no_text(self.data.count(b"\n", 0, problem.start) + 1) from None

    def lines(self) -> Iterator[str]:
        """The lines of its text with their ends, read one after the other where it is not whole; raises as `text`."""
        if self.whole:
            yield from io.StringIO(self.text, newline="")
            return
        try:
            with self.path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as stream:
                number = 0
                while line := stream.readline(MAX_BYTES):
                    number += 1
                    if not line.isascii() and any("\ud800" <= letter <= "\udfff" for letter in line):
                        raise self._no_text(number)
                    yield line
        except OSError as problem:
            raise InputError(f"{self.name}: cannot be read ({problem.strerror}); copy it again") from None

    def _no_text(self, line: int) -> InputError:
        return InputError(f"{self.name}:{line}: is not UTF-8 text; convert the file, with iconv for example")


def read_source(path: str | Path, *, by_lines: bool = False) -> Source:
    """The file, unpacked where it is gzip by its content; raises InputError if it cannot be read or is too large.

    by_lines : a large file that is not packed is none too large: its `lines` are asked for
    """
    path = Path(path)
    if path.is_file():  # not a pipe, which can be read only once
        try:
            with path.open("rb") as stream:
                head = stream.read(len(_SQLITE))
                size = stream.seek(0, io.SEEK_END)
        except OSError:
            head, size = b"", 0  # which read_bytes will refuse
        if head == _SQLITE:
            return Source(path, head)
        if by_lines and size > MAX_BYTES and head[:2] != _GZIP:
            return Source(path, head, whole=False)
    data = read_bytes(path, "a file of measurements", MAX_BYTES)
    if data[: len(_SQLITE)] == _SQLITE:
        raise InputError(f"{path}: is a compressed database; unpack it, with gunzip for example")
    return Source(path, data)


def finite_number(value: object) -> float | None:
    """A number of JSON as a float; None for what is not a finite number."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def number_of_text(text: str) -> float | None:
    """A number as programs print it; None for what is not a finite number."""
    try:
        return finite_number(float(text)) if "_" not in text else None
    except ValueError:
        return None


class Row(NamedTuple):
    """One factor of one job; columns as watch.values has them."""

    cluster: str
    node: str
    cpu: int
    job: str
    started_s: float
    stratum: str
    factor: str
    value: float
    state: str
    archive: str = ""


def digest(*parts: object) -> str:
    """Sixteen hexadecimal digits that tell this content from any other; the same for the same content."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def table_of(rows: Iterable[Row], name: str) -> "pd.DataFrame":
    """The table of the rows of a file; arguments and errors as `checked_table`."""
    rows = list(rows)
    names = ("cluster", "node", "job", "factor")
    check_names({(column, getattr(row, column)) for row in rows for column in names}, name)
    return checked_table(pd.DataFrame(rows, columns=Row._fields), name)


def checked_table(frame: "pd.DataFrame", name: str) -> "pd.DataFrame":
    """The table of a file (columns of Row, names as `check_names` lets them pass); rows that occur twice count once.

    Raises InputError, naming the file, where rows contradict each other, or there is none.
    """
    if frame.empty:
        raise InputError(f"{name}: has no value of any factor; give results of benchmarks that ran")
    count = len(frame)
    if frame.duplicated(KEY).any():
        frame = frame.drop_duplicates(ignore_index=True)
        twice = frame[frame.duplicated(KEY)]
        if len(twice):
            row = twice.iloc[0]
            raise InputError(
                f"{name}: {row['factor'][:80]} of node {row['node'][:40]!r} has two values in job {row['job'][:40]}; "
                "remove one, or tell the jobs apart"
            )
    try:
        values = check_values(frame)
    except InputError as problem:
        raise InputError(f"{name}: {problem}") from None
    values.attrs["twice"] = count - len(frame)
    return values


def check_names(names: Iterable[tuple[str, str]], name: str) -> None:
    """Raises InputError if one of the (column, text) cannot be printed, or stored."""
    for column, text in names:
        if not text.isprintable():
            raise InputError(f"{name}: the {column} {text[:60]!r} cannot be printed; give it another name")


def node_of(node: str, reported: str, name: str) -> str:
    """The node that was given, else the one that the file reports; raises InputError if neither is."""
    if not (node or reported):
        raise InputError(f"{name}: does not say on which node it ran; give the node (--node)")
    return node or reported
