"""Latency and bandwidth of messages, of the ping-pongs of a calibration or a node test: half of a round trip, less the
clock's cost.

Between nodes (`network_...`) and inside a node (`loopback_...`). Both ends of a pair have the value of the pair: one
slow card shows at both, and the pairs of a node tell which end it is.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from lepaute.fit.observations.columns import NEEDED, P2P, checked_table
from lepaute.watch.factors.archived_run import ArchivedRun
from lepaute.watch.factors.sizes import cells_text
from lepaute.watch.factors.value import FactorValue

if TYPE_CHECKING:
    import pandas as pd

#: Messages whose time is all latency, and those whose time is all bandwidth, on networks of 1 to 400 Gbit/s.
SMALL_BYTES, LARGE_BYTES = 256, 1 << 20
_NAMES = {"remote": "network", "local": "loopback"}


def network(run: ArchivedRun) -> Iterator[FactorValue]:
    """For each node and kind of link: the median time of small messages, and bytes over time of large ones."""
    if P2P not in run.archive.members():
        return
    if not run.is_calibration and not set(run.archive.table(P2P).columns) >= {*NEEDED[P2P], "link"}:
        return  # a table of that name of somebody's own experiment
    table = checked_table(run.archive, P2P)
    nodes = run.nodes_of(table)
    if nodes is None or "link" not in table:
        return
    table = table.assign(node=nodes, one_way_s=(table["duration_s"] - table["clock_cost_s"]).clip(lower=0.0) / 2.0)
    table = _last_attempts(table[table["operation"].astype(str) == "pingpong"])
    if "distance" in table:  # inside a node the nearest cores
        local = (table["link"] == "local").to_numpy()
        nearest = table.loc[local, "distance"].astype(str).min() if local.any() else ""
        table = table[~local | (table["distance"].astype(str) == nearest).to_numpy()]
    else:
        nearest = ""
    for node in run.states:
        ends = table["node"] == node
        if "peer" in table:
            ends |= table["peer"].astype(str) == node
        for link, name in _NAMES.items():
            rows = table[ends & (table["link"] == link)]
            if len(rows):
                yield from _of_link(run, node, name, rows, nearest if link == "local" else "")


def _of_link(run: ArchivedRun, node: str, name: str, rows: "pd.DataFrame", distance: str) -> Iterator[FactorValue]:
    small, large = rows[rows["size_bytes"] <= SMALL_BYTES], rows[rows["size_bytes"] >= LARGE_BYTES]
    conditions = {**run.mpi(node), **({"distance of the cores": distance} if distance else {})}
    for factor, part in ((f"{name}_latency_s", small), (f"{name}_bandwidth_B_per_s", large)):
        if len(part) == 0:
            continue
        seconds = float(part["one_way_s"].sum())
        if factor.endswith("_latency_s"):
            value = float(part["one_way_s"].median())
        else:
            value = float(part["size_bytes"].sum()) / seconds if seconds > 0 else np.nan
        yield FactorValue(node, factor, value, conditions={**conditions, "messages": cells_text(part, ["size_bytes"])})


def _last_attempts(table: "pd.DataFrame") -> "pd.DataFrame":
    """Of what was made again since other load disturbed it, the last."""
    keys = [name for name in ("node", "block", "link", "peer", "distance") if name in table]
    if "attempt" not in table or len(table) == 0:
        return table
    last = table.groupby(keys, dropna=False)["attempt"].transform("max")
    return table[table["attempt"] == last]
