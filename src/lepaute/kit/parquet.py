"""Parquet files of strangers: what their cells would take in memory is bounded before they are read."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lepaute.errors import InputError, LepauteError
from lepaute.kit.later import later

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.parquet
    from pyarrow import parquet
else:
    pyarrow = later("pyarrow")
    parquet = later("pyarrow.parquet")

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


def is_text(kind: Any) -> bool:
    """Whether a type of Arrow is one of texts."""
    return bool(pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind) or pyarrow.types.is_binary(kind))


def _width_bytes(name: str, given: Any) -> int:
    """Of a cell; raises InputError for a type that is not plain."""
    kind = given.value_type if pyarrow.types.is_dictionary(given) else given
    if (
        pyarrow.types.is_nested(kind)
        or isinstance(kind, pyarrow.BaseExtensionType)
        or pyarrow.types.is_dictionary(kind)
    ):
        raise InputError(f"{name}: has a column of type {str(kind)[:60]!r}; only plain types are read")
    if is_text(kind):
        return 8
    try:
        return max(8, int(kind.bit_width) // 8)
    except (ValueError, AttributeError):  # of variable width
        return 8
