"""What the columns of observations cannot be: a table is looked at before anything is fitted to it.

A defect is an error, in one line that says which row of which table of which archive, what is wrong, and what to do. No
row is mended or left out in silence: whoever left some out would decide what the models say. What is only poor (few
sizes, equal durations, outliers) is no defect, is fitted, and gets a flag; see `diagnostics`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from lepaute.errors import FitError
from lepaute.kit.text import significant
from lepaute.measure.archive import Archive
from lepaute.measure.fit.numeric import Booleans, Floats, Integers
from lepaute.measure.observation_columns import COLUMNS, LONGEST_S, NEEDED, names_of

#: Stamps have nanoseconds, and two reads of the clock a cost: less than this backwards is no step of the clock.
BACKWARDS_S = 1e-6
#: No process can spend more time in its calls than passes; twice as much is a wrong unit or a copied column.
MAX_BUSY = 2.0
SECONDS = "durations are in seconds, correct the unit or measure again"
AGAIN = "the file is damaged or was edited; measure again"


def check_columns(frame: "pandas.DataFrame", table: str, source: object = None) -> None:
    """Raises FitError if a table of a calibration lacks a needed column; source: the table as messages name it."""
    for column in NEEDED.get(table, ()):
        if column not in frame.columns:
            raise FitError(f"{source or table} lacks the column {column}; the archive is not a calibration")


def net_seconds(frame: "pandas.DataFrame") -> Floats:
    """Durations less the clock's cost, shape (rows,)."""
    result: Floats = frame["duration_s"].to_numpy(dtype=np.float64) - frame["clock_cost_s"].to_numpy(dtype=np.float64)
    return result


