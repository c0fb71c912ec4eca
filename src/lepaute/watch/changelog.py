"""What is known to have changed: events, from which on a machine is another one, and jobs that are outliers.

Two CSV files that people edit, one line an entry:

    date,cluster,node,type,description,author        2020-04-01,dahu,all,platform,BIOS upgrade,jane
    date,cluster,node,jobid,description,author       2020-12-04,dahu,26/29/31/32,1965756,CPU power drop,jane

`author` may be left out. `cluster` and `node` may be `all`; nodes are `13/14/15/16`, `node[13-16]` or `dahu-[13-16]`.
Node "13" of the cluster dahu is also dahu-13.
"""

import csv
import datetime as dt
import io
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from lepaute.errors import InputError
from lepaute.kit.documents import read_text
from lepaute.kit.files import write_whole
from lepaute.kit.node_sets import fold_node_set, parse_node_set

Entry = TypeVar("Entry")

ALL = "all"
#: Of a table of events or of groups of nodes.
MOST_BYTES = 64 << 20
#: What people write for the two kinds of events; the published log names its testbed.
KINDS = {"protocol": "protocol", "platform": "platform", "g5k": "platform"}
_BETWEEN_SETS = re.compile(r"/(?![^\[]*\])")  # not the step of node[1-9/2]


def names_of_node(cluster: str, node: str) -> frozenset[str]:
    """What people and schedulers call a node of a store: 13, dahu-13."""
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

    def among(self, nodes: Iterable[tuple[str, str]]) -> frozenset[tuple[str, str]]:
        """Those of the (cluster, node) that are in the set."""
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
        return dt.datetime.combine(self.date, dt.time(), dt.UTC).timestamp()


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
class Changelog:
    """All events and outliers."""

    events: tuple[Event, ...] = ()
    outliers: tuple[Outlier, ...] = ()

    def known_on(self, date: dt.date) -> "Changelog":
        """The entries up to this date, itself included: what a replay may know."""
        return Changelog(
            tuple(event for event in self.events if event.date <= date),
            tuple(outlier for outlier in self.outliers if outlier.date <= date),
        )

    def resets_s(self, nodes: Iterable[tuple[str, str]]) -> dict[tuple[str, str], tuple[float, ...]]:
        """(cluster, node) -> the moments at which its reference begins anew, ascending, each once."""
        found: dict[tuple[str, str], set[float]] = {node: set() for node in nodes}
        for event in self.events:
            for node in event.nodes.among(found):
                found[node].add(event.start_s)
        return {node: tuple(sorted(dates)) for node, dates in found.items()}

    def outlying_jobs(self, nodes: Iterable[tuple[str, str]]) -> frozenset[tuple[str, str, str]]:
        """The (cluster, node, job) of its outliers."""
        every = frozenset(nodes)
        return frozenset((*node, outlier.job) for outlier in self.outliers for node in outlier.nodes.among(every))

    def differs_for(self, other: "Changelog", nodes: Iterable[tuple[str, str]]) -> frozenset[tuple[str, str]]:
        """The nodes whose reference sets are not the same with the other: those that are to be tested again."""
        every = frozenset(nodes)
        mine, others = self.resets_s(every), other.resets_s(every)
        jobs = self.outlying_jobs(every) ^ other.outlying_jobs(every)
        return frozenset(node for node in every if mine[node] != others[node]) | {job[:2] for job in jobs}


def read_changelog(events: Path | None = None, outliers: Path | None = None) -> Changelog:
    """The changelog of two CSV files, either of which may be left out.

    Raises InputError, with file and line, for what is no entry.
    """
    return Changelog(
        tuple(_entries(events, "type", _event)) if events else (),
        tuple(_entries(outliers, "jobid", _outlier)) if outliers else (),
    )


def write_events(path: Path, entries: Iterable[Event]) -> None:
    """Writes the file of events whole."""
    rows = ((e.date.isoformat(), e.nodes.cluster, e.nodes.text, e.kind, e.reason, e.author) for e in entries)
    _write(path, "type", rows)


def write_outliers(path: Path, entries: Iterable[Outlier]) -> None:
    """Writes the file of outliers whole."""
    rows = ((e.date.isoformat(), e.nodes.cluster, e.nodes.text, e.job, e.reason, e.author) for e in entries)
    _write(path, "jobid", rows)


def _write(path: Path, own: str, rows: Iterable[tuple[str, ...]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("date", "cluster", "node", own, "description", "author"))
    writer.writerows(rows)
    write_whole(path, text.getvalue().encode())


def _event(row: dict[str, str], date: dt.date, nodes: NodeSet) -> Event:
    word = row["type"]
    return Event(date, nodes, KINDS.get(word.lower(), word), row["description"], row.get("author", ""))


def _outlier(row: dict[str, str], date: dt.date, nodes: NodeSet) -> Outlier:
    return Outlier(date, nodes, row["jobid"], row["description"], row.get("author", ""))


def _entries(path: Path, own: str, entry: Callable[[dict[str, str], dt.date, NodeSet], Entry]) -> tuple[Entry, ...]:
    needed = ("date", "cluster", "node", own, "description")
    try:
        text = read_text(path, "a CSV file of events or outliers", MOST_BYTES).removeprefix("\ufeff")
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True, restval="", restkey="")
        missing = [name for name in needed if name not in (reader.fieldnames or ())]
        if missing:
            raise InputError(f"{path}:1: there is no column {missing[0]}; the first line is {','.join(needed)},author")
        return tuple(_entry(path, reader.line_num, row, entry) for row in reader)
    except csv.Error as problem:
        raise InputError(f"{path} is not a CSV file: {problem}") from None


def _entry(
    path: Path, line: int, row: dict[str, str], entry: Callable[[dict[str, str], dt.date, NodeSet], Entry]
) -> Entry:
    try:
        if "" in row:
            raise InputError("there are more cells than columns; put a description with commas in double quotes")
        cells = {name: text.strip() for name, text in row.items()}
        return entry(cells, _date(cells["date"]), NodeSet(cells["cluster"], cells["node"]))
    except InputError as problem:
        raise InputError(f"{path}:{line}: {problem}") from None


def _date(text: str) -> dt.date:
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise InputError(f"the date is {text!r}; write it as 2020-04-01") from None
