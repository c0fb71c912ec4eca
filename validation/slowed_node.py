"""A node that is slowed on purpose, from its test to its drain: four virtual nodes of a real Slurm on this machine.

    .venv/bin/python validation/slowed_node.py [--before 12] [--after 5] [--quota 1.6]

Fixed before any result was looked at. `lepaute watch run` tests the nodes in turn (quick node tests), as many times as
there are days before and after. From the first day after, the slurmd of n3 with all that it starts may use only 1.6
processors (CPU quota of its control group). The calendar is made up, since each day has to pass in half a minute: the
values measured in a turn get the date of their day, the last of which is yesterday; everything else is as a user would
do it, with the defaults of all commands.

Expected: no open regression before; after, n3 and no other node; a confirmation run is asked for, and `watch run`
makes it and no other; then n3 is drained with the reason; when it is resumed by hand it is not drained again.
Needs root, Slurm and control groups of version 1. Exit status 1 where something else happens.
"""

import argparse
import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

NODES, SLOWED = "n[1-4]", "n3"
QUICK = ("--set", "quick=true", "--set", "warm_up_s=1")
FACTOR = "dgemm_rate_flops"
DAY_S = 86_400.0
CGROUP = Path("/sys/fs/cgroup/cpu/lepaute-slowed")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=int, default=12, help="days before the node is slowed")
    parser.add_argument("--after", type=int, default=5, help="days after that")
    parser.add_argument("--quota", type=float, default=1.6, help="processors that the node may use then")
    parser.add_argument("--reference", help="not used")
    options = parser.parse_args()
    from farms.slurm import slurm_farm

    with tempfile.TemporaryDirectory() as name, slurm_farm(Path(name) / "slurm", nodes=4) as farm:
        os.environ["SLURM_CONF"] = farm.environment["SLURM_CONF"]
        steps = scenario(options, Path(name), farm)
        print("| step | expected | seen | |\n| --- | --- | --- | --- |")
        good = True
        for step, expected, seen in steps:
            good &= expected == seen
            print(f"| {step} | {expected} | {seen} | {'yes' if expected == seen else 'NO'} |", flush=True)
    return 0 if good else 1


def scenario(options: argparse.Namespace, folder: Path, farm: object) -> "Iterator[tuple[str, str, str]]":
    """Each step, what is expected, and what is seen."""
    from farms.slurm import SlurmFarm
    from support_run import run_lepaute

    from lepaute.measure.schedulers import scheduler
    from lepaute.store import open_store
    from lepaute.watch.drains import SETTLED_S, Drains, node_health

    assert isinstance(farm, SlurmFarm)
    days = options.before + options.after
    first_s = time.time() // DAY_S * DAY_S - days * DAY_S + 8 * 3600
    began_s = time.monotonic()
    for day in range(options.before):
        measure(folder, day, first_s)
    yield "open regressions before", "none", open_regressions(folder)
    with slowed(farm, options.quota):
        for day in range(options.before, days):
            measure(folder, day, first_s)
        with open_store(folder / "store") as store:
            show(store.values(factors=[FACTOR]), first_s)
        print(f"{4 * days} node tests in {(time.monotonic() - began_s) / 60:.0f} minutes\n")
        yield "open regressions after", SLOWED, open_regressions(folder)
        found = run_lepaute("watch", "health", NODES, "--store", "store", "--drain", "--most", 1, folder=folder).stdout
        yield "a confirmation run is asked for", SLOWED, nodes_of(found, "a confirmation run is asked for")
        asked = ("--nodes", NODES, *QUICK, "--store", "store", "--archives", "confirm", "--every", "365d", "--json")
        done = json.loads(run_lepaute("watch", "run", *asked, folder=folder, limit_s=600).stdout)
        yield "nodes tested again", SLOWED, ", ".join(test["node"] for test in done["tests"])
    found = run_lepaute("watch", "health", NODES, "--store", "store", "--drain", "--most", 1, folder=folder).stdout
    yield "drained", SLOWED, nodes_of(found, "drained now")
    reasons = {name: node.reason for name, node in scheduler("slurm").node_states().items() if node.out_of_service}
    print(f"Slurm says: {reasons}\n")
    yield "out of service in Slurm", SLOWED, ", ".join(reasons)
    farm.run("scontrol", "update", f"nodename={SLOWED}", "state=resume")
    for later_s in (SETTLED_S + 10, SETTLED_S + DAY_S):
        states = scheduler("slurm").node_states()
        with open_store(folder / "store") as store:
            drains = Drains(states, 1, scheduler("slurm").drain)
            (health,) = node_health(store, "", [SLOWED], time.time() + later_s, drains)
        yield f"after {later_s / 3600:.1f} h", "RESUMED", health.verdict.name
    yield (
        "out of service at the end",
        "none",
        ", ".join(n for n, s in scheduler("slurm").node_states().items() if s.out_of_service) or "none",
    )


