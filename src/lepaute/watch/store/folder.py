"""A store in a folder: Parquet files that never change, an index of those that count, and DuckDB to query them.

    store.json        the index: version, number of changes, files of each table
    lock              held by the process that changes the store (flock)
    unfinished        name of the change under way
    data/CHANGE/      what one change added: a Parquet file a table, and raw tables

A change writes its files into a folder of its own and then replaces the index, which is one rename: readers see the
store before it or after it. What a killed writer left is removed by the next one, which `unfinished` tells. DuckDB
keeps nothing itself: a database of its own could be open in one writing process only.
"""

import contextlib
import json
import os
import re
import shutil
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow
import pyarrow.parquet

from lepaute.errors import EnvironmentProblem, InputError, LepauteError
from lepaute.kit.documents import read_json
from lepaute.kit.files import hold_lock, not_written, sync, write_atomic
from lepaute.kit.frames import open_parquet, reading_table
from lepaute.kit.json_values import from_json
from lepaute.watch.store.backend import Backend, NoStoreError, Parameters, Writer, parquet_rows
from lepaute.watch.store.rows import packed_texts
from lepaute.watch.store.tables import TABLES, VERSION, Table, changed, check_version, migrated

#: Memory of DuckDB in a process; beyond it queries use the disk.
MEMORY_LIMIT = "256MB"
#: So many files of similar size become one, so that a query opens some dozens of them and not one a job.
MERGED_FILES = 16
#: A file of more rows is left as it is: to write it anew takes longer than a query gains by it.
_MAX_MERGED_ROWS = 100_000
#: A query reads whole groups of rows: small enough that a node's are few, and large enough to pack well.
_ROWS_OF_GROUP = 32_768
#: A reader may be overtaken by that many pairs of changes, the second of which removes what the first replaced.
_READ_TRIES = 20
#: What a table may take in memory while it is searched for damage.
_MAX_TABLE_BYTES = 4 << 30
_DAMAGED = "the store is damaged: restore the file, or make the store again from the archives"
#: A path that stays within the folder.
_PLACE = re.compile("data/[A-Za-z0-9_-]+/[A-Za-z0-9_.-]+")
_SQL_TYPES = {"text": "varchar", "integer": "bigint", "real": "double", "flag": "boolean"}


@dataclass(frozen=True, slots=True)
class DataFile:
    """place : path within the store's folder"""

    place: str
    rows: int


@dataclass(frozen=True, slots=True)
class Index:
    """number : how many changes there were;  change : name of the last;  garbage : replaced files, to be removed"""

    version: int = VERSION
    number: int = 0
    change: str = ""
    files: Mapping[str, tuple[DataFile, ...]] = field(default_factory=dict)
    garbage: tuple[str, ...] = ()


def read_index(folder: Path) -> Index:
    """The index as it is now; raises InputError if there is none that this version can read."""
    path = folder / "store.json"
    try:
        content = path.read_bytes()
    except OSError as problem:
        raise InputError(f"{path}: cannot be read ({problem.strerror}); name the folder of a store") from None
    document = read_json(content, str(path))
    if not isinstance(document, dict):
        raise InputError(f"{path}: is not the index of a store")
    check_version(document.get("version"), str(folder))
    index = from_json(Index, document, str(path))
    for place in (*(file.place for files in index.files.values() for file in files), *index.garbage):
        if _PLACE.fullmatch(place) is None or ".." in place:
            raise InputError(f"{path}: {place[:80]!r} is no place of its files; it is damaged")
    return index


def _write_index(folder: Path, index: Index) -> None:
    write_atomic(folder / "store.json", json.dumps(asdict(index), indent=1) + "\n")


@cache
def _database(_process: int) -> "duckdb.DuckDBPyConnection":
    """DuckDB in this process, to which each store has a connection; a fork, which has no threads of it, has its own."""
    database = duckdb.connect(":memory:")
    database.execute(f"set memory_limit = '{MEMORY_LIMIT}'")
    database.execute("set preserve_insertion_order = false")
    database.execute("set autoinstall_known_extensions = false")
    return database


