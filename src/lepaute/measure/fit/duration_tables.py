"""Tables of sizes and durations from elsewhere: output of the OSU and Intel MPI benchmarks, CSV.

CSV has commas, semicolons or tabs, or columns set apart by blanks; with or without a heading. The OSU micro-benchmarks
(versions 3 to 7) and the Intel MPI Benchmarks (IMB-MPI1) print blocks of columns below headings `# Size  Latency (us)`,
or `#bytes #repetitions t[usec]`. Other lines, such as those of mpirun, are skipped.
"""

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from lepaute.errors import InputError
from lepaute.kit.documents import read_text
from lepaute.kit.quantities import lines_text, parse_size, without_prefix
from lepaute.kit.text import counted
from lepaute.measure.fit.column_names import (
    SECONDS,
    column_named,
    is_duration,
    is_rate,
    is_size,
    preferred,
    rate_in,
    size_unit_in,
    unit_in,
)
from lepaute.measure.fit.numeric import Floats

#: Rates that messages name as examples of what --unit takes.
RATES = "MB/s, GB/s, Gb/s"
_AGAIN = "the file is damaged, run the benchmark again"
_WITH_COMPUTING = ("Overall(us)", "t_ovrl[usec]")
#: Of Intel's, those that call nothing where there are no bytes.
_COLLECTIVE = re.compile(
    r"I?(?:all(?:reduce|gatherv?|toallv?)|reduce(?:_scatter(?:_block)?)?|bcast|gatherv?|scatterv?)", re.IGNORECASE
)
_SIZE_HEADING = re.compile(r"#?\s*(?:Size|bytes)\b")
#: With what a table of the benchmarks begins.
HEADING = re.compile(r"#\s*(?:Size\b|bytes\b|repetitions\b|(?:Avg )?Latency ?\(us\))")
_TITLE = re.compile(r"#[#\s]*(?:(?P<osu>OSU .*)|Benchmarking\s+(?P<intel>.*))")
_PROCESSES = re.compile(r"#\s*#processes\s*=\s*(?P<count>[0-9]{1,9})\b")
#: Benchmarks whose rate adds up several messages that travel at once, by the beginning of their titles.
_TOGETHER = {
    "OSU MPI Bi-Directional": "of both directions together",
    "OSU MPI Multiple Bandwidth": "of all pairs together",
    "Sendrecv": "of the message sent and the one received",
    "Exchange": "of the two messages sent and the two received",
}
#: Columns whose values are measured apart: durations of several lie on several lines.
_OPERATIONS = ("operation", "op", "function", "call", "collective", "benchmark", "kernel")
#: A table of a million rows.
MAX_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class DurationTable:
    """Sizes with their durations, in the order of the file.

    name      : what the file calls it: a benchmark with its processes; that of the file where it says nothing
    x         : sizes, shape (n,), finite and >= 0
    duration_s: shape (n,), > 0
    x_name    : column of the sizes; in_bytes: whether they are bytes
    y_name    : column of the durations, as in the file
    unit      : of the durations in the file: s, ms, us or ns; of a rate, the unit that suits its durations
    notes     : what was left out or converted, a sentence each
    """

    name: str
    x: Floats
    duration_s: Floats
    x_name: str
    y_name: str
    unit: str
    in_bytes: bool = True
    notes: tuple[str, ...] = field(default=())

    @property
    def sizes(self) -> int:
        """How many there are, each counted once."""
        return len(np.unique(self.x))

    def __repr__(self) -> str:
        return f"<DurationTable {self.name!r}: {self.sizes} sizes, {self.y_name!r}>"


def checked(value: float, cell: str, what: str, where: str) -> float:
    """The value of a cell; raises InputError, with the text of the cell, where it is below zero or not finite."""
    if not (value >= 0 and np.isfinite(value)):
        raise InputError(f"{where}: the {what} is {cell[:40]}; it must be a number of at least 0")
    return value


