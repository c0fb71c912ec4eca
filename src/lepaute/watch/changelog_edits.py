"""Edits of the changelog that a store keeps: entries with author, date and reason, and the two CSV files.

Nothing is overwritten: what is withdrawn stays in the history, with who withdrew it, when and why.
"""

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pandas

from lepaute.errors import InputError
from lepaute.watch.changelog import Changelog, Event, Inventory, NodeSet, Outlier
from lepaute.watch.proposals.proposed_event import DAYS, ProposedEvent
from lepaute.watch.store import Store
from lepaute.watch.values import day_of, start_of


@dataclass(frozen=True, slots=True)
class LoggedEntry:
    """An event or outlier of a store, with its id there; of the history, one revision of it.

    recorded_s : when it was recorded or, with `withdrawn`, withdrawn; author and reason are then those of that
    """

    id: str
    entry: Event | Outlier
    recorded_s: float
    revision: int = 1
    withdrawn: bool = False


def logged_entries(store: "Store", *, history: bool = False) -> tuple[LoggedEntry, ...]:
    """The events and outliers in force, by date; history: every revision of every one."""
    entries = []
    for read, type_, own in ((store.events, Event, "kind"), (store.outliers, Outlier, "job")):
        for row in read(history=history).to_dict("records"):
            nodes = NodeSet(row["cluster"], row["nodes"])
            entry = type_(day_of(row["date_s"]), nodes, row[own], row["reason"], row["author"])
            revision, withdrawn = int(row["revision"]), bool(row["withdrawn"])
            entries.append(LoggedEntry(row["id"], entry, float(row["recorded_s"]), revision, withdrawn))
    return tuple(sorted(entries, key=lambda each: (each.entry.date, each.id, each.revision)))


def logged_changelog(store: "Store") -> Changelog:
    """The changelog in force."""
    entries = [logged.entry for logged in logged_entries(store)]
    rows = store.inventories()
    return Changelog(
        tuple(entry for entry in entries if isinstance(entry, Event)),
        tuple(entry for entry in entries if isinstance(entry, Outlier)),
        Inventory(json.loads(rows["groups"].iloc[-1])) if len(rows) else Inventory(),
    )


def record_inventory(store: "Store", inventory: Inventory, author: str) -> bool:
    """Records what nodes share, in the place of what was recorded before; returns whether it is another one."""
    groups = json.dumps({kind: dict(names) for kind, names in inventory.groups.items()})

    def another(rows: "pandas.DataFrame") -> "pandas.DataFrame":
        last = rows.tail(1)
        if groups in last["groups"].tolist():
            return rows.iloc[:0]
        revision = 1 + int(last["revision"].sum())
        return pandas.DataFrame([(revision, groups, author, time.time())], columns=list(rows.columns))

    return bool(len(store.add_inventory(another)))


def record(store: "Store", entries: Iterable[Event | Outlier], *, once: bool = False) -> tuple[str, ...]:
    """Records entries and returns their ids, in the same order; one that is in force stays as it is.

    once: so does one that somebody else has recorded, or for another reason; its id is returned
    Groups of nodes are recorded as the nodes that they hold now.
    Raises InputError if one has no author or no reason: who reads it in a year has nobody else to ask.
    """
    every = tuple(entries)
    for entry in every:
        _check_reasons(f"the entry of {entry.date} on {entry.nodes.text}", entry.author, entry.reason)
    return _add(store, every, once=once)


def _check_reasons(what: str, author: str, reason: str) -> None:
    if not author.strip() or not reason.strip():
        raise InputError(f"{what} has no {'reason' if author.strip() else 'author'}; give author and reason")


def accept(store: "Store", proposal: ProposedEvent, author: str, reason: str = "") -> tuple[str, ...]:
    """Records a proposed event: one event, or for days an outlier a job; returns the ids.

    reason : instead of what was found
    """
    entries: tuple[Event | Outlier, ...] = (
        proposal.to_outliers(author) if proposal.shape == DAYS else (proposal.to_event(author),)
    )
    if reason.strip():
        entries = tuple(replace(entry, reason=reason.strip()) for entry in entries)
    return record(store, entries, once=True)  # whoever accepts it first


def withdraw(store: "Store", ids: Iterable[str], author: str, reason: str) -> int:
    """Withdraws events and outliers by their ids, or the beginnings of these; returns how many were in force.

    Raises InputError if an id is unknown or not unique, or author or reason is empty.
    """
    _check_reasons("a withdrawal", author, reason)
    every = logged_entries(store, history=True)
    events = {each.id for each in every if isinstance(each.entry, Event)}
    outliers = {each.id for each in every if isinstance(each.entry, Outlier)}
    chosen = [_full(each, events | outliers) for each in ids]
    done = 0
    for known, withdraw_all in ((events, store.withdraw_events), (outliers, store.withdraw_outliers)):
        if matching_ids := [each for each in chosen if each in known]:
            done += withdraw_all(matching_ids, author, reason)
    return done


def add_changelog(store: "Store", changelog: Changelog) -> tuple[str, ...]:
    """Records all entries, authors or none, and returns their ids, events first; what is in force stays as it is."""
    return _add(store, (*changelog.events, *changelog.outliers))


def _add(store: "Store", entries: Sequence[Event | Outlier], *, once: bool = False) -> tuple[str, ...]:
    ids: dict[int, str] = {}
    for type_, own, add in ((Event, "kind", store.add_events), (Outlier, "job", store.add_outliers)):
        some = [entry for entry in entries if isinstance(entry, type_)]
        rows = [
            {
                "date_s": start_of(entry.date),
                "cluster": entry.nodes.cluster,
                "nodes": entry.nodes.expanded().text,
                "author": entry.author,
                "reason": entry.reason,
                own: getattr(entry, own),
            }
            for entry in some
        ]
        if rows:
            ids |= zip(map(id, some), add(pandas.DataFrame(rows), once=once), strict=True)
    return tuple(ids[id(entry)] for entry in entries)


def _full(text: str, known: set[str]) -> str:
    """The only id that begins so."""
    ids = [each for each in known if each.startswith(text)] if text else []
    if len(ids) != 1:
        many = "is the beginning of several ids" if ids else "is not the id of an event or outlier"
        raise InputError(f"{text!r} {many}; list them to see their ids")
    return ids[0]
