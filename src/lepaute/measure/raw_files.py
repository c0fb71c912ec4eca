"""Raw files: rows as they are measured, below lines `#@key=value`; an experiment's tables, and what probes write."""

import csv
import io
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import dropwhile, islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lepaute.errors import InputError
from lepaute.kit.frames import csv_text, read_csv
from lepaute.kit.journal import Lines, drop_broken_end
from lepaute.kit.later import pandas
from lepaute.kit.text import counted

if TYPE_CHECKING:
    from lepaute.measure.nodes.group import Nodes
    from lepaute.measure.nodes.results import Result

Value = str | int | float | bool | None


class Table:
    """Rows of measurements, as CSV: the columns are those of the first row, each row is flushed as it comes.

    header: `#@key=value` lines at the head of a new file
    """

    def __init__(self, path: Path, header: Mapping[str, str]) -> None:
        self.path = path
        self._lines = Lines(path)
        self.columns = _columns_of(path)
        self._header = header
        self._lock = threading.Lock()

    def add(self, row: Mapping[str, Value]) -> None:
        """Appends a row. Raises InputError for other columns than the first has, and for a line break in a value;
        OSError if the disk takes no more, and leaves nothing of the row then.
        """
        for name, value in row.items():
            if any(mark in text for text in (name, value if isinstance(value, str) else "") for mark in "\n\r\0"):
                raise InputError(
                    f"column {name!r}: a value with a line break cannot be a table's; keep such text as a file"
                )
        with self._lock:
            if not self.columns:
                head = "".join(f"#@{key}={text}\n" for key, text in self._header.items())
                self._lines.add(head + csv_text([tuple(row)]))
                self.columns = tuple(row)
            if set(row) != set(self.columns):
                strange = ", ".join(sorted(set(row) ^ set(self.columns)))
                raise InputError(
                    f"a row of table {self.path.stem} has other columns than its first ({strange}); record it in a "
                    "table of its own: record(table=...)"
                )
            self._lines.add(csv_text([[_cell(row[name]) for name in self.columns]]))

    def close(self) -> None:
        with self._lock:
            self._lines.close()


def _cell(value: Value) -> str:
    """Floats so that they come back the same, nothing for None."""
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)


def _columns_of(path: Path) -> tuple[str, ...]:
    if not path.is_file():
        return ()
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        return tuple(next(csv.reader(dropwhile(_is_head, file)), []))


def _is_head(line: str) -> bool:
    return line.startswith("#@")


#: Names of nodes are texts, also where all of them look like numbers.
_TEXTS = ("node",)
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")
_MAX_WHOLE = 2**63 - 1
_WORDS = {"True": True, "False": False}


#: Rows of a table that are in memory at a time.
BLOCK_ROWS = 20_000


def table_blocks(
    path: Path, tell: Callable[[str], None] = lambda _warning: None, rows: int = BLOCK_ROWS
) -> "Iterator[pandas.DataFrame]":
    """The table in a file that `Table` wrote, this many rows at a time; of a table without rows, one block without any.

    A column is of whole numbers, of floats or of truth values where all of its cells are, in just the form in which
    such a value is written down; else of texts, so "007", "NA" or "a # b" come back as they were recorded. An empty
    cell is a missing value in the former, and in a column of texts an empty text. Lines with more or fewer cells than
    there are columns, of a damaged disk, are left out and reported to `tell`.
    """
    strange, kinds = 0, [_Column(name) for name in _columns_of(path)]
    for block, left_out in _blocks(path, rows):
        strange += left_out
        for kind, cells in zip(kinds, zip(*block, strict=True), strict=False):
            kind.see(cells)
    if strange:
        tell(f"{path.name}: {counted(strange, 'damaged line')} left out of the table; the file has them")
    for block, _ in _blocks(path, rows):
        columns = zip(*block, strict=True) if block else [()] * len(kinds)
        yield pandas.DataFrame({kind.name: kind.series(cells) for kind, cells in zip(kinds, columns, strict=True)})