def combinations_of(frame: "pandas.DataFrame", columns: Sequence[str]) -> Integers:
    """A number for each combination of the values of these columns, of those that the table has, shape (rows,)."""
    number = np.zeros(len(frame), dtype=np.int64)
    for column in columns:
        if column in frame.columns:
            codes, values = pandas.factorize(frame[column])
            number = number * (len(values) + 1) + codes
    return np.asarray(pandas.factorize(number)[0], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a table is from, for messages: `calibration.zip: observations/kernels.parquet`."""

    archive: Path | str
    member: str

    def __str__(self) -> str:
        return f"{self.archive}: {self.member}"


def checked_table(archive: Archive, member: str) -> "pandas.DataFrame":
    """A table of observations of an archive; raises FitError as `check_observations` does, ArchiveError without it."""
    frame = archive.table(member)
    check_observations(frame, Place(archive.path, member))
    return frame


def check_observations(frame: "pandas.DataFrame", place: Place) -> None:
    """Raises FitError for the first defect of a table of observations, rows in the order in which they were written.

    Defects are: a column that is absent or of the wrong type; a number that is missing, infinite or below what it can
    be (a negative duration or size); a clock that goes backwards within one process; rows that are exact copies of
    others; a duration of more than a week; calls that last longer than the time that passed. An empty table has none.
    """
    check_columns(frame, place.member, place)
    if len(frame) == 0:
        return
    for column in COLUMNS:
        if column.name in frame.columns:
            if column.complete:
                _check_text(frame, column.name, place)
            if column.least is not None:
                _check_numbers(frame, column.name, column.least, column.most, place)
    _check_copies(frame, place)
    if {"start_s", "duration_s"} <= set(frame.columns):
        _check_clock(frame, place)


def check_durations(frame: "pandas.DataFrame", place: Place, column: str = "duration_s") -> None:
    """The same of the durations alone, or of another result, for experiments, whose other columns are their own."""
    _check_numbers(frame, column, 0.0, LONGEST_S if column == "duration_s" else np.inf, place)


def _check_text(frame: "pandas.DataFrame", column: str, place: Place) -> None:
    values = frame[column]
    missing = np.flatnonzero(values.isna().to_numpy())
    if len(missing):
        raise FitError(f"{place}, {_row(frame, missing)}: {column} is missing; {AGAIN}")
    kind = str(values.dtype)
    if kind not in ("str", "string", "object", "category") or not (
        kind in ("str", "string") or all(isinstance(each, str) for each in values.unique())
    ):
        raise FitError(f"{place}: column {column} holds {values.dtype}, not names; {AGAIN}")


def _check_numbers(frame: "pandas.DataFrame", column: str, least: float, most: float, place: Place) -> None:
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    values = frame[column]
    if not is_numeric_dtype(values.dtype) or is_bool_dtype(values.dtype):
        raise FitError(f"{place}: column {column} holds {_kind(values)}, not numbers; {AGAIN}")
    numbers: Floats = values.to_numpy(dtype=np.float64, na_value=np.nan)
    low, high = float(np.min(numbers)), float(np.max(numbers))  # NaN if there is one
    if np.isfinite(low) and np.isfinite(high) and low >= least and high <= most:
        return
    if len(wrong := np.flatnonzero(~np.isfinite(numbers))):
        raise FitError(f"{place}, {_row(frame, wrong)}: {column} is {numbers[wrong[0]]:g}, not finite; {AGAIN}")
    if len(wrong := np.flatnonzero(numbers < least)):
        why = "a clock that went backwards gives such durations; " if column == "duration_s" else ""
        raise FitError(
            f"{place}, {_row(frame, wrong)}: {column} is {numbers[wrong[0]]:g}, below {max(least, 0.0):g}; {why}{AGAIN}"
        )
    wrong = np.flatnonzero(numbers > most)
    above = f"more than a week; {SECONDS}" if column == "duration_s" else f"above {most:.16g}; {AGAIN}"
    raise FitError(f"{place}, {_row(frame, wrong)}: {column} is {numbers[wrong[0]]:g}, {above}")


def _check_copies(frame: "pandas.DataFrame", place: Place) -> None:
    """Rows that are equal in all columns: only those of equal stamps are compared, which is quick."""
    stamps = [column for column in ("start_s", "duration_s") if column in frame.columns]
    if not stamps:
        return
    # Equal rows have equal keys; so do a few that differ, which are then compared.
    key: Floats = np.zeros(len(frame))
    for factor, column in enumerate(stamps, start=1):
        key += np.sqrt(factor) * frame[column].to_numpy(dtype=np.float64)
    order = np.argsort(key, kind="stable")
    same = np.zeros(len(frame), dtype=bool)
    equal = np.diff(key[order]) == 0.0
    same[order[1:]] |= equal
    same[order[:-1]] |= equal
    if not same.any():
        return
    copies = np.flatnonzero(same)[frame[same].duplicated().to_numpy()]
    # Calls that the clock cannot tell apart are alike once in a while; copied rows are many, or of large durations.
    timed = frame["duration_s"].to_numpy()[copies] > 0.0 if "duration_s" in stamps else np.ones(len(copies), bool)
    if np.count_nonzero(timed):
        raise FitError(
            f"{place}, {_row(frame, copies[timed])}: is an exact copy of an earlier row; each call counts once, "
            "make the archive again from the raw files"
        )


def _check_clock(frame: "pandas.DataFrame", place: Place) -> None:
    process = combinations_of(frame, names_of("process"))
    order = np.argsort(process, kind="stable")  # rows of a process, as they were written
    start: Floats = frame["start_s"].to_numpy(dtype=np.float64)[order]
    duration: Floats = frame["duration_s"].to_numpy(dtype=np.float64)[order]
    end = start + duration
    number = process[order]
    follows: Booleans = number[1:] == number[:-1]
    earlier: Booleans = follows & (start[1:] < start[:-1] - BACKWARDS_S)
    # A phase that holds other calls is written after them, with an earlier start; its end is no earlier than theirs.
    backwards = np.flatnonzero(earlier & (end[1:] < end[:-1] - BACKWARDS_S)) + 1
    if len(backwards):
        back_s = start[backwards[0] - 1] - start[backwards[0]]
        raise FitError(
            f"{place}, {_row(frame, order[backwards])}: starts {significant(back_s)} s before the row that the same "
            "process wrote earlier, so the clock went backwards; use a steady clock (clocksource tsc) and measure again"
        )
    inner = np.ones(len(start), dtype=bool)
    inner[1:] = ~earlier
    first = np.flatnonzero(np.concatenate([[True], ~follows]))
    busy_s = np.add.reduceat(np.where(inner, duration, 0.0), first)
    elapsed_s = np.maximum.reduceat(end, first) - np.minimum.reduceat(start, first)
    stands = np.maximum.reduceat(start, first) == np.minimum.reduceat(start, first)  # no dates: an old table
    wrong = np.flatnonzero(~stands & (busy_s > MAX_BUSY * elapsed_s))
    if len(wrong):
        at = int(wrong[0])
        raise FitError(
            f"{place}, {_row(frame, order[first[at : at + 1]])}: the calls of this process add up to "
            f"{significant(busy_s[at])} s, while only {significant(elapsed_s[at])} s passed; {SECONDS}"
        )


def _row(frame: "pandas.DataFrame", rows: Any) -> str:
    """Names the first of the rows, counted from 1, and how many there are: "row 17 (dgemm) and 3 more"."""
    first = int(rows[0])
    name = next((str(frame[column].iloc[first])[:40] for column in ("kernel", "operation") if column in frame), "")
    more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
    return f"row {first + 1}" + (f" ({name})" if name.isprintable() and name else "") + more


def _kind(values: "pandas.Series[Any]") -> str:
    first = next((value for value in values if value is not None), None)
    text = str(first)[:20]
    example = f" such as {text!r}" if isinstance(first, str) else ""
    return ("texts" if isinstance(first, str) else str(values.dtype)) + example
