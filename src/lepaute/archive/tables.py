"""Untrusted tables: read within bounds of memory; no pickle, no registered type, no index comes from the file."""

import io
from typing import TYPE_CHECKING, Any

from lepaute.errors import ArchiveError
from lepaute.kit.printable import fitted

if TYPE_CHECKING:
    import pandas

#: What the cells of one table may take in memory.
MOST_TABLE_BYTES = 2 * 1024**3
MOST_COLUMNS = 10_000
#: Footers of Parquet files have kilobytes; texts and lists within them may not take more.
_MOST_FOOTER_TEXT_BYTES, _MOST_FOOTER_ITEMS = 16 << 20, 1_000_000
#: How many lines of a CSV are looked at for their width; a later line that is wider is an error of its own.
_LINES_LOOKED_AT = 100


def table_of(name: str, data: bytes) -> "pandas.DataFrame":
    """The data frame in the bytes of a member; raises ArchiveError where there is none or it is out of proportion."""
    import pandas
    import pyarrow

    try:
        if name.endswith(".parquet"):
            return _parquet(name, data)
        if name.endswith(".csv"):
            _refuse_wide(name, data)
            return pandas.read_csv(io.BytesIO(data[_head_size(data) :]))
    # What pyarrow and pandas raise on damaged tables: most derive from ValueError, some from others of these.
    except (
        pyarrow.ArrowException,
        ValueError,
        OSError,
        TypeError,
        LookupError,
        ArithmeticError,
        MemoryError,
    ) as problem:
        raise ArchiveError(f"member {name} is not a table ({fitted(str(problem), 200)})") from None
    raise ArchiveError(f"member {name} is not a table; only .parquet and .csv are")


def _refuse_wide(name: str, data: bytes) -> None:
    if len(data) > MOST_TABLE_BYTES:
        raise ArchiveError(f"member {name} has {len(data)} bytes, more than a table may; extract it instead")
    at, looked_at = _head_size(data), 0
    while at < len(data) and looked_at < _LINES_LOOKED_AT:
        end = data.find(b"\n", at)
        end = len(data) if end < 0 else end
        looked_at += 1
        if data.count(b",", at, end) >= MOST_COLUMNS:
            raise ArchiveError(f"member {name} has more than {MOST_COLUMNS} columns; refuse such an archive")
        at = end + 1


def _head_size(data: bytes) -> int:
    """Of the lines at its beginning that start with #; later ones are cells, and a # inside a line always is."""
    at = 0
    while data[at : at + 1] == b"#":
        end = data.find(b"\n", at)
        at = len(data) if end < 0 else end + 1
    return at


def _parquet(name: str, data: bytes) -> "pandas.DataFrame":
    """The table of a Parquet file, whose cells are counted before they are made.

    Encodings can repeat one long text in every row at no cost in the file: texts are read as a dictionary of those
    that differ, and spelt out only when the sum is known.
    """
    import pyarrow
    import pyarrow.parquet

    limits: dict[str, Any] = {
        "thrift_string_size_limit": _MOST_FOOTER_TEXT_BYTES,
        "thrift_container_size_limit": _MOST_FOOTER_ITEMS,
    }
    file = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(data), **limits)
    schema = file.schema_arrow
    _refuse_schema(name, schema, file.metadata)
    texts = [field.name for field in schema if _is_text(field.type)]
    if texts:
        file = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(data), read_dictionary=texts, **limits)
    table = file.read(use_threads=False)
    _refuse_bytes(name, sum(_spelt_out_bytes(table[number]) for number in range(table.num_columns)))
    for number, field in enumerate(schema):
        if table.schema.field(number).type != field.type:
            table = table.set_column(number, field.name, table[number].cast(field.type))
    frame: pandas.DataFrame = table.replace_schema_metadata(None).to_pandas()
    return frame


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind))


def _refuse_schema(name: str, schema: Any, metadata: Any) -> None:
    """Flat columns of plain types, few enough, whose declared sizes are in bounds."""
    import pyarrow
    from pyarrow import types

    if len(schema) > MOST_COLUMNS or len(set(schema.names)) != len(schema):
        raise ArchiveError(
            f"member {name} has more than {MOST_COLUMNS} columns or two of one name; refuse such a table"
        )
    width_bytes = 0
    for field in schema:
        kind = field.type.value_type if types.is_dictionary(field.type) else field.type
        if types.is_nested(kind) or isinstance(kind, pyarrow.BaseExtensionType) or types.is_dictionary(kind):
            raise ArchiveError(f"member {name} has a column of type {fitted(str(kind), 60)}; only plain ones are read")
        width_bytes += 8 if _is_text(kind) or not hasattr(kind, "bit_width") else max(8, _bit_width(kind) // 8)
    _refuse_bytes(name, metadata.num_rows * width_bytes)
    packed = (metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups))
    _refuse_bytes(name, sum(packed))


def _bit_width(kind: Any) -> int:
    try:
        return int(kind.bit_width)
    except ValueError:  # of variable width
        return 64


def _spelt_out_bytes(column: Any) -> int:
    """Bytes of a column's texts, each row counted; of other columns what they take."""
    from pyarrow import compute, types

    if not (types.is_dictionary(column.type) and _is_text(column.type.value_type)):
        return int(column.nbytes)
    total = 0
    for chunk in column.chunks:
        lengths = compute.binary_length(chunk.dictionary)
        total += int(compute.sum(compute.cast(lengths.take(chunk.indices), "int64")).as_py() or 0)
    return total


def _refuse_bytes(name: str, size_bytes: int) -> None:
    if not 0 <= size_bytes <= MOST_TABLE_BYTES:
        raise ArchiveError(
            f"member {name} would take {size_bytes} bytes as a table; at most {MOST_TABLE_BYTES} are read"
        )
