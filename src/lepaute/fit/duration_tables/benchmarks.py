"""Output of the OSU micro-benchmarks (versions 3 to 7) and of the Intel MPI Benchmarks (IMB-MPI1).

Both print blocks of columns under a heading: `# Size  Latency (us)` of OSU, `#bytes #repetitions t[usec]` of Intel.
Other lines, such as those of mpirun, are skipped.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from lepaute.errors import InputError
from lepaute.fit.duration_tables.headings import SECONDS, column_named, preferred, rate_in, unit_in
from lepaute.fit.duration_tables.table import DurationTable, checked, table_of

_OSU_HEADING = re.compile(r"#\s*Size\b")
_IMB_HEADING = re.compile(r"\s*#bytes\b")
#: Benchmarks whose rate adds up several messages that travel at once, by the beginning of their titles.
_TOGETHER = {
    "OSU MPI Bi-Directional": "of both directions together",
    "OSU MPI Multiple Bandwidth": "of all pairs together",
    "Sendrecv": "of the message sent and the one received",
    "Exchange": "of the two messages sent and the two received",
}


@dataclass
class _Block:
    """The lines under one heading, each with its number; skipped: numbers of those that something else wrote."""

    title: str
    columns: list[str]
    rows: list[tuple[int, list[str]]] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)


def is_benchmark(lines: list[str]) -> bool:
    """Whether the file has a heading of one of the two."""
    return any(_OSU_HEADING.match(line) or _IMB_HEADING.match(line) for line in lines)


def benchmark_tables(lines: list[str], where: str, column: str | None) -> tuple[DurationTable, ...]:
    """The tables of the file, in its order; blocks without sizes, such as Barrier's, are none.

    column : name of the column of durations; None: the mean, or the only one; a rate where there is no duration
    Raises InputError where there is no table, or no such column.
    """
    blocks = [block for block in _blocks(lines) if block.rows]
    tables = tuple(table for block in blocks if (table := _table(block, where, column)) is not None)
    if not tables:
        named = f" with a column {column!r}" if column else ""
        headings = dict.fromkeys(", ".join(block.columns) for block in blocks)
        has = "; ".join(headings) or "no rows under any heading"
        raise InputError(f"{where}: holds no table of sizes and durations{named}; it has {has}")
    return tables


def _blocks(lines: list[str]) -> list[_Block]:
    found: list[_Block] = []
    title, current = "", None
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if _OSU_HEADING.match(text):
            current = _Block(title, re.split(r"\s{2,}|\t", text.lstrip("# ").strip()))
            found.append(current)
        elif _IMB_HEADING.match(text):
            current = _Block(title, text.split())
            found.append(current)
        elif text.startswith("#"):
            said = text.lstrip("# ").strip()
            if said.startswith("OSU "):
                title, current = said, None
            elif said.startswith("Benchmarking "):
                title, current = said.removeprefix("Benchmarking ").strip(), None
            elif match := re.search(r"#processes = (\d+)", text):
                title = f"{title}, {match[1]} processes"
        elif current is not None and re.match(r"[0-9]", text):
            if is_log_line(text):
                current.skipped.append(number)
            else:
                current.rows.append((number, text.split()))
    return found


def is_log_line(text: str) -> bool:
    """Whether something else wrote this among the rows: it begins with a date or a time, or has several words.

    A row with one cell that is no number is none: it is damaged.
    """
    first, *others = text.split()
    words = [one for one in others if one[0].isalpha() and _number(one) is None]
    return bool(re.match(r"\d+[-:/]\d", first)) or len(words) > 1


def skipped_note(numbers: Sequence[int]) -> str:
    """A sentence on lines that are no rows."""
    lines = ", ".join(map(str, numbers[:5])) + (", ..." if len(numbers) > 5 else "")
    return f"line{'s' if len(numbers) > 1 else ''} {lines} skipped: no row of numbers, something else wrote there"


def _table(block: _Block, where: str, column: str | None) -> DurationTable | None:
    name = block.title or where
    times = [one for one in block.columns[1:] if unit_in(one)]
    rates = [one for one in block.columns[1:] if rate_in(one)]
    if column is not None:
        named = column_named(column, block.columns)
        chosen = named if named in (*times, *rates) else None
    else:
        chosen = preferred(times) or next(iter((*times, *rates)), None)
    if chosen is None:
        return None
    at, unit, rate_Bps = block.columns.index(chosen), unit_in(chosen), rate_in(chosen)
    rows: list[tuple[int, float, float | None]] = []
    for number, cells in block.rows:
        size = _number(cells[0])
        if size is None:
            raise InputError(f"{where}:{number}: the size is {cells[0][:40]!r}; it must be a whole number of bytes")
        checked(size, cells[0], "size", f"{where}:{number}")
        value = _number(cells[at]) if at < len(cells) else None
        if value is not None:
            checked(value, cells[at], "duration" if unit else "rate", f"{where}:{number}")
        if unit is not None:
            rows.append((number, size, None if value is None else value * SECONDS[unit]))
        else:
            rows.append((number, size, size / (value * rate_Bps) if value and rate_Bps and size else None))
    notes = () if unit else (_of_rate(chosen, name),)
    if block.skipped:
        notes = (*notes, skipped_note(block.skipped))
    return table_of(name, rows, where, (block.columns[0].lstrip("#"), chosen), unit or "us", notes=notes)


def _of_rate(column: str, title: str) -> str:
    """What the durations are that come from a rate."""
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
