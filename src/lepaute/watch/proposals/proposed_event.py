"""A change that the data show and the changelog does not have: a person accepts it, or does not."""

import datetime as dt
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from lepaute.errors import InputError
from lepaute.kit.node_sets import fold_node_set
from lepaute.kit.text import counted
from lepaute.watch.changelog import ALL, Event, NodeSet, Outlier
from lepaute.watch.nodes_text import nodes_text
from lepaute.watch.proposals.inventory import SharedGroup
from lepaute.watch.values import Machine

#: Shapes: a new level, a drift, or days after which all was as before.
STEP, DRIFT, DAYS = "step", "drift", "days"
MACHINE, PLATFORM = "machine", "platform"


@dataclass(frozen=True, slots=True)
class FactorChange:
    """What became of a factor: the median over its machines, and the least and largest bound of their intervals.

    size, low, high : relative to before; NaN bounds for days, of which each has its own interval
    """

    factor: str
    direction: int
    size: float
    low: float
    high: float
    machines: tuple[Machine, ...]

    def __str__(self) -> str:
        count = len(self.machines)
        return f"{self.factor} {100 * self.size:+.1f} % on {count} processor{'s' * (count != 1)}"


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
    def nodes(self) -> tuple[tuple[str, str], ...]:
        """Its (cluster, node), each once."""
        return tuple(sorted({(cluster, node) for cluster, node, _ in self.machines}))

    @property
    def date(self) -> dt.date:
        """The day on which the new level was first seen; of days, the first one."""
        return _day(self.after_s if self.shape == DAYS else self.before_s)

    @property
    def reason(self) -> str:
        """In one line: what changed, on what, and what they share."""
        text = "; ".join(str(each) for each in self.factors)
        if self.shape == DRIFT:
            text = f"drift since {_day(self.after_s)}: {text}"
        if self.shape == DAYS:
            text = f"on {len(self.days)} day{'s' * (len(self.days) != 1)}: {text}"
        return f"{text}; {self.groups[0]}" if self.groups else text

    def to_event(self, author: str) -> Event:
        """The entry of the changelog by which this is accepted: from its date on, the machines are others.

        Raises InputError for days (`to_outliers` has their entries), and where nodes of several clusters changed.
        """
        if self.shape == DAYS:
            raise InputError(
                f"{self.nodes_text} differed on {counted(len(self.days), 'day')} from {self.date} on, "
                "and not in between: "
                "that is no new level; record its jobs as outliers"
            )
        return Event(self.date, self._node_set(), "platform", self.reason, author)

    def to_outliers(self, author: str) -> tuple[Outlier, ...]:
        """One entry a job of its days; raises InputError for other shapes."""
        if self.shape != DAYS:
            raise InputError(f"the change of {self.date} on {self.nodes_text} lasts: record it as an event")
        by_job: dict[tuple[str, str, dt.date], list[str]] = {}
        for cluster, node, job, day in self.jobs:
            by_job.setdefault((cluster, job, day), []).append(node)
        return tuple(
            Outlier(day, NodeSet(cluster, _set(nodes)), job, self.reason, author)
            for (cluster, job, day), nodes in by_job.items()
        )

    def with_other_changes(self, lines: tuple[str, ...]) -> "ProposedEvent":
        return replace(self, other_changes=lines)

    def as_json(self) -> dict[str, Any]:
        """Plain values for JSON; dates in seconds since the epoch, sizes relative."""
        return {
            "kind": self.kind,
            "shape": self.shape,
            "date": self.date.isoformat(),
            "after_s": self.after_s,
            "before_s": self.before_s,
            "nodes": [{"cluster": cluster, "node": node} for cluster, node in self.nodes],
            "machines": [{"cluster": c, "node": n, "cpu": cpu} for c, n, cpu in self.machines],
            "factors": [
                {
                    "factor": each.factor,
                    "direction": each.direction,
                    "size": each.size,
                    "low": None if each.low != each.low else each.low,
                    "high": None if each.high != each.high else each.high,
                    "machines": len(each.machines),
                }
                for each in self.factors
            ],
            "p_value": self.p_value,
            "weight": self.weight,
            "groups": [
                {
                    "kind": group.kind,
                    "name": group.name,
                    "changed": group.changed,
                    "members": group.members,
                    "p_value": group.p_value,
                }
                for group in self.groups
            ],
            "archives_before": list(self.archives_before),
            "archives_after": list(self.archives_after),
            "days": [day.isoformat() for day in self.days],
            "jobs": [
                {"cluster": cluster, "node": node, "job": job, "day": day.isoformat()}
                for cluster, node, job, day in self.jobs
            ],
            "other_changes": list(self.other_changes),
            "reason": self.reason,
        }

    def __str__(self) -> str:
        when = f"{_day(self.after_s)} to {_day(self.before_s)}"
        return f"{self.kind} event, {when}, {self.nodes_text}: {self.reason} (records {self._entries_text()})"

    def _entries_text(self) -> str:
        """What accepting it records."""
        count = len({(cluster, job, day) for cluster, _, job, day in self.jobs})
        return f"outliers for {counted(count, 'job')}" if self.shape == DAYS else "an event"

    @property
    def nodes_text(self) -> str:
        """Its nodes, each cluster with its name."""
        clusters = sorted({cluster for cluster, _ in self.nodes})
        return ", ".join(nodes_text(each, [n for c, n in self.nodes if c == each]) for each in clusters)

    def _node_set(self) -> NodeSet:
        clusters = {cluster for cluster, _ in self.nodes}
        if len(clusters) > 1:
            raise InputError(f"the event is of several clusters, {', '.join(sorted(clusters))}; record one for each")
        return NodeSet(next(iter(clusters)) or ALL, _set([node for _, node in self.nodes]))


def factor_change(factor: str, rows: "list[tuple[Machine, float, float, float]]") -> FactorChange:
    """Of (machine, size, low, high) of one direction."""
    size = median(row[1] for row in rows)
    return FactorChange(
        factor,
        1 if size > 0 else -1,
        size,
        min(row[2] for row in rows),
        max(row[3] for row in rows),
        tuple(sorted({row[0] for row in rows})),
    )


def _set(nodes: list[str]) -> str:
    """As people write it: 13/14 for numbers, node[13-14] for names."""
    if all(node.isdigit() for node in nodes):
        return "/".join(sorted(set(nodes), key=int))
    return fold_node_set(tuple(sorted(set(nodes))))


def _day(moment_s: float) -> dt.date:
    return dt.datetime.fromtimestamp(moment_s, dt.UTC).date()
