"""What is added to a store by what is there already, each in one change: entries of the changelog, judged days, runs.

Events and outliers are recorded, withdrawn, recorded again; nothing is ever overwritten.
"""

import hashlib
import json
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

import pandas
import pyarrow

from lepaute.errors import InputError
from lepaute.watch.store.backend import Backend, Reader, fresh
from lepaute.watch.store.rows import rows_of
from lepaute.watch.store.tables import ALARM_DAYS, ALARMS, SIMULATIONS, Table

#: All rows of a table -> rows to add.
Decide = Callable[[pandas.DataFrame], pandas.DataFrame]
#: Columns of an entry that the store fills in.
_OWN = ("id", "revision", "withdrawn", "recorded_s")
#: Keys of a query; more are asked for in turn.
_KEYS_AT_ONCE = 20_000


def add_decided(backend: Backend, table: Table, decide: Decide) -> pandas.DataFrame:
    """Adds what `decide` makes of the rows that are there, and returns it; no other process adds meanwhile."""
    with backend.writing() as writer:
        added = decide(all_rows(writer, table))
        rows = rows_of(table, added)
        if len(rows):
            writer.append(table, rows)
    return added


def all_rows(reader: Reader, table: Table, order: Collection[str] = ()) -> pandas.DataFrame:
    """The rows of a table, in the order of these columns, by default of their keys."""
    query = f"select {', '.join(table.columns)} from {table.name} order by {', '.join(order or table.key)}"
    frame: pandas.DataFrame = reader.read(query).cast(table.schema).to_pandas()
    return frame


def add_entries(backend: Backend, table: Table, frame: pandas.DataFrame, *, once: bool = False) -> tuple[str, ...]:
    """Records those that are not in force; returns the ids of all, which tell their content.

    once: those that somebody has recorded for another reason are in force too, and theirs are the ids
    """
    kinds = {name: kind for name, kind in table.columns.items() if name not in _OWN}
    rows = rows_of(Table(table.name, kinds, ()), frame).to_pylist()
    ids = [hashlib.sha256(json.dumps([table.name, row], sort_keys=True).encode()).hexdigest()[:16] for row in rows]
    with backend.writing() as writer:
        if once:
            current = current_entries(writer, table, history=False).to_dict("records")
            known = {_subject(row): str(row["id"]) for row in current}
            ids = [known.get(_subject(row), id_) for row, id_ in zip(rows, ids, strict=True)]
        last = _last_revisions(writer, table)
        new = frame[list(kinds)].assign(id=ids, revision=1, withdrawn=False, recorded_s=time.time())
        new = new.drop_duplicates("id")
        new = new[[last.get(id_, (0, True))[1] for id_ in new["id"]]]
        revisions = [last.get(id_, (0, True))[0] + 1 for id_ in new["id"]]
        writer.append(table, rows_of(table, new.assign(revision=revisions)[list(table.columns)]))
    return tuple(ids)


def withdraw_entries(backend: Backend, table: Table, ids: Collection[str], author: str, reason: str = "") -> int:
    """Withdraws those of these ids that are in force, and returns how many; raises InputError for unknown ones.

    reason : why; where it is empty, that of the entry stays
    """
    with backend.writing() as writer:
        last = _last_revisions(writer, table)
        if unknown := [id_ for id_ in ids if id_ not in last]:
            raise InputError(f"{table.name}: there is none with id {str(unknown[0])[:80]}")
        if chosen := [id_ for id_ in dict.fromkeys(ids) if not last[id_][1]]:
            frame = writer.read(f"select * from {table.name} where id = any(?)", [chosen]).to_pandas()
            frame = frame.sort_values("revision").drop_duplicates("id", keep="last")
            frame = frame.assign(revision=frame["revision"] + 1, withdrawn=True, author=author, recorded_s=time.time())
            if reason:
                frame = frame.assign(reason=reason)
            writer.append(table, rows_of(table, frame[list(table.columns)]))
    return len(chosen)


def current_entries(reader: Reader, table: Table, *, history: bool) -> pandas.DataFrame:
    """Entries in force, by date; or all revisions."""
    frame = all_rows(reader, table, ("date_s", "id", "revision"))
    if history:
        return frame
    last = frame.drop_duplicates("id", keep="last")
    return last[~last["withdrawn"].astype(bool)].reset_index(drop=True)


def _subject(row: Mapping[Any, Any]) -> tuple[Any, ...]:
    """An entry without who says so, and why."""
    return tuple(value for name, value in sorted(row.items()) if name not in (*_OWN, "author", "reason"))


def _last_revisions(reader: Reader, table: Table) -> dict[str, tuple[int, bool]]:
    """Last revision of each id, and whether that withdrew it."""
    rows = reader.read(f"select id, revision, withdrawn from {table.name} order by id, revision").to_pylist()
    return {row["id"]: (row["revision"], row["withdrawn"]) for row in rows}


def add_judged_days(backend: Backend, days: pandas.DataFrame, alarms: pandas.DataFrame, after: str) -> bool:
    """Records both in one change if `after` is still the last day that was judged; returns whether it is.

    Raises InputError for days that are not later than `after`, and for alarms of other days.
    """
    new_days, new_alarms = rows_of(ALARM_DAYS, days), rows_of(ALARMS, alarms)
    names = set(new_days["day"].to_pylist())
    if names and min(names) <= after:
        raise InputError(f"alarm_days: {min(names)} is not after {after}, the last day that was judged")
    if others := set(new_alarms["day"].to_pylist()) - names:
        raise InputError(f"alarms: {min(others)} is not one of the days that are recorded")
    with backend.writing() as writer:
        last = writer.read("select coalesce(max(day), '') as day from alarm_days")["day"][0].as_py() or ""
        if last != after:
            return False
        writer.append(ALARM_DAYS, new_days)
        writer.append(ALARMS, new_alarms)
    return True


def add_simulations(backend: Backend, simulations: pandas.DataFrame) -> int:
    """Adds runs in one change, and returns how many were new."""
    rows = rows_of(SIMULATIONS, simulations)
    if not len(rows):
        return 0
    with backend.writing() as writer:
        new = fresh(writer, SIMULATIONS, rows)
        writer.append(SIMULATIONS, new)
    return len(new)


def simulations_of(backend: Backend, keys: Collection[str] | None) -> pandas.DataFrame:
    """The runs of these keys that are there, in the order of the keys' texts; None: of all."""
    if keys is None:
        return all_rows(backend, SIMULATIONS)
    query = f"select {', '.join(SIMULATIONS.columns)} from simulations where key = any(?) order by key"
    texts = sorted(set(keys))
    pieces = [
        backend.read(query, [texts[at : at + _KEYS_AT_ONCE]]).cast(SIMULATIONS.schema)
        for at in range(0, len(texts), _KEYS_AT_ONCE)
    ]
    frame: pandas.DataFrame = pyarrow.concat_tables([SIMULATIONS.schema.empty_table(), *pieces]).to_pandas()
    return frame