def measure(folder: Path, day: int, first_s: float) -> None:
    """One test of each node by `watch run`; its values go into the store with the date of the day."""
    from support_run import run_lepaute

    from lepaute.store import open_store

    words = ("--nodes", NODES, *QUICK, "--store", f"day{day}", "--archives", f"tests{day}", "--for", "10min")
    done = run_lepaute("watch", "run", *words, folder=folder, limit_s=900)
    if done.returncode != 0:
        raise SystemExit(f"day {day}: {done.stdout}{done.stderr}")
    with open_store(folder / f"day{day}") as store:
        values = store.values()
    start_s = values["started_s"].min()
    dated = values.assign(started_s=first_s + day * DAY_S + values["started_s"] - start_s, archive="")
    with open_store(folder / "store") as store:
        store.add_values(dated)


def open_regressions(folder: Path) -> str:
    """The nodes of open regressions, as `watch test` finds them."""
    from support_run import run_lepaute

    found = json.loads(run_lepaute("watch", "test", "--store", "store", "--json", folder=folder).stdout)
    print(json.dumps([(each["machines"], each["changes"]) for each in found["regressions"]]), "\n")
    nodes = {machine[1] for each in found["regressions"] for machine in each["machines"]}
    return ", ".join(sorted(nodes)) or "none"


def nodes_of(said: str, words: str) -> str:
    """The nodes whose line has these words."""
    return ", ".join(line.partition(":")[0] for line in said.splitlines() if words in line)


def show(values: object, first_s: float) -> None:
    """The measured rates, a row a day."""
    import pandas as pd

    assert isinstance(values, pd.DataFrame)
    day = ((values["started_s"] - first_s + 1.0) // DAY_S).astype(int).rename("day")
    table = values["value"].groupby([day, values["node"]]).mean().unstack() / 1e9
    print(f"{FACTOR}, Gflop/s\n\n{table.round(2).to_string()}\n")


@contextmanager
def slowed(farm: object, processors: float) -> Iterator[None]:
    """The node's slurmd, and all that it starts from now on, share so much of the processors."""
    from farms.slurm import SlurmFarm

    assert isinstance(farm, SlurmFarm)
    CGROUP.mkdir(exist_ok=True)
    (CGROUP / "cpu.cfs_period_us").write_text("20000")
    (CGROUP / "cpu.cfs_quota_us").write_text(str(round(20000 * processors)))
    daemon = farm.daemons[SLOWED].pid
    (CGROUP / "cgroup.procs").write_text(str(daemon))
    try:
        yield
    finally:
        (CGROUP.parent / "cgroup.procs").write_text(str(daemon))
        for left in (CGROUP / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):
                (CGROUP.parent / "cgroup.procs").write_text(left)
        with contextlib.suppress(OSError):
            CGROUP.rmdir()


if __name__ == "__main__":
    sys.exit(main())
