"""What of thousands of tests a person has to know: few reports, each of all machines that it is about.

Regressions that stand, suspicious tests of the latest days, machines that do not report, and those of which there is
not yet enough to say anything. Machines of which the same can be said on the same days are one report.
"""

import datetime as dt
import json
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lepaute.kit.text import counted, p_text, signed_percent
from lepaute.watch.alarms.sizes import least_change_of
from lepaute.watch.alarms.steps import alike_changes, same_machines
from lepaute.watch.alarms.worth_a_look import LABEL
from lepaute.watch.changelog import Inventory
from lepaute.watch.named_nodes import nodes_text
from lepaute.watch.notices.absences import Absence, absences_of
from lepaute.watch.notices.notice import UNLIKE_PEERS, Notice, worse_first
from lepaute.watch.proposals.proposed_event import shared_groups
from lepaute.watch.report.findings import Findings
from lepaute.watch.store.rows import row_keys
from lepaute.watch.values import DAY_S, MACHINE, WHOLE_NODE, Machine, Node, day_of, nodes_of

if TYPE_CHECKING:
    from lepaute.watch.report.history import ChangeAlarm

#: What the watch says of a machine or of all, the weightiest first, and the exit status of a command that says so.
CHANGED, UNLIKE, NOT_CONFIRMED, UNKNOWN, FINE = "changed", "unlike its peers", "not confirmed", "unknown", "fine"
EXIT_STATUS = {CHANGED: 1, UNLIKE: 4, NOT_CONFIRMED: 3, UNKNOWN: 2, FINE: 0}
#: Of a machine alone: why it is unknown, and that a single test of it stands out.
FAILED, SILENT, SUSPICIOUS = "failed", "silent", "suspicious"
#: Suspicious tests are those of the latest days, unless asked otherwise.
RECENT_DAYS = 7
#: From this many nodes on, one cause is likelier than many.
MANY_NODES = 3


@dataclass(frozen=True, slots=True)
class Change:
    """Change of one factor: the median over the machines, relative; NaN if only a direction is known."""

    factor: str
    direction: int
    size: float
    low: float
    high: float
    machines: int


@dataclass(frozen=True, slots=True)
class _OfMachines:
    cluster: str
    machines: tuple[Machine, ...]

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(node for _, node, _ in self.machines))


@dataclass(frozen=True, slots=True)
class Regression(_OfMachines):
    """Confirmed, and standing: machines of one cluster, or all of it together (node "all"), worse since a date.

    gradual_from : when it began to drift, where it did: `since` is then the date of the step that fits best
    shared : what its nodes share, such as "rack r1", where the inventory explains who changed; "" otherwise
    """

    since: dt.date
    alarm: dt.date
    changes: tuple[Change, ...]
    archives: tuple[str, ...]
    gradual_from: dt.date | None = None
    shared: str = ""


@dataclass(frozen=True, slots=True)
class Suspicion(_OfMachines):
    """Tests below the level, not confirmed: the same machines and directions on `dates`. p_value : the least."""

    dates: tuple[dt.date, ...]
    changes: tuple[Change, ...]
    jobs: tuple[str, ...]
    p_value: float


@dataclass(frozen=True, slots=True)
class Waiting(_OfMachines):
    """Machines that are not tested yet, and how many jobs are missing at least."""

    missing: int
    factors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WorthALook:
    """Lines of the second tier, which are no alarms, and what they are called wherever they are shown."""

    lines: tuple[Notice, ...] = ()
    label: str = LABEL


@dataclass(frozen=True, slots=True)
class Summary:
    """Reports, the weightiest first, and what they are of; older_suspicions : tests before the recent days.

    unjudged : machines of which nothing can be said: silent, with too few jobs, or where only huge changes are named
    """

    regressions: tuple[Regression, ...]
    suspicions: tuple[Suspicion, ...]
    older_suspicions: int
    absences: tuple[Absence, ...]
    worth_a_look: WorthALook
    notices: tuple[Notice, ...]
    waiting: tuple[Waiting, ...]
    clusters: tuple[str, ...]
    nodes: int
    machines: int
    unjudged: int
    factors: tuple[str, ...]
    tests: int
    first: dt.date | None
    last: dt.date | None

    @property
    def verdict(self) -> str:
        """The weightiest that can be said: one of EXIT_STATUS."""
        if self.regressions:
            return CHANGED
        if notices := worse_first(self.notices):
            return UNLIKE if notices[0].kind == UNLIKE_PEERS else NOT_CONFIRMED
        return UNKNOWN if self.unjudged >= self.machines else FINE