class FolderBackend(Backend):
    """With `create` the folder is made where there is none; a store of an older version becomes one of this version."""

    def __init__(self, folder: Path, *, create: bool) -> None:
        if not create and not (folder / "store.json").exists():
            raise NoStoreError(str(folder))

        self.folder, self.name = folder, str(folder)
        self._busy = threading.RLock()  # a connection serves one thread at a time
        self._shown: dict[str, tuple[DataFile, ...]] = {}
        self._connection = _database(os.getpid()).cursor()
        try:
            self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        self._connection.close()

    def read(self, query: str, parameters: Parameters = (), *, packed: Collection[str] = ()) -> pyarrow.Table:
        with self._busy:
            for _ in range(_READ_TRIES):
                index = read_index(self.folder)
                try:
                    self._show(index, query)
                    return _result(self._connection, query, parameters, packed=packed)
                except duckdb.IOException as problem:
                    lost = problem
                    if read_index(self.folder) == index:
                        break
                except LepauteError:
                    raise
                except (duckdb.Error, ValueError, MemoryError) as problem:  # ValueError: texts that are no UTF-8
                    raise _unreadable(self.folder, index, problem) from None
        raise InputError(f"{self.name}: a file of the store cannot be read ({_one_line(lost)})")

    def state(self, tables: Collection[Table]) -> str:
        files = read_index(self.folder).files
        return repr([(table.name, files.get(table.name, ())) for table in tables])

    def raw(
        self, place: str, node_column: str, nodes: Collection[str] | None, columns: Collection[str] | None
    ) -> pyarrow.Table:
        try:
            return parquet_rows(str(self.folder / place), columns, None if nodes is None else (node_column, nodes))
        except LepauteError:
            raise
        except (OSError, ValueError, pyarrow.ArrowException) as problem:
            raise InputError(f"{self.folder / place}: cannot be read ({_one_line(problem)}); {_DAMAGED}") from None

    @contextmanager
    def writing(self) -> Iterator["_FolderWriter"]:
        with self._busy, self._locked():
            index = read_index(self.folder)
            self._finish_unfinished(index)
            writer = _FolderWriter(self.folder, index, self._connection, partial(self._show, index))
            try:
                yield writer
                writer.commit()
            except BaseException as problem:
                with contextlib.suppress(OSError):
                    self._finish_unfinished(read_index(self.folder))
                if isinstance(problem, duckdb.Error | pyarrow.ArrowException):
                    raise _unreadable(self.folder, index, problem) from None
                raise
            finally:
                self._connection.unregister("staged")

    def _prepare(self) -> None:
        """Makes the store, or brings it to this version."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise InputError(not_written(self.name, problem, "name another folder")) from None
        names = os.listdir(self.folder)
        # Asked for after the names were: another process may be making the store.
        if (self.folder / "store.json").exists():
            if read_index(self.folder).version == VERSION:
                return
        elif any(name != "lock" and not name.startswith(".lepaute-") for name in names):
            raise InputError(f"{self.name}: holds other files and no store; name a folder that is empty or new")
        with self._locked():
            if not (self.folder / "store.json").exists():
                _write_index(self.folder, Index())
            index = read_index(self.folder)
            if index.version != VERSION:
                self._finish_unfinished(index)
                writer = _FolderWriter(self.folder, index, self._connection, partial(self._show, index))
                try:
                    writer.migrate()
                    writer.commit()
                except duckdb.Error as problem:
                    raise _unreadable(self.folder, index, problem) from None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Waits until no other process, nor thread, changes the store; the lock goes with the process."""
        try:
            descriptor = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as problem:
            raise InputError(not_written(self.name, problem, "name a store that you may write to")) from None
        try:
            hold_lock(descriptor, self.name, "keep the store on another one, or in PostgreSQL", wait=True)
            yield
        finally:
            os.close(descriptor)

    def _finish_unfinished(self, index: Index) -> None:
        """Removes what a change left that was cut short; under the lock."""
        marker = self.folder / "unfinished"
        with contextlib.suppress(FileNotFoundError):
            change = marker.read_text()
            if change and change.isalnum() and change != index.change:
                shutil.rmtree(self.folder / "data" / change, ignore_errors=True)
            marker.unlink()

    def _show(self, index: Index, query: str) -> None:
        """Makes those tables of the index that the query names tables of queries."""
        for table in TABLES:
            files = index.files.get(table.name, ())
            if table.name not in query or self._shown.get(table.name) == files:
                continue
            # Of a sound file the casts cost nothing; a damaged one is found out by them.
            columns = ", ".join(f"cast({name} as {_SQL_TYPES[kind]}) as {name}" for name, kind in table.columns.items())
            source = _source(self.folder, table, files)
            self._connection.execute(f"create or replace temp view {table.name} as select {columns} from {source}")
            self._shown[table.name] = files


