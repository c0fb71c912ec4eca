"""Tables: files of CSV, and frames of pandas whose columns have declared types, whatever values happen to occur."""

import csv
import io
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from lepaute.errors import InputError
from lepaute.kit.documents import read_text
from lepaute.kit.later import pandas

_DTYPES = {bool: "bool", int: "int64", float: "float64", str: "string"}
_WITH_GAPS = {bool: "boolean", int: "Int64", float: "float64", str: "string"}


def read_csv(source: Any, **options: Any) -> "pandas.DataFrame":
    """As pandas.read_csv, with each number the nearest double also in pandas 3.0, which misses it in every third."""
    if pandas.__version__.startswith("3.0."):
        options["float_precision"] = "round_trip"  # deprecated since 3.1
    frame: pandas.DataFrame = pandas.read_csv(source, **options)
    return frame


@contextmanager
def csv_reader(path: Path, what: str, most_bytes: int) -> "Iterator[csv.DictReader[str]]":
    """The rows of a user's file by the names of its columns; missing cells are None, surplus ones are under "".

    Raises InputError, with file and line, for what is not CSV, and for an InputError about a row.
    """
    text = read_text(path, what, most_bytes).removeprefix("\ufeff")
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True, restval=None, restkey="")
    try:
        yield reader
    except csv.Error as problem:
        raise InputError(f"{path} is not a CSV file: {problem}") from None
    except InputError as problem:
        raise InputError(f"{path}:{max(1, reader.line_num)}: {problem}") from None


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """The lines of a file; floats so that they come back the same."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def frame_of(rows: Iterable[Mapping[str, Any]], kinds: Mapping[str, Any]) -> "pandas.DataFrame":
    """A row for each mapping, with the columns of `kinds` and no others; what a row lacks is missing.

    kinds : name of the column -> dtype of pandas, or annotation: bool, int, float and str, Literal, or one of them or
        None; lists and tuples are texts, anything else is an object
    """
    return pandas.DataFrame(
        [{name: row.get(name) for name in kinds} for row in rows], columns=list(kinds), dtype=object
    ).astype({name: _dtype_of(kind) for name, kind in kinds.items()})


def _dtype_of(kind: Any) -> str:
    """The dtype of a column whose values are annotated so."""
    if isinstance(kind, str):
        return kind
    plain, gaps = kind, False
    if get_origin(kind) in (Union, types.UnionType):
        (plain, *more) = (arg for arg in get_args(kind) if arg is not type(None))
        gaps = type(None) in get_args(kind)
        if more:
            return "object"
    if get_origin(plain) in (Literal, tuple, list) or (isinstance(plain, type) and issubclass(plain, tuple | list)):
        plain = str
    return (_WITH_GAPS if gaps else _DTYPES).get(plain, "object")