def table_of(
    name: str,
    rows: list[tuple[float, float | None]],
    where: str,
    columns: tuple[str, str],
    unit: str,
    *,
    in_bytes: bool = True,
    notes: tuple[str, ...] = (),
) -> DurationTable:
    """The table of rows (size, duration in s or None if the cell has no number), as `checked` lets them pass.

    Durations that are missing, or rounded to zero in the file, are left out with a note.
    Raises InputError if no row is left.
    """
    missing = sum(duration is None for _, duration in rows)
    zero = sum(duration == 0 for _, duration in rows)
    kept = [(size, duration) for size, duration in rows if duration]
    if not kept:
        raise InputError(f"{place_of(name, where)}: no row has a size and a duration above 0")
    for count, reason in ((missing, "without a duration"), (zero, "whose duration is 0")):
        if count:
            notes = (*notes, f"{counted(count, 'row')} {reason} left out")
    x, duration_s = (np.array(column, dtype=np.float64) for column in zip(*kept, strict=True))
    return DurationTable(name, x, duration_s, *columns, unit, in_bytes, notes)


def place_of(name: str, file: str) -> str:
    """The table of this name in its file, of which the name may begin with that of the file itself."""
    base = Path(file).name
    return f"{file}{name.removeprefix(base)}" if name.startswith(base) else f"{file}: {name}"


def _seconds(value: float | None, size: float, unit: str, rate_Bps: float | None) -> float | None:
    """The duration that a cell says, in `unit`, or by its rate; None if it says none."""
    if value is None or not rate_Bps:
        return None if value is None else value * SECONDS[unit]
    return size / (value * rate_Bps) if value and size else None


def _plain_table(
    lines: list[str], where: str, *, x: str | None, y: str | None, unit: str | None, only: Mapping[str, str]
) -> DurationTable:
    """The table of a file; lines that begin with # are comments.

    x, y : columns of sizes and durations, or of rates; None: by their names, or the two that there are
    unit : of the durations, or of the rates; None: the one that the column's name tells
    only : rows are kept where these columns have these values
    Raises InputError, with the line, for columns that are not told apart, unknown units, and cells without numbers.
    """
    numbered = [(number, line) for number, line in enumerate(lines, start=1) if line.strip() and line[:1] != "#"]
    if not numbered:
        raise InputError(f"{where}: holds no rows; give a table of sizes and durations")
    delimiter = next((one for one in ",;\t" if one in numbered[0][1]), None)
    rows = [(number, _cells(line, delimiter, f"{where}:{number}")) for number, line in numbered]
    first = rows[0][1][0]  # of a row of numbers, such as 64 or 64K
    heading = [] if _number(first) is not None or first[:1].isdigit() else rows.pop(0)[1]
    if not rows:
        raise InputError(f"{where}: has a heading and no rows")
    columns = heading or [f"column {place + 1}" for place in range(len(rows[0][1]))]
    for number, cells in rows:
        if len(cells) != len(columns):
            raise InputError(f"{where}:{number}: {len(cells)} cells, where the first line has {len(columns)}")
    size, duration = _chosen(columns, x, y, where)
    time, rate_Bps = _unit(duration, unit, where)
    only = {_column(name, columns, where): value for name, value in only.items()}
    unused = [name for name in columns if name not in (size, duration, *only)]
    rows = [row for row in rows if all(row[1][columns.index(name)] == value for name, value in only.items())]
    if not rows:
        raise InputError(f"{where}: no row has {' and '.join(f'{name}={value}' for name, value in only.items())}")
    for name in unused:
        values = list(dict.fromkeys(cells[columns.index(name)] for _, cells in rows))
        if name.lower() in _OPERATIONS and len(values) > 1:
            raise InputError(
                f"{where}: has rows of {len(values)} operations: {', '.join(values)[:200]}; keep those of one, in "
                f"`lepaute segment` with --where {name}={values[0][:60]}"
            )
    at, by = columns.index(size), columns.index(duration)
    bytes_of_unit, unsure = size_unit_in(size) or (1, False)
    parsed = []
    for number, cells in rows:
        x_value = _size(cells[at], f"{where}:{number}") * bytes_of_unit
        value = _value(cells[by], "rate" if rate_Bps else "duration", f"{where}:{number}")
        parsed.append((x_value, _seconds(value, x_value, time, rate_Bps)))
    notes = (f"durations are size / {duration}",) if rate_Bps else ()
    if unsure:
        notes = (*notes, f"sizes are {size} times {bytes_of_unit} bytes")
    if unused:
        notes = (*notes, f"{counted(len(unused), 'column')} not used ({', '.join(unused)[:200]})")
    name = ", ".join((Path(where).name, *(f"{column}={value}" for column, value in only.items())))
    in_bytes = bool(rate_Bps) or is_size(size) or not heading
    return table_of(name, parsed, where, (size, duration), time, in_bytes=in_bytes, notes=notes)


