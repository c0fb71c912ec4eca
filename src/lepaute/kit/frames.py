"""Tables: files of CSV, frames of pandas whose columns have declared types, whatever values happen to occur, and
Parquet files of strangers: what their cells would take in memory is bounded before they are read."""

import csv
import io
import types
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

from lepaute.errors import InputError, LepauteError
from lepaute.kit.documents import read_text
from lepaute.kit.later import later, pandas

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.parquet
    from pyarrow import parquet
else:
    pyarrow = later("pyarrow")
    parquet = later("pyarrow.parquet")

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


MAX_COLUMNS = 10_000
#: Footers of Parquet files have kilobytes; texts and lists within them may not take more.
_MAX_FOOTER_TEXT_BYTES, _MAX_FOOTER_ITEMS = 16 << 20, 1_000_000


@contextmanager
def reading_table(name: str) -> Iterator[None]:
    """Turns what pyarrow and pandas raise on damaged tables into an InputError that begins with `name`."""
    try:
        yield
    # Most derive from ValueError, some from others of these.
    except LepauteError:
        raise
    except (
        pyarrow.ArrowException,
        ValueError,
        OSError,
        TypeError,
        LookupError,
        ArithmeticError,
        MemoryError,
    ) as problem:
        lines = str(problem).strip().splitlines() or [type(problem).__name__]
        raise InputError(f"{name}: is not a readable table ({lines[0][:200].rstrip('.')})") from None


def open_parquet(
    source: Path | bytes, name: str, *, most_bytes: int, columns: Collection[str] | None = None
) -> "pyarrow.parquet.ParquetFile":
    """A Parquet file whose cells are counted before they are made; texts are read as a dictionary of those that differ.

    Encodings can repeat one value in millions of rows, and one long text in every row, at no cost in the file.
    columns: those that will be read; None: all
    Raises InputError, one line, for what is no Parquet, has nested columns, or takes more than `most_bytes`.
    """
    limits: dict[str, Any] = {
        "thrift_string_size_limit": _MAX_FOOTER_TEXT_BYTES,
        "thrift_container_size_limit": _MAX_FOOTER_ITEMS,
    }

    def opened(**more: Any) -> "pyarrow.parquet.ParquetFile":
        return parquet.ParquetFile(
            pyarrow.BufferReader(source) if isinstance(source, bytes) else source, **limits, **more
        )

    with reading_table(name):
        file = opened()
        schema = file.schema_arrow
    if len(schema) > MAX_COLUMNS or len(set(schema.names)) != len(schema):
        raise InputError(
            f"{name}: has more than {MAX_COLUMNS} columns, or two of the same name; the file is not a table of Lepaute"
        )
    chosen = [field for field in schema if columns is None or field.name in columns]
    refuse_bytes(name, file.metadata.num_rows * sum(_width_bytes(name, field.type) for field in chosen), most_bytes)
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    refuse_bytes(name, sum(group.total_byte_size for group in groups), most_bytes)
    if file.metadata.num_rows != sum(group.num_rows for group in groups):
        raise InputError(f"{name}: its row groups do not have the declared number of rows; the file is damaged")
    texts = [field.name for field in chosen if is_text(field.type)]
    with reading_table(name):
        return opened(read_dictionary=texts) if texts else file


def refuse_bytes(name: str, size_bytes: int, most_bytes: int) -> None:
    """Raises InputError if a table would take too much memory."""
    if not 0 <= size_bytes <= most_bytes:
        raise InputError(f"{name}: would take {size_bytes} bytes as a table; at most {most_bytes} are read")


def is_text(arrow_type: Any) -> bool:
    """Whether a type of Arrow is one of texts."""
    return bool(
        pyarrow.types.is_string(arrow_type)
        or pyarrow.types.is_large_string(arrow_type)
        or pyarrow.types.is_binary(arrow_type)
    )


def _width_bytes(name: str, given: Any) -> int:
    """Of a cell; raises InputError for a type that is not plain."""
    arrow_type = given.value_type if pyarrow.types.is_dictionary(given) else given
    if (
        pyarrow.types.is_nested(arrow_type)
        or isinstance(arrow_type, pyarrow.BaseExtensionType)
        or pyarrow.types.is_dictionary(arrow_type)
    ):
        raise InputError(f"{name}: has a column of type {str(arrow_type)[:60]!r}; only plain types are read")
    if is_text(arrow_type):
        return 8
    try:
        return max(8, int(arrow_type.bit_width) // 8)
    except (ValueError, AttributeError):  # of variable width
        return 8
