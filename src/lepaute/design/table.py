"""The design table: one row a measurement, a column a factor, in the order of execution.

Stored as CSV: provenance lines ``#@key=value`` first, then a line of column names that begins with
``design_row``, then one numbered row a measurement.
"""

import csv
import io
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lepaute.errors import DesignError

ROW_NUMBER = "design_row"

Value = int | str


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
        # int() would also take " 7", "+7" and "1_000", which the probes in C do not.
        if not (text.isascii() and text.isdigit()):
            raise ValueError(f"expected {bounds}")
        value = int(text)
        if value < self.low or (self.high is not None and value > self.high):
            raise ValueError(f"expected {bounds}")
        return value


P2P_SIZED = ("recv", "isend", "pingpong", "exchange", "strided", "seen")
P2P_UNSIZED = ("iprobe", "test", "wtime")

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
}


@dataclass(frozen=True, slots=True)
class Design:
    """A table of measurements.

    header : provenance, text to text (generator, version, seed, and the generator's arguments)
    columns: names of the factors, `design_row` not among them
    rows   : one tuple a measurement, as long as `columns`; the position of a row is its number
    """

    header: Mapping[str, str]
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]

    def __post_init__(self) -> None:
        schema = schema_of(self.columns)
        for number, row in enumerate(self.rows):
            if len(row) != len(schema):
                raise DesignError(f"design row {number} has {len(row)} values for {len(schema)} columns; give one each")
            for column, value in zip(schema, row, strict=True):
                try:
                    column.parse(str(value))
                except ValueError as problem:
                    raise DesignError(
                        f"design row {number}: {column.name} is {value}; {problem}. Correct the row."
                    ) from None
        for key, text in self.header.items():
            if "=" in key or "\n" in key + text or "\r" in key + text:
                raise DesignError(f"design header {key!r} holds an '=' in its name or a line break; take them out")

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Value]]:
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)

    def to_csv(self) -> str:
        """The text of the file; equal designs give equal text."""
        out = io.StringIO()
        for key, text in self.header.items():
            out.write(f"#@{key}={text}\n")
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow((ROW_NUMBER, *self.columns))
        writer.writerows((number, *row) for number, row in enumerate(self.rows))
        return out.getvalue()


def schema_of(columns: Sequence[str]) -> tuple[Column, ...]:
    """The columns of the kind of design that has exactly these names; raises DesignError when none has."""
    for schema in SCHEMAS.values():
        if tuple(columns) == tuple(column.name for column in schema):
            return schema
    known = "; ".join(f"{kind}: {','.join(column.name for column in schema)}" for kind, schema in SCHEMAS.items())
    raise DesignError(f"no design has the columns {','.join(columns)}; the kinds are {known}")


def parse_design(text: str, where: str) -> Design:
    """The design that a file's text describes; `where` names the file in error messages.

    Raises DesignError as ``file:line: column is X; what was expected. What to do.``
    """
    header: dict[str, str] = {}
    lines = text.splitlines()
    first = 0
    for first, line in enumerate(lines):
        if not line.startswith("#"):
            break
        key, equals, value = line.removeprefix("#@").partition("=")
        if not line.startswith("#@") or not equals or not key:
            raise DesignError(f"{where}:{first + 1}: the line is {line[:60]!r}; expected #@key=value. Correct it.")
        header[key] = value
    else:
        raise DesignError(f"{where}: no line of column names; make the table again with `lepaute design`")
    names = lines[first].split(",")
    if names[0] != ROW_NUMBER:
        raise DesignError(
            f"{where}:{first + 1}: the first column is {names[0][:60]!r}; expected {ROW_NUMBER}. "
            "Make the table again with `lepaute design`."
        )
    try:
        schema = schema_of(names[1:])
    except DesignError as problem:
        raise DesignError(f"{where}:{first + 1}: {problem}") from None
    return Design(header, tuple(names[1:]), tuple(_rows(lines, first + 1, schema, where)))


def _rows(lines: list[str], first: int, schema: tuple[Column, ...], where: str) -> Iterator[tuple[Value, ...]]:
    for number, line in enumerate(lines[first:]):
        place = f"{where}:{first + number + 1}"
        cells = line.split(",")
        if len(cells) != len(schema) + 1:
            raise DesignError(f"{place}: {len(cells)} values; expected {len(schema) + 1}. Correct the row.")
        if cells[0] != str(number):
            raise DesignError(
                f"{place}: {ROW_NUMBER} is {cells[0][:60]}; expected {number}, rows count up from 0. "
                "Restore the missing rows, or make the table again with `lepaute design`."
            )
        values = []
        for column, cell in zip(schema, cells[1:], strict=True):
            try:
                values.append(column.parse(cell))
            except ValueError as problem:
                raise DesignError(
                    f"{place}: {column.name} is {cell[:60]}; {problem}. "
                    "Correct the row, or make the table again with `lepaute design`."
                ) from None
        yield tuple(values)


def read_design(path: Path) -> Design:
    """The design stored in a file; raises DesignError when there is none or it is malformed."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as problem:
        raise DesignError(f"{path}: cannot be read ({problem.strerror}); check the name") from None
    except UnicodeDecodeError:
        raise DesignError(f"{path}: is not a text file; expected a design table in CSV") from None
    return parse_design(text, str(path))


def write_design(design: Design, path: Path) -> None:
    """Writes the design's file; an existing file is replaced at once or not at all."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as problem:
        raise DesignError(f"{path}: cannot be written ({problem.strerror}); choose another place") from None
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(design.to_csv())
        temporary.chmod(0o644)  # mkstemp's 0600 would keep a colleague from reading the table
        temporary.replace(path)
    except BaseException:
        temporary.unlink()
        raise
