"""The design table: one row a measurement, a column a factor, in the order of execution.

Stored as CSV: provenance lines ``#@key=value`` first, then a line of column names that begins with
``design_row``, then one numbered row a measurement. The tables that our own probes read have one of a few closed
sets of columns; any other design declares its columns and their types in its header.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from lepaute.errors import DesignError, InputError
from lepaute.kit.documents import unpacked
from lepaute.kit.files import write_atomic
from lepaute.kit.later import pandas
from lepaute.kit.notebook import table_html
from lepaute.measure.design.columns import (
    DECLARATION,
    ROW_NUMBER,
    Column,
    DeclaredColumn,
    Value,
    cell_of,
    declared,
    is_one_line,
    schema_of,
    shortened,
    split_cells,
)
from lepaute.version import __version__

#: Limits for untrusted files: about a gigabyte of memory.
MAX_BYTES = 256 << 20
MAX_LINE_BYTES = 8 << 20
MAX_CELLS = 20_000_000
MAX_HEADER_LINES = 10_000
MAX_HEADER_CHARACTERS = 100_000
_MAX_SHARED = 100_000

Schema = Sequence[Column | DeclaredColumn]


@dataclass(frozen=True, slots=True)
class Design:
    """A table of measurements; iterating gives a dict a row, factor to value, in the order of execution.

    header : provenance, text to text (generator, version, seed, and the generator's arguments)
    columns: names of the factors, `design_row` not among them
    rows   : one tuple a measurement, as long as `columns`; the position of a row is its number. None stands for a
             factor that this kind of measurement does not have.
    """

    header: Mapping[str, str]
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]

    def __post_init__(self) -> None:
        for key, text in self.header.items():
            if problem := _header_problem(key, text):
                raise DesignError(f"design header {key[:60]!r} {problem}")
        schema = self.schema
        if tuple(column.name for column in schema) != self.columns:
            raise DesignError(
                f"the header declares other columns than {shortened(','.join(self.columns), 200)}; make them equal"
            )
        if len(self.rows) * (len(schema) + 1) > MAX_CELLS or len(self.header) > MAX_HEADER_LINES:
            raise DesignError(
                f"a design of {len(self.rows)} rows, {len(schema)} columns and {len(self.header)} header lines is too "
                f"large; the most are {MAX_CELLS} cells and {MAX_HEADER_LINES} header lines. Split it."
            )
        for number, row in enumerate(self.rows):
            if len(row) != len(schema):
                raise DesignError(f"design row {number} has {len(row)} values for {len(schema)} columns; give one each")
            for column, value in zip(schema, row, strict=True):
                try:
                    column.check(value)
                except ValueError as problem:
                    raise DesignError(
                        f"design row {number}: {column.name} is {shortened(str(value))}; {problem}. Correct the row."
                    ) from None

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"<Design of {len(self)} rows: {shortened(', '.join(self.columns), 200)}>"

    def _repr_html_(self) -> str:
        shown = self.rows[:10]
        notes = [f"{len(self) - len(shown)} more rows"] if len(self) > len(shown) else []
        return table_html(repr(self)[1:-1], self.columns, shown, notes)

    def to_frame(self) -> "pandas.DataFrame":
        """A row a measurement in the order of execution; whole numbers as Int64, real as Float64, others as string.

        A cell that has no value is missing, whatever its column.
        """
        kinds = {}
        for name in self.columns:
            types = {type(value) for value in self.column(name) if value is not None}
            kinds[name] = "Int64" if types <= {int} else "Float64" if types <= {int, float} else "string"
        return pandas.DataFrame({name: self.column(name) for name in self.columns}, dtype=object).astype(kinds)

    def __iter__(self) -> Iterator[dict[str, Value]]:
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)

    @property
    def schema(self) -> Schema:
        """What may stand in each column."""
        if DECLARATION in self.header:
            return declared(self.header[DECLARATION])
        return schema_of(self.columns)

    def column(self, name: str) -> list[Value]:
        """The values of one factor in the order of execution; raises DesignError when there is no such factor."""
        if name not in self.columns:
            raise DesignError(f"the design has no factor {name}; it has {', '.join(self.columns)}")
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def to_csv(self) -> str:
        """The text of the file; equal designs give equal text."""
        lines = [f"#@{key}={text}" for key, text in self.header.items()]
        lines.append(",".join((ROW_NUMBER, *self.columns)))
        lines.extend(",".join(map(cell_of, (number, *row))) for number, row in enumerate(self.rows))
        return "\n".join(lines) + "\n"


def parse_design(text: str, where: str) -> Design:
    """The design that a file's text describes; `where` names the file in error messages.

    Raises DesignError as ``file:line: column is X; what was expected. What to do.``
    """
    return _design_of(text.removesuffix("\n").split("\n") if text else [], where)


def read_design(path: Path | str) -> Design:
    """The design stored in a file; raises DesignError when there is none or it is malformed or far too large."""
    try:
        with unpacked(path, "a design table") as file:
            return _design_of(_lines(file, str(path)), str(path))
    except InputError as problem:
        raise DesignError(str(problem)) from None


def write_design(design: Design, path: Path | str) -> None:
    """Writes the design's file; an existing file is replaced at once or not at all."""
    content = design.to_csv().encode()
    if len(content) > MAX_BYTES:
        raise DesignError(f"{path}: the design takes {len(content)} bytes; the most is {MAX_BYTES}. Split it.")
    write_atomic(path, content)


def _lines(file: BinaryIO, where: str) -> Iterator[str]:
    """The lines of a file, one at a time and none of them long: a file of any size costs little until it is refused."""
    taken = 0
    number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        taken += len(line)
        if len(line) > MAX_LINE_BYTES or taken > MAX_BYTES:
            raise DesignError(
                f"{where}:{number}: too long for a design table; the most is {MAX_LINE_BYTES} bytes a line and "
                f"{MAX_BYTES} in all. Check the name, or split the design."
            )
        try:
            # Spreadsheets put a byte order mark before the first line.
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise DesignError(f"{where}:{number}: is not text in UTF-8; expected a design table in CSV") from None
        yield text.removesuffix("\n")


def _design_of(lines: Iterable[str], where: str) -> Design:
    header: dict[str, str] = {}
    numbered = ((number, line.removesuffix("\r")) for number, line in enumerate(lines, start=1))
    for number, line in numbered:
        if not line.startswith("#"):
            break
        key, equals, value = line.removeprefix("#@").partition("=")
        if not line.startswith("#@") or not equals or not key:
            raise DesignError(f"{where}:{number}: the line is {line[:60]!r}; expected #@key=value. Correct it.")
        problem = _header_problem(key, value) or ("is given twice; take one out" if key in header else "")
        if problem or len(header) >= MAX_HEADER_LINES:
            problem = problem or f"is one too many; a header has at most {MAX_HEADER_LINES} lines"
            raise DesignError(f"{where}:{number}: the header {key[:60]!r} {problem}")
        header[key] = value
    else:
        raise DesignError(f"{where}: no line of column names; make the table again with `lepaute design`")
    names = line.split(",")
    if names[0] != ROW_NUMBER:
        raise DesignError(
            f"{where}:{number}: the first column is {names[0][:60]!r}; expected {ROW_NUMBER}. "
            "Make the table again with `lepaute design`."
        )
    try:
        schema: Schema = declared(header[DECLARATION]) if DECLARATION in header else schema_of(names[1:])
    except DesignError as problem:
        raise DesignError(f"{where}:{number}: {problem}") from None
    if [column.name for column in schema] != names[1:]:
        raise DesignError(
            f"{where}:{number}: the columns are {shortened(line, 200)}; the header declares "
            f"{header[DECLARATION][:200]}. Make the two equal."
        )
    return Design(header, tuple(names[1:]), tuple(_rows(numbered, schema, where)))


def _rows(lines: Iterable[tuple[int, str]], schema: Schema, where: str) -> Iterator[tuple[Value, ...]]:
    free = isinstance(schema[0], DeclaredColumn)
    seen: dict[str, str] = {}  # equal texts share one object: a table has few different ones
    for number, (line_number, line) in enumerate(lines):
        place = f"{where}:{line_number}"
        try:
            # The probes in C know no quotes.
            cells = split_cells(line) if free and '"' in line else line.split(",")
        except ValueError as problem:
            raise DesignError(f'{place}: {problem}; write a " inside quotes as "". Correct the row.') from None
        if len(cells) != len(schema) + 1:
            raise DesignError(f"{place}: {len(cells)} values; expected {len(schema) + 1}. Correct the row.")
        if cells[0] != str(number):
            raise DesignError(
                f"{place}: {ROW_NUMBER} is {shortened(cells[0])}; expected {number}, rows count up from 0. "
                "Restore the missing rows, or make the table again with `lepaute design`."
            )
        if (number + 1) * len(cells) > MAX_CELLS:
            raise DesignError(f"{place}: more than {MAX_CELLS} cells; split the design.")
        values = []
        for column, cell in zip(schema, cells[1:], strict=True):
            try:
                value = column.parse(cell)
            except ValueError as problem:
                raise DesignError(
                    f"{place}: {column.name} is {shortened(cell)}; {problem}. "
                    "Correct the row, or make the table again with `lepaute design`."
                ) from None
            if isinstance(value, str):
                value = seen.get(value, value) if len(seen) >= _MAX_SHARED else seen.setdefault(value, value)
            values.append(value)
        yield tuple(values)


def _header_problem(key: str, text: str) -> str:
    if not key or "=" in key or "\n" in key + text or "\r" in key + text:
        return "holds an '=' in its name or a line break; take them out"
    if not is_one_line((key + text).replace("\t", " ")):
        return "holds a control character; take it out"
    if len(key) + len(text) > MAX_HEADER_CHARACTERS:
        return f"is longer than {MAX_HEADER_CHARACTERS} characters; shorten it"
    return ""


def header_of(generator: str, seed: int, **arguments: object) -> dict[str, str]:
    """The lines with which the header of every design begins, then the generator's arguments as they were given."""
    texts = {key: " ".join(map(str, v)) if isinstance(v, tuple) else str(v) for key, v in arguments.items()}
    return {"generator": f"lepaute design {generator}", "version": __version__, "seed": str(seed), **texts}


def probe_design(
    kind: str, seed: int, columns: tuple[str, ...], rows: Iterable[tuple[Value, ...]], /, **arguments: object
) -> Design:
    """A design of one of the kinds that a probe reads, drawn by NumPy; arguments: of its generator, for the header."""
    return Design({**header_of(kind, seed, **arguments), "bit_generator": "PCG64"}, columns, tuple(rows))
