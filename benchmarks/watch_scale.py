"""What watching 656 processors for 300 jobs costs, in a folder and in PostgreSQL, and whether both say the same.

    .venv/bin/python benchmarks/watch_scale.py [--reference DIR] [--days 300] [--nodes 328]

Fixed before any result was looked at. Data: the published means of Dahu where --reference has them (13,540 jobs and
processors); and made up, 328 nodes of two processors, a job a day each, one job in a hundred failed, days that are
warm for all, an event of the whole cluster on day 100 and one of fifteen nodes on day 200: four factors, 787,200
values, in 30 changes of ten days; then eight coefficients, 1,574,400 values more. Tests with windows of 1 and 5: of
four factors by themselves (p = 1), of three and of all eight coefficients as a vector, each by itself and pooled; then
one further day.

Goals: the four factors ingested in 20 s, all tests in 120 s together, one further day in 2 s for each kind of test;
each process below 1 GB. Each step is a process of its own. What is judged is CPU time, of that process and of the
server, as the machine is shared; wall time is printed beside it. Start-up (imports, about a second) is not counted.
"""

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import psutil

if TYPE_CHECKING:
    from lepaute.watch.changelog import Changelog

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "validation")]

SEED = 17
DAY_S, FIRST_S = 86_400.0, 1.5e9 // 86_400 * 86_400 + 8 * 3600
FACTORS = ("mean_frequency_Hz", "mean_temperature_degC", "cpu_power_W", "dram_power_W")
COEFFICIENTS = tuple(f"dgemm_{term}_s" for term in ("intercept", "M", "N", "K", "MN", "MK", "NK", "MNK"))
INGEST_S, TESTS_S, DAY_GOAL_S, MEMORY_GB = 20.0, 120.0, 2.0, 1.0
#: Name -> factors and whether pooled.
TESTS = {
    "p = 1": (None, False),
    "p = 1, pooled": (None, True),
    "p = 3": ([COEFFICIENTS[5:]], False),
    "p = 3, pooled": ([COEFFICIENTS[5:]], True),
    "p = 8": ([COEFFICIENTS], False),
    "p = 8, pooled": ([COEFFICIENTS], True),
}


