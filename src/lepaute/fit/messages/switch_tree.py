"""Switches of nodes below one more, where messages that leave a switch take longer than those that do not."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lepaute.fit.messages.distances import BETWEEN, DistanceEffect, welch
from lepaute.fit.messages.flows import exchange_table

if TYPE_CHECKING:
    import pandas

    from lepaute.platform.topology import Topology

SAME_SWITCH, ACROSS = BETWEEN
#: Chance that a way between switches is said to be narrower where it is not.
MISS = 0.05


@dataclass(frozen=True, slots=True)
class SwitchTree:
    """Two levels: `switches`, by the numbers of their nodes, and one above all.

    extra_latency_s: of a message from one switch to another
    uplink_Bps     : what the nodes of one switch reach to those of another, where that is less than inside a switch;
                     None: a cable upwards takes as much as the links of the switch's nodes together
    """

    switches: Sequence[Sequence[int]]
    extra_latency_s: float
    uplink_Bps: float | None  # noqa: N815 - the unit

    def topology(self, link_Bps: float) -> "Topology":
        """As a platform has it; link_Bps: of a node."""
        from lepaute.platform.topology import Topology

        leaves = [f"leaf{number + 1}" for number in range(len(self.switches))]
        return Topology.model_validate(
            {
                "kind": "graph",
                "switches": [
                    *(
                        {"name": name, "nodes": ",".join(map(str, nodes))}
                        for name, nodes in zip(leaves, self.switches, strict=True)
                    ),
                    {"name": "top"},
                ],
                "links": [
                    {
                        "between": [name, "top"],
                        "bandwidth_Bps": self.uplink_Bps or len(nodes) * link_Bps,
                        "latency_s": self.extra_latency_s / 2.0,
                    }
                    for name, nodes in zip(leaves, self.switches, strict=True)
                ],
            }
        )

    def sentence(self) -> str:
        """For a reader of the platform."""
        if self.uplink_Bps is not None:
            return (
                f"Two nodes of different switches reach {self.uplink_Bps / 1e9:.3g} GB/s together, less than two of "
                "one switch: so much is taken for all that leaves a switch."
            )
        return (
            "What leaves a switch is taken to have as much room as the links of its nodes together: many nodes at once "
            "were not measured."
        )


def longer_way(effects: Sequence[DistanceEffect]) -> float | None:
    """How much longer a small message takes from one switch to another, in seconds; None where that is not clear."""
    for effect in effects:
        part = effect.latency_s
        if effect.distance == ACROSS and part is not None and part.low > 0:
            return part.estimate
    return None


def uplink_Bps(frames: "Sequence[pandas.DataFrame]") -> float | None:  # noqa: N802 - the unit
    """What pairs across reach together with most flows, where it is clearly less than that of pairs of one switch.

    Compared are the means of log(bytes per second) of starts, at the largest size and number of flows.
    """
    import numpy as np
    import pandas

    tables = [table for frame in frames if len(table := exchange_table(frame))]
    if not tables:
        return None
    table = pandas.concat(tables, ignore_index=True)
    table = table[(table["flows"] == table["flows"].max())]
    table = table[table["size_bytes"] == table["size_bytes"].max()]
    keys = ["distance", *(key for key in ("pair", "block", "attempt") if key in table.columns)]
    rate = np.log(table["flows"] * table["size_bytes"] / table["duration_s"])
    starts = rate.groupby([table[key] for key in keys]).median()
    by_class = {name: part.to_numpy(dtype=np.float64)[:, None] for name, part in starts.groupby(level=0)}
    found = welch(by_class.get(SAME_SWITCH), by_class.get(ACROSS), 0, MISS)
    return float(np.exp(np.mean(by_class[ACROSS]))) if found is not None and found.high < 0 else None
