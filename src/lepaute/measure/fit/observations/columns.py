"""The tables of observations and their columns: name, type, unit and role of each, declared here and nowhere else.

What a column is follows from its declaration, never from its values. A column is a factor, and tested, where it is
declared so: here, or as a column of the experiment's own design. A column that the measuring side adds to a table
changes nothing in a fit until it is declared.

What observations cannot be: a table is looked at before anything is fitted to it.

A defect is an error, in one line that says which row of which table of which archive, what is wrong, and what to do. No
row is mended or left out in silence: whoever left some out would decide what the models say. What is only poor (few
sizes, equal durations, outliers) is no defect, is fitted, and gets a flag; see `diagnostics`.

Which observations the fits take, where other load disturbed some runs of the probes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas

from lepaute.errors import FitError
from lepaute.kit.text import significant
from lepaute.measure.fit.numeric import Booleans, Floats, Integers

if TYPE_CHECKING:
    from lepaute.measure.archive import Archive

KERNELS = "observations/kernels.parquet"
P2P = "observations/p2p.parquet"
SEMANTICS = "observations/semantics.parquet"
RING = "observations/ring.parquet"
FLOWS = "observations/flows.parquet"
SENTINELS = "observations/sentinels.parquet"
#: Levels of a factor; a column with more is no factor even where it is declared one.
MAX_LEVELS = 20
#: size: of a call or message. process: which process a row is from. time: when, and how long. factor: a condition whose
#: effect is tested. note: bookkeeping.
Role = Literal["size", "process", "time", "factor", "note"]
#: Stamps have nanoseconds, and two reads of the clock a cost: less than this backwards is no step of the clock.
BACKWARDS_S = 1e-6
#: No process can spend more time in its calls than passes; twice as much is a wrong unit or a copied column.
MAX_BUSY = 2.0
LONGEST_S = 7 * 86400.0
#: More than any node has: cores are numbered through over all nodes.
MAX_CORES = 1 << 20
SECONDS = "durations are in seconds, correct the unit or measure again"
AGAIN = "the file is damaged or was edited; measure again"
#: What tells apart the runs of one probe on a core in a block, in archives that have several.
_OF_A_LOAD = ("active_cores", "threads")
#: Blocks with an undisturbed run of a probe that are enough to do without its disturbed ones.
ENOUGH_BLOCKS = 3


@dataclass(frozen=True, slots=True)
class Column:
    """A declared column.

    least     : of a number, checked in every table of a calibration; None: not checked;  most: of one that is checked
    complete  : a text that every row of a calibration has
    reference : level that others are compared with; "": the first, see `level_order`
    """

    name: str
    type: Literal["integer", "real", "text", "flag"]
    unit: str
    role: Role
    least: float | None = None
    complete: bool = False
    reference: str = ""
    most: float = 2.0**53  # a larger real is not known to one


_ANY = float("-inf")


COLUMNS: tuple[Column, ...] = (
    Column("m", "integer", "1", "size", least=0.0),
    Column("n", "integer", "1", "size", least=0.0),
    Column("k", "integer", "1", "size", least=0.0),
    Column("size_bytes", "integer", "B", "size", least=0.0),
    Column("kernel", "text", "", "size", complete=True),
    Column("operation", "text", "", "size", complete=True),
    Column("archive", "integer", "1", "process"),
    Column("host", "text", "", "process", complete=True),
    Column("node", "text", "", "process"),
    Column("peer", "text", "", "process"),
    Column("link", "text", "", "process", complete=True),
    Column("probe", "text", "", "process", complete=True),
    Column("cpu", "integer", "1", "process", least=-1.0, most=MAX_CORES - 1.0),  # -1: a probe not pinned
    Column("core", "integer", "1", "process"),
    Column("rank", "integer", "1", "process", least=0.0),
    Column("block", "integer", "1", "process", least=0.0),
    Column("attempt", "integer", "1", "process", least=0.0),
    Column("process", "integer", "1", "process"),
    Column("active_cores", "integer", "1", "process", least=1.0),
    Column("active_socket_cores", "integer", "1", "process", least=1.0),
    Column("threads", "integer", "1", "process", least=1.0),
    Column("start_s", "real", "s", "time", least=_ANY),
    Column("duration_s", "real", "s", "time", least=0.0, most=LONGEST_S),
    Column("recorded_s", "real", "s", "time"),
    Column("clock_cost_s", "real", "s", "time", least=0.0),
    Column("date", "text", "", "time"),
    Column("content", "text", "", "factor", reference="random"),
    Column("warm", "integer", "1", "factor", reference="0"),
    Column("pinning", "text", "", "factor", reference="pinned"),
    Column("scheduling", "text", "", "factor", reference="other"),
    Column("kind", "text", "", "note"),
    Column("design_row", "integer", "1", "note", least=_ANY),
    Column("position", "integer", "1", "note", least=_ANY),
    Column("order", "integer", "1", "note"),
    Column("started_s", "real", "s", "time"),
    Column("disturbed", "flag", "", "note"),
    Column("slow", "flag", "", "note"),
    Column("machine_changed", "text", "", "note"),
    Column("replication", "integer", "1", "note"),
    Column("seed", "integer", "1", "note"),
    Column("wanted_core", "integer", "1", "note"),
    Column("seen_on_cpu", "integer", "1", "note"),
)

BY_NAME = {column.name: column for column in COLUMNS}


#: Columns without which a table of a calibration cannot be fitted.
NEEDED: dict[str, tuple[str, ...]] = {
    KERNELS: (
        *("design_row", "position", "kernel", "m", "n", "k", "start_s", "duration_s", "rank", "cpu", "block", "probe"),
        "clock_cost_s",
    ),
    P2P: ("operation", "size_bytes", "duration_s", "clock_cost_s"),
    SEMANTICS: ("test", "size_bytes", "backlog", "outcome", "patience_ms", "rank"),
    RING: ("operation", "condition", "size_bytes", "role", "call", "found", "duration_s", "clock_cost_s"),
    FLOWS: (
        *("call", "host", "peer", "link", "ranks", "design_row", "size_bytes", "start_s", "duration_s", "clock_cost_s"),
    ),
    SENTINELS: (
        *("m", "n", "k", "start_s", "duration_s", "cpu", "block", "host", "disturbed", "clock_cost_s"),
        *("order", "started_s"),
    ),
}


def names_of(role: Role) -> tuple[str, ...]:
    """The declared columns of a role, in the order of the declarations."""
    return tuple(column.name for column in COLUMNS if column.role == role)


def check_columns(frame: "pandas.DataFrame", table: str, source: object = None) -> None:
    """Raises FitError where a table of a calibration lacks a needed column; source: the table as messages name it."""
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


def factors_of(table: "pandas.DataFrame", design: Sequence[str] | None = ()) -> tuple[str, ...]:
    """The factors of a table that have two to MAX_LEVELS levels, in the order of its columns.

    design : columns of the design that the observations were made by, which are factors whatever they are called, but
             for sizes; None: there is none (a job that records as it likes, a table from elsewhere), so that every
             column that is not declared and is no time or frequency by its name counts as a factor
    """

    def is_factor(name: str) -> bool:
        column = BY_NAME.get(name)
        if column is not None and column.role == "factor":
            return True
        if design is None:
            return column is None and not name.endswith(("_s", "_hz"))
        return name in design and (column is None or column.role != "size" or column.type == "text")

    return tuple(
        name for name in map(str, table.columns) if is_factor(name) and 2 <= table[name].nunique() <= MAX_LEVELS
    )


@dataclass(frozen=True, slots=True)
class Place:
    """Where a table is from, for messages: `calibration.zip: observations/kernels.parquet`."""

    archive: Path | str
    member: str

    def __str__(self) -> str:
        return f"{self.archive}: {self.member}"


def checked_table(archive: "Archive", member: str) -> "pandas.DataFrame":
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
    low, high = float(np.min(numbers)), float(np.max(numbers))  # NaN where there is one
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
        first = copies[timed]
        raise FitError(
            f"{place}, {_row(frame, first)}: is an exact copy of an earlier row; each call counts once, "
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


def enough_blocks(blocks: int) -> int:
    """How many of `blocks` blocks must have an undisturbed run of a probe: 3, or half of them where there are fewer."""
    return ENOUGH_BLOCKS if blocks >= ENOUGH_BLOCKS else (blocks + 1) // 2


def without_disturbed(
    frames: Sequence["pandas.DataFrame"], by: tuple[str, ...]
) -> tuple[list["pandas.DataFrame"], tuple[str, ...]]:
    """The observations less the rows of disturbed runs, wherever a probe can do without them.

    frames : tables of one kind (kernels or p2p) of several archives, with the columns `block` and `by`; a table without
             the column `disturbed`, from an older version, counts as undisturbed throughout
    by     : columns that distinguish the probes: ("probe", "cpu") for kernels; none where all rows are of one probe

    A probe can do without its disturbed runs when it has an undisturbed one in at least `enough_blocks` of its blocks,
    the blocks of all archives together. Returns new tables in the order of `frames`, and in alphabetical order the
    names of the probes that could not, such as "dgemm 0" ("p2p" where `by` is empty): of these all rows are kept. The
    durations do not matter: to leave out what is slow would bias the models. A probe under several loads counts as
    several, named with its cores and threads.
    Raises FitError when there are disturbed rows and a column is missing.
    """
    marked = [frame for frame in frames if "disturbed" in frame.columns and bool(frame["disturbed"].any())]
    if not marked:
        return list(frames), ()
    if "probe" in by and all(set(_OF_A_LOAD) <= set(frame.columns) for frame in frames):
        by = (*by, *_OF_A_LOAD)  # a probe is made under several loads in a block
    columns = [*by, "block"]
    parts = []
    for number, frame in enumerate(frames):
        missing = [column for column in columns if column not in frame.columns]
        if missing:
            raise FitError(f"the observations lack the column {missing[0]}; the archive is not a calibration")
        part = frame.loc[:, columns].assign(archive=number, disturbed=False)
        if "disturbed" in frame.columns:
            part["disturbed"] = frame["disturbed"].astype(bool)
        parts.append(part.drop_duplicates())
    # (name of the probe) -> (blocks it ran in, those with an undisturbed run)
    seen: dict[str, tuple[set[tuple[int, int]], set[tuple[int, int]]]] = {}
    for row in pandas.concat(parts, ignore_index=True).to_dict("records"):
        every, quiet = seen.setdefault(" ".join(str(row[column]) for column in by) or "p2p", (set(), set()))
        place = (int(row["archive"]), int(row["block"]))
        every.add(place)
        if not row["disturbed"]:
            quiet.add(place)
    short = {name for name, (every, quiet) in seen.items() if len(quiet) < enough_blocks(len(every))}
    return [_kept(frame, by, short) for frame in frames], tuple(sorted(short))


def _kept(frame: "pandas.DataFrame", by: tuple[str, ...], short: set[str]) -> "pandas.DataFrame":
    if "disturbed" not in frame.columns:
        return frame
    quiet = ~frame["disturbed"].astype(bool)
    if not by:
        return frame if short else frame.loc[quiet]
    names = frame[by[0]].astype(str)
    for column in by[1:]:
        names = names + " " + frame[column].astype(str)
    return frame.loc[quiet | names.isin(short)]
