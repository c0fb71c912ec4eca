"""Open regressions as proposals, so that a person can accept them: the same machines, dates and sizes as reported.

Alarms are faster than change points, and all machines were asked about their date. So where there is one, change points
of its date say nothing further; nor do the days since on which its machines were unlike before.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median_low
from typing import TYPE_CHECKING, Any

import numpy as np

from lepaute.watch.alarms.standing import EXPLAINS_S
from lepaute.watch.alike_changes import alike_changes
from lepaute.watch.changelog import ALL
from lepaute.watch.proposals.change_points import ChangePoint, LeastChange, least_change_of
from lepaute.watch.proposals.proposed_event import MACHINE, PLATFORM, STEP, ProposedEvent, factor_change
from lepaute.watch.values import DAY_S, Machine, check_values

if TYPE_CHECKING:
    import pandas as pd


def standing_events(
    standing: "pd.DataFrame",
    values: "pd.DataFrame",
    *,
    least_change: LeastChange | None = None,
    since_s: float | None = None,
) -> tuple[ProposedEvent, ...]:
    """A step for the machines and factors that changed together, as `summary.regressions_of` joins them.

    standing     : as watch.alarms.standing gives it; values: the table of factor values
    least_change : smaller ones are left out, for all factors or by factor; all count unless given
    since_s      : only changes then or later
    p_value: one over the largest evidence of an alarm, of its stream alone.
    """
    table = check_values(values)
    table = table[table["state"] == "done"]
    rows = with_machines(standing, values)
    if least_change is not None:
        rows = [row for row in rows if abs(row["size"]) >= least_change_of(row["factor"], least_change)]
    if since_s is not None:
        rows = [row for row in rows if row["changed_s"] >= since_s]
    groups = [[row for part in group for row in part] for group in alike_changes(rows)]
    return tuple(_event(group, table, least_change) for group in groups)


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


def unexplained_points(points: Iterable[ChangePoint], rows: Sequence[dict[str, Any]]) -> list[ChangePoint]:
    """The change points of which the regressions, rows of `with_machines`, do not know more."""
    return [point for point in points if not any(_explains(row, point) for row in rows)]


def _explains(row: dict[str, Any], point: ChangePoint) -> bool:
    """Whether the row's machine has the step of the point, or all machines were asked about that date."""
    if [point.cluster, point.factor, point.stratum] != [row["cluster"], row["factor"], row["stratum"]]:
        return False
    changed_s = float(row["changed_s"])
    if abs(point.before_s - changed_s) <= EXPLAINS_S and not point.gradual:
        return True
    own = (point.cluster, point.node, point.cpu) in row["machines"]
    return own and point.earliest_s - EXPLAINS_S <= changed_s <= point.latest_s + EXPLAINS_S


def _event(rows: list[dict[str, Any]], table: "pd.DataFrame", least_change: LeastChange | None) -> ProposedEvent:
    of_factor: dict[tuple[str, int], dict[Machine, tuple[float, float, float]]] = defaultdict(dict)
    weights: dict[Machine, float] = {}
    for row in rows:
        least = least_change_of(row["factor"], least_change) or 0.01
        sizes = (row["size"], row["size_low"], row["size_high"])
        for machine in row["machines"]:
            of_factor[row["factor"], int(row["direction"])].setdefault(machine, sizes)
            weights[machine] = max(weights.get(machine, 0.0), abs(row["size"]) / least)
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
