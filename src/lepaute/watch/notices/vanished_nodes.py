"""Nodes that vanished: others of the cluster go on being measured, and they do not."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lepaute.watch.proposals.change_points import LEVEL
from lepaute.watch.values import DAY_S

if TYPE_CHECKING:
    import pandas as pd

#: Fewer days without a result are a busy node.
FEWEST_DAYS = 3
#: A day of the cluster is one on which this share of its nodes that were ever measured before has a result.
LEAST_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class VanishedNode:
    """A node without a result on the last `days` days of its cluster; failed: on how many of them it has a failed job.

    last_s  : its last result
    p_value : the chance of so many days in a row if it took part as usual, times the number of nodes
    """

    cluster: str
    node: str
    last_s: float
    days: int
    failed: int
    p_value: float


def vanished_nodes(table: "pd.DataFrame", *, level: float = LEVEL) -> tuple[VanishedNode, ...]:
    """The nodes that stay away longer than ever before; `table` as `check_values` returns it.

    A node took part in a share of the days of its cluster, from its first result to its last. That it misses the last k
    in a row by chance has a probability of (1 - share)^k if its days are independent; since they are not always, it has
    to be longer than its longest absence before, too, and FEWEST_DAYS at least. Failed, aborted and missing jobs are no
    results.
    """
    rows = table.assign(day=np.floor(table["started_s"] / DAY_S).astype(np.int64), done=table["state"] == "done")
    found: list[VanishedNode] = []
    nodes = len(table[["cluster", "node"]].drop_duplicates())
    for cluster, part in rows.groupby("cluster", sort=True):
        done = part[part["done"]]
        present = done[["node", "day"]].drop_duplicates()
        count = present.groupby("day")["node"].nunique()
        known = present.groupby("node")["day"].min().sort_values().to_numpy()
        days = count.index.to_numpy(np.int64)
        days = days[count.to_numpy() >= LEAST_SHARE * np.searchsorted(known, days, side="right")]
        for node, of_node in present.groupby("node", sort=True):
            mine = np.isin(days, of_node["day"].to_numpy())
            last = int(of_node["day"].max())
            away = days[days > last]
            seen = mine[(days >= of_node["day"].min()) & (days <= last)]
            if len(away) < FEWEST_DAYS or len(away) <= _longest_gap(seen):
                continue
            share = (seen.sum() + 1) / (len(seen) + 2)
            p = min(1.0, float((1 - share) ** len(away)) * nodes)
            if p > level:
                continue
            late = part[(part["node"] == node) & ~part["done"] & (part["day"] > last)]
            result = done[done["node"] == node]["started_s"].max()
            found.append(VanishedNode(str(cluster), str(node), float(result), len(away), int(late["day"].nunique()), p))
    return tuple(found)


def _longest_gap(seen: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> int:
    positions = np.flatnonzero(seen)
    return int(np.diff(positions).max(initial=1)) - 1
