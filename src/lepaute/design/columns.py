"""What may stand in a column: the closed kinds of table that our probes read, and columns that a file declares."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lepaute.design.cells import Value, integer_of, is_integer, is_real, is_text, real_of, shortened, text_of
from lepaute.errors import DesignError

ROW_NUMBER = "design_row"
#: The header key under which a general design declares its columns: `size_bytes:int,ratio:real,operation:text`.
DECLARATION = "columns"

MOST_COLUMNS = 200
TYPES = ("int", "real", "text")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


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
            return integer_of(cell)
        if self.type == "real":
            return real_of(cell)
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
SEMANTIC_TESTS = ("deadlock", "silent", "corruption", "head_to_head")
RING_OPERATIONS = ("pingpong", "shift")
RING_CONDITIONS = ("idle", "dgemm", "iprobe", "iprobe+dgemm")

SCHEMAS: Mapping[str, tuple[Column, ...]] = {
    "dgemm": (
        Column("kind", choices=("dgemm",)),
        Column("m", low=1),
        Column("n", low=1),
        Column("k", low=1),
    ),
    "hpl_step": (
        Column("kind", choices=("hpl_step",)),
        Column("m", low=1),
        Column("n", low=1),
        Column("nb", low=1),
        Column("chunks", low=0, high=64),
        Column("steps", low=1, high=64),
    ),
    "p2p": (
        Column("operation", choices=P2P_SIZED + P2P_UNSIZED),
        Column("size_bytes", low=0),
    ),
    "semantics": (
        Column("test", choices=SEMANTIC_TESTS),
        Column("size_bytes", low=0),
        Column("backlog", low=0),
        Column("patience_ms", low=1),
    ),
    "ring": (
        Column("operation", choices=RING_OPERATIONS),
        Column("condition", choices=RING_CONDITIONS),
        Column("size_bytes", low=0),
        Column("first", low=0),
        Column("m", low=0),
        Column("n", low=0),
        Column("k", low=0),
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
    """The columns that a header declares; raises DesignError where the declaration makes no sense."""
    items = text.split(",", MOST_COLUMNS)
    if len(items) > MOST_COLUMNS:
        raise DesignError(f"more than {MOST_COLUMNS} columns; split the design in several")
    columns = []
    for item in items:
        name, _, kind = item.partition(":")
        columns.append(DeclaredColumn(name, kind))
    names = [column.name for column in columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DesignError(f"two columns are named {twice[0]}; give each factor a name of its own")
    return tuple(columns)
