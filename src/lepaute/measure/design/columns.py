"""Cells of a design's file, and what may stand in a column: of the closed kinds of table that our probes read, and of
tables that declare their columns."""

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lepaute.errors import DesignError

#: None is the empty cell: a factor that this kind of measurement does not have.
Value = int | float | str | None

#: What fits the integers of Parquet, pandas and databases.
MIN_INTEGER, MAX_INTEGER = -(2**63), 2**63 - 1
MAX_TEXT_CHARACTERS = 4096

ROW_NUMBER = "design_row"
#: The header key under which a general design declares its columns: `size_bytes:int,ratio:real,operation:text`.
DECLARATION = "columns"

MAX_COLUMNS = 200
TYPES = ("int", "real", "text")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")

_CELL = re.compile(r'"(?:[^"]|"")*"|[^",]*')
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_REAL = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?")
_LONGEST_NUMBER = 40
_CONTROL_SURROGATE_OR_LINE_BREAK = frozenset({"Cc", "Cs", "Zl", "Zp"})


def is_integer(value: object) -> bool:
    """Whether `value` can be a cell of an integer column; a bool cannot."""
    return type(value) is int and MIN_INTEGER <= value <= MAX_INTEGER


def is_real(value: object) -> bool:
    """Whether `value` can be a cell of a column of real numbers."""
    return type(value) is float and math.isfinite(value)


def is_text(value: object) -> bool:
    """Whether `value` can be a cell of a text column: one line that can be printed, of a bounded length."""
    return type(value) is str and len(value) <= MAX_TEXT_CHARACTERS and is_one_line(value)


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
    return '"' + text.replace('"', '""') + '"'


def text_of(cell: str) -> str:
    """The text that a cell stands for; the inverse of `cell_of` for texts."""
    return cell[1:-1].replace('""', '"') if cell.startswith('"') else cell


def split_cells(line: str) -> list[str]:
    """The cells of a line, quotes still on; raises ValueError if a quote does not close or is not alone."""
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


def _integer_of(cell: str) -> int:
    """The integer written in a cell, strictly: no sign +, blank, underscore or leading zero; raises ValueError."""
    if len(cell) <= _LONGEST_NUMBER and _INTEGER.fullmatch(cell) and is_integer(value := int(cell)):
        return value
    raise ValueError("expected a whole number between -2^63 and 2^63")


def _real_of(cell: str) -> float:
    """The finite real number written in a cell; raises ValueError."""
    if len(cell) <= _LONGEST_NUMBER and _REAL.fullmatch(cell) and math.isfinite(value := float(cell)):
        return value
    raise ValueError("expected a finite number such as 0.5 or 1e-06")


def shortened(text: str, most: int = 60) -> str:
    """The first characters of a text from anywhere, fit for one line of a message."""
    return "".join(c if c.isprintable() else "?" for c in text[:most])


@dataclass(frozen=True, slots=True)
class Column:
    """One factor: an integer between `low` and `high` (None: no upper bound), or one of `choices`."""

    name: str
    low: int = 0
    high: int | None = None
    choices: tuple[str, ...] = ()

    def parse(self, text: str) -> Value:
        """The value that `text` stands for; raises ValueError with what was expected."""
        if self.choices:
            if text not in self.choices:
                raise ValueError(f"expected one of {', '.join(self.choices)}")
            return text
        bounds = f"an integer >= {self.low}" if self.high is None else f"an integer from {self.low} to {self.high}"
        # int() would also take " 7", "+7" and "1_000", which the probes in C do not; they read 64 bits.
        if not (text.isascii() and text.isdigit() and len(text) < 20):
            raise ValueError(f"expected {bounds}")
        value = int(text)
        if value < self.low or (self.high is not None and value > self.high):
            raise ValueError(f"expected {bounds}")
        return value

    def check(self, value: Value) -> None:
        """Raises ValueError with what was expected where `value` cannot stand in this column."""
        self.parse(str(value))