def summarise(
    findings: Sequence[Findings],
    values: "pd.DataFrame",
    standing: "pd.DataFrame",
    noticed: Iterable[Notice] = (),
    looks: Sequence[Notice] = (),
    *,
    since_s: float | None = None,
) -> Summary:
    """findings : of the tests of each vector; values : of the same nodes and dates

    standing : as watch.alarms.standing; since_s : of suspicions
    noticed : as watch.notices.notice, of which the `uncovered` are told; looks : what is `worth_a_look` there
    Tests that a regression covers are not suspicious, nor are those of several jobs that only repeat an earlier job.
    """
    last_s = float(values["started_s"].max()) if len(values) else None
    regressions = regressions_of(standing)
    suspects = pd.concat([part.unexplained(standing) for part in findings], ignore_index=True)
    begin_s = since_s if since_s is not None else -np.inf if last_s is None else recent_s(last_s)
    recent = suspects[suspects["started_s"] >= begin_s]
    absences, notes = absences_of(values), uncovered(noticed, standing)
    waiting = _waiting_of(pd.concat([part.waiting for part in findings], ignore_index=True))
    new = np.flatnonzero(np.diff(row_keys(values, MACHINE), prepend=-2))  # of one machine, row after row
    machines = set[Machine](values[MACHINE].iloc[new].itertuples(index=False, name=None))
    unknown = {notice.cluster for notice in notes if notice.is_unknown}
    unjudged = {machine for machine in machines if machine[0] in unknown}
    return Summary(
        regressions=regressions,
        suspicions=suspicions_of(recent),
        older_suspicions=len(suspects) - len(recent),
        absences=absences,
        worth_a_look=WorthALook(tuple(looks)),
        notices=notes,
        waiting=waiting,
        clusters=tuple(sorted(values["cluster"].unique())),
        nodes=len(nodes_of(values)),
        machines=len(machines),
        unjudged=len(unjudged.union(*(gap.machines for gap in absences), *(few.machines for few in waiting))),
        factors=tuple(sorted(values["factor"].unique())),
        tests=sum(part.tests for part in findings),
        first=None if last_s is None else day_of(float(values["started_s"].min())),
        last=None if last_s is None else day_of(last_s),
    )


def recent_s(last_s: float) -> float:
    """When the latest days began, of which suspicious tests are shown."""
    return float((np.floor(last_s / DAY_S) - RECENT_DAYS + 1) * DAY_S)


def regressions_of(
    standing: "pd.DataFrame", inventory: Inventory | None = None, measured: Collection[Node] = ()
) -> tuple[Regression, ...]:
    """One report for the machines and factors of a cluster that changed at the same time, the largest change first.

    inventory : what nodes share, of the (cluster, node) that are measured
    """
    groups = [(group, [row for part in group for row in part]) for group in alike_changes(standing.to_dict("records"))]
    reports = [
        Regression(
            cluster=rows[0]["cluster"],
            machines=_machines(rows),
            since=day_of(min(row["changed_s"] for row in rows)),
            alarm=dt.date.fromisoformat(min(row["day"] for row in rows)),
            changes=_worst_first(list(map(_change, group))),
            archives=tuple(dict.fromkeys(row["archive"] for row in rows if row["archive"])),
            gradual_from=min(
                (day_of(row["gradual_s"]) for row in rows if row["gradual_s"] == row["gradual_s"]), default=None
            ),
            shared=_shared(rows, inventory or Inventory(), measured),
        )
        for group, rows in groups
    ]
    return tuple(sorted(reports, key=lambda each: (-max(map(_weight, each.changes)), -len(each.machines), each.since)))


def _worst_first(changes: list[Change]) -> tuple[Change, ...]:
    """The largest before all others, where it is larger by far than the first one."""
    largest = max(changes, key=_weight)
    if _weight(largest) > 2 * _weight(changes[0]):
        changes = [largest, *(change for change in changes if change is not largest)]
    return tuple(changes)


