"""What a study costs besides its simulations: threads of one process, and Dask's processes here.

    .venv/bin/python benchmarks/study_runner.py [--simulations 10000] [--n 20000] [--workers 2]

HPL on 16 x 16 ranks of dahu, 20 configurations. For each runner: wall time, processor time of all processes, that of
the simulations themselves as the workers measure it, and what is left for each simulation; store included, the start of
workers not (it is printed). The runners' results must be equal. Goal: at most 20 ms a simulation, 90 % simulating.
"""

import argparse
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from lepaute.study.configuration import Configurations
from lepaute.study.evaluation import Outcome, trials_of
from lepaute.study.pools import DaskPool, Pool, Threads
from lepaute.study.results import Results
from lepaute.study.schema import study_of
from lepaute.study.session import Session
from lepaute.watch.store import open_store

CONFIGURATIONS = 20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=10_000)
    parser.add_argument("--n", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    study = study_of(
        {
            "question": "whatif",
            "base": {"application": {"name": "hpl", "n": options.n, "grid": "16x16"}, "platform": "dahu"},
            "factors": {
                "nb": {"path": "application.nb", "levels": [128, 160, 192, 224, 256]},
                "width": {"path": "scale.bandwidth", "levels": [0.25, 0.5, 1, 2]},
            },
            "whatif": {"factor": "width"},
        }
    )
    runs = max(1, options.simulations // CONFIGURATIONS)
    runners: dict[str, Callable[[Configurations], Pool]] = {
        "threads": lambda each: Threads(each, options.workers),
        "processes": lambda each: DaskPool(each, workers=options.workers),
    }
    results = []
    print(f"{'runner':12}{'start s':>9}{'wall s':>9}{'CPU s':>9}{'simulating s':>14}{'ms besides':>12}{'of CPU %':>10}")
    for name, pool_of in runners.items():
        results.append(measured(name, Configurations(study), pool_of, runs))
    if results[0] != results[1]:
        print("the runners' results differ", file=sys.stderr)
        return 1
    return 0


def measured(
    name: str, configurations: Configurations, pool_of: Callable[[Configurations], Pool], runs: int
) -> list[Outcome]:
    """The outcomes; prints the row of a runner."""
    trials = trials_of(configurations.points(), runs)
    began_s = time.perf_counter()
    pool = pool_of(configurations)
    start_s = time.perf_counter() - began_s
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder) / "store") as store:
        session = Session(configurations, Results(store), pool)
        before_s, began_s = cpu_s(), time.perf_counter()
        outcomes = session(trials)
        wall_s, used_s = time.perf_counter() - began_s, cpu_s() - before_s
        pool.close()
    besides_ms = 1e3 * (used_s - session.cpu_s) / len(trials)
    share = 100.0 * session.cpu_s / used_s
    print(
        f"{name:12}{start_s:9.1f}{wall_s:9.1f}{used_s:9.1f}{session.cpu_s:14.1f}{besides_ms:12.2f}{share:10.1f}",
        flush=True,
    )
    return outcomes


def cpu_s() -> float:
    """Processor time of this process and of all below it, so far."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    below = 0.0
    for process in psutil.Process().children(recursive=True):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        below += times.user + times.system
    return own.ru_utime + own.ru_stime + below


if __name__ == "__main__":
    sys.exit(main())