def _cells(line: str, delimiter: str | None, where: str) -> list[str]:
    if delimiter is None:
        return line.split()
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, strict=True))]
    except csv.Error as problem:
        raise InputError(f"{where}: is no row of CSV ({problem})") from None


def _chosen(columns: list[str], x: str | None, y: str | None, where: str) -> tuple[str, str]:
    """The columns of sizes, and of durations or, where there is none, of rates."""
    x, y = (None if name is None else _column(name, columns, where) for name in (x, y))
    sizes = [x] if x else [name for name in columns if is_size(name)]
    rest = [name for name in columns if name not in sizes]
    durations = [y] if y else [name for name in rest if is_duration(name)] or [name for name in rest if is_rate(name)]
    size = sizes[0] if len(sizes) == 1 else None
    duration = preferred(durations)
    if len(columns) == 2:
        size = size or next(name for name in columns if name != duration)
        duration = duration or next(name for name in columns if name != size)
    for option, found, what in (("--x", size, "sizes"), ("--y", duration, "durations")):
        if found is None:
            raise InputError(f"{where}: which column has the {what}? name it with {option}: {', '.join(columns)}")
    if size == duration:
        raise InputError(f"{where}: sizes and durations are both {size!r}; name the other with --x or --y")
    return str(size), str(duration)


def _column(text: str, columns: list[str], where: str) -> str:
    """The column that is meant, see `column_named`; raises InputError if there is not just one."""
    name = column_named(text, columns)
    if columns.count(name) != 1:
        problem = "no" if name not in columns else "more than one"
        raise InputError(f"{where}: {problem} column {name[:60]!r}; there are {', '.join(columns)[:300]}")
    return name


def _unit(column: str, given: str | None, where: str) -> tuple[str, float | None]:
    """The unit of time in which the table is shown, and of a column of rates the bytes a second of its unit."""
    time, rate_Bps = unit_in(column), rate_in(column)
    asked = rate_in(given) if given else None
    if given and (time not in (None, given) or rate_Bps not in (None, asked)):
        told = f"is in {time}" if time else "tells its unit"
        raise InputError(f"{where}: the column {column!r} {told}, and --unit says {given}; leave --unit out")
    if rate_Bps or asked:
        return "us", rate_Bps or asked
    if is_rate(column):
        raise InputError(f"{where}: {column!r} is a rate by its name, of unknown unit; give --unit {RATES}")
    if not (time or given):
        raise InputError(f"{where}: the unit of {column!r} is not told; give --unit {', '.join(SECONDS)}; {RATES}")
    return str(time or given), None


def _size(cell: str, where: str) -> float:
    value = _number(cell)
    if value is not None:
        return checked(value, cell, "size", where)
    try:
        return float(parse_size(cell.removesuffix("B"), "the size"))
    except InputError as problem:
        raise InputError(f"{where}: {problem}") from None


def _value(cell: str, what: str, where: str) -> float | None:
    if cell.lower() in ("", "na", "nan", "none", "-"):
        return None
    value = _number(cell)
    if value is None:
        point = "; write decimals with a point" if re.fullmatch(r"[+-]?\d+,\d+", cell) else ""
        raise InputError(f"{where}: the {what} is {cell[:40]!r}; it must be a number{point}")
    return checked(value, cell, what, where)


@dataclass
class Block:
    """The rows under one heading, each with the number of its line, as the benchmarks print them.

    title     : the line of OSU's without its #, or the name of Intel's benchmark; processes: None if it is not said
    columns   : names as in the heading; none before there is one
    skipped   : numbers of the lines among the rows that something else wrote;  empty: of those of 0 bytes (_COLLECTIVE)
    """

    title: str
    processes: int | None = None
    columns: list[str] = field(default_factory=list)
    rows: list[tuple[int, list[str]]] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)
    empty: list[int] = field(default_factory=list)

    @property
    def has_sizes(self) -> bool:
        return bool(self.rows and _SIZE_HEADING.match(self.columns[0]))

    @property
    def mean_column(self) -> str | None:
        """Column of the mean time of a call; None if there is none, as of bandwidths."""
        return preferred([name for name in self.columns if unit_in(name)])


