"""The raw table of an experiment while it is measured: a row at a time, each on its way to the disk before the next."""

import csv
import io
import threading
from collections.abc import Mapping
from pathlib import Path

from lepaute.errors import InputError
from lepaute.kit.journal import Lines

Value = str | int | float | bool | None


class Table:
    """Rows of measurements, as CSV: the columns are those of the first row, each row is flushed as it comes.

    header: `#@key=value` lines at the head of a new file
    """

    def __init__(self, path: Path, header: Mapping[str, str]) -> None:
        self.path = path
        self._lines = Lines(path)
        self.columns = columns_of(path)
        self._header = header
        self._lock = threading.Lock()

    def add(self, row: Mapping[str, Value]) -> None:
        """Appends a row. Raises InputError for other columns than the first has, and for a line break in a value;
        OSError where the disk takes no more, and leaves nothing of the row then.
        """
        for name, value in row.items():
            if any(mark in text for text in (name, value if isinstance(value, str) else "") for mark in "\n\r\0"):
                raise InputError(
                    f"column {name!r}: a value with a line break cannot be a table's; keep such text as a file"
                )
        with self._lock:
            if not self.columns:
                self._lines.add(
                    "".join(f"#@{key}={text}\n" for key, text in self._header.items()) + line_of(tuple(row))
                )
                self.columns = tuple(row)
            if set(row) != set(self.columns):
                strange = ", ".join(sorted(set(row) ^ set(self.columns)))
                raise InputError(
                    f"a row of table {self.path.stem} has other columns than its first ({strange}); record it in a "
                    "table of its own: record(table=...)"
                )
            self._lines.add(line_of([plain(row[name]) for name in self.columns]))

    def close(self) -> None:
        with self._lock:
            self._lines.close()


def plain(value: Value) -> str:
    """As a cell: floats so that they come back the same, nothing for None."""
    if value is None:
        return ""
    return repr(value) if isinstance(value, float) else str(value)


def line_of(cells: "tuple[str, ...] | list[str]") -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue()


def columns_of(path: Path) -> tuple[str, ...]:
    """The columns of a table's file; none where there is none yet."""
    if not path.is_file():
        return ()
    with path.open(encoding="utf-8", newline="") as file:
        for line in file:
            if not line.startswith("#@"):
                return tuple(next(csv.reader([line])))
    return ()
