"""A store in a schema of a PostgreSQL database: the same tables, rows moved by COPY, raw tables as Parquet by node."""

import contextlib
import io
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow
import pyarrow.parquet
from pyarrow import csv, types

from lepaute.errors import EnvironmentProblem
from lepaute.kit.extras import need
from lepaute.kit.later import later
from lepaute.watch.store.backend import Backend, NoStoreError, Parameters, Writer, parquet_rows
from lepaute.watch.store.tables import ARROW_TYPES, TABLES, VERSION, Kind, Table, changed, check_version, migrated

if TYPE_CHECKING:
    import psycopg
else:
    psycopg = later("psycopg")

SCHEMA = "lepaute"
#: Key of pg_advisory_xact_lock: whoever changes a store holds it until the transaction ends.
_LOCK = 0x4C65706175746500
#: Texts sort by their bytes, as in DuckDB.
_SQL_TYPES = {
    "text": 'text collate "C" not null',
    "integer": "bigint not null",
    "real": "double precision",
    "flag": "boolean not null",
}
#: Bytes of a raw table that are fetched at a time: a value of PostgreSQL is at most 1 GB.
_ROWS_OF_PIECE = 1_000_000


class PostgresqlBackend(Backend):
    """With `create` the schema is made in a database that exists; an older store becomes one of this version."""

    def __init__(self, url: str, *, create: bool) -> None:
        need("postgresql", "a store in PostgreSQL")
        self.name = _without_password(url)
        try:
            # Not prepared, and parameters put in by the client: COPY takes no others.
            self._connection = psycopg.connect(
                url, cursor_factory=psycopg.ClientCursor, connect_timeout=30, application_name="lepaute"
            )
        except (psycopg.Error, ValueError) as problem:
            reason = (str(problem).splitlines() or ["no reason given"])[0].strip()
            raise EnvironmentProblem(f"{self.name}: cannot be reached ({_hidden(reason, url)[:200]})") from None
        try:
            self._prepare(create=create)
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        self._connection.close()

    def read(self, query: str, parameters: Parameters = (), *, packed: Collection[str] = ()) -> pyarrow.Table:
        with self._explained(), self._connection.transaction():
            return _result(self._connection, query, parameters, packed=packed)

    def state(self, tables: Collection[Table]) -> str:
        # rows are only ever added: by transactions, whose numbers begin anew in another server
        parts = ["select pg_postmaster_start_time()::text"]
        parts += [
            f"select '{table.name}'::regclass::oid || ' ' || count(*) || ' ' || coalesce(max(xmin::text::bigint), 0) "
            f"from {table.name}"
            for table in tables
        ]
        with self._explained(), self._connection.transaction():
            return repr([self.name, *self._connection.execute(" union all ".join(parts)).fetchall()])

    def raw(
        self, place: str, node_column: str, nodes: Collection[str] | None, columns: Collection[str] | None
    ) -> pyarrow.Table:
        which = "" if nodes is None or not node_column else " and (node = any(%s) or part = 0)"
        with self._explained(), self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.execute(
                f"select parquet from raw_rows where place = %s{which} order by part",
                [place, *([list(nodes or ())] if which else [])],
            )
            # Part 0 has no rows: its columns are those of the table.
            pieces = [parquet_rows(pyarrow.py_buffer(parquet), columns) for (parquet,) in cursor]
        return pyarrow.concat_tables(pieces)

    @contextmanager
    def writing(self) -> Iterator["_PostgresqlWriter"]:
        with self._explained(), self._connection.transaction():
            self._connection.execute("select pg_advisory_xact_lock(%s)", [_LOCK])
            yield _PostgresqlWriter(self._connection)

    def _prepare(self, *, create: bool) -> None:
        with self._explained(), self._connection.transaction():
            found = self._connection.execute("select to_regclass(%s)", [f"{SCHEMA}.store"]).fetchone()
        if found and found[0]:
            with self._explained(), self._connection.transaction():
                self._connection.execute(f"set search_path to {SCHEMA}")
                if self._version() == VERSION:
                    return
        elif not create:
            raise NoStoreError(self.name)
        with self._explained(), self._connection.transaction():
            self._connection.execute("select pg_advisory_xact_lock(%s)", [_LOCK])
            self._connection.execute(f"create schema if not exists {SCHEMA}")
            self._connection.execute(f"set search_path to {SCHEMA}")
            self._connection.execute("create table if not exists store (version bigint not null)")
            version = self._version()
            for table in TABLES:
                self._make(table, version)
            self._connection.execute(
                'create table if not exists raw_rows (place text collate "C" not null, part bigint not null, '
                'node text collate "C" not null, parquet bytea not null, primary key (place, part))'
            )
            self._connection.execute("create index if not exists raw_rows_node on raw_rows (place, node)")
            if version != VERSION:
                self._connection.execute("delete from store")
                self._connection.execute("insert into store values (%s)", [VERSION])

    def _version(self) -> int:
        rows = self._connection.execute("select version from store").fetchall()
        return check_version(rows[0][0], self.name) if rows else 0

    def _make(self, table: Table, version: int) -> None:
        there = self._connection.execute("select to_regclass(%s)", [f"{SCHEMA}.{table.name}"]).fetchone()
        old = bool(version and there and there[0])
        if old and not changed(table, version):
            return
        if old:
            query = migrated(table, table.name, version)
            self._connection.execute(f"create temporary table migrated on commit drop as {query}")
            self._connection.execute(f"drop table {table.name}")
        columns = ", ".join(f"{name} {_SQL_TYPES[kind]}" for name, kind in table.columns.items())
        self._connection.execute(f"create table {table.name} ({columns}, primary key ({', '.join(table.key)}))")
        if "started_s" in table.columns:  # small, and tells where the latest rows are, as days come one after the other
            self._connection.execute(f"create index {table.name}_date on {table.name} using brin (started_s)")
        if old:
            self._connection.execute(f"insert into {table.name} select * from migrated")
            self._connection.execute("drop table migrated")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turns what the server refuses into one line."""
        try:
            yield
        except psycopg.Error as problem:
            reason = (str(problem).splitlines() or [type(problem).__name__])[0]
            raise EnvironmentProblem(f"{self.name}: {reason[:300]}; the store is as it was") from None


class _PostgresqlWriter(Writer):
    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        self._connection = connection

    def read(self, query: str, parameters: Parameters = (), *, packed: Collection[str] = ()) -> pyarrow.Table:
        return _result(self._connection, query, parameters, packed=packed)

    def stage(self, rows: pyarrow.Table) -> None:
        names = {type_: name for name, type_ in ARROW_TYPES.items()}
        columns = ", ".join(f"{field.name} {_SQL_TYPES[names[field.type]]}" for field in rows.schema)
        self._connection.execute("drop table if exists pg_temp.staged")
        self._connection.execute(f"create temporary table staged ({columns}) on commit drop")
        self._copy("pg_temp.staged", rows)
        self._connection.execute("analyze pg_temp.staged")

    def append(self, table: Table, rows: pyarrow.Table) -> None:
        self._copy(table.name, rows.select(list(table.columns)))

    def add_raw(self, label: str, rows: pyarrow.Table, node_column: str) -> str:
        pieces = [("", rows.slice(0, 0)), *_by_node(rows, node_column)]
        for part, (node, piece) in enumerate(pieces):
            out = io.BytesIO()
            pyarrow.parquet.write_table(piece, out, compression="zstd")
            self._connection.execute(
                "insert into raw_rows (place, part, node, parquet) values (%s, %s, %s, %b)",
                [label, part, node, out.getvalue()],
            )
        return label

    def _copy(self, table: str, rows: pyarrow.Table) -> None:
        options = csv.WriteOptions(include_header=False, quoting_style="needed")
        columns = ", ".join(rows.column_names)
        # Of a column of texts an empty one is a text, not an absent value.
        texts = ", ".join(field.name for field in rows.schema if types.is_string(field.type))
        command = f"copy {table} ({columns}) from stdin (format csv, force_not_null ({texts}))"
        with self._connection.cursor() as cursor, cursor.copy(command) as copy:
            for batch in rows.to_batches(max_chunksize=50_000):
                text = io.BytesIO()
                csv.write_csv(batch, text, options)
                copy.write(text.getvalue())


def _without_password(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return "postgresql:..."
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"


def _hidden(text: str, url: str) -> str:
    with contextlib.suppress(ValueError):
        if password := urlsplit(url).password:
            return text.replace(password, "***")
    return text


def _by_node(rows: pyarrow.Table, node_column: str) -> Iterator[tuple[str, pyarrow.Table]]:
    """The rows of each node in turn; one node without a name where the rows have none."""
    from lepaute.watch.store.folder import sorted_by

    ordered = sorted_by(rows, node_column)
    starts = [0]
    names = np.full(len(ordered), "")
    if node_column:
        names = ordered[node_column].to_numpy(zero_copy_only=False).astype(str)
        starts = [0, *(np.flatnonzero(names[1:] != names[:-1]) + 1)]
    for first, end in zip(starts, [*starts[1:], len(ordered)], strict=True):
        for at in range(first, end, _ROWS_OF_PIECE):
            yield str(names[first]), ordered.slice(at, min(_ROWS_OF_PIECE, end - at))


def _result(
    connection: "psycopg.Connection[Any]", query: str, parameters: Parameters, *, packed: Collection[str]
) -> pyarrow.Table:
    """Rows by COPY, which is several times as fast as rows that become objects."""
    cursor = psycopg.ClientCursor(connection)
    text = cursor.mogrify(query.replace("%", "%%").replace("?", "%s"), list(parameters))
    cursor.execute(f"select * from ({text}) as nothing limit 0")
    of_code: dict[int, Kind] = {16: "flag", 20: "integer", 23: "integer", 25: "text", 701: "real"}
    columns = {column.name: ARROW_TYPES[of_code[column.type_code]] for column in cursor.description or ()}
    columns |= {name: pyarrow.dictionary(pyarrow.int32(), pyarrow.string()) for name in packed if name in columns}
    out = io.BytesIO()
    with cursor.copy(f"copy ({text}) to stdout (format csv)") as copy:
        for piece in copy:
            out.write(piece)
    if not out.tell():
        return pyarrow.schema(list(columns.items())).empty_table()
    out.seek(0)
    return csv.read_csv(
        out,
        csv.ReadOptions(column_names=list(columns)),
        csv.ParseOptions(newlines_in_values=True),
        csv.ConvertOptions(
            column_types=columns, null_values=[""], strings_can_be_null=False, true_values=["t"], false_values=["f"]
        ),
    )
