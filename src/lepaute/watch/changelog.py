"""What is known to have changed: events, from which on a machine is another one, and jobs that are outliers.

Two CSV files that people edit, one line an entry:

    date,cluster,node,type,description,author        2020-04-01,dahu,all,platform,BIOS upgrade,jane
    date,cluster,node,jobid,description,author       2020-12-04,dahu,26/29/31/32,1965756,CPU power drop,jane

`author` may be left out. `cluster` and `node` may be `all`; nodes are `13/14`, `node[13-16]` or `dahu-[13-16]`.
"""

import datetime as dt
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from lepaute.errors import InputError
from lepaute.kit.files import write_atomic
from lepaute.kit.frames import csv_reader, csv_text
from lepaute.kit.later import np, npt, pd
from lepaute.kit.node_sets import fold_node_set, parse_node_set
from lepaute.kit.notebook import table_html
from lepaute.kit.text import counted
from lepaute.watch.values import Node, is_of_job, nodes_of, start_of

Entry = TypeVar("Entry")

ALL = "all"
#: Most bytes of a table of events or of groups of nodes.
MAX_BYTES = 64 << 20
#: What people write for the two kinds of events; the published log names its testbed.
KINDS = {"protocol": "protocol", "platform": "platform", "g5k": "platform"}
_BETWEEN_SETS = re.compile(r"/(?![^\[]*\])")  # not the step of node[1-9/2]


def names_of_node(cluster: str, node: str) -> frozenset[str]:
    """Names that people and schedulers give a node of a store: 13, dahu-13."""
    return frozenset((node, f"{cluster}-{node}", node.removeprefix(f"{cluster}-")) if cluster else (node,))


@dataclass(frozen=True, slots=True)
class NodeSet:
    """Nodes of one cluster or of all; `text` as it was written."""

    cluster: str
    text: str

    def __post_init__(self) -> None:
        if not self.cluster.strip():
            raise InputError(f"the cluster is empty; give its name, or {ALL}")
        self.names()

    def names(self) -> tuple[str, ...] | None:
        """Its nodes as written, each once; None: all."""
        if self.text == ALL:
            return None
        return tuple(dict.fromkeys(name for part in _BETWEEN_SETS.split(self.text) for name in parse_node_set(part)))

    def expanded(self) -> "NodeSet":
        """The same with nodes in the place of groups: what a group holds may change, or be known elsewhere only."""
        if "@" not in self.text:
            return self
        return NodeSet(self.cluster, fold_node_set(self.names() or ()))

    def among(self, nodes: Iterable[Node]) -> frozenset[Node]:
        """Nodes (cluster, node) that are in the set."""
        names = self.names()
        return frozenset(
            (cluster, node)
            for cluster, node in nodes
            if self.cluster in (ALL, cluster) and (names is None or not names_of_node(cluster, node).isdisjoint(names))
        )


@dataclass(frozen=True, slots=True)
class Event:
    """From 00:00 UTC of its date on, the nodes are others: nothing before is their reference.

    kind : "protocol", of how one measures, or "platform", of what is measured
    """

    date: dt.date
    nodes: NodeSet
    kind: str
    reason: str
    author: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS.values():
            raise InputError(
                f"the type of an event is {self.kind!r}; give {' or '.join(dict.fromkeys(KINDS.values()))}"
            )

    @property
    def start_s(self) -> float:
        """The first moment, in seconds since the epoch."""
        return start_of(self.date)


@dataclass(frozen=True, slots=True)
class Outlier:
    """A job that is no reference for these nodes, on the date when it was found to be none."""

    date: dt.date
    nodes: NodeSet
    job: str
    reason: str
    author: str = ""

    def __post_init__(self) -> None:
        if not self.job:
            raise InputError("the job of an outlier is empty; give its id")


@dataclass(frozen=True, slots=True)
class Inventory:
    """For each kind of group, such as "chassis", the names of groups by node, as the file has both."""

    groups: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def group_of(self, kind: str, cluster: str, node: str) -> str | None:
        """None if the inventory does not know the node, or says nothing of this kind about it."""
        names = (node, f"{cluster}-{node}", node.removeprefix(f"{cluster}-"))
        of_kind = self.groups.get(kind, {})
        return next((of_kind[name] for name in names if name in of_kind), None) or None


