"""`read_durations`: the tables of a file, whatever its format."""

from collections.abc import Mapping
from pathlib import Path

from lepaute.errors import InputError
from lepaute.fit.duration_tables.benchmarks import benchmark_tables, is_benchmark
from lepaute.fit.duration_tables.headings import RATES, SECONDS, rate_in
from lepaute.fit.duration_tables.plain import plain_table
from lepaute.fit.duration_tables.table import DurationTable
from lepaute.kit.documents import read_text

#: A table of a million rows.
MOST_BYTES = 64 << 20


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
    lines = read_text(path, "a table of sizes and durations", MOST_BYTES).removeprefix("\ufeff").splitlines()
    if not is_benchmark(lines):
        return (plain_table(lines, str(path), x=x, y=y, unit=unit, only=only or {}),)
    if x is not None or only:
        raise InputError(f"{path}: is the output of a benchmark, whose sizes are known: --x and --where are for CSV")
    tables = benchmark_tables(lines, str(path), y)
    if unit is not None and any(unit != table.unit for table in tables):
        raise InputError(f"{path}: its durations are in {tables[0].unit}, and the unit given is {unit}; leave it out")
    return tables
