"""Nodes whose cores share a clock and a memory: is a full node predicted from a calibration under several loads?

A node is made up, calibrated under the loads of `lepaute calibrate` and, for comparison, on two neighbouring cores
alone, as versions before 0.11 did; both are fitted, HPL is predicted with 20 draws and run 20 times, each on another
day. Fixed before the first result:

* the law (`truth.loads`): that of `truth.law`, of which the computing part grows as the clock falls from 3.5 GHz (alone
  on the socket) to 2.4 GHz (all): 2.4 + 1.1 * (share of idle others)^1.5; and the part that moves data (term mn of
  calls with more than 1024 rows, swaps) by computing cores / 5 above five. Scatter: calls 3 %, processes 0.5 %, days
  and cores 1 %;
* nodes: 2 sockets of 16 cores with a clock, a memory, or both; one socket of 24 with both; 2 sockets that share one
  memory (interleaved pages), which crowding by the socket cannot tell;
* placements: all cores, one socket full, half of each (N = 8000), one rank a socket, one rank (N = 4000). NB = 128. In
  the truth a core counts as computing throughout, also while it waits;
* goals: full nodes within 3 %, where the two-core calibration is off by 20 % (both); 90 % of the further runs inside
  over all placements, those of the interleaved memory aside.
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas
from support.report import Goal, Options, at_least, at_most, run_study
from truth.law import NB, Effects, Scatter, law_of
from truth.loads import Node, placement, true_runs_s, write_calibration, write_two_core_calibration
from truth.runs import columns_of, fitted

from lepaute.simulate import Hpl, predict

STUDY = "crowded_nodes"
SCATTER = Scatter(call=0.03, process=0.005, day=0.01, core=0.01)
BOTH, INTERLEAVED = "both", "memory of the node"
NODES = {
    "clock": Node(2, 32, memory=""),
    "memory": Node(2, 32, clock=False),
    BOTH: Node(2, 32),
    "both, one socket": Node(1, 24),
    INTERLEAVED: Node(2, 32, memory="node"),
}
QUICK = {BOTH: Node(2, 8)}
RUNS = 20
SEEDS = 2
FULL = "all cores"
WITHIN, OFF, INSIDE = 3.0, 20.0, 90.0
TEXT = """## Nodes whose cores share a clock and a memory

Made-up nodes of 24 or 32 cores, calibrated under all loads and, for comparison, on two neighbouring cores alone; a
clock that falls from 3.5 to 2.4 GHz as cores compute, and memories that five cores saturate; HPL on full and on partly
filled nodes, 20 runs each (`validation/crowded_nodes.py`). Crowding is one factor for all sizes of a kernel:
contention for a memory that both sockets share is right only on nodes that are filled evenly.

{goals}

{cases}
"""


def placements(node: Node) -> dict[str, tuple[tuple[int, ...], tuple[int, int], int]]:
    """Cores, grid and N of each placement."""
    each, half = node.cores // node.sockets, node.cores // 2
    spread = tuple(core for core in range(node.cores) if core % each < each // 2)
    result = {
        FULL: (tuple(range(node.cores)), grid(node.cores), 8000),
        "half of each socket": (spread, grid(half), 8000),
        "one core": ((0,), (1, 1), 4000),
    }
    if node.sockets > 1:
        result["one socket full"] = (tuple(range(half)), grid(half), 8000)
        result["one core a socket"] = ((0, each), (1, 2), 4000)
    return result


def grid(ranks: int) -> tuple[int, int]:
    """The squarest grid with no more rows than columns."""
    rows = next(rows for rows in range(int(ranks**0.5), 0, -1) if ranks % rows == 0)
    return rows, ranks // rows


def simulated(options: Options) -> pandas.DataFrame:
    """A row for each node, placement and calibration; written after each node."""
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        for kind, node in (QUICK if options.quick else NODES).items():
            for seed in range(1, (1 if options.quick else SEEDS) + 1):
                rows += judged_node(kind, node, seed, Path(folder))
                options.write(STUDY, pandas.DataFrame(rows))
    return pandas.DataFrame(rows)


def judged_node(kind: str, node: Node, seed: int, folder: Path) -> list[dict[str, object]]:
    """A node made up, calibrated both ways, predicted and run."""
    rng = np.random.default_rng([seed, list(NODES).index(kind)])
    law, effects = law_of(SCATTER, rng), Effects(SCATTER, rng)
    platforms = {
        "loads": fitted(write_calibration(folder / "loads.zip", node, law, effects, rng)),
        "two cores": fitted(write_two_core_calibration(folder / "two.zip", node, law, effects, rng)),
    }
    rows = []
    for name, (cores, (p, q), n) in placements(node).items():
        hpl = Hpl(n=n, nb=NB, p=p, q=q)
        times = np.array(true_runs_s(hpl, node, law, effects, cores, RUNS, rng))
        case = {"node": kind, "seed": seed, "placement": name, "n": n, "grid": f"{p}x{q}"}
        for calibration, platform in platforms.items():
            spread = predict(hpl, platform, runs=RUNS, seed=seed, mapping=placement(cores)).time_s
            inside = int(np.count_nonzero((times >= spread.low) & (times <= spread.high)))
            rows.append({**case, "calibration": calibration, **columns_of(spread, times), "inside": inside})
    return rows


def judged(frame: pandas.DataFrame) -> list[Goal]:
    frame = frame.assign(error=100.0 * (frame["predicted_s"] / frame["true_mean_s"] - 1.0))
    full = frame[frame["placement"] == FULL]
    loads, two = (full[full["calibration"] == name] for name in ("loads", "two cores"))
    off = float(two.loc[two["node"] == BOTH, "error"].abs().min())
    counted = frame[(frame["calibration"] == "loads") & (frame["node"] != INTERLEAVED)]
    inside = 100.0 * float(counted["inside"].sum() / counted["runs"].sum())
    return [
        at_most("full nodes, largest error", WITHIN, float(loads["error"].abs().max())),
        at_least("the same from two cores (both)", OFF, off),
        at_least("further runs inside, all placements", INSIDE, inside),
    ]


if __name__ == "__main__":
    run_study(simulated, judged, TEXT)