@dataclass(frozen=True, slots=True)
class Changelog:
    """All events and outliers, and what nodes share."""

    events: tuple[Event, ...] = ()
    outliers: tuple[Outlier, ...] = ()
    inventory: Inventory = Inventory()

    def _repr_html_(self) -> str:
        entries: list[tuple[Event | Outlier, str]] = [(event, event.kind) for event in self.events]
        entries += [(outlier, f"outlier: {outlier.job}") for outlier in self.outliers]
        rows = [(one.date, one.nodes.cluster, one.nodes.text, kind, one.reason, one.author) for one, kind in entries]
        title = f"{counted(len(self.events), 'event')}, {counted(len(self.outliers), 'outlier')}"
        return table_html(title, ("from", "cluster", "nodes", "type", "reason", "author"), rows)

    def resets_s(self, nodes: Iterable[Node]) -> dict[Node, tuple[float, ...]]:
        """(cluster, node) -> the moments at which its reference begins anew, ascending, each once."""
        starts: dict[Node, set[float]] = {node: set() for node in nodes}
        for event in self.events:
            for node in event.nodes.among(starts):
                starts[node].add(event.start_s)
        return {node: tuple(sorted(dates)) for node, dates in starts.items()}

    def outlying_jobs(self, nodes: Iterable[Node]) -> frozenset[tuple[str, str, str]]:
        """The (cluster, node, job) of its outliers."""
        every = frozenset(nodes)
        return frozenset((*node, outlier.job) for outlier in self.outliers for node in outlier.nodes.among(every))

    def is_outlier(self, table: "pd.DataFrame") -> "npt.NDArray[np.bool_]":
        """Which rows of a table of factor values are of a job that is an outlier of their node."""
        if not self.outliers:
            return np.zeros(len(table), np.bool_)
        return is_of_job(table, self.outlying_jobs(nodes_of(table)))


def read_changelog(events: Path | None = None, outliers: Path | None = None) -> Changelog:
    """The changelog of two CSV files, either of which may be left out.

    Raises InputError, with file and line, for what is no entry.
    """
    return Changelog(
        _entries(events, "type", Event) if events else (), _entries(outliers, "jobid", Outlier) if outliers else ()
    )


def write_entries(path: Path, column: str, entries: Iterable[Event | Outlier]) -> None:
    """Writes the file of events (column "type") or of outliers ("jobid") whole."""
    rows = [("date", "cluster", "node", column, "description", "author")]
    for entry in entries:
        cell = entry.kind if isinstance(entry, Event) else entry.job
        nodes = entry.nodes
        rows.append((entry.date.isoformat(), nodes.cluster, nodes.text, cell, entry.reason, entry.author))
    write_atomic(path, csv_text(rows).encode())


def _entries(path: Path, own: str, type_: Callable[[dt.date, NodeSet, str, str, str], Entry]) -> tuple[Entry, ...]:
    """own : the column that tells entries of this type apart from others"""
    needed = ("date", "cluster", "node", own, "description")
    entries = []
    with csv_reader(path, "a CSV file of events or outliers", MAX_BYTES) as reader:
        if missing := [name for name in needed if name not in (reader.fieldnames or ())]:
            raise InputError(f"there is no column {missing[0]}; the first line is {','.join(needed)},author")
        for row in reader:
            if "" in row:
                raise InputError("there are more cells than columns; put a description with commas in double quotes")
            cells = {name: (cell or "").strip() for name, cell in row.items()}
            date, nodes = _date(cells["date"]), NodeSet(cells["cluster"], cells["node"])
            cell = KINDS.get(cells[own].lower(), cells[own]) if own == "type" else cells[own]
            entries.append(type_(date, nodes, cell, cells["description"], cells.get("author", "")))
    return tuple(entries)


def _date(text: str) -> dt.date:
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise InputError(f"the date is {text!r}; write it as 2020-04-01") from None