def _blocks(path: Path, rows: int) -> Iterator[tuple[list[list[str]], int]]:
    """The rows below the names, in blocks, and how many damaged ones each has left out; at least one block."""
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        # Only lines at the head: a later one may begin so, with a text in its first column.
        lines = csv.reader(dropwhile(_is_head, file))
        width, is_first = len(next(lines, [])), True
        while (block := list(islice(lines, rows))) or is_first:
            whole = [row for row in block if len(row) == width]
            yield whole, len(block) - len(whole)
            is_first = False


class _Column:
    """What all cells of a column are, told after all were seen."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._rows = self._known = 0
        self._whole = self._words = self._numbers = True

    def see(self, cells: Sequence[str]) -> None:
        known = [cell for cell in cells if cell]
        self._rows, self._known = self._rows + len(cells), self._known + len(known)
        self._whole = self._whole and all(map(_is_whole, known))
        self._words = self._words and all(cell in _WORDS for cell in known)
        # What was whole so far is a number, too.
        self._numbers = self._whole or (self._numbers and all(_is_float(cell) or _is_whole(cell) for cell in known))

    def series(self, cells: Sequence[str]) -> "pandas.Series[Any]":
        """Some of its cells."""
        missing = self._known < self._rows
        if self.name in _TEXTS:
            return pandas.Series(list(cells), dtype=object)
        if self._rows and not self._known:
            return pandas.Series([None] * len(cells), dtype="float64")
        if self._whole:
            return pandas.Series([int(cell) if cell else None for cell in cells], dtype="Int64" if missing else "int64")
        if self._words:
            return pandas.Series([_WORDS.get(cell) for cell in cells], dtype="boolean" if missing else "bool")
        if self._numbers:
            return pandas.Series([float(cell) if cell else None for cell in cells], dtype="float64")
        return pandas.Series(list(cells), dtype=object)


def _is_whole(cell: str) -> bool:
    return _WHOLE.fullmatch(cell) is not None and abs(int(cell)) <= _MAX_WHOLE


def _is_float(cell: str) -> bool:
    """Whether it is what Python writes for a float, and a finite one: other texts that float() takes are texts."""
    try:
        return repr(float(cell)) == cell and cell not in ("inf", "-inf", "nan")
    except ValueError:
        return False


def rows_of(text: str) -> list[dict[str, str]]:
    """The rows, by the names of the columns."""
    return list(csv.DictReader(line for line in text.splitlines() if line and not line.startswith("#")))


def header_of_raw(text: str) -> dict[str, str]:
    head = (line for line in text.splitlines() if line)
    return dict(line[2:].partition("=")[::2] for line in takewhile(_is_head, head))


def whole_lines(path: Path) -> str:
    """The text of a file, which may be missing, without a last line that was cut short where a probe was killed."""
    text = path.read_text(errors="replace") if path.is_file() else ""
    return text[: text.rfind("\n") + 1]


def read_raw(path: Path) -> "tuple[pandas.DataFrame, dict[str, str]]":
    """The rows and the header of a raw file, which may be missing; a last line that was cut short is left out."""
    text = whole_lines(path)
    if all(line.startswith("#") for line in text.splitlines()):
        return pandas.DataFrame(), {}
    return read_csv(io.StringIO(text), comment="#"), header_of_raw(text)


#: Between looks at what a probe has written: each costs the measured machine a little, and a lost node so much.
FOLLOW_S = 2.0


def run_followed(node: "Nodes", argv: Sequence[str], files: Mapping[str, Path], **options: Any) -> "Result":
    """Runs a program on one node, and appends what it writes into files there to files here; options: of `Nodes.run`.

    What it wrote until then is here whatever happens, but for a last line that was cut short.
    """

    def appending(path: Path) -> Callable[[str, int, bytes], None]:
        def append(_node: str, _index: int, data: bytes) -> None:
            with path.open("ab") as file:
                file.write(data)

        return append

    follow = {there: appending(here) for there, here in files.items()}
    try:
        return node.run(*argv, follow=follow, follow_period_s=FOLLOW_S, **options).only
    finally:
        for path in files.values():
            drop_broken_end(path)
