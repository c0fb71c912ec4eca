"""Changes that belong together as one report: a fault shows in several factors, and a cause may hit many nodes.

Machines are not measured on the same day, so the date of a change is known as an interval. Changes of one factor, in
one direction, of machines of one cluster are joined where their intervals have a moment in common: all of them are
explained by as few dates as possible. What was found so for several factors is joined where those intervals still
overlap and half of the nodes of the smaller one are the same. So two faults in the same week on two nodes are two
events if they have different signs or factors, and one if they look alike: nothing in the data tells those apart.

Open regressions are proposals, too, so that a person can accept them, with the machines, dates and sizes as reported.
Alarms are faster than change points, and all machines were asked about their date. So where there is one, change points
of its date say nothing further; nor do the days since on which its machines were unlike before.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median_low
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from lepaute.watch.alarms.standing import EXPLAINS_S
from lepaute.watch.alarms.steps import alike_changes
from lepaute.watch.changelog import ALL, Changelog, Inventory
from lepaute.watch.proposals.change_points import LEVEL, ChangePoint, LeastChange, find_change_points, least_change_of
from lepaute.watch.proposals.day_events import day_events
from lepaute.watch.proposals.proposed_event import (
    DAYS,
    DRIFT,
    MACHINE,
    PLATFORM,
    STEP,
    ProposedEvent,
    factor_changes,
    shared_groups,
)
from lepaute.watch.values import DAY_S, Machine, backward_jobs, check_values, is_of, is_of_job, nodes_of
from lepaute.watch.values import MACHINE as MACHINE_COLUMNS


def propose(
    values: pd.DataFrame,
    changelog: Changelog | None = None,
    *,
    inventory: Inventory | None = None,
    least_change: LeastChange | None = None,
    since_s: float | None = None,
    verdicts: pd.DataFrame | None = None,
    standing: pd.DataFrame | None = None,
    level: float = LEVEL,
    points: Sequence[ChangePoint] | None = None,
    unconfirmed: pd.DataFrame | None = None,
) -> tuple[ProposedEvent, ...]:
    """The changes that the values show and the changelog does not have, the weightiest first, single days last.

    values       : as watch.values says
    inventory    : what nodes share; without one, events are still joined by date
    least_change : smallest relative change that matters, for all factors or by factor (`least_change_of`)
    since_s      : only what happened then or later
    verdicts     : as `judge` returns them, or a store; days on which many nodes leave their usual range at once are
                   then events, too (`day_events`). They are not looked for without
    standing     : rows of `open_regressions`; each report of them is then an event, with its machines, date and sizes,
                   whatever these are unless least_change is given, and explains the days after it
    level        : the chance of any step or drift where nothing changes; that of any day is as much again
    points       : the change points of the values, however small, where they are known
    unconfirmed  : rows of `Judged.unconfirmed`, events, too, where the others say nothing of node and factor since
    Raises InputError for tables that are none, or parameters that cannot be.
    """
    every = find_change_points(values, changelog, least_change=0.0, level=level) if points is None else points
    points = [
        point
        for point in every
        if abs(point.size) >= least_change_of(point.factor, least_change)
        and (since_s is None or point.before_s >= since_s)
    ]
    raised: list[dict[str, Any]] = []
    events: list[ProposedEvent] = []
    if standing is not None and len(standing):
        events += standing_events(standing, values, least_change=least_change, since_s=since_s)
        raised = _with_machines(standing, values)
        points = [point for point in points if not any(_explains(row, point) for row in raised)]
    events += joined(points, least_change)
    if unconfirmed is not None and len(unconfirmed):
        latest = defaultdict[tuple[str, ...], list[float]](lambda: [-np.inf])
        for event in events:
            for change in event.factors:
                for cluster, node, _ in change.machines:
                    latest[cluster, node, change.factor].append(event.before_s)
        rows = unconfirmed[["cluster", "node", "factor", "since_s"]].itertuples(index=False, name=None)
        new = [max(latest[cluster, node, factor]) < begun_s for cluster, node, factor, begun_s in rows]
        events += standing_events(unconfirmed[new], values, least_change=least_change, since_s=since_s)
    if verdicts is not None:
        unexplained = _unexplained(verdicts, values, every, raised, changelog or Changelog())
        how: dict[str, Any] = {"least_change": least_change, "level": level, "since_s": since_s}
        events += day_events(verdicts, values, counted=unexplained, **how)
    if inventory is not None:
        measured = nodes_of(values)
        for number, event in enumerate(events):
            clusters = {cluster for cluster, _ in event.nodes}
            groups = shared_groups(inventory, event.nodes, [node for node in measured if node[0] in clusters])
            events[number] = replace(event, groups=groups)
    return tuple(sorted(events, key=lambda event: (event.shape == DAYS, -event.weight, event.before_s, event.machines)))


def _unexplained(
    verdicts: pd.DataFrame,
    values: pd.DataFrame,
    points: Sequence[ChangePoint],
    alarms: Sequence[dict[str, Any]],
    changelog: Changelog,
) -> npt.NDArray[np.bool_]:
    """Which verdicts are neither of dates that cannot be right nor of factors that have another level since.

    A new level raises alarms in all later jobs until the next event; it is one report already. So do jobs of the same
    direction on days of which it is not certain that they were before the change.
    """
    table = check_values(values)
    backward = table[backward_jobs(table)]
    kept = ~is_of_job(verdicts, zip(backward["cluster"], backward["node"], backward["job"], strict=True))
    resets = changelog.resets_s({(point.cluster, point.node) for point in points})
    started = verdicts["started_s"].to_numpy(np.float64)
    of_series = verdicts.groupby([*MACHINE_COLUMNS, "factor"], observed=True).indices
    directions = verdicts["direction"].to_numpy()

    def explain(name: tuple[str, str, int, str], begin_s: float, end_s: float, direction: int = 0) -> None:
        places = of_series.get(name, np.zeros(0, np.int64))
        explained = (started[places] >= begin_s) & (started[places] < end_s)
        kept[places[explained & ((directions[places] == direction) | (direction == 0))]] = False

    for point in points:
        name = (point.cluster, point.node, point.cpu, point.factor)
        end_s = next((each for each in resets[point.cluster, point.node] if each > point.after_s), np.inf)
        explain(name, np.nextafter(point.after_s, np.inf), end_s)
        explain(name, np.nextafter(point.earliest_s, np.inf), point.before_s, point.direction)
    for alarm in alarms:
        for machine in alarm["machines"]:
            # those that stand have no event since
            explain((*machine, alarm["factor"]), float(alarm["changed_s"]), np.inf)
    return kept


@dataclass(slots=True)
class _Bundle:
    """Changes with a moment in common."""

    points: list[ChangePoint]

    @property
    def nodes(self) -> frozenset[tuple[str, str]]:
        return frozenset((point.cluster, point.node) for point in self.points)

    @property
    def interval(self) -> tuple[float, float]:
        return max(point.earliest_s for point in self.points), min(point.latest_s for point in self.points)


def joined(points: Sequence[ChangePoint], least_change: LeastChange | None = None) -> tuple[ProposedEvent, ...]:
    """The events that explain these changes."""
    alike: dict[tuple[str, str, int, bool], list[ChangePoint]] = defaultdict(list)
    for point in points:
        alike[point.cluster, point.factor, point.direction, point.gradual].append(point)
    bundles = [bundle for members in alike.values() for bundle in _by_date(members)]
    return tuple(_event(members, least_change) for members in _over_factors(bundles))


def _by_date(points: list[ChangePoint]) -> list[_Bundle]:
    """The fewest dates that lie in the intervals of all, and each change with the one that is nearest to its own.

    The first interval to end needs a date up to its end, which is in as many others as any: so the ends are fewest.
    """
    ends: list[float] = []
    for point in sorted(points, key=lambda each: each.latest_s):
        if not ends or point.earliest_s >= ends[-1]:
            ends.append(point.latest_s)
    bundles: dict[float, list[ChangePoint]] = defaultdict(list)
    for point in points:
        possible = [end for end in ends if point.earliest_s < end <= point.latest_s]
        bundles[min(possible, key=lambda end: abs(end - point.before_s))].append(point)
    return [_Bundle(members) for members in bundles.values()]


def _over_factors(bundles: list[_Bundle]) -> list[list[ChangePoint]]:
    """Bundles of several factors that are one event: transitively, the largest first."""
    left = sorted(bundles, key=lambda bundle: (-len(bundle.nodes), bundle.interval))
    events: list[list[ChangePoint]] = []
    while left:
        event = [left.pop(0)]
        grew = True
        while grew:
            grew = False
            for other in list(left):
                if any(_same_event(one, other) for one in event):
                    event.append(other)
                    left.remove(other)
                    grew = True
        events.append([point for bundle in event for point in bundle.points])
    return events


def _same_event(one: _Bundle, other: _Bundle) -> bool:
    if one.points[0].gradual != other.points[0].gradual or one.points[0].factor == other.points[0].factor:
        return False
    (begin, end), (other_begin, other_end) = one.interval, other.interval
    if max(begin, other_begin) >= min(end, other_end):
        return False
    return 2 * len(one.nodes & other.nodes) >= min(len(one.nodes), len(other.nodes))


def _event(points: list[ChangePoint], least_change: LeastChange | None) -> ProposedEvent:
    largest: dict[Machine, ChangePoint] = {}
    for point in points:
        known = largest.get(point.machine)
        if known is None or _weight(point, least_change) > _weight(known, least_change):
            largest[point.machine] = point
    after_s, before_s = _window(list(largest.values()))
    by_size = sorted(largest.values(), key=lambda point: -_weight(point, least_change))
    machines = tuple(sorted(largest))
    sizes = defaultdict(list)
    for point in points:
        sizes[point.factor, point.direction].append((point.machine, point.size, point.low, point.high))
    return ProposedEvent(
        kind=MACHINE if len({machine[:2] for machine in machines}) == 1 else PLATFORM,
        shape=DRIFT if points[0].gradual else STEP,
        after_s=after_s,
        before_s=before_s,
        machines=machines,
        factors=factor_changes(sizes),
        p_value=min(point.p_value for point in points),
        weight=sum(_weight(point, least_change) for point in largest.values()),
        archives_before=tuple(dict.fromkeys(point.archive_before for point in by_size if point.archive_before)),
        archives_after=tuple(dict.fromkeys(point.archive_after for point in by_size if point.archive_after)),
    )


def _weight(point: ChangePoint, least_change: LeastChange | None) -> float:
    """The change in least changes; where any change matters, in per cent."""
    least = least_change_of(point.factor, least_change)
    return abs(point.size) / (least if least > 0 else 0.01)


def _window(points: list[ChangePoint]) -> tuple[float, float]:
    """Between the last job of before and the first of after, of as many machines as possible."""
    ends = sorted({point.before_s for point in points})
    best = max(ends, key=lambda end: sum(point.after_s < end <= point.before_s for point in points))
    inside = [point for point in points if point.after_s < best <= point.before_s]
    return max(point.after_s for point in inside), min(point.before_s for point in inside)


def standing_events(
    standing: pd.DataFrame,
    values: pd.DataFrame,
    *,
    least_change: LeastChange | None = None,
    since_s: float | None = None,
) -> tuple[ProposedEvent, ...]:
    """One step event for each group of machines and factors that changed together, as `summary.regressions_of` joins.

    standing     : as watch.alarms.standing gives it; values: the table of factor values
    least_change : smaller ones are left out, for all factors or by factor; all count unless given
    since_s      : only changes then or later
    p_value: the reciprocal of the largest evidence of an alarm, of its stream alone
    """
    table = check_values(values)
    rows = _with_machines(standing, values)
    if least_change is not None:
        rows = [row for row in rows if abs(row["size"]) >= least_change_of(row["factor"], least_change)]
    if since_s is not None:
        rows = [row for row in rows if row["changed_s"] >= since_s]
    groups = [[row for part in group for row in part] for group in alike_changes(rows)]
    return tuple(_standing_event(group, table, least_change) for group in groups)


def _with_machines(alarms: pd.DataFrame, values: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows with the machines that they are about: all of the stratum, of what these have in common."""
    rows = [{str(name): value for name, value in row.items()} for row in alarms.to_dict("records")]
    of_stratum: dict[tuple[str, str, str], list[Machine]] = {}
    if any(row["node"] == ALL for row in rows):
        names = ["cluster", "factor", "stratum", "node", "cpu"]
        for cluster, factor, stratum, node, cpu in values[names].drop_duplicates().itertuples(index=False, name=None):
            of_stratum.setdefault((cluster, factor, stratum), []).append((cluster, node, int(cpu)))
    for row in rows:
        shared = of_stratum.get((row["cluster"], row["factor"], row["stratum"]), [])
        row["machines"] = shared if row["node"] == ALL else [(row["cluster"], row["node"], int(row["cpu"]))]
    return rows


