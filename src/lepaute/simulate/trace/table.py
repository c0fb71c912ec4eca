"""The trace as a value: a table with a row for each call, held as columns, and kept in Parquet files."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy
from numpy import typing as npt

from lepaute.errors import InputError
from lepaute.kit.documents import read_json, unpacked
from lepaute.kit.files import whole_file
from lepaute.kit.frames import is_text, open_parquet, reading_table, refuse_bytes
from lepaute.kit.json_values import from_json
from lepaute.kit.later import later, pandas
from lepaute.kit.numbers import path_of
from lepaute.kit.text import significant

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
else:
    pa = later("pyarrow")
    pq = later("pyarrow.parquet")

FORMAT = "lepaute-trace/1"
#: What is read, in messages; the first is `FORMAT`.
FORMATS_TEXT = "Parquet of Lepaute, SMPI's -trace (Paje) and -trace-ti, OTF2, GOAL, Paraver's .prv"
#: No simulation has more.
MAX_RANKS = 1 << 22
KINDS = ("kernel", "mpi", "phase")
KERNEL, MPI, PHASE = range(3)

#: Where the time of a rank goes. "late" is the other side's: a receive before its send, a blocking send before its
#: receive, a collective operation before the others came. "own_code" is the program's outside of all calls, "no_core"
#: what it waited for one meanwhile; "other" is what nothing accounts for, such as waiting for the end.
CATEGORIES = ("compute", "overhead", "late", "transfer", "contention", "probe", "own_code", "no_core", "other")

#: Column, type, and the value where it means nothing. kind and name are stored as text, held as codes.
NUMBERS = (
    ("rank", "int32", None),
    ("step", "int32", -1),
    ("start_s", "float64", None),
    ("duration_s", "float64", None),
    ("m", "float64", 0.0),
    ("n", "float64", 0.0),
    ("k", "float64", 0.0),
    ("size_bytes", "float64", 0.0),
    ("peer", "int32", -1),
    ("tag", "int64", -1),
    ("comm", "int32", -1),
    ("completion", "int32", -1),
    ("thread", "int32", 0),
    ("site", "int32", -1),
    ("late_s", "float64", float("nan")),
    ("transfer_s", "float64", float("nan")),
    ("contention_s", "float64", float("nan")),
)
TEXTS = ("kind", "name")
#: The peer of calls with MPI_PROC_NULL: they move nothing.
NOBODY = -2
#: The kernel of which only the passing of time is known: the program's own code.
COMPUTING = "computing"
#: Parts of it that a recording tells: the rank had no core, or wanted none.
WAITING, SLEEPING = "waiting_for_a_core", "sleeping"
BETWEEN_CALLS = frozenset((COMPUTING, WAITING, SLEEPING))
#: Kernels in whose time nothing was recorded: it is neither computing nor the program's own code.
FLUSH, NOT_MEASURED = "buffer flush", "measurement off"
GAPS = frozenset((FLUSH, NOT_MEASURED))
#: No date is later, and no size larger: both are written in nanoseconds and bytes.
MAX_S, MAX_SIZE = 1e9, 1e18


@dataclass(frozen=True, slots=True)
class Trace:
    """Calls in the order of rank, then start, phases (the longer first) before calls; columns have the same length.

    kind, name        : codes into KINDS and names
    step              : number of the panel, -1 if there is none
    start_s           : since the start of the timed region
    m, n, k           : of kernels, 0 elsewhere; size_bytes of MPI calls, 0 elsewhere. A probe that found nothing may
                        stand for n successive ones, and a test for those with m nanoseconds between them
    peer, tag         : -1 if there is none; peer NOBODY for MPI_PROC_NULL
    comm              : the communicator of a message or a collective operation, the same number on all members: 0
                        MPI_COMM_WORLD (of an emulation: all ranks), 1, 2, ... others; -1 if that is not known
    completion        : the same number within a rank on a request and on the call that completed it, -1 elsewhere
    thread            : of the rank, in the order of their first calls, from 0
    site              : where in the program a recorded call stands: an index into sites, -1 if that is not known
    late_s, transfer_s, contention_s : parts of the duration of an MPI call, NaN if they are not known
    metadata          : source, application, parameters, platform, seed, ranks, ...
    """

    kind: npt.NDArray[Any]
    name: npt.NDArray[Any]
    names: tuple[str, ...]
    rank: npt.NDArray[Any]
    step: npt.NDArray[Any]
    start_s: npt.NDArray[Any]
    duration_s: npt.NDArray[Any]
    m: npt.NDArray[Any]
    n: npt.NDArray[Any]
    k: npt.NDArray[Any]
    size_bytes: npt.NDArray[Any]
    peer: npt.NDArray[Any]
    tag: npt.NDArray[Any]
    comm: npt.NDArray[Any]
    completion: npt.NDArray[Any]
    thread: npt.NDArray[Any]
    site: npt.NDArray[Any]
    late_s: npt.NDArray[Any]
    transfer_s: npt.NDArray[Any]
    contention_s: npt.NDArray[Any]
    metadata: Mapping[str, Any]

    def __len__(self) -> int:
        return len(self.rank)

    def __repr__(self) -> str:
        ends = f", {significant(float(self.end_s.max()))} s" if len(self) else ""
        return f"<Trace: {len(self)} calls of {len(self.ranks)} ranks{ends}>"

    def _repr_html_(self) -> str:
        shown = self.where(numpy.arange(min(10, len(self)))).to_frame().to_html(index=False)
        return f"<div><b>{escape(repr(self)[1:-1])}</b>{shown}</div>"

    def to_frame(self) -> "pandas.DataFrame":
        """A row a call, with the columns of the file: kind and name as categories, all others numbers."""
        texts = {
            "kind": pandas.Categorical.from_codes(self.kind.astype("int64"), categories=pandas.Index(KINDS)),
            "name": pandas.Categorical.from_codes(self.name.astype("int64"), categories=pandas.Index(self.names)),
        }
        return pandas.DataFrame({**texts, **{name: getattr(self, name) for name, _, _ in NUMBERS}})

    @property
    def end_s(self) -> npt.NDArray[Any]:
        """When each call ended."""
        ends: npt.NDArray[Any] = self.start_s + self.duration_s
        return ends

    @property
    def ranks(self) -> list[int]:
        """The ranks that have rows, in order."""
        return [int(rank) for rank in numpy.unique(self.rank)]

    @property
    def is_recording(self) -> bool:
        """Whether a real program ran."""
        return self.metadata.get("source") == "recording"

    def named(self, names: Iterable[str] | str) -> npt.NDArray[Any]:
        """Which rows have one of these names, or this name; shape (rows,), bool."""
        chosen = {names} if isinstance(names, str) else set(names)
        is_wanted = numpy.array([name in chosen for name in self.names] or [False])
        return is_wanted[self.name] if len(self) else numpy.zeros(0, dtype=bool)

    def of(self, kind: int) -> npt.NDArray[Any]:
        """Which rows are kernels (KERNEL), calls of MPI, or phases (PHASE); shape (rows,), bool."""
        result: npt.NDArray[Any] = self.kind == kind
        return result

    def where(self, mask: npt.NDArray[Any]) -> "Trace":
        """The rows of a mask (or of indices), in their order."""
        columns = {name: getattr(self, name)[mask] for name in (*TEXTS, *(column for column, _, _ in NUMBERS))}
        return replace(self, **columns)

    def between(self, low_s: float, high_s: float) -> "Trace":
        """The rows that overlap [low_s, high_s]."""
        return self.where((self.end_s >= low_s) & (self.start_s <= high_s))


def caveats_of(metadata: Mapping[str, Any]) -> list[str]:
    """What to bear in mind of a trace: that its run was cut short, and had no cores to itself, come first."""
    first = [str(metadata[name]) for name in ("ended", "shared") if name in metadata]
    return [*first, *map(str, metadata.get("warnings") or ())]


def trace_of_columns(
    columns: Mapping[str, npt.NDArray[Any]], names: Sequence[str], metadata: Mapping[str, Any], where: str = "trace"
) -> Trace:
    """A trace from arrays, put in order.

    columns: rank, start_s, duration_s, kind (codes into KINDS) and name (codes into names); a column of NUMBERS that is
             missing gets the value that means nothing
    Raises InputError for a column that is missing, too short, or holds what cannot be.
    """
    rows = len(columns["rank"]) if "rank" in columns else 0
    made: dict[str, npt.NDArray[Any]] = {}
    for name, kind, default in (*NUMBERS, ("kind", "int16", None), ("name", "int32", None)):
        if name in columns:
            made[name] = numpy.ascontiguousarray(columns[name], dtype=kind)
        elif default is None:
            raise InputError(f"{where}: the required column {name} is missing")
        else:
            made[name] = numpy.full(rows, default, dtype=kind)
        if len(made[name]) != rows:
            raise InputError(f"{where}: the column {name} has {len(made[name])} rows, rank has {rows}")
    _check(made, len(names), len(metadata.get("sites") or ()), where)
    # Phases come before what they hold; calls that begin together stay as given: a simulation's may take no time.
    phase = made["kind"] == PHASE
    order = numpy.lexsort((numpy.where(phase, -1.0 - made["duration_s"], 0.0), made["start_s"], made["rank"]))
    sorted_columns = {name: made.pop(name)[order] for name in list(made)}  # never two copies of all
    return Trace(**sorted_columns, names=tuple(names), metadata=dict(metadata))


def with_rows(
    trace: Trace,
    parts: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    metadata: Mapping[str, Any],
    where: str = "trace",
) -> Trace:
    """The trace with the rows of further columns, as trace_of_columns() takes them; `names` begin with its own.

    Where all rows of a part have the same value, it may stand for the column.
    """
    columns: dict[str, npt.NDArray[Any]] = {}
    for column, default in (("kind", None), ("name", None), *((name, default) for name, _, default in NUMBERS)):
        more = [numpy.broadcast_to(part.get(column, default), len(part["start_s"])) for part in parts]
        columns[column] = numpy.concatenate((getattr(trace, column), *more))
    return trace_of_columns(columns, names, metadata, where)


def _check(columns: Mapping[str, npt.NDArray[Any]], names: int, sites: int, where: str) -> None:
    def refuse(bad: npt.NDArray[Any], column: str, expected: str) -> None:
        if bad.any():
            row = int(numpy.argmax(bad))
            raise InputError(f"{where}: {column} of row {row} is {columns[column][row]}; it is {expected}")

    refuse(columns["rank"] < 0, "rank", "at least 0")
    refuse(~(numpy.abs(columns["start_s"]) < MAX_S), "start_s", "a number of seconds")
    refuse(~((columns["duration_s"] >= 0) & (columns["duration_s"] < MAX_S)), "duration_s", "at least 0, and seconds")
    for name in ("m", "n", "k", "size_bytes"):
        refuse(~(numpy.abs(columns[name]) < MAX_SIZE), name, "a number")
    refuse((columns["kind"] < 0) | (columns["kind"] >= len(KINDS)), "kind", "kernel, mpi or phase")
    refuse((columns["site"] < -1) | (columns["site"] >= sites), "site", "the place of one of sites, or -1")
    refuse((columns["name"] < 0) | (columns["name"] >= names), "name", "one of the names")


KEY = b"lepaute-trace"
#: What the columns of a trace may take in memory: some ten million calls.
MAX_TRACE_BYTES = 1 << 30
#: All columns of one call.
ROW_BYTES = 114


def write_trace(trace: Trace, path: str | Path) -> None:
    """Writes the trace; the file appears whole or not at all."""
    arrays: dict[str, Any] = {"rank": pa.array(trace.rank), "step": pa.array(trace.step)}
    for name, codes, texts in (("kind", trace.kind, KINDS), ("name", trace.name, trace.names)):
        arrays[name] = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(texts, pa.string()))
    for name in (name for name, _, _ in NUMBERS if name != "site" or trace.metadata.get("sites")):
        arrays.setdefault(name, pa.array(getattr(trace, name), from_pandas=False))
    table = pa.table(arrays).replace_schema_metadata({KEY: json.dumps({**trace.metadata, "format": FORMAT}).encode()})
    with whole_file(path_of(path, "the trace")) as temporary:
        pq.write_table(table, temporary, compression="zstd")


def open_trace(path: str | Path, most_bytes: int) -> "tuple[pq.ParquetFile, Path, dict[str, Any]]":
    """The file of a trace, and its metadata; raises InputError, also where its columns take more memory than that."""
    path = path_of(path, "the trace")
    if not path.exists():
        raise InputError(f"{path}: no such file; `lepaute record -o` writes traces")
    if not path.is_dir():
        with unpacked(path, "a trace") as content, path.open("rb") as stored:
            is_parquet = content.read(4) == b"PAR1"
            if is_parquet and stored.read(4) != b"PAR1":
                raise InputError(f"{path}: is compressed; a Parquet file is so inside: unpack it")
    if path.is_dir() or not is_parquet:
        raise InputError(f"{path}: of no format that is read: {FORMATS_TEXT}")
    file = open_parquet(path, str(path), most_bytes=most_bytes, columns={*(name for name, _, _ in NUMBERS), *TEXTS})
    refuse_bytes(str(path), file.metadata.num_rows * ROW_BYTES, most_bytes)
    return file, path, _metadata(path, file.schema_arrow.metadata or {})


def read_columns(
    path: Path, file: "pq.ParquetFile", names: dict[str, int], read: "Callable[[str], pa.ChunkedArray]"
) -> dict[str, npt.NDArray[Any]]:
    """Columns as trace_of_columns() takes them; raises InputError for any that is not one of a trace."""

    def column(name: str) -> "pa.ChunkedArray":
        with reading_table(str(path)):
            return read(name)

    columns: dict[str, npt.NDArray[Any]] = {}
    for name, kind, _ in NUMBERS:
        if name in file.schema_arrow.names:
            columns[name] = _numbers(path, column(name), name, kind)
    for name in TEXTS:
        if name not in file.schema_arrow.names:
            raise InputError(
                f"{path}: the column {name} is missing; a trace has {', '.join((*TEXTS, 'rank', 'start_s'))}, ..."
            )
    kinds: dict[str, int] = {}
    columns["kind"] = _codes(path, column("kind"), "kind", kinds)
    columns["name"] = _codes(path, column("name"), "name", names)
    unknown = sorted(set(kinds) - set(KINDS))
    if unknown:
        raise InputError(f"{path}: kind is {unknown[0]!r}; it is kernel, mpi or phase")
    columns["kind"] = numpy.array([KINDS.index(kind) for kind in kinds] or [0], dtype="int16")[columns["kind"]]
    return columns


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


def _numbers(path: Path, column: "pa.ChunkedArray", name: str, kind: str) -> npt.NDArray[Any]:
    if column.null_count and not kind.startswith("float"):
        raise InputError(f"{path}: the column {name} has {column.null_count} rows with a missing value")
    try:
        numbers: npt.NDArray[Any] = column.cast(pa.type_for_alias(kind)).to_numpy()
    except pa.ArrowException:
        raise InputError(f"{path}: the column {name} has the type {_type_of(column)}; it is {kind}") from None
    return numbers


def _type_of(column: "pa.ChunkedArray") -> str:
    kind = column.type
    return str(getattr(kind, "value_type", kind))  # texts are read as dictionaries


def _codes(path: Path, column: "pa.ChunkedArray", name: str, names: dict[str, int]) -> npt.NDArray[Any]:
    """Codes of texts, which are added to `names` in the order in which they first come; texts are not spelt out."""
    if column.null_count:
        raise InputError(f"{path}: the column {name} has {column.null_count} rows with a missing value")
    if not (pa.types.is_dictionary(column.type) and is_text(column.type.value_type)):
        raise InputError(f"{path}: the column {name} has the type {_type_of(column)}; it is text")
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
    return numpy.concatenate(parts) if parts else numpy.zeros(0, dtype="int32")


@dataclass(frozen=True, slots=True)
class TraceMetadata:
    """The members that something reads; all others are kept as they are.

    nodes    : of each rank, the index of its node: in hosts, and from first_node on in the platform
    begins_s, ends_s : of each rank, when what was recorded of it began and ended
    sites    : of each number of the column site, the functions under way, the innermost first
    recorder_s : what recording a call has added to the time between it and the next one; a test that found nothing
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
    recorder_s: tuple[float, ...] | None = None
    sites: tuple[str, ...] | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


def check_metadata(document: object, where: str) -> None:
    """Raises InputError, naming the member, where the metadata of a trace are not what they must be."""
    metadata = from_json(TraceMetadata, document, where)
    numbers = (metadata.ranks, metadata.first_node, *(metadata.nodes or ()))
    if any(number is not None and not 0 <= number < 2**31 for number in numbers):
        raise InputError(f"{where}: ranks or nodes holds an invalid number; the file is damaged")
    if (metadata.ranks or 0) > MAX_RANKS:
        raise InputError(f"{where}: {metadata.ranks} ranks; at most {MAX_RANKS} are simulated")
