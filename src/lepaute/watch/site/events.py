"""A platform event: what it did to the values of its nodes."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lepaute.watch.changelog import Event
from lepaute.watch.site.read import FactorRows

#: Jobs on either side that are compared.
JOBS = 10


@dataclass(frozen=True, slots=True)
class Effect:
    """Of a factor: medians over the machines of the relative change, and its quartiles."""

    factor: str
    machines: int
    change: float
    low: float
    high: float


def effect_of(event: Event, factor: FactorRows) -> Effect | None:
    """The median of the ten jobs from the date on, relative to that of the ten before, machine by machine.

    A description, no test: `lepaute watch events effect` tests. None where no machine has jobs on both sides.
    """
    rows = factor.rows
    if factor.is_vector:
        return None
    nodes = event.nodes.among({(factor.cluster, node) for node in rows["node"].unique()})
    own = rows[rows["node"].isin([node for _, node in nodes]) & rows["value"].notna()]
    changes = []
    for _, part in own.groupby(["node", "cpu"], sort=False, observed=True):
        times, values = part["started_s"].to_numpy(float), part["value"].to_numpy(float)
        before, after = values[times < event.start_s][-JOBS:], values[times >= event.start_s][:JOBS]
        if len(before) and len(after) and (level := float(np.median(before))) != 0.0:
            changes.append(float(np.median(after)) / level - 1.0)
    if not changes:
        return None
    low, middle, high = (float(value) for value in np.percentile(changes, [25, 50, 75]))
    return Effect(factor.name, len(changes), middle, low, high)


def event_values(event: Event, cluster: str) -> dict[str, Any]:
    """As overviews mark it."""
    return {"day": int(event.start_s // 86_400), "text": event.reason, "kind": event.kind, "cluster": cluster}