class _FolderWriter(Writer):
    def __init__(
        self, folder: Path, index: Index, connection: "duckdb.DuckDBPyConnection", show: Callable[[str], None]
    ) -> None:
        """show : makes the tables that a query names tables of the connection"""
        self._folder, self._index, self._connection, self._show = folder, index, connection, show
        self._change = os.urandom(16).hex()
        self._written = 0
        self._files = {name: list(files) for name, files in index.files.items()}
        self._replaced: list[str] = []

    def read(self, query: str, parameters: Parameters = (), *, packed: Collection[str] = ()) -> pyarrow.Table:
        self._show(query)
        return _result(self._connection, query, parameters, packed=packed)

    def stage(self, rows: pyarrow.Table) -> None:
        self._connection.register("staged", rows)

    def append(self, table: Table, rows: pyarrow.Table) -> None:
        if rows.num_rows:
            self._connection.register("appended", rows)
            try:
                self._write(table, "appended", rows.num_rows, as_added=table.as_added)
            finally:
                self._connection.unregister("appended")

    def add_raw(self, label: str, rows: pyarrow.Table, node_column: str) -> str:
        place = self._new_file(f"raw-{label[:16]}")
        ordered = sorted_by(rows, node_column)
        with _disk(self._folder):
            pyarrow.parquet.write_table(ordered, self._folder / place, row_group_size=_ROWS_OF_GROUP)
            sync(self._folder / place)
        return place

    def migrate(self) -> None:
        for table in TABLES:
            files = tuple(self._files.get(table.name, ()))
            if files and changed(table, self._index.version):
                rows = sum(file.rows for file in files)
                query = migrated(table, _source(self._folder, table, files), self._index.version)
                self._replace(table, files, f"({query})", rows)

    def commit(self) -> None:
        """The change happens when the index is replaced."""
        for table in TABLES:
            self._merge(table)
        if not self._written and self._index.version == VERSION:
            return
        # Replaced one change ago: readers that began before that have long ended, or begin again.
        for place in self._index.garbage:
            with contextlib.suppress(OSError):
                (self._folder / place).unlink()
            with contextlib.suppress(OSError):
                (self._folder / place).parent.rmdir()
        with _disk(self._folder):
            if self._written:
                sync(self._folder / "data" / self._change)
                sync(self._folder / "data")
            files = {name: tuple(of_table) for name, of_table in self._files.items()}
            index = Index(VERSION, self._index.number + 1, self._change, files, tuple(self._replaced))
            _write_index(self._folder, index)
        with contextlib.suppress(OSError):
            (self._folder / "unfinished").unlink()

    def _merge(self, table: Table) -> None:
        """Makes one file of many of similar size, again while that makes another such lot."""
        while True:
            tiers: dict[int, list[DataFile]] = {}
            for file in self._files.get(table.name, ()):
                if file.rows <= _MAX_MERGED_ROWS:
                    tiers.setdefault(_tier(file.rows), []).append(file)
            lot = next((files for files in tiers.values() if len(files) >= MERGED_FILES), None)
            if lot is None:
                return
            self._replace(table, tuple(lot), _source(self._folder, table, tuple(lot)), sum(file.rows for file in lot))

    def _replace(self, table: Table, files: tuple[DataFile, ...], source: str, rows: int) -> None:
        self._write(table, source, rows)
        self._files[table.name] = [file for file in self._files[table.name] if file not in files]
        self._replaced += [file.place for file in files]

    def _write(self, table: Table, source: str, rows: int, *, as_added: bool = False) -> None:
        place = self._new_file(table.name)
        order = "" if as_added else f" order by {', '.join(table.key)}"
        try:
            self._connection.execute(
                f"copy (select {', '.join(table.columns)} from {source}{order}) "
                f"to {_quoted(str(self._folder / place))} "
                f"(format parquet, compression zstd, row_group_size {_ROWS_OF_GROUP})"
            )
        except duckdb.IOException as problem:
            raise EnvironmentProblem(f"{self._folder}: cannot be written ({_one_line(problem)})") from None
        with _disk(self._folder):
            sync(self._folder / place)
        self._files.setdefault(table.name, []).append(DataFile(place, rows))

    def _new_file(self, name: str) -> str:
        with _disk(self._folder):
            if not self._written:
                (self._folder / "unfinished").write_text(self._change)
                (self._folder / "data" / self._change).mkdir(parents=True)
        self._written += 1
        return f"data/{self._change}/{name}-{self._written}.parquet"


