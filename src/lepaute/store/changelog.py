"""Events and outliers of a store: recorded, withdrawn, recorded again; nothing is ever overwritten."""

import hashlib
import json
import time
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from lepaute.errors import InputError
from lepaute.store.backend import Backend, Reader
from lepaute.store.rows import rows_of
from lepaute.store.tables import Table

if TYPE_CHECKING:
    import pandas
    import pyarrow

#: What the store fills in.
_OWN = ("id", "revision", "withdrawn", "recorded_s")


def add_entries(backend: Backend, table: Table, frame: "pandas.DataFrame", *, once: bool = False) -> tuple[str, ...]:
    """Records those that are not in force; returns the ids of all, which tell their content.

    once: those that somebody has recorded for another reason are in force too, and theirs are the ids
    """
    content = [name for name in table.columns if name not in _OWN]
    rows = _content(table, frame).to_pylist()
    ids = [entry_id(table, row) for row in rows]
    with backend.writing() as writer:
        if once:
            known = {
                _what(row): str(row["id"]) for row in current_entries(writer, table, history=False).to_dict("records")
            }
            ids = [known.get(_what(row), own) for row, own in zip(rows, ids, strict=True)]
        new = frame[content].assign(id=ids, revision=1, withdrawn=False, recorded_s=time.time()).drop_duplicates("id")
        last = _last_revisions(writer, table)
        new = new[[last.get(each, (0, True))[1] for each in new["id"]]]
        revisions = [last.get(each, (0, True))[0] + 1 for each in new["id"]]
        writer.append(table, rows_of(table, new.assign(revision=revisions)[list(table.columns)]))
    return tuple(ids)


def withdraw_entries(backend: Backend, table: Table, ids: Collection[str], author: str, reason: str = "") -> int:
    """Withdraws those of these ids that are in force, and returns how many; raises InputError for unknown ones.

    reason : why; where it is empty, that of the entry stays
    """
    with backend.writing() as writer:
        last = _last_revisions(writer, table)
        if unknown := [each for each in ids if each not in last]:
            raise InputError(f"{table.name}: there is none with id {str(unknown[0])[:80]}")
        chosen = [each for each in dict.fromkeys(ids) if not last[each][1]]
        if chosen:
            query = f"select * from {table.name} where id = any(?)"
            frame = writer.read(query, [chosen]).to_pandas()
            frame = frame.sort_values("revision").drop_duplicates("id", keep="last")
            frame = frame.assign(revision=frame["revision"] + 1, withdrawn=True, author=author, recorded_s=time.time())
            if reason:
                frame = frame.assign(reason=reason)
            writer.append(table, rows_of(table, frame[list(table.columns)]))
    return len(chosen)


def current_entries(reader: Reader, table: Table, *, history: bool) -> "pandas.DataFrame":
    """Those in force, by date; or all revisions."""
    columns = ", ".join(table.columns)
    frame: pandas.DataFrame = (
        reader.read(f"select {columns} from {table.name} order by date_s, id, revision").cast(table.schema).to_pandas()
    )
    if history:
        return frame
    last = frame.drop_duplicates("id", keep="last")
    return last[~last["withdrawn"].astype(bool)].reset_index(drop=True)


def entry_id(table: Table, content: dict[str, object]) -> str:
    """The same for the same content."""
    text = json.dumps([table.name, content], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _what(row: Mapping[Any, Any]) -> tuple[Any, ...]:
    """An entry without who says so, and why."""
    return tuple(value for name, value in sorted(row.items()) if name not in (*_OWN, "author", "reason"))


def _content(table: Table, frame: "pandas.DataFrame") -> "pyarrow.Table":
    """The columns that a caller gives, checked."""
    kinds = {name: kind for name, kind in table.columns.items() if name not in _OWN}
    return rows_of(Table(table.name, kinds, ()), frame)


def _last_revisions(reader: Reader, table: Table) -> dict[str, tuple[int, bool]]:
    """Of each id the last revision, and whether that withdrew it."""
    rows = reader.read(f"select id, revision, withdrawn from {table.name} order by id, revision").to_pylist()
    return {row["id"]: (row["revision"], row["withdrawn"]) for row in rows}
