"""A table of sizes and durations, whatever file it came from."""

from dataclasses import dataclass, field

import numpy as np

from lepaute.errors import InputError
from lepaute.fit.numeric.arrays import Floats


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

    def __repr__(self) -> str:
        return f"<DurationTable {self.name!r}: {len(np.unique(self.x))} sizes, {self.y_name!r}>"


def checked(value: float, cell: str, what: str, where: str) -> float:
    """The value of a cell; raises InputError, with the text of the cell, where it is below zero or not finite."""
    if not (value >= 0 and np.isfinite(value)):
        raise InputError(f"{where}: the {what} is {cell[:40]}; it must be a number of at least 0")
    return value


def table_of(
    name: str,
    rows: list[tuple[int, float, float | None]],
    where: str,
    columns: tuple[str, str],
    unit: str,
    *,
    in_bytes: bool = True,
    notes: tuple[str, ...] = (),
) -> DurationTable:
    """The table of rows (number of the line, size, duration in s or None where the cell has no number).

    rows : sizes and durations as `checked` lets them pass
    Durations that are missing, or rounded to zero in the file, are left out with a note.
    Raises InputError where no row is left.
    """
    missing = sum(duration is None for _, _, duration in rows)
    zero = sum(duration == 0 for _, _, duration in rows)
    kept = [(size, duration) for _, size, duration in rows if duration]
    if not kept:
        raise InputError(f"{where}: {name}: no row has a size and a duration above 0")
    for count, reason in ((missing, "without a duration"), (zero, "whose duration is 0")):
        if count:
            notes = (*notes, f"{count} row{'s' if count > 1 else ''} {reason} left out")
    x, duration_s = (np.array(column, dtype=np.float64) for column in zip(*kept, strict=True))
    return DurationTable(name, x, duration_s, *columns, unit, in_bytes, notes)
