"""What a place to keep the tables has to offer; all else is the same for every store."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager

import pyarrow
import pyarrow.parquet

from lepaute.errors import InputError
from lepaute.watch.store.tables import Table

#: Values of the question marks of a query.
Parameters = Sequence[str | int | float | bool | list[str]]


class NoStoreError(InputError):
    """There is no store at the place, which was to be opened and not made."""

    def __init__(self, place: str) -> None:
        super().__init__(f"there is no store in {place[:200]}; `lepaute watch ingest --store` makes one")


class Reader(ABC):
    @abstractmethod
    def read(self, query: str, parameters: Parameters = (), *, packed: Collection[str] = ()) -> pyarrow.Table:
        """The rows of a query in the SQL that DuckDB and PostgreSQL share; parameters are question marks.

        packed : texts are dictionaries from the beginning: what is read never takes the memory of all of its texts
        """


class Writer(Reader):
    """A change of the store, visible to others whole, and only once its block has ended.

    No other change is under way meanwhile. `read` sees the store as it was before the change.
    """

    @abstractmethod
    def stage(self, rows: pyarrow.Table) -> None:
        """Makes the rows the table `staged` of later queries."""

    @abstractmethod
    def append(self, table: Table, rows: pyarrow.Table) -> None:
        """Adds rows, of which no key is there yet."""

    @abstractmethod
    def add_raw(self, label: str, rows: pyarrow.Table, node_column: str) -> str:
        """Keeps a raw table, sorted by node; returns the place for `raw`. label: archive/name, as no other has."""


class Backend(Reader):
    #: Of the store, for messages; without a password.
    name: str

    @abstractmethod
    def writing(self) -> AbstractContextManager[Writer]:
        """A change: all of it happens at the end of the block, or nothing where that raises or the process dies."""

    @abstractmethod
    def state(self, tables: Collection[Table]) -> str:
        """A text that is another one after every change of these tables."""

    @abstractmethod
    def raw(
        self, place: str, node_column: str, nodes: Collection[str] | None, columns: Collection[str] | None
    ) -> pyarrow.Table:
        """The rows of a raw table, of these nodes (None: all), in the order of the nodes' names."""

    @abstractmethod
    def close(self) -> None: ...


def fresh(writer: Writer, table: Table, rows: pyarrow.Table) -> pyarrow.Table:
    """Rows whose key the table does not have; all of them are `staged` then."""
    writer.stage(rows)
    there = writer.read(f"select count(*) as count from {table.name} o join staged n on {same_key(table)}")
    if not there["count"][0].as_py():
        return rows
    columns = ", ".join(f"n.{name}" for name in table.columns)
    found = writer.read(
        f"select {columns} from staged n where not exists (select 1 from {table.name} o where {same_key(table)})"
    )
    return found.cast(table.schema)


def parquet_rows(
    source: "str | pyarrow.Buffer", columns: Collection[str] | None, only: tuple[str, Collection[str]] | None = None
) -> pyarrow.Table:
    """Rows of a Parquet file; columns: those of them that it has; only: a column and the values it may have."""

    def opened() -> object:
        return source if isinstance(source, str) else pyarrow.BufferReader(source)

    chosen = None
    if columns is not None:
        chosen = [name for name in pyarrow.parquet.read_schema(opened()).names if name in columns]
    filters = None if only is None else [(only[0], "in", list(only[1]))]
    return pyarrow.parquet.read_table(opened(), columns=chosen, filters=filters, partitioning=None)


def same_key(table: Table) -> str:
    """The condition that a row n has the key of a row o."""
    return " and ".join(f"n.{column} = o.{column}" for column in table.key)
