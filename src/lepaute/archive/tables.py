"""Untrusted tables: read within bounds of memory; no pickle, no registered type, no index comes from the file."""

import io
from typing import TYPE_CHECKING, Any

from lepaute.errors import ArchiveError, DesignError, InputError
from lepaute.kit.parquet import MOST_COLUMNS, is_text, open_parquet, reading_table, refuse_bytes
from lepaute.kit.printable import fitted

if TYPE_CHECKING:
    import pandas

#: What the cells of one table may take in memory.
MOST_TABLE_BYTES = 2 * 1024**3
#: How many lines of a CSV are looked at for their width; a later line that is wider is an error of its own.
_LINES_LOOKED_AT = 100


def table_of(name: str, data: bytes) -> "pandas.DataFrame":
    """The data frame in the bytes of a member; raises ArchiveError where there is none or it is out of proportion."""

    try:
        with reading_table(f"member {name}"):
            if name.endswith(".parquet"):
                return _parquet(name, data)
            if name.endswith(".csv"):
                _refuse_wide(name, data)
                return _csv(data)
    except InputError as problem:
        raise ArchiveError(fitted(str(problem), 300)) from None
    raise ArchiveError(f"member {name} is not a table; only .parquet and .csv are")


def _csv(data: bytes) -> "pandas.DataFrame":
    """The table of a CSV; of a design with the types that its head declares, whatever cells are empty."""
    import pandas

    size = _head_size(data)
    body, types = io.BytesIO(data[size:]), _declared_types(data[:size])
    if types is None:
        return pandas.read_csv(body)
    return pandas.read_csv(body, dtype=types, keep_default_na=False, na_values=[""])


def _declared_types(head: bytes) -> "dict[str, Any] | None":
    from lepaute.design.columns import DECLARATION, declared

    start = f"#@{DECLARATION}=".encode()
    line = next((line for line in head.splitlines() if line.startswith(start)), None)
    if line is None:
        return None
    try:
        columns = declared(line.removeprefix(start).decode())
    except (DesignError, UnicodeDecodeError):
        return None
    return {column.name: {"int": "Int64", "real": "Float64"}.get(column.type, "string") for column in columns}


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
    """The table of a Parquet file; texts are spelt out only when the sum of their lengths is known."""
    file = open_parquet(data, f"member {name}", most_bytes=MOST_TABLE_BYTES)
    declared = open_parquet(data, f"member {name}", most_bytes=MOST_TABLE_BYTES, columns=()).schema_arrow
    with reading_table(f"member {name}"):
        table = file.read(use_threads=False)
    spelt_out_bytes = sum(_spelt_out_bytes(table[number]) for number in range(table.num_columns))
    refuse_bytes(f"member {name}", spelt_out_bytes, MOST_TABLE_BYTES)
    for number, field in enumerate(declared):
        if table.schema.field(number).type != field.type:
            table = table.set_column(number, field.name, table[number].cast(field.type))
    frame: pandas.DataFrame = table.replace_schema_metadata(None).to_pandas()
    return frame


def _spelt_out_bytes(column: Any) -> int:
    """Bytes of a column's texts, each row counted; of other columns what they take."""
    from pyarrow import compute, types

    if not (types.is_dictionary(column.type) and is_text(column.type.value_type)):
        return int(column.nbytes)
    total = 0
    for chunk in column.chunks:
        lengths = compute.binary_length(chunk.dictionary)
        total += int(compute.sum(compute.cast(lengths.take(chunk.indices), "int64")).as_py() or 0)
    return total
