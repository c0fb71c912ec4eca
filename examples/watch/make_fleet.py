"""Makes fleet.csv: a job a day on twelve nodes that do not exist, with four things to find.

    python make_fleet.py fleet.csv

- 2026-01-31: a new BIOS on all nodes, 1.5 % slower.
- 2026-02-10: the cooling of node 7 fails; both CPUs are 10 % slower and 12 degrees warmer.
- 2026-02-18: node 3 does not report any more.
- 2026-02-26 on: the jobs of node 5 crash.
"""

import csv
import datetime as dt
import sys
from math import sin, tau

import numpy as np

START = dt.datetime(2026, 1, 2, 4, 0, tzinfo=dt.UTC)
DAYS, NODES, CPUS = 58, 12, 2
BIOS, COOLING, VANISHED, CRASHES = (
    (dt.date(2026, month, day) - START.date()).days for month, day in ((1, 31), (2, 10), (2, 18), (2, 26))
)
HEADING = ["start", "node", "cpu", "job", "gflops", "frequency_GHz", "temperature_C", "state"]


def rows(rng: np.random.Generator) -> list[list[object]]:
    """A row a job and CPU, in the order of HEADING."""
    typical = 980.0 * np.exp(rng.normal(0.0, 0.01, (NODES + 1, CPUS)))
    found: list[list[object]] = []
    for day in range(DAYS):
        room = 1.5 * sin(tau * day / 30.0) + rng.normal(0.0, 0.3)  # degrees, the same for all
        today = rng.normal(0.0, 0.001)
        for node in range(1, NODES + 1):
            if node == 3 and day >= VANISHED:
                continue
            start = START + dt.timedelta(days=day, minutes=int(rng.integers(0, 600)))
            crashed = node == 5 and day >= CRASHES
            for cpu in range(CPUS):
                slow = 0.10 * (node == 7 and day >= COOLING) + 0.015 * (day >= BIOS)
                speed = np.exp(today - slow + rng.normal(0.0, 0.003))
                warm = 61.0 + 2.0 * cpu + room + 12.0 * (node == 7 and day >= COOLING) + rng.normal(0.0, 0.8)
                values = [f"{typical[node, cpu] * speed:.1f}", f"{2.1 * speed:.4f}", f"{warm:.1f}"]
                found.append(
                    [f"{start:%Y-%m-%dT%H:%M}", f"node{node}", cpu, 40_000 + 20 * day + node]
                    + (["", "", "", "crash"] if crashed else [*values, "ok"])
                )
    return found


if __name__ == "__main__":
    with open(sys.argv[1], "w", encoding="utf-8", newline="") as file:  # noqa: PTH123 - a script to read
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADING)
        writer.writerows(rows(np.random.default_rng(2026)))
