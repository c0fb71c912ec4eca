"""Which steps are of consequence now: regressions that were confirmed and still stand.

Steps of one machine, factor and stratum since the last event that touches it belong together: the level before the
first of them is what it should be, times what all machines did since, or a part of them for the better. They stand
until an event begins a new reference: someone has explained the change, or repaired it. The date of a change is an
estimate, so an event up to EXPLAINS_S before it explains it, too. Or they stand until the machine is back: by a step
that returns most of the way, or when the latest RETURNED values all lie nearer to the level that it should have than to
the nearest level that it had since. They are a regression while the level now is on the worse side, or, of a factor
without a better side, on either; each step for the worse is then a row.
"""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd

from lepaute.stats.expanding import Floats
from lepaute.watch.alarms.sizes import is_worse
from lepaute.watch.alarms.steps import GROUP, Row, of_group, shared_steps, steps_of
from lepaute.watch.changelog import ALL, Changelog
from lepaute.watch.values import DAY_S, MACHINE, Machine, check_values, nodes_of

#: So many latest values must be back at the old level.
RETURNED = 5
EXPLAINS_S = 3 * DAY_S


def standing(
    alarms: "pd.DataFrame", changelog: Changelog, values: "pd.DataFrame", steps: "Sequence[Row] | None" = None
) -> "pd.DataFrame":
    """The steps of regressions that stand, a row for each machine and date.

    alarms : as watch.alarms.procedure.judge_days gives them, all of them; values : the table of factor values
    steps  : those of the alarms, where they are known (`steps_of`)
    Columns: those of `steps_of`, and now (median of the latest values, in the unit of the
    factor), now_size (relative to the level it should have).
    """
    rows: list[Row] = []
    if len(alarms):
        table = check_values(values)
        steps = steps_of(alarms, changelog, table) if steps is None else steps
        for group in dict.fromkeys(tuple(row[name] for name in GROUP) for row in steps):
            own = [row for row in steps if tuple(row[name] for name in GROUP) == group]
            rows += _of_group(own, changelog, of_group(table, group))
    return pd.DataFrame(rows, columns=[*alarms.columns, "gradual_s", "now", "now_size"]).reset_index(drop=True)


def _of_group(steps: list[Row], changelog: Changelog, values: "pd.DataFrame") -> list[Row]:
    resets, kept = changelog.resets_s(nodes_of(values)), values[~changelog.is_outlier(values)]
    of_all = [row for row in steps if row["node"] == ALL]
    parts = [part for part in shared_steps(steps, values).values() if not _returns(part, steps)]
    of_parts = {id(row) for part in parts for row in part if not row["worse"]}
    rows: list[Row] = []
    machines: dict[Machine, list[Row]] = {}
    for row in steps:
        machines.setdefault((row["cluster"], row["node"], row["cpu"]), []).append(row)
    of_steps = kept[kept["node"].isin([node for _, node, _ in machines])]
    places, values_of_steps = of_steps.groupby(MACHINE, observed=True).indices, of_steps["value"].to_numpy(np.float64)
    for (cluster, node, cpu), changes in machines.items():
        own = [row for row in changes if id(row) not in of_parts]
        if not own:
            continue
        if node == ALL:
            known = set.intersection(*map(set, resets.values()))
            days = values.groupby(np.floor(values["started_s"] / DAY_S))["value"].median()
            latest, others = days.to_numpy(np.float64)[-RETURNED:], list[Row]()
        else:
            known = set(resets[cluster, node])
            # in order of time and job
            latest = values_of_steps[places[cluster, node, cpu][-RETURNED:]]
            others = [*of_all, *(row for row in changes if id(row) in of_parts)]
        after_s = max(known, default=-np.inf) + EXPLAINS_S
        dates = {row["changed_s"] for row in own}
        shared = [row for row in others if row["changed_s"] not in dates and row["changed_s"] > after_s]
        rows += _open([row for row in own if row["changed_s"] > after_s], shared, latest)
    return rows


def _open(steps: list[Row], shared: list[Row], latest: "Floats") -> list[Row]:
    """The steps of one machine that stand; shared : those of all machines, which it took part in."""
    standing: list[Row] = []
    levels: list[float] = []  # relative to what it should be, after each of them
    for row in steps:
        standing.append(row)
        levels.append((levels[-1] if levels else 1.0) * (1 + row["size"]))
        if abs(levels[-1] - 1) < _least(levels) / 2:  # it is back
            standing, levels = [], []
    if not standing or not len(latest):
        return []
    should_be = float(standing[0]["before"])
    for row in shared:
        if row["changed_s"] > standing[0]["changed_s"]:
            should_be *= 1 + row["size"]
    now = float(np.median(latest))
    returned = np.abs(latest - should_be) < _least(levels) / 2 * abs(should_be)
    if len(latest) == RETURNED and returned.all():
        return []
    factor = str(standing[0]["factor"])
    if not is_worse(factor, 1 if now > should_be else -1):
        return []
    size = now / should_be - 1 if should_be else np.nan
    return [{**row, "now": now, "now_size": size} for row in standing if row["worse"]]


def _returns(part: Sequence[Row], steps: Sequence[Row]) -> bool:
    """Whether most of these machines had last become worse, by about as much."""
    machine, begun_s = itemgetter(*MACHINE), part[0]["changed_s"]
    last = {machine(row): row["size"] * row["worse"] for row in steps if row["changed_s"] < begun_s}
    back = [abs((1 + was) * (1 + row["size"]) - 1) < abs(was) / 2 for row in part if (was := last.get(machine(row)))]
    return bool(2 * sum(back) > len(part))


def _least(levels: list[float]) -> float:
    """How far off the nearest level is that was off; a step back reports the old level."""
    off = np.abs(np.array(levels) - 1)
    return float(off[off > 0.5 * off.max()].min(initial=off.max()))


def concerned(table: "pd.DataFrame", row: dict[Any, Any]) -> "pd.Series[bool]":
    """Which rows of a table are of the stratum and machine of a row of alarms; of all machines where it is of all."""
    rows: pd.Series[bool] = (table["cluster"] == row["cluster"]) & (table["stratum"] == row["stratum"])
    if row["node"] != ALL:
        rows &= (table["node"] == row["node"]) & (table["cpu"] == row["cpu"])
    return rows
