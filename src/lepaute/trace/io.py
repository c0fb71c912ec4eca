"""Traces as Parquet files."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lepaute.errors import InputError
from lepaute.kit.documents import read_json
from lepaute.kit.files import whole_file
from lepaute.kit.json_values import from_json
from lepaute.kit.numbers import path_of
from lepaute.kit.parquet import is_text, open_parquet, reading_table, refuse_bytes
from lepaute.trace.table import FORMAT, KINDS, NUMBERS, TEXTS, Trace, trace_of_columns

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

KEY = b"lepaute-trace"
#: What the columns of a trace may take in memory: some ten million calls.
MOST_TRACE_BYTES = 1 << 30
#: All columns of one call.
_ROW_BYTES = 106


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


def read_trace(path: str | Path) -> Trace:
    """Reads a trace.

    Raises InputError in one line for a file that is no Parquet, has no trace in it, or one of another form;
    FileNotFoundError where there is none.
    """
    path = path_of(path, "the trace")
    if not path.exists():
        raise InputError(f"{path}: no such file; `lepaute record -o` writes traces")
    known = {*(name for name, _, _ in NUMBERS), *TEXTS}
    file = open_parquet(path, str(path), most_bytes=MOST_TRACE_BYTES, columns=known)
    refuse_bytes(str(path), file.metadata.num_rows * _ROW_BYTES, MOST_TRACE_BYTES)
    metadata = _metadata(path, file.schema_arrow.metadata or {})

    def column(name: str) -> "pa.ChunkedArray":
        with reading_table(str(path)):
            return file.read(columns=[name]).column(0)

    columns: dict[str, NDArray[Any]] = {}
    for name, kind, _ in NUMBERS:
        if name in file.schema_arrow.names:
            columns[name] = _numbers(path, column(name), name, kind)
    for name in TEXTS:
        if name not in file.schema_arrow.names:
            raise InputError(
                f"{path}: the column {name} is missing; a trace has {', '.join((*TEXTS, 'rank', 'start_s'))}, ..."
            )
    columns["kind"], kinds = _codes(path, column("kind"), "kind")
    columns["name"], names = _codes(path, column("name"), "name")
    unknown = sorted(set(kinds) - set(KINDS))
    if unknown:
        raise InputError(f"{path}: kind is {unknown[0]!r}; it is kernel, mpi or phase")
    import numpy

    code_of_kind = numpy.array([KINDS.index(kind) for kind in kinds] or [0], dtype="int16")
    columns["kind"] = code_of_kind[columns["kind"]]
    return trace_of_columns(columns, names, metadata, str(path))


def _metadata(path: Path, stored: dict[bytes, bytes]) -> dict[str, Any]:
    if KEY not in stored:
        raise InputError(f"{path}: not a Lepaute trace: the Parquet metadata 'lepaute-trace' is missing")
    where = f"{path}: its metadata 'lepaute-trace'"
    metadata = read_json(stored[KEY], where)
    if not isinstance(metadata, dict):
        raise InputError(f"{path}: its metadata 'lepaute-trace' is not a JSON object")
    if metadata.get("format") != FORMAT:
        raise InputError(f"{path}: its format is {metadata.get('format')!r:.60}; this version reads {FORMAT!r}")
    check_metadata(metadata, where)
    return metadata


def _numbers(path: Path, column: "pa.ChunkedArray", name: str, kind: str) -> "NDArray[Any]":
    import pyarrow as pa

    if column.null_count and not kind.startswith("float"):
        raise InputError(f"{path}: the column {name} has {column.null_count} rows with a missing value")
    try:
        numbers: NDArray[Any] = column.cast(pa.type_for_alias(kind)).to_numpy()
    except pa.ArrowException:
        raise InputError(f"{path}: the column {name} has the type {_type_of(column)}; it is {kind}") from None
    return numbers


def _type_of(column: "pa.ChunkedArray") -> str:
    kind = column.type
    return str(getattr(kind, "value_type", kind))  # texts are read as dictionaries


def _codes(path: Path, column: "pa.ChunkedArray", name: str) -> "tuple[NDArray[Any], list[str]]":
    """Codes and texts, in the order in which they first come; texts are not spelt out."""
    import numpy
    import pyarrow as pa

    if column.null_count:
        raise InputError(f"{path}: the column {name} has {column.null_count} rows with a missing value")
    if not (pa.types.is_dictionary(column.type) and is_text(column.type.value_type)):
        raise InputError(f"{path}: the column {name} has the type {_type_of(column)}; it is text")
    names: dict[str, int] = {}
    parts = []
    for chunk in column.chunks:
        codes = chunk.indices.to_numpy(zero_copy_only=False)
        with reading_table(str(path)):  # bytes that are no UTF-8
            texts = chunk.dictionary.to_pylist()
        used, first = numpy.unique(codes, return_index=True)
        places = numpy.zeros(max(len(texts), 1), dtype="int32")
        for code in used[numpy.argsort(first)]:
            if not 0 <= code < len(texts) or not isinstance(texts[code], str):
                raise InputError(f"{path}: the column {name} has rows with a missing text; the file is damaged")
            places[code] = names.setdefault(texts[code], len(names))
        parts.append(places[codes])
    return (numpy.concatenate(parts) if parts else numpy.zeros(0, dtype="int32")), list(names)


@dataclass(frozen=True, slots=True)
class TraceMetadata:
    """The members that something reads; all others are kept as they are.

    nodes    : of each rank, the index of its node: in hosts, and from first_node on in the platform
    begins_s, ends_s : of each rank, when what was recorded of it began and ended
    unsized  : names of calls whose sizes are not known
    """

    source: str | None = None
    application: str | None = None
    platform: str | None = None
    engine: str | None = None
    ranks: int | None = None
    seed: int | None = None
    whole: bool | None = None
    time_s: float | None = None
    resolution_s: float | None = None
    warnings: tuple[str, ...] = ()
    unsized: tuple[str, ...] = ()
    hosts: tuple[str, ...] | None = None
    nodes: tuple[int, ...] | None = None
    first_node: int | None = None
    begins_s: tuple[float, ...] | None = None
    ends_s: tuple[float, ...] | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


def check_metadata(document: object, where: str) -> None:
    """Raises InputError, naming the member, where the metadata of a trace are not what they must be.

    where: the file, for messages
    """
    metadata = from_json(TraceMetadata, document, where)
    numbers = (metadata.ranks, metadata.first_node, *(metadata.nodes or ()))
    if any(number is not None and not 0 <= number < 2**31 for number in numbers):
        raise InputError(f"{where}: ranks or nodes holds an invalid number; the file is damaged")
