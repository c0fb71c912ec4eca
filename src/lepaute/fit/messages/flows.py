"""How wide the link of a node is: what several messages at once from one node to another make use of, and back.

An exchange moves `flows` messages of one size each way. On either node it lasts from the first of its ranks that begins
to the last that ends, by the clock of that node.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lepaute.fit.messages.starts import START

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, slots=True)
class FlowCurve:
    """Bytes per second each way that so many flows reach together, by their number, in increasing number."""

    reached_Bps: dict[int, float]  # noqa: N815 - the unit

    @property
    def best(self) -> tuple[int, float]:
        """The number of flows that reach most, and how much; of equals the smallest."""
        return max(self.reached_Bps.items(), key=lambda item: (item[1], -item[0]))


def flow_curve(frames: "Sequence[pandas.DataFrame]", distance: str | None = None) -> FlowCurve | None:
    """From the flows of one or more archives, of pairs of nodes at that distance, or of all; None without any.

    For each number of flows the slope of the exchange's duration over the size, through the medians of each size with
    relative weights: what is the same for all sizes, such as the start of the exchange, is no part of it.
    """
    import pandas

    exchanges = [exchange_table(frame) for frame in frames]
    if not (kept := [table for table in exchanges if len(table)]):
        return None
    table = pandas.concat(kept, ignore_index=True)
    if distance is not None:
        table = table[table["distance"] == distance]
    counts = sorted(map(int, table["flows"].unique()))
    reached = {count: count / _seconds_per_byte(table[table["flows"] == count]) for count in counts}
    return FlowCurve(reached) if reached else None


def exchange_table(frame: "pandas.DataFrame") -> "pandas.DataFrame":
    """One row an exchange: its start of mpirun, distance, flows, size_bytes, duration_s (mean of the two nodes)."""
    rows = frame[(frame["call"].astype(str) == "exchange") & (frame["link"] == "remote")].copy()
    if "distance" not in rows.columns:
        rows["distance"] = None
    rows["distance"] = rows["distance"].astype(object).where(rows["distance"].notna(), "")
    ends = [rows[["host", "peer"]].astype(str).min(axis=1), rows[["host", "peer"]].astype(str).max(axis=1)]
    rows["pair"] = ends[0] + " " + ends[1]
    rows["end_s"] = rows["start_s"] + rows["duration_s"]
    rows["flows"] = rows["ranks"] // 2
    start = ["pair", *(key for key in START if key in ("block", "attempt") and key in rows.columns)]
    keys = [*start, "distance", "flows", "design_row", "size_bytes"]
    sides = rows.groupby([*keys, "host"], observed=True).agg(first=("start_s", "min"), last=("end_s", "max"))
    sides["duration_s"] = sides["last"] - sides["first"]
    return sides.groupby(keys, observed=True)["duration_s"].mean().reset_index()


def _seconds_per_byte(rows: "pandas.DataFrame") -> float:
    """Of each flow, by a line through the medians; by the largest size alone where there is no other."""
    medians = rows.groupby("size_bytes")["duration_s"].median()
    size, duration_s = medians.index.to_numpy(dtype=np.float64), medians.to_numpy(dtype=np.float64)
    if len(size) > 1:
        slope = float(np.polyfit(size, duration_s, 1, w=1.0 / duration_s)[0])
        if slope > 0:
            return slope
    return float(duration_s[-1] / size[-1])
