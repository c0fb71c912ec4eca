"""Regressions that stand and that no other proposed event has: each is one, so that a person can accept it.

Alarms are faster than change points: a machine of which one is raised within days is a proposal only weeks later. And
what an alarm has found explains the days on which its machine was unlike before.
"""

from collections import defaultdict
from collections.abc import Sequence
from statistics import median_low
from typing import TYPE_CHECKING, Any

import numpy as np

from lepaute.watch.alarms.standing import EXPLAINS_S
from lepaute.watch.alike_changes import alike_changes
from lepaute.watch.changelog import ALL
from lepaute.watch.proposals.change_points import LeastChange, least_change_of
from lepaute.watch.proposals.proposed_event import DAYS, MACHINE, PLATFORM, STEP, ProposedEvent, factor_change
from lepaute.watch.values import DAY_S, Machine, check_values

if TYPE_CHECKING:
    import pandas as pd


def standing_events(
    standing: "pd.DataFrame",
    values: "pd.DataFrame",
    proposed: Sequence[ProposedEvent] = (),
    *,
    least_change: LeastChange | None = None,
    since_s: float | None = None,
) -> tuple[ProposedEvent, ...]:
    """A step for the machines and factors that changed together, as `summary.regressions_of` joins them.

    standing     : as watch.alarms.standing gives it; values: the table of factor values
    proposed     : a regression is left out where the entry of one of these would explain it, if both are of a common
                   factor, in the same direction: then they are one cause
    least_change : smaller ones are left out, for all factors or by factor; all count unless given
    since_s      : only changes then or later
    Sizes and intervals are those of the alarms. p_value: one over the largest evidence, of its stream alone.
    """
    table = check_values(values)
    table = table[table["state"] == "done"]
    rows = with_machines(standing, values)
    if least_change is not None:
        rows = [row for row in rows if abs(_sizes(row)[0]) >= least_change_of(row["factor"], least_change)]
    if since_s is not None:
        rows = [row for row in rows if row["changed_s"] >= since_s]
    groups = [[row for part in group for row in part] for group in alike_changes(rows)]
    return tuple(_event(left, table, least_change) for group in groups if (left := _not_covered(group, proposed)))


def with_machines(alarms: "pd.DataFrame", values: "pd.DataFrame") -> list[dict[str, Any]]:
    """Rows with the machines that they are about: all of the stratum, of what these have in common."""
    rows: list[dict[str, Any]] = [
        {str(name): value for name, value in row.items()} for row in alarms.to_dict("records")
    ]
    if not rows:
        return []
    of_stratum: dict[tuple[str, str, str], list[Machine]] = {}
    if any(row["node"] == ALL for row in rows):
        names = ["cluster", "factor", "stratum", "node", "cpu"]
        for cluster, factor, stratum, node, cpu in values[names].drop_duplicates().itertuples(index=False, name=None):
            of_stratum.setdefault((cluster, factor, stratum), []).append((cluster, node, int(cpu)))
    for row in rows:
        own = [(row["cluster"], row["node"], int(row["cpu"]))]
        shared = of_stratum.get((row["cluster"], row["factor"], row["stratum"]), [])
        row["machines"] = shared if row["node"] == ALL else own
    return rows


def _not_covered(group: list[dict[str, Any]], proposed: Sequence[ProposedEvent]) -> list[dict[str, Any]]:
    """The rows that no proposal of a common factor has; those of all machines, where it has less than half of them."""
    changed = {(row["factor"], _direction(row)) for row in group}
    lasting = [event for event in proposed if event.shape != DAYS]
    alike = [event for event in lasting if changed & {(each.factor, each.direction) for each in event.factors}]
    return [
        row
        for row in group
        if row["machines"]
        and not any(_covers(event, row) for event in alike)
        and not any(_other_side(event, row) for event in lasting)
    ]


def _covers(event: ProposedEvent, row: dict[str, Any]) -> bool:
    """Whether both are of the same days and machines."""
    nodes = set(event.nodes)
    return _same_days(event, row) and 2 * sum(machine[:2] in nodes for machine in row["machines"]) >= len(
        row["machines"]
    )


def _other_side(event: ProposedEvent, row: dict[str, Any]) -> bool:
    """Whether the machine seemed to change the other way because many did: what all have in common is a median."""
    many = {cluster for cluster, _, _ in event.machines} == {row["cluster"]} and event.kind == PLATFORM
    other = any(each.factor == row["factor"] and each.direction * row["size"] < 0 for each in event.factors)
    return many and other and _same_days(event, row)


def _same_days(event: ProposedEvent, row: dict[str, Any]) -> bool:
    return bool(event.after_s - EXPLAINS_S <= row["changed_s"] <= event.before_s + EXPLAINS_S)


def _direction(row: dict[str, Any]) -> int:
    return int(np.sign(row["now_size"]))


def _sizes(row: dict[str, Any]) -> tuple[float, float, float]:
    """As the alarm was; where the machine is on the other side by now, as it is, with an interval as wide."""
    shift = 0.0 if row["size"] * row["now_size"] > 0 else row["now_size"] - row["size"]
    return row["size"] + shift, row["size_low"] + shift, row["size_high"] + shift


def _event(rows: list[dict[str, Any]], table: "pd.DataFrame", least_change: LeastChange | None) -> ProposedEvent:
    of_factor: dict[tuple[str, int], dict[Machine, tuple[float, float, float]]] = defaultdict(dict)
    weights: dict[Machine, float] = {}
    for row in rows:
        least = least_change_of(row["factor"], least_change) or 0.01
        for machine in row["machines"]:
            of_factor[row["factor"], _direction(row)].setdefault(machine, _sizes(row))
            weights[machine] = max(weights.get(machine, 0.0), abs(_sizes(row)[0]) / least)
    factors = [
        factor_change(factor, [(machine, *sizes) for machine, sizes in by_machine.items()])
        for (factor, _), by_machine in of_factor.items()
    ]
    begin_s = median_low([float(row["changed_s"]) for row in rows])
    nodes = {machine[:2] for machine in weights}
    mine = table[[key in nodes for key in zip(table["cluster"], table["node"], strict=True)]]
    earlier = mine[mine["started_s"] < np.floor(begin_s / DAY_S) * DAY_S]
    latest = earlier.sort_values(["started_s", "job"], kind="stable").tail(1)
    return ProposedEvent(
        kind=MACHINE if len(nodes) == 1 else PLATFORM,
        shape=STEP,
        after_s=float(earlier["started_s"].max()) if len(earlier) else begin_s,
        before_s=begin_s,
        machines=tuple(sorted(weights)),
        factors=tuple(sorted(factors, key=lambda each: (-len(each.machines), -abs(each.size), each.factor))),
        p_value=min(1.0, 1.0 / max(row["evidence"] for row in rows)),
        weight=sum(weights.values()),
        archives_before=tuple(archive for archive in latest["archive"] if archive),
        archives_after=tuple(dict.fromkeys(row["archive"] for row in rows if row["archive"])),
    )