def _explains(row: dict[str, Any], point: ChangePoint) -> bool:
    """Whether the row's machine has the step of the point, or all machines were asked about that date."""
    if [point.cluster, point.factor, point.stratum] != [row["cluster"], row["factor"], row["stratum"]]:
        return False
    changed_s = float(row["changed_s"])
    if abs(point.before_s - changed_s) <= EXPLAINS_S and not point.gradual:
        return True
    near = point.earliest_s - EXPLAINS_S <= changed_s <= point.latest_s + EXPLAINS_S
    return near and point.machine in row["machines"]


def _standing_event(rows: list[dict[str, Any]], table: pd.DataFrame, least_change: LeastChange | None) -> ProposedEvent:
    of_factor: dict[tuple[str, int], dict[Machine, tuple[Machine, float, float, float]]] = defaultdict(dict)
    weights: dict[Machine, float] = {}
    for row in rows:
        least = least_change_of(row["factor"], least_change) or 0.01
        for machine in row["machines"]:
            sizes = (machine, row["size"], row["size_low"], row["size_high"])
            of_factor[row["factor"], int(row["direction"])].setdefault(machine, sizes)
            weights[machine] = max(weights.get(machine, 0.0), abs(row["size"]) / least)
    begin_s = median_low([float(row["changed_s"]) for row in rows])
    gradual_s = float(np.nanmin([np.inf, *(row.get("gradual_s", np.nan) for row in rows)]))
    nodes = {machine[:2] for machine in weights}
    earlier = (table["started_s"] < np.floor(begin_s / DAY_S) * DAY_S).to_numpy(np.bool_)
    earlier = table[is_of(table, nodes) & (table["state"] == "done").to_numpy(np.bool_) & earlier]
    latest = earlier[earlier["started_s"] == earlier["started_s"].max()].sort_values("job", kind="stable").tail(1)
    return ProposedEvent(
        kind=MACHINE if len(nodes) == 1 else PLATFORM,
        shape=DRIFT if gradual_s < begin_s else STEP,
        after_s=gradual_s if gradual_s < begin_s else float(earlier["started_s"].max()) if len(earlier) else begin_s,
        before_s=begin_s,
        machines=tuple(sorted(weights)),
        factors=factor_changes({key: list(sizes.values()) for key, sizes in of_factor.items()}),
        p_value=min(1.0, 1.0 / max(row["evidence"] for row in rows)),
        weight=sum(weights.values()),
        archives_before=tuple(archive for archive in latest["archive"] if archive),
        archives_after=tuple(dict.fromkeys(row["archive"] for row in rows if row["archive"])),
    )