def _benchmark_tables(lines: list[str], where: str, column: str | None) -> tuple[DurationTable, ...]:
    """The tables of the file, in its order; blocks without sizes, such as Barrier's, are none.

    column : name of the column of durations; None: the mean, or the only one; a rate where there is no duration
    Raises InputError if there is no table, or no such column.
    """
    blocks = benchmark_blocks(lines, where)
    of_blocks = [(block, _table(block, where, column)) for block in blocks]
    tables = [table for _, table in of_blocks if table is not None]
    if tables and (further := [len(block.rows) for block, table in of_blocks if table is None]):
        count = f"{counted(len(further), 'further table')} ({counted(sum(further), 'row')})"
        tables[0] = replace(tables[0], notes=(*tables[0].notes, f"{count} without sizes or such a column left out"))
    if not tables:
        named = f" with a column {column!r}" if column else ""
        headings = dict.fromkeys(", ".join(block.columns) for block in blocks if block.has_sizes)
        has = "; ".join(headings) or "no rows under any heading"
        raise InputError(f"{where}: holds no table of sizes and durations{named}; it has {has}")
    return tuple(tables)


def benchmark_blocks(lines: Sequence[str], where: str) -> list[Block]:
    """The blocks of the output of OSU's and Intel's benchmarks, those without rows too; all other lines are skipped.

    Raises InputError for rows below a title without a heading, and for rows that have not a cell for each column.
    """
    blocks: list[Block] = []
    current, below_title = Block(""), False
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if HEADING.match(text):
            # OSU's names have blanks in them and two or more between, Intel's have none.
            intel = "[usec]" in text or text.startswith("#bytes")
            names = text.split() if intel else re.split(r"\s{2,}|\t", text.lstrip("# "))
            current, below_title = Block(current.title, current.processes, names), False
            blocks.append(current)
        elif match := _TITLE.match(text):
            current, below_title = Block(match["osu"] or match["intel"]), True
        elif match := _PROCESSES.match(text):
            current = Block(current.title, int(match["count"]))
        elif current.columns and re.match(r"[-+]?\.?\d", text):
            cells = text.split()
            if _is_log_line(text):
                current.skipped.append(number)
            elif len(cells) != len(current.columns):
                has = f"has {len(cells)} columns where the heading has {len(current.columns)}"
                raise InputError(f"{where}:{number}: {has}; {_AGAIN}")
            elif words := [cell for cell in cells[is_size(current.columns[0]) :] if not _is_value(cell)]:
                raise InputError(f"{where}:{number}: {words[0][:40]!r} is not a number; {_AGAIN}")
            elif cells[0] == "0" and current.columns[0] == "#bytes" and _COLLECTIVE.match(current.title):
                current.empty.append(number)
            else:
                current.rows.append((number, cells))
        elif below_title and all(_number(cell) is not None for cell in [*text.split(), "", ""][:2]):
            raise InputError(f"{where}:{number}: a row below no heading; {_AGAIN}")
        elif not text and current.columns and current.processes is not None:
            current = Block(current.title, current.processes)  # an empty line ends a table of Intel's
    return blocks


def _is_value(cell: str) -> bool:
    """Whether a benchmark writes this where it has a number, or none, or has checked what it sent."""
    return _number(cell) is not None or cell.lower() in ("-", "n/a", "na", "nan", "pass", "fail")


def _is_log_line(text: str) -> bool:
    """Whether something else wrote this among the rows: it begins with a date or a time, or has several words.

    A row with one cell that is no number is none: it is damaged.
    """
    first, *others = text.split()
    words = [one for one in others if one[0].isalpha() and _number(one) is None]
    return bool(re.match(r"\d+[-:/]\d", first)) or len(words) > 1


