"""Data frames of callers as rows of a table, checked."""

from typing import TYPE_CHECKING

from lepaute.errors import InputError, LepauteError
from lepaute.kit.printable import printable
from lepaute.store.tables import FACTOR_VALUES, STATES, Table

if TYPE_CHECKING:
    import pandas
    import pyarrow

_FIRST_SECOND, _LAST_SECOND = -62_135_596_800.0, 253_402_300_800.0  # the years 1 to 9999


def rows_of(table: Table, frame: "pandas.DataFrame") -> "pyarrow.Table":
    """The frame's rows with the table's columns and types, in their order; NaN is an absent value.

    Raises InputError for columns that are missing or too many, cells of another type, absent texts, two rows of one
    key, and dates that are none.
    """
    import pyarrow

    missing = [name for name in table.columns if name not in frame]
    unknown = [str(name) for name in frame.columns if name not in table.columns]
    if missing or unknown:
        said = [f"lack {', '.join(missing)}"] if missing else []
        said += [f"have {printable(', '.join(unknown)[:200])}, which the store does not know"] if unknown else []
        raise InputError(f"{table.name}: the rows {' and '.join(said)}")
    columns = []
    for field in table.schema:
        given = frame[field.name]
        absent = given.isna()
        if field.type != pyarrow.float64() and absent.any():
            raise InputError(f"{table.name}: row {int(absent.argmax()) + 1} has no {field.name}")
        try:
            columns.append(_column(given, field.type))
        except LepauteError:
            raise
        except (pyarrow.ArrowException, TypeError, ValueError, OverflowError):
            raise InputError(
                f"{table.name}: column {field.name} is not of type {table.columns[field.name]} throughout"
            ) from None
    rows = pyarrow.table(columns, schema=table.schema)
    _check_cells(table, rows)
    twice = frame.duplicated(list(table.key)) if table.key else None
    if twice is not None and twice.any():
        at = int(twice.argmax())
        shown = ", ".join(f"{name} {frame[name].iloc[at]}" for name in table.key)
        raise InputError(f"{table.name}: row {at + 1} is there twice ({printable(shown[:200])})")
    return rows


def _column(given: "pandas.Series", kind: "pyarrow.DataType") -> "pyarrow.Array":
    """The cells as this type, if they are of it: a text is not made of a number, nor a whole number of a fraction."""
    import numpy as np
    import pandas
    import pyarrow
    import pyarrow.compute

    if kind == pyarrow.string():
        array = pyarrow.Array.from_pandas(given)
        if isinstance(array, pyarrow.ChunkedArray):
            array = array.combine_chunks()
        if not len(array):
            return pyarrow.array([], kind)
        if not (pyarrow.types.is_string(array.type) or pyarrow.types.is_large_string(array.type)):
            raise TypeError
        if pyarrow.compute.any(pyarrow.compute.match_substring(array, "\0")).as_py():  # no text of PostgreSQL's
            raise ValueError
        return array.cast(kind)
    if kind == pyarrow.bool_():
        return pyarrow.array(given.astype("bool") if len(given) == 0 else given.to_numpy(), kind)
    if pandas.api.types.is_bool_dtype(given) or (len(given) and not pandas.api.types.is_numeric_dtype(given)):
        raise TypeError
    if kind == pyarrow.float64():
        return pyarrow.array(given.to_numpy("float64", na_value=np.nan), kind, from_pandas=True)
    numbers = given.to_numpy()
    if (numbers != (whole := numbers.astype("int64"))).any():
        raise TypeError
    return pyarrow.array(whole, kind)


def _check_cells(table: Table, rows: "pyarrow.Table") -> None:
    import numpy as np

    for name in table.columns:
        if name in {"started_s", "date_s"} and len(rows):
            dates = rows[name].to_numpy()
            wrong = ~((dates >= _FIRST_SECOND) & (dates < _LAST_SECOND))
            if wrong.any():
                at = int(wrong.argmax())
                raise InputError(
                    f"{table.name}: {name} of row {at + 1} is {dates[at]}; give seconds since 1970-01-01 00:00 UTC"
                )
    if table is FACTOR_VALUES:
        states = set(rows["state"].unique().to_pylist())
        if wrong_states := sorted(states - set(STATES)):
            raise InputError(f"{table.name}: state {printable(wrong_states[0][:40])!r}; one of {', '.join(STATES)}")
        if np.isinf(rows["value"].to_numpy(zero_copy_only=False)).any():
            raise InputError(f"{table.name}: a value is infinite; leave it absent (NaN) where there is none")
