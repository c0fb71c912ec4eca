"""The raw table of an experiment, read back: every text as it was, numbers where a whole column is numbers."""

import csv
import re
from collections.abc import Callable, Sequence
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas

#: Names of nodes are texts, also where all of them look like numbers.
_TEXTS = ("node",)
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")
_MOST_WHOLE = 2**63 - 1
_WORDS = {"True": True, "False": False}


def read_raw(path: Path, tell: Callable[[str], None] = lambda _warning: None) -> "pandas.DataFrame":
    """The table in a file that `Table` wrote.

    A column is of whole numbers, of floats or of truth values where all of its cells are, in just the form in which
    such a value is written down; else of texts, so "007", "NA" or "a # b" come back as they were recorded. An empty
    cell is a missing value in the former, and in a column of texts an empty text. Lines with more or fewer cells than
    there are columns, of a damaged disk, are left out and reported to `tell`.
    """
    import pandas

    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        # Only lines at the head: a later one may begin so, with a text in its first column.
        rows = csv.reader(dropwhile(lambda line: line.startswith("#@"), file))
        names = next(rows, [])
        cells = list(rows)
    if strange := sum(len(row) != len(names) for row in cells):
        cells = [row for row in cells if len(row) == len(names)]
        tell(f"{path.name}: {strange} damaged line(s) were left out of the table; the file has them")
    columns = zip(*cells, strict=True) if cells else [()] * len(names)
    frame = {name: column_of(name, column) for name, column in zip(names, columns, strict=True)}
    return pandas.DataFrame(frame)


def column_of(name: str, cells: Sequence[str]) -> "pandas.Series[Any]":
    """The values that were written down as these cells."""
    import pandas

    known = [cell for cell in cells if cell]
    missing = len(known) < len(cells)
    if name in _TEXTS:
        return pandas.Series(list(cells), dtype=object)
    if cells and not known:
        return pandas.Series([None] * len(cells), dtype="float64")
    if all(map(_is_whole, known)):
        whole = [int(cell) if cell else None for cell in cells]
        return pandas.Series(whole, dtype="Int64" if missing else "int64")
    if all(cell in _WORDS for cell in known):
        return pandas.Series([_WORDS.get(cell) for cell in cells], dtype="boolean" if missing else "bool")
    if all(_is_float(cell) or _is_whole(cell) for cell in known):
        return pandas.Series([float(cell) if cell else None for cell in cells], dtype="float64")
    return pandas.Series(list(cells), dtype=object)


def _is_whole(cell: str) -> bool:
    return _WHOLE.fullmatch(cell) is not None and abs(int(cell)) <= _MOST_WHOLE


def _is_float(cell: str) -> bool:
    """Whether it is what Python writes for a float, and a finite one: other texts that float() takes are texts."""
    try:
        return repr(float(cell)) == cell and cell not in ("inf", "-inf", "nan")
    except ValueError:
        return False
