"""Made-up fleets of 3 to 64 nodes in which a fault is planted: who is hit, since when and how much is known."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from lepaute.watch.values import DAY_S

BEGIN_S = 1_767_225_600.0  # 2026-01-01
RATE = "dgemm_rate_flops"
#: Relative standard deviation of a node from day to day, and of a day for all nodes.
NOISE, WEATHER = 0.005, 0.002


@dataclass(frozen=True, slots=True)
class Fault:
    """nodes : that are hit, by number; size : relative; day : of the first slow job; until : of the first good one."""

    nodes: tuple[int, ...]
    size: float
    day: int
    until: int | None = None
    drift: bool = False

    def level(self, node: int, days: np.ndarray) -> np.ndarray:
        """What the node's rate is multiplied by on each day."""
        if node not in self.nodes:
            return np.ones(len(days))
        share = np.clip((days - self.day + 1) / (days[-1] - self.day + 1), 0, 1) if self.drift else days >= self.day
        return np.asarray(1 + self.size * share * (days < (self.until or np.inf)))


def planted(nodes: int, days: int, faults: tuple[Fault, ...] = (), seed: int = 1, factor: str = RATE) -> pd.DataFrame:
    """A job a day of each node n1, n2, ... of the cluster c: the table of factor values."""
    rng = np.random.default_rng((20261126, seed))
    levels = 1e12 * (1 + 0.03 * rng.normal(size=nodes))
    noise = NOISE * rng.normal(size=(nodes, days)) + WEATHER * rng.normal(size=days)
    when = np.arange(days)
    rows = []
    for node in range(nodes):
        hit = np.prod([np.ones(days), *(fault.level(node + 1, when) for fault in faults)], axis=0)
        for day, value in enumerate(levels[node] * hit * (1 + noise[node])):
            rows.append(("c", f"n{node + 1}", -1, f"j{day}", BEGIN_S + DAY_S * day + 3600.0 * (1 + node % 8), value))
    table = pd.DataFrame(rows, columns=["cluster", "node", "cpu", "job", "started_s", "value"])
    return table.assign(stratum="s", factor=factor, state="done", archive="")


def drawn_fault(seed: int) -> tuple[int, int, tuple[Fault, ...]]:
    """Nodes from 3 to 12, days, and a fault of one node, of a rack or of all; in every fifth fleet none."""
    rng = np.random.default_rng((5, seed))
    nodes, days, day = int(rng.integers(3, 13)), 90, int(rng.integers(50, 70))
    kind = seed % 5
    if kind == 4:
        return nodes, days, ()
    count = 1 if kind in (0, 1) else nodes if kind == 2 else int(rng.integers(2, max(3, nodes // 2 + 1)))
    hit = tuple(sorted(int(each) + 1 for each in rng.choice(nodes, count, replace=False)))
    return nodes, days, (Fault(hit, -float(rng.uniform(0.03, 0.1)), day),)
