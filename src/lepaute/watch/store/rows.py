"""Rows as a store keeps them: of the data frames of callers, checked, and of archives."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt
import pandas
import pyarrow
import pyarrow.compute

from lepaute.errors import InputError, LepauteError
from lepaute.kit.frames import reading_table
from lepaute.kit.node_sets import folded
from lepaute.kit.printable import printable
from lepaute.measure.archive import Archive
from lepaute.measure.archive.metadata import COMPLETE, FAILED, Metadata
from lepaute.watch.store.tables import ARCHIVE_NODES, ARCHIVES, FACTOR_VALUES, STATES, Table

Integers = npt.NDArray[np.int64]


def packed_texts(batches: "Iterable[pyarrow.RecordBatch]", names: Collection[str]) -> "Iterator[pyarrow.RecordBatch]":
    """The same with columns of texts as dictionaries, as far as they are there; raises ArrowInvalid for no UTF-8."""
    pool = pyarrow.system_memory_pool()  # the default one keeps what was let go
    for batch in batches:
        columns = []
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if name in names:
                columns.append(pyarrow.compute.dictionary_encode(column, memory_pool=pool))
                columns[-1].dictionary.validate(full=True)
            else:  # a copy: a column that is kept keeps all of its batch
                columns.append(pyarrow.concat_arrays([column, column.slice(0, 0)], memory_pool=pool))
        yield pyarrow.RecordBatch.from_arrays(columns, names=batch.schema.names)


def packed_frame(rows: pyarrow.Table) -> pandas.DataFrame:
    """The rows with dictionaries (`packed_texts`) as categories, in the order of texts."""
    columns = {}
    for name in rows.column_names:
        column, rows = rows[name], rows.drop_columns([name])  # which are let go one after the other
        if pyarrow.types.is_dictionary(column.type):
            chunks = column.unify_dictionaries().chunks
            names = chunks[0].dictionary.to_pylist() if chunks else []
            order = sorted(range(len(names)), key=names.__getitem__)
            kind = np.min_scalar_type(-max(1, len(names)))
            rank = np.empty(len(names), kind)
            rank[order] = np.arange(len(names))
            codes = [rank[chunk.indices.to_numpy(zero_copy_only=False)] for chunk in chunks] or [np.zeros(0, kind)]
            categories = pandas.Index([names[at] for at in order], dtype="str")
            columns[name] = pandas.Categorical.from_codes(np.concatenate(codes), categories=categories)
        else:
            columns[name] = column.to_pandas() if pyarrow.types.is_string(column.type) else column.to_numpy()
    return pandas.DataFrame(columns, copy=False)


def row_keys(frame: pandas.DataFrame, columns: Sequence[str]) -> Integers:
    """A number for each row: in the order of these columns, and the same where all of them are; shape (rows,).

    Columns are texts, categories in the order of texts, or integers; the number is -1 if a text is absent.
    """
    key, size = np.zeros(len(frame), np.int64), 1
    absent = np.zeros(len(frame), np.bool_)
    for name in columns:
        values = frame[name]
        if isinstance(values.dtype, pandas.CategoricalDtype) and values.cat.categories.is_monotonic_increasing:
            codes, count = values.cat.codes.to_numpy(), len(values.cat.categories)
        elif values.dtype.kind == "i":
            least = int(values.min()) if len(values) else 0
            codes = values.to_numpy() - least
            count = int(codes.max(initial=0)) + 1
        else:
            codes, names = pandas.factorize(values, sort=True)
            count = len(names)
        absent |= codes < 0
        if count <= 1:
            continue
        if size * count > 2**62:  # numbers without gaps
            key, size = np.unique(key, return_inverse=True)[1], len(frame)
        key *= count
        key += codes
        size *= count
    key[absent] = -1
    return key


_FIRST_SECOND, _LAST_SECOND = -62_135_596_800.0, 253_402_300_800.0  # the years 1 to 9999
#: Where an archive keeps its measurements as tables.
_OBSERVATIONS, _PARQUET = "observations/", ".parquet"
#: Columns that name the node of a row, in the order of preference.
_NODE_COLUMNS = ("node", "host")


def rows_of(table: Table, frame: "pandas.DataFrame") -> pyarrow.Table:
    """The frame's rows with the table's columns and types, in their order; NaN is an absent value.

    Raises InputError for columns or cells that do not fit, absent texts, two rows of one key, and dates that are none.
    """
    missing = [name for name in table.columns if name not in frame]
    unknown = [str(name) for name in frame.columns if name not in table.columns]
    if missing or unknown:
        problems = [f"lack {', '.join(missing)}"] if missing else []
        problems += [f"have {printable(', '.join(unknown)[:200])}, which the store does not know"] if unknown else []
        raise InputError(f"{table.name}: the rows {' and '.join(problems)}")
    columns = []
    for field in table.schema:
        absent = frame[field.name].isna()
        if field.type != pyarrow.float64() and absent.any():
            raise InputError(f"{table.name}: row {int(absent.argmax()) + 1} has no {field.name}")
        try:
            columns.append(_column(frame[field.name], field.type))
        except LepauteError:
            raise
        except (pyarrow.ArrowException, TypeError, ValueError, OverflowError):
            raise InputError(
                f"{table.name}: column {field.name} is not of type {table.columns[field.name]} throughout"
            ) from None
    rows = pyarrow.table(columns, schema=table.schema)
    _check_cells(table, rows)
    # most verdicts differ in more than their basis, whose texts are many
    keys = row_keys(frame, [name for name in table.key if name != "basis"])
    keys.sort()
    twice = frame.duplicated(list(table.key)) if (keys[1:] == keys[:-1]).any() and table.key else None
    if twice is not None and twice.any():
        at = int(twice.argmax())
        shown = ", ".join(f"{name} {frame[name].iloc[at]}" for name in table.key)
        raise InputError(f"{table.name}: row {at + 1} is there twice ({printable(shown[:200])})")
    return rows


def _column(cells: "pandas.Series", type_: pyarrow.DataType) -> pyarrow.Array:
    """The cells as this type, if they are of it: a text is not made of a number, nor a whole number of a fraction."""
    if type_ == pyarrow.string():
        array = pyarrow.Array.from_pandas(cells)
        if isinstance(array, pyarrow.ChunkedArray):
            array = array.combine_chunks()
        if not len(array):
            return pyarrow.array([], type_)
        texts = array.dictionary if pyarrow.types.is_dictionary(array.type) else array
        if not (pyarrow.types.is_string(texts.type) or pyarrow.types.is_large_string(texts.type)):
            raise TypeError
        if pyarrow.compute.any(pyarrow.compute.match_substring(texts, "\0")).as_py():  # no text of PostgreSQL's
            raise ValueError
        return (array if texts is array else array.dictionary_decode()).cast(type_)
    if type_ == pyarrow.bool_():
        return pyarrow.array(cells.astype("bool") if len(cells) == 0 else cells.to_numpy(), type_)
    if pandas.api.types.is_bool_dtype(cells) or (len(cells) and not pandas.api.types.is_numeric_dtype(cells)):
        raise TypeError
    if type_ == pyarrow.float64():
        return pyarrow.array(cells.to_numpy("float64", na_value=np.nan), type_, from_pandas=True)
    numbers = cells.to_numpy()
    if (numbers != (whole := numbers.astype("int64"))).any():
        raise TypeError
    return pyarrow.array(whole, type_)


def _check_cells(table: Table, rows: pyarrow.Table) -> None:
    for name in {"started_s", "date_s"} & set(table.columns) if len(rows) else ():
        dates = rows[name].to_numpy()
        wrong = ~((dates >= _FIRST_SECOND) & (dates < _LAST_SECOND))
        if wrong.any():
            at = int(wrong.argmax())
            raise InputError(
                f"{table.name}: {name} of row {at + 1} is {dates[at]}; give seconds since 1970-01-01 00:00 UTC"
            )
    if table is FACTOR_VALUES:
        if wrong_states := sorted(set(rows["state"].unique().to_pylist()) - set(STATES)):
            raise InputError(f"{table.name}: state {printable(wrong_states[0][:40])!r}; one of {', '.join(STATES)}")
        if np.isinf(rows["value"].to_numpy(zero_copy_only=False)).any():
            raise InputError(f"{table.name}: a value is infinite; leave it absent (NaN) where there is none")


@dataclass(frozen=True, slots=True)
class _RawTable:
    name: str
    rows: "pyarrow.Table"
    node_column: str


@dataclass(frozen=True, slots=True)
class ArchiveRows:
    """The row of an archive, a row for each of its nodes, and its raw tables."""

    id: str
    archive: "pyarrow.Table"
    nodes: "pyarrow.Table"
    raw: tuple[_RawTable, ...]


def archive_rows(archive: Archive, cluster: str, ingested_s: float) -> ArchiveRows:
    """The rows of an archive; raises ArchiveError or InputError if a table of it cannot be read."""
    about = archive.about
    states = node_states(about)
    started_s, ended_s = run_dates(about)
    row = {
        "id": archive.id,
        "cluster": cluster,
        "kind": printable(about.kind),
        "name": printable(about.name),
        "state": about.outcome,
        "cause": printable(about.cause),
        "nodes": folded(states),
        "started_s": started_s,
        "ended_s": ended_s,
        "ingested_s": ingested_s,
        "source": printable(str(archive.path)),
    }
    nodes = [
        {"node": node, "archive": archive.id, "state": state, "cause": cause} for node, (state, cause) in states.items()
    ]
    members = [name for name in archive.members() if name.startswith(_OBSERVATIONS) and name.endswith(_PARQUET)]
    return ArchiveRows(
        archive.id,
        pyarrow.Table.from_pylist([row], ARCHIVES.schema),
        pyarrow.Table.from_pylist(nodes, ARCHIVE_NODES.schema),
        tuple(_raw_table(archive, member) for member in members),
    )


def node_states(about: Metadata) -> dict[str, tuple[str, str]]:
    """What became of each node, and why: absence is an observation too.

    The node at which a run failed has failed, those that dropped out are missing, and what else a failed run ended has
    been aborted; in a run that completed, or went on with what it had, the others are done.
    """
    names = about.nodes or tuple(about.machines) or ((about.host,) if about.host else ())
    others = ("aborted", about.cause) if about.outcome == FAILED else ("done", "")
    states = dict.fromkeys(names, others)
    for lost in about.lost_nodes:
        states[lost.node] = ("missing", lost.why)
    if about.failure.node and about.outcome != COMPLETE:
        states[about.failure.node] = ("failed", about.cause)
    return {printable(node): (state, printable(cause)) for node, (state, cause) in states.items() if node}


def run_dates(about: Metadata) -> tuple[float | None, float | None]:
    """Beginning and end, in seconds since the epoch; None if the archive does not say."""
    times = [(when, phase.duration_s or 0.0) for phase in about.phases if (when := archived_date(phase.start))]
    if not times and (created := archived_date(about.created)):
        times = [(created, 0.0)]
    if not times:
        return None, None
    ends = [when + timedelta(seconds=min(max(duration_s, 0.0), 1e9)) for when, duration_s in times]
    return min(when for when, _ in times).timestamp(), max(ends).timestamp()


def archived_date(text: str) -> datetime | None:
    """A date of an archive's metadata, UTC unless it says otherwise; None for what is not one."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return when if 1900 < when.year < 9000 else None


def _raw_table(archive: Archive, member: str) -> _RawTable:
    frame = archive.table(member)
    node_column = next((name for name in _NODE_COLUMNS if name in frame), "")
    if "archive" in frame:  # the store says which archive a row is from
        name = "archive_number"
        while name in frame:
            name += "_"
        frame = frame.rename(columns={"archive": name})
    with reading_table(f"{archive.path}: member {member}"):
        rows = pyarrow.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    if node_column and rows[node_column].null_count:
        raise InputError(f"{archive.path}: member {member} has rows without a {node_column}")
    return _RawTable(member.removeprefix(_OBSERVATIONS).removesuffix(_PARQUET), rows, node_column)
