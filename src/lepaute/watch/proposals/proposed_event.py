"""A change that the data show and the changelog does not have: a person accepts it, or does not.

And what its nodes share, chassis, rack, switch and the like, from a CSV file:

node,chassis,rack,switch
dahu-[29-32],c8,r2,s1
"""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from lepaute.errors import InputError
from lepaute.kit.frames import csv_reader
from lepaute.kit.json_values import finite_json
from lepaute.kit.later import stats
from lepaute.kit.node_sets import fold_node_set
from lepaute.kit.numbers import path_of
from lepaute.kit.text import counted, p_text, signed_percent
from lepaute.watch.changelog import ALL, MAX_BYTES, Event, Inventory, NodeSet, Outlier
from lepaute.watch.named_nodes import nodes_text
from lepaute.watch.values import MACHINE as MACHINE_COLUMNS
from lepaute.watch.values import NODE, Machine, Node, day_of

#: Shapes: a new level, a drift, or days after which all was as before.
STEP, DRIFT, DAYS = "step", "drift", "days"
MACHINE, PLATFORM = "machine", "platform"
#: The chance of saying that a group explains an event where it does not.
LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class SharedGroup:
    """A group in which more nodes changed than a random choice of as many nodes would have.

    changed, members : nodes of the group that changed, and all of it that were measured
    p_value          : of Fisher's hypergeometric test, times the number of groups tested
    """

    kind: str
    name: str
    changed: int
    members: int
    p_value: float

    def __str__(self) -> str:
        return f"{self.changed} of {self.members} nodes of {self.kind} {self.name} ({p_text(self.p_value)})"


def read_inventory(path: str | Path) -> Inventory:
    """Reads the file: a column `node`, a node or a set such as node[1-4] or 13/14, and a column for each kind of group.

    Raises InputError, with file and line, where it cannot be read, has no such columns, or names a node twice.
    """
    path = path_of(path, "the inventory")
    groups: dict[str, dict[str, str]] = {}
    lines: dict[str, int] = {}
    with csv_reader(path, "a CSV file of groups of nodes", MAX_BYTES) as reader:
        columns = [name.strip() for name in reader.fieldnames or ()]
        kinds = [name for name in columns if name and name != "node"]
        if "node" not in columns or not kinds or len(set(columns)) < len(columns):
            raise InputError("the first line has to be like node,chassis,rack,switch, each column once")
        reader.fieldnames = columns
        groups |= {kind: {} for kind in kinds}
        for row in reader:
            for node in _nodes_of_row(row, lines):
                lines[node] = reader.line_num
                for kind in kinds:
                    groups[kind][node] = (row[kind] or "").strip()
    if not lines:
        raise InputError(f"{path} names no node; give a line for each, such as node1,c1,r1,s1")
    return Inventory(groups)


def _nodes_of_row(row: Mapping[str, str | None], lines: Mapping[str, int]) -> list[str]:
    """lines : of the nodes before it"""
    if None in row.values() or "" in row:
        raise InputError("the line has not as many cells as the first one")
    names = NodeSet(ALL, (row["node"] or "").strip()).names()
    if names is None:
        raise InputError("the node is 'all'; name the nodes of each group")
    if twice := sorted(set(names) & lines.keys()):
        raise InputError(f"node {twice[0]} is already on line {lines[twice[0]]}; name each node once")
    return sorted(names)


def shared_groups(inventory: Inventory, changed: Iterable[Node], measured: Iterable[Node]) -> tuple[SharedGroup, ...]:
    """The groups that explain which (cluster, node) of all that were measured have changed, the clearest first.

    Every group with a changed node is tested, each kind among the nodes that it is known of; the p-values are
    multiplied by the number of groups tested (Bonferroni). Fewer than two changed nodes share nothing.
    """
    hit = set(changed)
    every = {*measured, *hit}
    if len(hit) < 2:
        return ()
    tested: list[SharedGroup] = []
    for kind in inventory.groups:
        of_node = {node: name for node in every if (name := inventory.group_of(kind, *node)) is not None}
        for name in sorted({of_node[node] for node in of_node.keys() & hit}):
            members = {node for node, its in of_node.items() if its == name}
            inside = len(members & hit)
            p = float(stats.hypergeom.sf(inside - 1, len(of_node), len(members), len(of_node.keys() & hit)))
            tested.append(SharedGroup(kind, name, inside, len(members), p))
    groups = [replace(group, p_value=p) for group in tested if (p := group.p_value * len(tested)) <= LEVEL]
    return tuple(sorted(groups, key=lambda group: (group.p_value, group.kind, group.name)))


@dataclass(frozen=True, slots=True)
class FactorChange:
    """Change of a factor: the median over its machines, and the least and largest bound of their intervals.

    size, low, high : relative to before; NaN bounds for days, of which each has its own interval
    """

    factor: str
    direction: int
    size: float
    low: float
    high: float
    machines: tuple[Machine, ...]

    def __str__(self) -> str:
        return f"{self.factor} {signed_percent(self.size)} on {counted(len(self.machines), 'processor')}"