def values(nodes: int, first: int, days: int, factors: tuple[str, ...]) -> pd.DataFrame:
    """A job a day of each node, from day `first` on."""
    rng = np.random.default_rng([SEED, first, len(factors)])
    index = pd.MultiIndex.from_product(
        [range(nodes), range(2), range(first, first + days), factors], names=["node", "cpu", "job", "factor"]
    )
    frame = index.to_frame(index=False)
    failed = np.repeat(rng.random(len(frame) // len(factors)) < 0.01, len(factors))
    warm = np.tile(np.repeat(rng.normal(size=(days, 1)), len(factors), axis=1).reshape(-1), 2 * nodes)
    value = 100.0 + frame["node"] % 7 + warm + rng.normal(size=len(frame))
    return frame.assign(
        cluster="made",
        node=frame["node"].astype(str),
        job=frame["job"].astype(str),
        started_s=FIRST_S + DAY_S * frame["job"],
        stratum="s",
        value=np.where(failed, np.nan, value),
        state=np.where(failed, "failed", "done"),
        archive="",
    )


def changelog(days: int) -> "Changelog":
    """Two events."""
    import datetime as dt

    from lepaute.watch.changelog import Changelog, Event, NodeSet

    def date(day: int) -> dt.date:
        return dt.datetime.fromtimestamp(FIRST_S + DAY_S * day, dt.UTC).date()

    return Changelog(
        (
            Event(date(days // 3), NodeSet("made", "all"), "protocol", "another size"),
            Event(date(2 * days // 3), NodeSet("made", "100/101/102/103/104/[10-19]"), "platform", "new boards"),
        )
    )


class Clock:
    """Wall and CPU time of the blocks that it surrounds."""

    wall_s = cpu_s = 0.0

    def __enter__(self) -> None:
        self._began = time.perf_counter(), time.process_time()

    def __exit__(self, *_: object) -> None:
        self.wall_s += time.perf_counter() - self._began[0]
        self.cpu_s += time.process_time() - self._began[1]


def step(name: str, place: str, nodes: int, days: int, reference: str) -> dict[str, object]:
    """Runs one step in this process."""
    import duckdb  # noqa: F401
    import pyarrow.csv
    import pyarrow.parquet  # noqa: F401
    import scipy.special  # noqa: F401

    import lepaute as lp

    lp.watch.open  # noqa: B018 -- imports it
    from lepaute.watch.judging import recorded_tests  # noqa: F401

    clock = Clock()
    answer: dict[str, object] = {}
    with lp.watch.open(place) as watch:
        if name == "published":
            from support.watch_data import published_values

            from lepaute.watch.changelog import read_changelog

            folder = Path(reference) / "watch"
            data = published_values(folder / "stats_monitoring.csv.gz")
            with clock:
                watch.store.add_values(data)
                watch.add_changelog(read_changelog(folder / "exp_changelog.csv", folder / "exp_outlierlog.csv"))
                found = watch.test()
            answer = said(found)
        elif name.startswith("ingest"):
            factors = FACTORS if name == "ingest 4 factors" else COEFFICIENTS
            with clock:
                watch.add_changelog(changelog(days))
            for first in range(0, days, 10):
                data = values(nodes, first, min(10, days - first), factors)
                with clock:
                    watch.store.add_values(data)
        elif name == "add a day":
            for factors in (FACTORS, COEFFICIENTS):
                data = values(nodes, days, 1, factors)
                with clock:
                    watch.store.add_values(data)
        else:
            kind, _, when = name.partition("; ")
            factors, pooled = TESTS[kind]
            since_s = None if not when else FIRST_S + DAY_S * days - 3600
            with clock:
                found = watch.test(factors=factors or FACTORS, pooled=pooled, since_s=since_s)
            answer = said(found)
    return {
        "wall_s": clock.wall_s,
        "cpu_s": clock.cpu_s,
        "memory_GB": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e9,
        **answer,
    }


def said(found: pd.DataFrame) -> dict[str, object]:
    """Rows, tests that were made, and a digest of every bit of them."""
    columns = ["cluster", "node", "cpu", "job", "factor", "r", "n", "basis", "statistic", "p_value", "low", "high"]
    hashes = pd.util.hash_pandas_object(found[columns], index=False).to_numpy()
    return {
        "rows": len(found),
        "tests": int((found["missing"] == 0).sum()),
        "digest": hashlib.sha256(hashes.tobytes()).hexdigest()[:16],
    }


def server_cpu_s() -> float:
    """Of the PostgreSQL server that this process started, with what it has ended."""
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        try:
            if process.name() == "postgres":
                times = process.cpu_times()
                total += times.user + times.system
                if process.parent().name() != "postgres":
                    total += times.children_user + times.children_system
        except psutil.NoSuchProcess:
            continue
    return total


def measured(place: str, options: argparse.Namespace, name: str) -> dict[str, object]:
    before_s = server_cpu_s()
    arguments = ["--step", name, place, "--nodes", str(options.nodes), "--days", str(options.days)]
    if options.reference:
        arguments += ["--reference", options.reference]
    output = subprocess.run([sys.executable, __file__, *arguments], check=True, capture_output=True, text=True).stdout
    time.sleep(0.5)  # the server's process for it has ended
    return json.loads(output) | {"server_s": server_cpu_s() - before_s}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reference", default="")
    parser.add_argument("--days", type=int, default=300)
    parser.add_argument("--nodes", type=int, default=328)
    parser.add_argument("--only", choices=["folder", "PostgreSQL"], help="one kind of store; verdicts are not compared")
    parser.add_argument("--step", nargs=2, metavar=("NAME", "PLACE"))
    options = parser.parse_args()
    if options.step:
        print(json.dumps(step(*options.step, options.nodes, options.days, options.reference)))
        return 0
    names = [*(["published"] if options.reference else []), "ingest 4 factors", "ingest 8 coefficients", *TESTS]
    names += ["p = 1 again", "add a day", *(f"{kind}; one further day" for kind in TESTS)]
    met, digests = True, {}
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}\n")
    print("| step | store | CPU s | of these server | wall s | GB | tests | goal | met |\n|" + " --- |" * 9)
    for kind in [options.only] if options.only else ["folder", "PostgreSQL"]:
        with ExitStack() as stack:
            place = new_place(kind, stack)
            if options.reference:
                other = new_place(kind, stack)
            tests_s = 0.0
            for name in names:
                actual = name.removesuffix(" again")
                found = measured(other if name == "published" else place, options, actual)
                cpu_s = float(found["cpu_s"]) + float(found["server_s"])
                goal = {"ingest 4 factors": INGEST_S}.get(name) or (DAY_GOAL_S if "further" in name else None)
                tests_s += cpu_s if name in TESTS else 0.0
                good = (goal is None or cpu_s < goal) and found["memory_GB"] < MEMORY_GB
                met &= good
                digests.setdefault(actual, set()).add(found.get("digest"))
                print(
                    f"| {name} | {kind} | {cpu_s:.2f} | {found['server_s']:.2f} | {found['wall_s']:.2f} "
                    f"| {found['memory_GB']:.2f} | {found.get('tests', '')} "
                    f"| {'' if goal is None else f'{goal:g} s, '}{MEMORY_GB:g} GB | {'yes' if good else 'NO'} |",
                    flush=True,
                )
            met &= tests_s < TESTS_S
            reached = "yes" if tests_s < TESTS_S else "NO"
            print(f"| all tests together | {kind} | {tests_s:.1f} | | | | | {TESTS_S:g} s | {reached} |", flush=True)
    same = all(len(digest) == 1 for digest in digests.values())
    if options.only:
        return 0 if met else 1
    print(f"\nBoth stores give {'the same verdicts, bit for bit' if same else 'DIFFERENT verdicts'}.")
    return 0 if met and same else 1


def new_place(kind: str, stack: ExitStack) -> str:
    """An empty store."""
    if kind == "folder":
        return str(Path(stack.enter_context(tempfile.TemporaryDirectory())) / "store")
    from farms.postgresql import postgresql_server

    return stack.enter_context(stack.enter_context(postgresql_server()).database())


if __name__ == "__main__":
    sys.exit(main())
