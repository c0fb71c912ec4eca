"""Plain tables: CSV with commas, semicolons or tabs, or columns set apart by blanks; with or without a heading."""

import csv
import re
from collections.abc import Mapping
from pathlib import Path

from lepaute.errors import InputError, LepauteError
from lepaute.fit.duration_tables.headings import (
    RATES,
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
from lepaute.fit.duration_tables.table import DurationTable, checked, table_of
from lepaute.kit.quantities import size_of

#: Names that a table without a heading gets.
_NUMBERED = "column {}"


def plain_table(
    lines: list[str], where: str, *, x: str | None, y: str | None, unit: str | None, only: Mapping[str, str]
) -> DurationTable:
    """The table of a file; lines that begin with # are comments.

    x, y : names of the columns of sizes and durations, or of rates; None: by their names, or the first and the second
           of two
    unit : of the durations, or of the rates; None: the one that the column's name tells
    only : rows are kept where these columns have these values
    Raises InputError naming the line, for columns that cannot be told apart, an unknown unit, or cells that are no
    numbers.
    """
    numbered = [(number, line) for number, line in enumerate(lines, start=1) if line.strip() and line[:1] != "#"]
    if not numbered:
        raise InputError(f"{where}: holds no rows; give a table of sizes and durations")
    delimiter = next((one for one in ",;\t" if one in numbered[0][1]), None)
    rows = [(number, _cells(line, delimiter, f"{where}:{number}")) for number, line in numbered]
    heading = [] if _is_number(rows[0][1][0]) else rows.pop(0)[1]
    columns = heading or [_NUMBERED.format(place + 1) for place in range(len(rows[0][1]))]
    for number, cells in rows:
        if len(cells) != len(columns):
            raise InputError(f"{where}:{number}: {len(cells)} cells, where the first line has {len(columns)}")
    size, duration = _chosen(columns, x, y, where)
    time, rate_Bps = _unit(duration, unit, where)
    only = {column_named(name, columns): value for name, value in only.items()}
    for name in only:
        _check(name, columns, where)
    rows = [row for row in rows if all(row[1][columns.index(name)] == value for name, value in only.items())]
    if not rows:
        raise InputError(f"{where}: no row has {' and '.join(f'{name}={value}' for name, value in only.items())}")
    at, by = columns.index(size), columns.index(duration)
    bytes_of_unit, unsure = size_unit_in(size) or (1, False)
    parsed = []
    for number, cells in rows:
        x_value = _size(cells[at], f"{where}:{number}") * bytes_of_unit
        value = _value(cells[by], "rate" if rate_Bps else "duration", f"{where}:{number}")
        if value is None or not rate_Bps:
            parsed.append((number, x_value, None if value is None else value * SECONDS[time]))
        else:
            parsed.append((number, x_value, x_value / (value * rate_Bps) if value and x_value else None))
    notes = (f"durations are size / {duration}",) if rate_Bps else ()
    if unsure:
        notes = (*notes, f"sizes are {size} times {bytes_of_unit} bytes")
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
    x, y = (name and column_named(name, columns) for name in (x, y))
    for name in (x, y):
        if name is not None:
            _check(name, columns, where)
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


def _check(name: str, columns: list[str], where: str) -> None:
    if columns.count(name) != 1:
        problem = "no" if name not in columns else "more than one"
        raise InputError(f"{where}: {problem} column {name[:60]!r}; there are {', '.join(columns)[:300]}")


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


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return cell[:1].isdigit()  # 64K
    return True


def _size(cell: str, where: str) -> float:
    try:
        return checked(float(cell), cell, "size", where)
    except LepauteError:
        raise
    except ValueError:
        try:
            return float(size_of(cell.removesuffix("B"), "the size"))
        except InputError as problem:
            raise InputError(f"{where}: {problem}") from None


def _value(cell: str, what: str, where: str) -> float | None:
    if cell.lower() in ("", "na", "nan", "none", "-"):
        return None
    try:
        return checked(float(cell), cell, what, where)
    except LepauteError:
        raise
    except ValueError:
        point = "; write decimals with a point" if re.fullmatch(r"[+-]?\d+,\d+", cell) else ""
        raise InputError(f"{where}: the {what} is {cell[:40]!r}; it must be a number{point}") from None