@dataclass(frozen=True, slots=True)
class DeclaredColumn:
    """A factor of a general design: its name, and the type of its values; any cell may be empty."""

    name: str
    type: str  # one of TYPES

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or self.name == ROW_NUMBER:
            raise DesignError(
                f"a factor cannot be named {self.name[:60]!r}; a name is up to 64 letters, digits and underscores, "
                f"begins with a letter, and is not {ROW_NUMBER}: size_bytes"
            )
        if self.type not in TYPES:
            raise DesignError(f"column {self.name} has the type {self.type[:60]!r}; expected one of {', '.join(TYPES)}")

    def parse(self, cell: str) -> Value:
        """The value that a cell, quotes still on, stands for; raises ValueError with what was expected."""
        if cell == "":
            return None
        if self.type == "int":
            return _integer_of(cell)
        if self.type == "real":
            return _real_of(cell)
        value = text_of(cell)
        self.check(value)
        return value

    def check(self, value: Value) -> None:
        """Raises ValueError with what was expected where `value` cannot stand in this column."""
        if value is None:
            return
        if self.type == "int" and not is_integer(value):
            raise ValueError("expected a whole number (int) between -2^63 and 2^63")
        if self.type == "real" and not is_real(value):
            raise ValueError("expected a finite real number (float)")
        if self.type == "text" and not is_text(value):
            raise ValueError("expected a text of one line, without control characters, up to 4096 characters")


P2P_SIZED = ("recv", "isend", "pingpong", "exchange", "strided", "seen")
P2P_UNSIZED = ("iprobe", "test", "wtime")
RING_OPERATIONS = ("pingpong", "shift")
RING_CONDITIONS = ("idle", "dgemm", "iprobe", "iprobe+dgemm")

SCHEMAS: Mapping[str, tuple[Column, ...]] = {
    "dgemm": (Column("kind", choices=("dgemm",)), *(Column(name, low=1) for name in "mnk")),
    "hpl_step": (
        Column("kind", choices=("hpl_step",)),
        *(Column(name, low=1) for name in ("m", "n", "nb")),
        *(Column("chunks", high=64), Column("steps", low=1, high=64)),
    ),
    "p2p": (Column("operation", choices=P2P_SIZED + P2P_UNSIZED), Column("size_bytes")),
    "semantics": (
        Column("test", choices=("deadlock", "silent", "corruption", "head_to_head")),
        *(Column("size_bytes"), Column("backlog"), Column("patience_ms", low=1)),
    ),
    "ring": (
        Column("operation", choices=RING_OPERATIONS),
        Column("condition", choices=RING_CONDITIONS),
        *(Column(name) for name in ("size_bytes", "first", "m", "n", "k")),
    ),
}


def schema_of(columns: Sequence[str]) -> tuple[Column, ...]:
    """The columns of the kind of design that has exactly these names; raises DesignError when none has."""
    for schema in SCHEMAS.values():
        if tuple(columns) == tuple(column.name for column in schema):
            return schema
    known = "; ".join(f"{kind}: {','.join(column.name for column in schema)}" for kind, schema in SCHEMAS.items())
    raise DesignError(
        f"no design has the columns {shortened(','.join(columns), 200)}; the kinds are {known}; "
        f"a table of other columns declares them: #@{DECLARATION}=NAME:TYPE,..."
    )


def declaration_of(columns: Sequence[DeclaredColumn]) -> str:
    """The text that declares the columns in a header; `declared` reads it."""
    return ",".join(f"{column.name}:{column.type}" for column in columns)


def declared(text: str) -> tuple[DeclaredColumn, ...]:
    """The columns that a header declares; raises DesignError if the declaration makes no sense."""
    items = text.split(",", MAX_COLUMNS)
    if len(items) > MAX_COLUMNS:
        raise DesignError(f"more than {MAX_COLUMNS} columns; split the design in several")
    columns = tuple(DeclaredColumn(name, kind) for name, _, kind in (item.partition(":") for item in items))
    names = [column.name for column in columns]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise DesignError(f"two columns are named {twice[0]}; give each factor a name of its own")
    return columns
