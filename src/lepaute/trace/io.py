"""Traces as Parquet files."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lepaute.errors import InputError
from lepaute.kit.files import whole_file
from lepaute.trace.table import FORMAT, KINDS, NUMBERS, TEXTS, Trace, trace_of_columns

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

KEY = b"lepaute-trace"


def write_trace(trace: Trace, path: Path) -> None:
    """Writes the trace; the file appears whole or not at all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays: dict[str, Any] = {"rank": pa.array(trace.rank), "step": pa.array(trace.step)}
    for name, codes, texts in (("kind", trace.kind, KINDS), ("name", trace.name, trace.names)):
        arrays[name] = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(texts, pa.string()))
    for name, _, _ in NUMBERS:
        arrays.setdefault(name, pa.array(getattr(trace, name), from_pandas=False))
    text = json.dumps({**trace.metadata, "format": FORMAT})
    table = pa.table(arrays).replace_schema_metadata({KEY: text.encode()})
    with whole_file(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")


def read_trace(path: Path) -> Trace:
    """Reads a trace.

    Raises InputError in one line for a file that is no Parquet, has no trace in it, or one of another form;
    FileNotFoundError where there is none.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.exists():
        raise InputError(f"{path}: there is no such file; a trace is what `lepaute record -o` writes")
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as problem:
        raise InputError(f"{path}: cannot be read as Parquet ({_first_line(problem)}); is it a trace?") from None
    metadata = _metadata(path, table.schema.metadata or {})
    columns: dict[str, NDArray[Any]] = {}
    for name, kind, _ in NUMBERS:
        if name in table.column_names:
            columns[name] = _numbers(path, table, name, kind)
    columns["kind"], kinds = _codes(path, table, "kind")
    columns["name"], names = _codes(path, table, "name")
    unknown = sorted(set(kinds) - set(KINDS))
    if unknown:
        raise InputError(f"{path}: kind is {unknown[0]!r}; it is kernel, mpi or phase")
    import numpy

    code_of_kind = numpy.array([KINDS.index(kind) for kind in kinds] or [0], dtype="int16")
    columns["kind"] = code_of_kind[columns["kind"]]
    return trace_of_columns(columns, names, metadata, str(path))


def _metadata(path: Path, stored: dict[bytes, bytes]) -> dict[str, Any]:
    if KEY not in stored:
        raise InputError(f"{path}: is a Parquet file without the metadata 'lepaute-trace'; it holds no trace of ours")
    try:
        found = json.loads(stored[KEY])
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InputError(f"{path}: its metadata 'lepaute-trace' is no JSON object")
    if found.get("format") != FORMAT:
        raise InputError(f"{path}: its format is {found.get('format')!r}; this version reads {FORMAT!r}")
    return found


def _numbers(path: Path, table: "pa.Table", name: str, kind: str) -> "NDArray[Any]":
    import pyarrow as pa

    column = table.column(name)
    if column.null_count and not kind.startswith("float"):
        raise InputError(f"{path}: the column {name} has {column.null_count} rows without a value")
    try:
        numbers: NDArray[Any] = column.cast(pa.type_for_alias(kind)).to_numpy()
    except pa.ArrowException:
        raise InputError(f"{path}: the column {name} has the type {column.type}; it is {kind}") from None
    return numbers


def _codes(path: Path, table: "pa.Table", name: str) -> "tuple[NDArray[Any], list[str]]":
    import numpy
    import pyarrow as pa

    if name not in table.column_names:
        raise InputError(
            f"{path}: the column {name} is missing; a trace has {', '.join((*TEXTS, 'rank', 'start_s'))}, ..."
        )
    column = table.column(name)
    if column.null_count:
        raise InputError(f"{path}: the column {name} has {column.null_count} rows without a value")
    try:
        array = column.cast(pa.string()).combine_chunks().dictionary_encode()
    except pa.ArrowException:
        raise InputError(f"{path}: the column {name} has the type {column.type}; it is text") from None
    if isinstance(array, pa.ChunkedArray):  # of a table without rows
        return numpy.zeros(0, dtype="int32"), []
    return array.indices.to_numpy(zero_copy_only=False), array.dictionary.to_pylist()


def _first_line(problem: Exception) -> str:
    lines = str(problem).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(problem).__name__
