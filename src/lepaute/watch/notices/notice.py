"""What no change shows: a machine that was bad from the start, a node that vanished, dates that cannot be right."""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lepaute.watch.changelog import Changelog
from lepaute.watch.job_dates import backward_jobs
from lepaute.watch.notices.peers import unlike_peers
from lepaute.watch.notices.vanished_nodes import vanished_nodes
from lepaute.watch.proposals.change_points import LEVEL, LeastChange
from lepaute.watch.values import check_values

if TYPE_CHECKING:
    import pandas as pd

#: Kinds.
UNLIKE_PEERS, ABSENT, DATES = "unlike its peers", "absent", "dates"
#: Of which nodes, the text says itself.
UNCONFIRMED = "unconfirmed change"


@dataclass(frozen=True, slots=True)
class Notice:
    """Something to look at; not an event, since nothing changed, or nobody can say when.

    kind     : "unlike its peers", "absent" or "dates"
    cpu      : -1 where it is about the node; factor: empty where it is about none
    since_s  : the first job that it is about, or the last one before
    size     : relative to the median of its peers; NaN for other kinds
    p_value  : corrected for the number of machines and factors; NaN for dates, which are no test
    """

    kind: str
    cluster: str
    node: str
    cpu: int
    factor: str
    since_s: float
    size: float
    p_value: float
    text: str

    def __str__(self) -> str:
        name = " ".join(each for each in (self.cluster, self.node) if each)
        return self.text if self.kind == UNCONFIRMED or not name else f"{name}: {self.text}"

    def as_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "kind": self.kind,
            "cluster": self.cluster,
            "node": self.node,
            "cpu": self.cpu,
            "factor": self.factor,
            "since_s": self.since_s,
            "size": None if self.size != self.size else self.size,
            "p_value": None if self.p_value != self.p_value else self.p_value,
            "text": self.text,
        }


def notices(
    values: "pd.DataFrame",
    changelog: Changelog | None = None,
    *,
    least_change: LeastChange | None = None,
    level: float = LEVEL,
) -> tuple[Notice, ...]:
    """What there is to say besides events; `level` is the chance of any of each kind where nothing is wrong.

    values, changelog, least_change : as for `propose`
    In order of kind, cluster, node, processor and factor. Raises InputError as that does.
    """
    table = check_values(values)
    backward = table[backward_jobs(table)]
    found = [
        *_peers(table, changelog or Changelog(), least_change, level),
        *_absent(table, backward, level),
        *_dates(backward),
    ]
    return tuple(sorted(found, key=lambda each: (each.kind, each.cluster, each.node, each.cpu, each.factor)))


def _peers(
    table: "pd.DataFrame", changelog: Changelog, least_change: LeastChange | None, level: float
) -> Iterable[Notice]:
    for one in unlike_peers(table, changelog, least_change=least_change, level=level):
        where = f"cpu {one.cpu}, " if one.cpu >= 0 else ""
        text = (
            f"{where}{one.factor} {100 * one.size:+.1f} % from the median of its {one.peers} peers over all {one.jobs} "
            f"jobs since {_day(one.since_s)}"
        )
        yield Notice(UNLIKE_PEERS, one.cluster, one.node, one.cpu, one.factor, one.since_s, one.size, one.p_value, text)


def _absent(table: "pd.DataFrame", backward: "pd.DataFrame", level: float) -> Iterable[Notice]:
    nan = float("nan")
    # a node with wrong dates did report, nobody knows when
    wrong = set(zip(backward["cluster"], backward["node"], strict=True))
    table = table[[node not in wrong for node in zip(table["cluster"], table["node"], strict=True)]]
    for one in vanished_nodes(table, level=level):
        how = f", {one.failed} of them as a job that did not end" if one.failed else ""
        text = f"no result since {_day(one.last_s)}; others were measured on {one.days} days since{how}"
        yield Notice(ABSENT, one.cluster, one.node, -1, "", one.last_s, nan, one.p_value, text)


def _dates(backward: "pd.DataFrame") -> Iterable[Notice]:
    rows = backward.drop_duplicates(["cluster", "node", "job"])
    nan = float("nan")
    for (cluster, node), part in rows.groupby(["cluster", "node"], sort=True):
        first = part.sort_values("started_s").iloc[0]
        some = f"{len(part)} job{'s' * (len(part) != 1)}"
        text = (
            f"the dates of {some} run backwards, such as {_day(first['started_s'])} of job {first['job']}: was a clock "
            "set? No change is looked for in them"
        )
        yield Notice(DATES, str(cluster), str(node), -1, "", float(first["started_s"]), nan, nan, text)


def _day(moment_s: float) -> str:
    return dt.datetime.fromtimestamp(moment_s, dt.UTC).date().isoformat()
