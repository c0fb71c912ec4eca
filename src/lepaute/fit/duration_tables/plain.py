"""Plain tables: CSV with commas, semicolons or tabs, or columns set apart by blanks; with or without a heading."""

import csv
from collections.abc import Mapping
from pathlib import Path

from lepaute.errors import InputError
from lepaute.fit.duration_tables.headings import SECONDS, is_duration, is_size, preferred, unit_in
from lepaute.fit.duration_tables.table import DurationTable, table_of
from lepaute.kit.quantities import size_of

#: Names that a table without a heading gets.
_NUMBERED = "column {}"


def plain_table(
    lines: list[str], where: str, *, x: str | None, y: str | None, unit: str | None, only: Mapping[str, str]
) -> DurationTable:
    """The table of a file; lines that begin with # are comments.

    x, y : names of the columns of sizes and durations; None: by their names, or the first and the second of two
    unit : of the durations; None: the one that the column's name tells
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
    unit = _unit(duration, unit, where)
    for name in only:
        _check(name, columns, where)
    rows = [row for row in rows if all(row[1][columns.index(name)] == value for name, value in only.items())]
    if not rows:
        raise InputError(f"{where}: no row has {' and '.join(f'{name}={value}' for name, value in only.items())}")
    at, by = columns.index(size), columns.index(duration)
    parsed = [
        (number, _size(cells[at], f"{where}:{number}"), _duration(cells[by], SECONDS[unit], f"{where}:{number}"))
        for number, cells in rows
    ]
    name = ", ".join((Path(where).name, *(f"{column}={value}" for column, value in only.items())))
    return table_of(name, parsed, where, (size, duration), unit, in_bytes=is_size(size) or not heading)


def _cells(line: str, delimiter: str | None, where: str) -> list[str]:
    if delimiter is None:
        return line.split()
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, strict=True))]
    except csv.Error as problem:
        raise InputError(f"{where}: is no row of CSV ({problem})") from None


def _chosen(columns: list[str], x: str | None, y: str | None, where: str) -> tuple[str, str]:
    """The columns of sizes and durations."""
    for name in (x, y):
        if name is not None:
            _check(name, columns, where)
    sizes = [x] if x else [name for name in columns if is_size(name)]
    durations = [y] if y else [name for name in columns if is_duration(name) and name not in sizes]
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


def _unit(duration: str, given: str | None, where: str) -> str:
    told = unit_in(duration)
    if told and given and told != given:
        raise InputError(f"{where}: the column {duration!r} is in {told}, and --unit says {given}; leave --unit out")
    if not (told or given):
        raise InputError(f"{where}: the unit of {duration!r} is not told; give --unit {', '.join(SECONDS)}")
    return str(told or given)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return cell[:1].isdigit()  # 64K
    return True


def _size(cell: str, where: str) -> float:
    try:
        return float(cell)
    except ValueError:
        try:
            return float(size_of(cell.removesuffix("B"), "the size"))
        except InputError as problem:
            raise InputError(f"{where}: {problem}") from None


def _duration(cell: str, seconds: float, where: str) -> float | None:
    if cell.lower() in ("", "na", "nan", "none", "-"):
        return None
    try:
        return float(cell) * seconds
    except ValueError:
        raise InputError(f"{where}: the duration is {cell[:40]!r}; it is a number") from None
