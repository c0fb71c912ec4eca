"""Cells of a design's file: how a value is written, and what may stand there at all."""

import math
import re
import unicodedata
from collections.abc import Sequence

#: None is the empty cell: a factor that this kind of measurement does not have.
Value = int | float | str | None

#: What fits the integers of Parquet, pandas and databases.
LEAST_INTEGER, MOST_INTEGER = -(2**63), 2**63 - 1
MOST_TEXT_CHARACTERS = 4096

_CELL = re.compile(r'"(?:[^"]|"")*"|[^",]*')
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_REAL = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?")
_LONGEST_NUMBER = 40
_CONTROL_SURROGATE_OR_LINE_BREAK = frozenset({"Cc", "Cs", "Zl", "Zp"})


def is_integer(value: object) -> bool:
    """Whether `value` can be a cell of an integer column; a bool cannot."""
    return type(value) is int and LEAST_INTEGER <= value <= MOST_INTEGER


def is_real(value: object) -> bool:
    """Whether `value` can be a cell of a column of real numbers."""
    return type(value) is float and math.isfinite(value)


def is_text(value: object) -> bool:
    """Whether `value` can be a cell of a text column: one line that can be printed, of a bounded length."""
    return type(value) is str and len(value) <= MOST_TEXT_CHARACTERS and is_one_line(value)


def is_one_line(text: str) -> bool:
    """Whether `text` has no line break, no other control character, and nothing that UTF-8 cannot hold."""
    return text.isprintable() or not any(unicodedata.category(c) in _CONTROL_SURROGATE_OR_LINE_BREAK for c in text)


def cell_of(value: Value) -> str:
    """The characters that stand for a value: real numbers in full (repr), text quoted where CSV needs it.

    An empty text is written as two quotes, which distinguishes it from no value.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        return repr(value)
    bare = value != "" and not set(value) & set(',"') and value == value.strip()
    return value if bare else quoted(value)


def quoted(text: str) -> str:
    """`text` in double quotes, those inside doubled."""
    return '"' + text.replace('"', '""') + '"'


def text_of(cell: str) -> str:
    """The text that a cell stands for; the inverse of `cell_of` for texts."""
    return cell[1:-1].replace('""', '"') if cell.startswith('"') else cell


def split_cells(line: str) -> list[str]:
    """The cells of a line, quotes still on; raises ValueError where a quote does not close or is not alone."""
    cells = []
    position = 0
    while True:
        match = _CELL.match(line, position)
        end = match.end() if match else position
        if end < len(line) and line[end] != ",":
            raise ValueError("a misplaced quote")
        cells.append(line[position:end])
        if end == len(line):
            return cells
        position = end + 1


def integer_of(cell: str) -> int:
    """The integer written in a cell, strictly: no sign +, blank, underscore or leading zero; raises ValueError."""
    if len(cell) <= _LONGEST_NUMBER and _INTEGER.fullmatch(cell) and is_integer(value := int(cell)):
        return value
    raise ValueError("expected a whole number between -2^63 and 2^63")


def real_of(cell: str) -> float:
    """The finite real number written in a cell; raises ValueError."""
    if len(cell) <= _LONGEST_NUMBER and _REAL.fullmatch(cell) and math.isfinite(value := float(cell)):
        return value
    raise ValueError("expected a finite number such as 0.5 or 1e-06")


def joined(cells: Sequence[Value]) -> str:
    """One line of a file, without its end."""
    return ",".join(map(cell_of, cells))


def shortened(text: str, most: int = 60) -> str:
    """The first characters of a text from anywhere, fit for one line of a message."""
    return "".join(c if c.isprintable() else "?" for c in text[:most])
