"""Rows that follow from those that are there: read, decided and added in one change."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from lepaute.store.backend import Backend, Reader
from lepaute.store.rows import rows_of
from lepaute.store.tables import Table

if TYPE_CHECKING:
    import pandas

#: All rows of a table -> rows to add.
Decide = Callable[["pandas.DataFrame"], "pandas.DataFrame"]


def add_decided(backend: Backend, table: Table, decide: Decide) -> "pandas.DataFrame":
    """Adds what `decide` makes of the rows that are there, and returns it; no other process adds meanwhile."""
    with backend.writing() as writer:
        added = decide(all_rows(writer, table))
        rows = rows_of(table, added)
        if len(rows):
            writer.append(table, rows)
    return added


def all_rows(reader: Reader, table: Table) -> "pandas.DataFrame":
    """The rows of a table, in the order of their keys."""
    query = f"select {', '.join(table.columns)} from {table.name} order by {', '.join(table.key)}"
    frame: pandas.DataFrame = reader.read(query).cast(table.schema).to_pandas()
    return frame