def notes_on(blocks: Sequence[Block], column: str | None = None) -> tuple[str, ...]:
    """Sentences on the lines of blocks that are not used, and on the column of the time where that is not plain."""
    skipped, empty = ([at for block in blocks for at in getattr(block, name)] for name in ("skipped", "empty"))
    notes = [f"{lines_text(skipped)} skipped, as something else wrote there"] if skipped else []
    notes += [f"{lines_text(empty)} of 0 bytes, for which nothing is called, left out"] if empty else []
    for block in blocks:
        for name in set(_WITH_COMPUTING) & set(block.columns):
            notes.append(f"the time is {column or block.mean_column}; {name} has what was computed meanwhile, too")
    return tuple(dict.fromkeys(notes))


def _table(block: Block, where: str, column: str | None) -> DurationTable | None:
    """None of a block without sizes or such a column."""
    if not block.has_sizes:
        return None
    name = block.title + (f", {block.processes} processes" if block.processes is not None else "") or where
    known = [one for one in block.columns[1:] if unit_in(one) or rate_in(one)]
    if column is not None:
        named = column_named(column, block.columns)
        chosen = named if named in known else None
    else:
        chosen = block.mean_column or next(iter(known), None)
    if chosen is None:
        return None
    at, unit, rate_Bps = block.columns.index(chosen), unit_in(chosen), rate_in(chosen)
    rows = []
    for number, cells in block.rows:
        size = _number(cells[0])
        if size is None:
            raise InputError(f"{where}:{number}: the size is {cells[0][:40]!r}; it must be a whole number of bytes")
        checked(size, cells[0], "size", f"{where}:{number}")
        value = _number(cells[at])
        if value is not None:
            checked(value, cells[at], "duration" if unit else "rate", f"{where}:{number}")
        rows.append((size, _seconds(value, size, unit or "us", None if unit else rate_Bps)))
    notes = (*(() if unit else (_of_rate(chosen, name),)), *notes_on([block], chosen))
    return table_of(name, rows, where, (block.columns[0].lstrip("#"), chosen), unit or "us", notes=notes)


def _of_rate(column: str, title: str) -> str:
    together = next((what for begin, what in _TOGETHER.items() if title.startswith(begin)), "")
    if together:
        return f"durations are size / {column}, which is {together}: shorter than the message of one"
    window = ": with a window of messages, the time that each adds" if title.startswith("OSU ") else ""
    return f"durations are size / {column}{window}"


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def read_durations(
    path: str | Path,
    *,
    x: str | None = None,
    y: str | None = None,
    unit: str | None = None,
    only: Mapping[str, str] | None = None,
) -> tuple[DurationTable, ...]:
    """The tables of sizes and durations in a file: of OSU's and Intel's benchmarks each block, of CSV one.

    x, y : columns of sizes and durations, where their names do not tell; of a benchmark y only, such as t_max[usec]
    unit : of the durations, s, ms, us or ns, or of the rates, such as MB/s, where the file does not tell it
    only : of CSV, the rows where these columns have these values
    Raises InputError, one line naming file and line, for what is no such table.
    """
    if unit is not None and unit not in SECONDS and rate_in(unit) is None:
        raise InputError(f"the unit is {unit!r:.40}; it must be one of {', '.join(SECONDS)}, or of a rate: {RATES}")
    lines = read_text(path, "a table of sizes and durations", MAX_BYTES).removeprefix("\ufeff").splitlines()
    lines, others = without_prefix(lines, HEADING)
    if not any(HEADING.match(line.strip()) for line in lines):
        lines, others = without_prefix(lines, re.compile("[A-Za-z]"))
        table = _plain_table(lines, str(path), x=x, y=y, unit=unit, only=only or {})
        return (replace(table, notes=(*table.notes, *others)),)
    if x is not None or only:
        raise InputError(f"{path}: is the output of a benchmark, whose sizes are known: --x and --where are for CSV")
    tables = _benchmark_tables(lines, str(path), y)
    if unit is not None and any(unit != table.unit for table in tables):
        raise InputError(f"{path}: its durations are in {tables[0].unit}, and the unit given is {unit}; leave it out")
    return (replace(tables[0], notes=(*tables[0].notes, *others)), *tables[1:])
