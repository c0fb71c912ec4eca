"""What a store of 656 CPUs and 300 jobs costs: ingest, queries, memory; and whether the answers are right.

    .venv/bin/python benchmarks/store_scale.py [URL]

Fixed before any result was looked at. Data: four factors of 328 nodes of two CPUs in 300 jobs, 787,200 values, of which
one in a hundred jobs failed, added in 30 changes of ten jobs; a fixed seed. Goals: ingest in less than 20 s, a query of
one node in less than 1 s, a further day in less than 2 s, less than 1 GB of memory. URL: of an empty database; without
it the store is a folder.
"""

import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas

from lepaute.store import open_store

NODES, CPUS, JOBS, JOBS_AT_ONCE = 328, 2, 300, 10
FACTORS = ("mean_frequency_Hz", "mean_temperature_degC", "cpu_power_W", "dram_power_W")
SEED = 17
INGEST_S, QUERY_S, DAY_S, MEMORY_BYTES = 20.0, 1.0, 2.0, 1e9


def values(first_job: int, jobs: int) -> pandas.DataFrame:
    """All factors of all CPUs in some jobs."""
    rng = np.random.default_rng([SEED, first_job])
    index = pandas.MultiIndex.from_product(
        [range(NODES), range(CPUS), range(first_job, first_job + jobs), FACTORS],
        names=["node", "cpu", "job", "factor"],
    )
    frame = index.to_frame(index=False)
    failed = np.repeat(rng.random(len(frame) // len(FACTORS)) < 0.01, len(FACTORS))
    return frame.assign(
        cluster="dahu",
        node=frame["node"].astype(str),
        job=frame["job"].astype(str),
        started_s=1.5e9 + 86400.0 * frame["job"],
        stratum="s1",
        value=np.where(failed, np.nan, rng.normal(100.0, 1.0, len(frame))),
        state=np.where(failed, "failed", "done"),
        archive="",
    )


def main(where: str) -> int:
    with open_store(where) as store:
        began = time.perf_counter()
        for first_job in range(0, JOBS, JOBS_AT_ONCE):
            store.add_values(values(first_job, JOBS_AT_ONCE))
        ingest_s = time.perf_counter() - began
        began = time.perf_counter()
        node = store.values(cluster="dahu", nodes=["17"])
        query_s = time.perf_counter() - began
        began = time.perf_counter()
        added = store.add_values(values(JOBS, 1))
        day_s = time.perf_counter() - began
        began = time.perf_counter()
        everything = store.values()
        all_s = time.perf_counter() - began
    memory_bytes = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    right = (
        len(node) == CPUS * JOBS * len(FACTORS)
        and added == NODES * CPUS * len(FACTORS)
        and len(everything) == NODES * CPUS * (JOBS + 1) * len(FACTORS)
    )
    goals = [
        ("ingest", ingest_s, INGEST_S, "s"),
        ("one node", query_s, QUERY_S, "s"),
        ("one further day", day_s, DAY_S, "s"),
        ("memory", memory_bytes / 1e9, MEMORY_BYTES / 1e9, "GB"),
    ]
    for name, found, goal, unit in goals:
        print(f"{name:16} {found:8.3f} {unit}   goal {goal:g} {unit}   {'met' if found < goal else 'MISSED'}")
    print(f"{'all values':16} {all_s:8.3f} s\nanswers          {'right' if right else 'WRONG'}")
    return 0 if right and all(found < goal for _, found, goal, _ in goals) else 1


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(main(sys.argv[1]))
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(main(str(Path(folder) / "store")))