def _weight(change: Change) -> float:
    """How large it is, in least changes of its factor."""
    return abs(change.size) / least_change_of(change.factor, 1.0)


def _shared(rows: list[dict[Any, Any]], inventory: Inventory, measured: Collection[Node]) -> str:
    """Group that the nodes of the rows share: the one that explains them best of all measured, or had the alarm."""
    if not inventory.groups:
        return ""
    cluster, nodes = rows[0]["cluster"], {(row["cluster"], row["node"]) for row in rows}
    if explaining := shared_groups(inventory, nodes, [each for each in measured if each[0] == cluster]):
        return f"{explaining[0].kind} {explaining[0].name}"
    alarmed = {str(json.loads(row["stream"])[1]) for row in rows}
    kinds = tuple(f"{kind} " for kind in inventory.groups)
    return next((name for name in sorted(alarmed) if len(nodes) > 1 and name.startswith(kinds)), "")


def suspicions_of(suspects: "pd.DataFrame") -> tuple[Suspicion, ...]:
    """One report for the machines and factors of a cluster that stood out on the same day, the most machines first."""
    of_day: dict[tuple[Any, ...], list[dict[Any, Any]]] = defaultdict(list)
    for row in suspects.to_dict("records"):
        of_day[row["cluster"], row["factor"], row["direction"], int(row["started_s"] // DAY_S)].append(row)
    repeated: dict[tuple[Any, ...], list[list[list[dict[Any, Any]]]]] = defaultdict(list)
    for group in same_machines(list(of_day.values()), "started_s", within_s=0.0):
        nodes = frozenset(row["node"] for part in group for row in part)
        shifts = frozenset((part[0]["factor"], part[0]["direction"]) for part in group)
        repeated[group[0][0]["cluster"], nodes, shifts].append(group)
    reports = [_suspicion(groups) for groups in repeated.values()]
    return tuple(sorted(reports, key=lambda each: (-len(set(each.nodes)), each.p_value, each.dates)))


def _suspicion(days: list[list[list[dict[Any, Any]]]]) -> Suspicion:
    """Suspicion of the same nodes, factors and directions on several days."""
    rows = [row for group in days for part in group for row in part]
    of_factor: dict[tuple[str, int], list[dict[Any, Any]]] = defaultdict(list)
    for row in rows:
        of_factor[row["factor"], int(row["direction"])].append(row)
    return Suspicion(
        cluster=rows[0]["cluster"],
        machines=_machines(rows),
        dates=tuple(sorted({day_of(row["started_s"]) for row in rows})),
        changes=tuple(
            Change(factor, direction, math.nan, math.nan, math.nan, len(_machines(part)))
            for (factor, direction), part in of_factor.items()
        ),
        jobs=tuple(sorted({row["job"] for row in rows})),
        p_value=min(row["p_value"] for row in rows),
    )


def _waiting_of(jobs: "pd.DataFrame") -> tuple[Waiting, ...]:
    """Machines of which a factor cannot be tested yet, by the latest job of each (`Findings.waiting`)."""
    of_machine: dict[Machine, list[tuple[str, int]]] = defaultdict(list)
    for row in jobs.sort_values("started_s", kind="stable").to_dict("records"):
        of_machine[row["cluster"], row["node"], int(row["cpu"])].append((row["factor"], int(row["missing"])))
    alike: dict[tuple[Any, ...], list[Machine]] = defaultdict(list)
    for machine, rows in of_machine.items():
        alike[machine[0], max(missing for _, missing in rows), tuple(sorted(f for f, _ in rows))].append(machine)
    reports = [Waiting(c, tuple(machines), missing, factors) for (c, missing, factors), machines in alike.items()]
    return tuple(sorted(reports, key=lambda each: (-len(each.machines), each.missing)))


def uncovered(noticed: Iterable[Notice], standing: "pd.DataFrame") -> tuple[Notice, ...]:
    """Without what a regression covers."""
    covered = set(zip(*(standing[name] for name in (*MACHINE, "factor")), strict=True))
    return tuple(notice for notice in noticed if attrgetter(*MACHINE, "factor")(notice) not in covered)


def _machines(rows: Iterable[dict[Any, Any]]) -> tuple[Machine, ...]:
    return tuple(sorted({(row["cluster"], row["node"], int(row["cpu"])) for row in rows}))


def _change(rows: list[dict[Any, Any]]) -> Change:
    size, low, high = (median(row[name] for row in rows) for name in ("size", "size_low", "size_high"))
    return Change(rows[0]["factor"], int(np.sign(size)), size, low, high, len(_machines(rows)))


def machines_text(machines: Sequence[Machine]) -> str:
    """Nodes, and which CPUs of them where these are not all of a kind."""
    cluster = machines[0][0]
    nodes = {node for _, node, _ in machines}
    text = nodes_text(cluster, nodes)
    cpus = sorted({cpu for *_, cpu in machines})
    if cpus == [WHOLE_NODE]:
        return text
    if len(nodes) == 1:
        return f"{text} cpu {', '.join(map(str, cpus))}"
    return f"{text} ({len(machines)} CPUs)"


def regression_nodes(each: Regression) -> str:
    """Who regressed, and what they share."""
    return f"{machines_text(each.machines)}, {each.shared}" if each.shared else machines_text(each.machines)


def change_text(change: Change) -> str:
    """A factor and what became of it: dgemm_rate_flops -5.2 %."""
    if change.size != change.size:
        return f"{change.factor} {('is unlike the others', 'higher', 'lower')[change.direction]}"
    return f"{change.factor} {signed_percent(change.size)}"


def _largest_text(regression: Regression) -> str:
    """demo node7 cpu 0, 1: dgemm_rate_flops -9.6 % (95 %: -9.9 to -9.4 %) since 2026-02-10."""
    change = regression.changes[0]
    text = change_text(change)
    if change.low == change.low and change.high > change.low:
        text = f"{change.factor} {signed_percent(change.size, change.low, change.high)}"
    return f"{regression_nodes(regression)}: {text} {since_text(regression)}"


def open_text(reports: Sequence[Regression], noticed: Iterable[Notice], where: str = "") -> str:
    """What is open, or not confirmed, the largest first, and how many more machines are unlike; "" without any."""
    worse = worse_first(noticed)
    unlike = [notice for notice in worse if notice.kind == UNLIKE_PEERS]
    others = unlike if reports else worse
    more = f"; and {len(others) - 1} more" if len(others) > 1 else ""
    caveat = f"{others[0].caveat}{more}" if others else ""
    if not reports:
        if caveat and not unlike:
            return f"Not confirmed{where}: {others[0]}{more}"
        return f"{caveat[0].upper()}{caveat[1:]}; no change is confirmed{where}" if caveat else ""
    largest = f"{'the largest ' * (len(reports) > 1)}{_largest_text(reports[0])}"
    return "; ".join(filter(None, [f"{counted(len(reports), 'open regression')}{where}: {largest}", caveat]))


def since_text(change: "Regression | ChangeAlarm") -> str:
    """since 2026-02-10, gradually from 2026-01-31 on."""
    gradual = f", gradually from {change.gradual_from} on" if change.gradual_from else ""
    return f"since {change.since}{gradual}"


def suspicion_text(each: Suspicion, changes: Sequence[Change]) -> str:
    """When, where, what of these changes, and the least p-value."""
    days = len(each.dates)
    when = f"{days} days, {each.dates[0]} to {each.dates[-1]}" if days > 1 else f"{each.dates[0]}"
    cause = ": many nodes at once, possibly one cause" if len(set(each.nodes)) >= MANY_NODES else ""
    what = "; ".join(map(change_text, changes))
    return f"{when}  {machines_text(each.machines)}: {what}, {p_text(each.p_value)}{cause}"


def absence_state(each: Absence) -> str:
    return FAILED if each.jobs else SILENT


def absence_text(each: Absence, name: str | None = None) -> str:
    """Since when there is no value, though others reported, and how the latest jobs ended; name : before it"""
    name = f"{machines_text(each.machines)}: " if name is None else name
    state = "never reported" if each.state == "missing" else each.state
    since = "never had a value" if each.last is None else f"no value since {each.last}"
    failed = f"; its last {counted(each.jobs, 'job')} {state}" if each.jobs else ""
    others = f"; others reported on {counted(each.days, 'day')} since" if each.days else ""
    return f"{name}{since}{others}{failed}"