def sorted_by(rows: pyarrow.Table, column: str) -> pyarrow.Table:
    """The rows by this column, those that are equal in it in their order; as they are where it is empty."""
    if not column:
        return rows
    return rows.take(np.argsort(rows[column].to_numpy(zero_copy_only=False).astype(str), kind="stable"))


def _tier(rows: int) -> int:
    """Files of one tier differ in size by less than MERGED_FILES."""
    tier = 0
    while rows >= MERGED_FILES:
        rows, tier = rows // MERGED_FILES, tier + 1
    return tier


def _source(folder: Path, table: Table, files: Collection[DataFile]) -> str:
    """SQL source for the rows of some files in a query."""
    if not files:
        columns = ", ".join(f"cast(null as {_SQL_TYPES[kind]}) as {name}" for name, kind in table.columns.items())
        return f"(select {columns} where false)"
    return f"read_parquet([{', '.join(_quoted(str(folder / file.place)) for file in files)}])"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _result(
    connection: "duckdb.DuckDBPyConnection", query: str, parameters: Parameters, *, packed: Collection[str]
) -> pyarrow.Table:
    if packed:
        with contextlib.suppress(OSError, pyarrow.ArrowException):  # DuckDB says below what it is
            reader = connection.sql(query, params=list(parameters)).to_arrow_reader(_ROWS_OF_GROUP)
            if batches := list(packed_texts(reader, packed)):
                return pyarrow.Table.from_batches(batches)
    # A statement by itself, such as those of `execute`, would copy its result once more.
    found: pyarrow.Table = connection.sql(query, params=list(parameters)).to_arrow_table()
    if not packed:
        return found
    batches = list(packed_texts(found.to_batches() or [pyarrow.RecordBatch.from_pylist([], found.schema)], packed))
    return pyarrow.Table.from_batches(batches)


def _unreadable(folder: Path, index: Index, problem: Exception) -> Exception:
    """Exception for a problem of a query: an InputError that names the damaged file; the problem if it is ours."""
    for table in TABLES:
        for file in index.files.get(table.name, ()):
            name = str(folder / file.place)
            try:
                opened = open_parquet(folder / file.place, name, most_bytes=_MAX_TABLE_BYTES)
                if missing := [column for column in table.columns if column not in opened.schema_arrow.names]:
                    return InputError(f"{name}: has no column {missing[0]}; {_DAMAGED}")
                with reading_table(name):
                    opened.read().validate(full=True)
            except InputError as damage:
                return InputError(f"{damage}; {_DAMAGED}")
    if isinstance(problem, duckdb.BinderException | duckdb.CatalogException | duckdb.ParserException):
        return problem
    return InputError(f"{folder}: a file of it cannot be read ({_one_line(problem)}); {_DAMAGED}")


def _one_line(problem: Exception) -> str:
    """DuckDB's message in one line; some of its messages are JSON."""
    text = str(problem).strip()
    with contextlib.suppress(ValueError, KeyError, TypeError):
        text = str(json.loads(text)["exception_message"])
    return (text.splitlines() or [type(problem).__name__])[0][:200]


@contextmanager
def _disk(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise EnvironmentProblem(not_written(folder, problem, "try again later; the store is as it was")) from None