@dataclass(frozen=True, slots=True)
class ProposedEvent:
    """One report, whatever number of machines and factors it is about.

    kind     : "machine", of one node, or "platform", of several
    shape    : "step", "drift" or "days"
    after_s, before_s : the change happened after the one and no later than the other: the last job of before and the
               first one of after, as most of its machines have them; of days, the first and the last one
    machines : those that changed; factors: what of them, the one on most machines first
    p_value  : corrected for the number of series, or of days, of the run
    weight   : how many machines by how much: the sum over machines of their largest change, in least changes
    groups   : what the inventory says that its nodes share
    archives_before, archives_after : ids of the raw archives on both sides, where they are known
    days     : of the shape "days", in order; jobs: the (cluster, node, job, day) of them
    other_changes : what else changed between those archives, as lines (`other_changes`)
    """

    kind: str
    shape: str
    after_s: float
    before_s: float
    machines: tuple[Machine, ...]
    factors: tuple[FactorChange, ...]
    p_value: float
    weight: float
    groups: tuple[SharedGroup, ...] = ()
    archives_before: tuple[str, ...] = ()
    archives_after: tuple[str, ...] = ()
    days: tuple[dt.date, ...] = ()
    jobs: tuple[tuple[str, str, str, dt.date], ...] = ()
    other_changes: tuple[str, ...] = ()

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Its (cluster, node), each once."""
        return tuple(sorted({(cluster, node) for cluster, node, _ in self.machines}))

    @property
    def date(self) -> dt.date:
        """The day on which the new level was first seen; of days, the first one."""
        return day_of(self.after_s if self.shape == DAYS else self.before_s)

    @property
    def nodes_text(self) -> str:
        """Its nodes, each cluster with its name."""
        clusters = sorted({cluster for cluster, _ in self.nodes})
        return ", ".join(nodes_text(each, [node for of, node in self.nodes if of == each]) for each in clusters)

    @property
    def reason(self) -> str:
        """In one line: what changed, on what, and what they share."""
        text = "; ".join(map(str, self.factors))
        if self.shape == DRIFT:
            text = f"drift since {day_of(self.after_s)}: {text}"
        if self.shape == DAYS:
            text = f"on {counted(len(self.days), 'day')}: {text}"
        return f"{text}; {self.groups[0]}" if self.groups else text

    def to_event(self, author: str) -> Event:
        """The entry of the changelog by which this is accepted: from its date on, the machines are others.

        Raises InputError for days (`to_outliers` has their entries), and where nodes of several clusters changed.
        """
        if self.shape == DAYS:
            raise InputError(
                f"{self.nodes_text} differed on {counted(len(self.days), 'day')} from {self.date} on, and not in "
                "between: that is no new level; record its jobs as outliers"
            )
        clusters = {cluster for cluster, _ in self.nodes}
        if len(clusters) > 1:
            raise InputError(f"the event is of several clusters, {', '.join(sorted(clusters))}; record one for each")
        nodes = NodeSet(next(iter(clusters)) or ALL, _set_text([node for _, node in self.nodes]))
        return Event(self.date, nodes, "platform", self.reason, author)

    def to_outliers(self, author: str) -> tuple[Outlier, ...]:
        """One entry a job of its days; raises InputError for other shapes."""
        if self.shape != DAYS:
            raise InputError(f"the change of {self.date} on {self.nodes_text} lasts: record it as an event")
        of_job: dict[tuple[str, str, dt.date], list[str]] = {}
        for cluster, node, job, day in self.jobs:
            of_job.setdefault((cluster, job, day), []).append(node)
        return tuple(
            Outlier(day, NodeSet(cluster, _set_text(nodes)), job, self.reason, author)
            for (cluster, job, day), nodes in of_job.items()
        )

    def as_json(self) -> dict[str, Any]:
        """Plain values for JSON; dates in seconds since the epoch, sizes relative."""
        names = (
            "kind shape date after_s before_s nodes machines factors p_value weight groups archives_before "
            "archives_after days jobs other_changes reason"
        ).split()
        values = {name: getattr(self, name) for name in names} | {
            "nodes": [dict(zip(NODE, node, strict=True)) for node in self.nodes],
            "machines": [dict(zip(MACHINE_COLUMNS, machine, strict=True)) for machine in self.machines],
            "factors": [{**asdict(change), "machines": len(change.machines)} for change in self.factors],
            "jobs": [dict(zip((*NODE, "job", "day"), job, strict=True)) for job in self.jobs],
        }
        return dict(finite_json(values))

    def __str__(self) -> str:
        when = f"{day_of(self.after_s)} to {day_of(self.before_s)}"
        outliers = len({(cluster, job, day) for cluster, _, job, day in self.jobs})
        entries = f"outliers for {counted(outliers, 'job')}" if self.shape == DAYS else "an event"
        return f"{self.kind} event, {when}, {self.nodes_text}: {self.reason} (records {entries})"


def factor_changes(
    rows: Mapping[tuple[str, int], Sequence[tuple[Machine, float, float, float]]],
) -> tuple[FactorChange, ...]:
    """Change of each factor and direction by machine, size, low and high, the one on most machines first."""
    changes = []
    for (factor, _), sizes in rows.items():
        size = median(row[1] for row in sizes)
        low, high = min(row[2] for row in sizes), max(row[3] for row in sizes)
        machines = tuple(sorted({row[0] for row in sizes}))
        changes.append(FactorChange(factor, 1 if size > 0 else -1, size, low, high, machines))
    return tuple(sorted(changes, key=lambda each: (-len(each.machines), -abs(each.size), each.factor)))


def _set_text(nodes: list[str]) -> str:
    """As people write it: 13/14 for numbers, node[13-14] for names."""
    if all(node.isdigit() for node in nodes):
        return "/".join(sorted(set(nodes), key=int))
    return fold_node_set(tuple(sorted(set(nodes))))
