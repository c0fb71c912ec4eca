"""What the commands of a watch cost on a made fleet: CPU time and peak memory of each, and a digest of what it says.

    .venv/bin/python benchmarks/watch_speed.py [--nodes 1000] [--days 200] [--against OTHER/src]

The fleet: a job a day of each node, eight factors, one job in a hundred failed, days that are warm for all. On day 100
an event of a tenth of the nodes; and planted, of which nothing is logged: a node that is 5 % slower from two thirds on
in two factors, a rack of four that draws less power, one that drifts, one that has been silent for the last tenth, and
one that scatters. The commands, each a process of its own, in the order of the first day: `test`, `test` again,
`events propose`, `site`, `alert`, and after one further day `test` once more.

--against: a folder with another version of the package; both are run in turn on copies of one store, and what they say
must be the same. The caches of judgements are empty at the beginning. User and system time of the process count,
start-up included; of the memory, the largest resident set.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

SEED = 39
DAY_S, FIRST_S = 86_400.0, 1.7e9 // 86_400 * 86_400 + 8 * 3600
#: Factor -> level and relative scatter.
FACTORS = {
    "mean_frequency_Hz": (2.4e9, 0.004),
    "mean_temperature_degC": (60.0, 0.02),
    "cpu_power_W": (120.0, 0.01),
    "dram_power_W": (20.0, 0.02),
    "dgemm_rate_flops": (9e11, 0.006),
    "memory_bandwidth_B_per_s": (1.8e11, 0.008),
    "disk_write_B_per_s": (5e8, 0.05),
    "exchange_s": (2e-6, 0.03),
}
#: Days in one change of the store.
AT_ONCE = 20


def values(nodes: int, first: int, days: int, end: int) -> pd.DataFrame:
    """The factor values of `days` days from `first` on; end : days that the planted changes are reckoned by."""
    rng = np.random.default_rng([SEED, first])
    shape = (nodes, days, len(FACTORS))
    level, scatter = (np.array(each) for each in zip(*FACTORS.values(), strict=True))
    own = 1 + 0.01 * np.random.default_rng(SEED).normal(size=(nodes, 1, len(FACTORS)))
    warm = 0.3 * scatter * rng.normal(size=(1, days, 1))
    x = own * (1 + warm + scatter * rng.normal(size=shape))
    day = first + np.arange(days)
    late = (day >= 2 * end // 3)[None, :]
    names = list(FACTORS)
    x[1:2, :, names.index("dgemm_rate_flops")] *= 1 - 0.05 * late
    x[1:2, :, names.index("memory_bandwidth_B_per_s")] *= 1 - 0.05 * late
    x[4:8, :, names.index("cpu_power_W")] *= 1 - 0.03 * (day >= end // 2)[None, :]
    x[9:10, :, names.index("dgemm_rate_flops")] *= 1 - 0.04 * np.clip(day / end - 0.5, 0, None)[None, :]
    x[11:12, :, names.index("exchange_s")] *= 1 + 0.1 * late * rng.normal(size=(1, days))
    failed = rng.random((nodes, days)) < 0.01
    failed[13, day >= 0.9 * end] = True
    index = pd.MultiIndex.from_product([range(nodes), day, names], names=["node", "job", "factor"])
    frame = index.to_frame(index=False)
    is_failed = np.repeat(failed.ravel(), len(names))
    return frame.assign(
        cluster="made",
        cpu=-1,
        node=frame["node"].astype(str),
        job=frame["job"].astype(str),
        started_s=FIRST_S + DAY_S * frame["job"],
        stratum="s",
        value=np.where(is_failed, np.nan, (level * x).ravel()),
        state=np.where(is_failed, "failed", "done"),
        archive="",
    )


def make_store(place: Path, nodes: int, days: int) -> None:
    import datetime as dt

    import lepaute as lp
    from lepaute.watch.changelog import Changelog, Event, NodeSet

    date = dt.datetime.fromtimestamp(FIRST_S + DAY_S * (days // 2), dt.UTC).date()
    with lp.watch.open(place) as watch:
        event = Event(date, NodeSet("made", f"[0-{max(1, nodes // 10)}]"), "platform", "new boards")
        watch.add_changelog(Changelog((event,)))
        for first in range(0, days, AT_ONCE):
            watch.store.add_values(values(nodes, first, min(AT_ONCE, days - first), days))


def add_a_day(place: Path, nodes: int, days: int) -> None:
    import lepaute as lp

    with lp.watch.open(place) as watch:
        watch.store.add_values(values(nodes, days, 1, days))


def command(sources: Path, folder: Path, words: tuple[str, ...]) -> tuple[float, float, bytes]:
    """CPU seconds and memory (MB) of one command, and what it prints."""
    environment = {**os.environ, "PYTHONPATH": str(sources), "LEPAUTE_HOME": str(folder / "cache")}
    program = [sys.executable, "-m", "lepaute.cli.main", "watch", *words, "--store", "store"]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(program, cwd=folder, stdout=output, stderr=subprocess.PIPE, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if code not in (0, 1):  # 1: there are regressions
            raise SystemExit(f"{' '.join(words)}: {code} {process.stderr.read().decode() if process.stderr else ''}")
        output.seek(0)
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, output.read()


def digest_of(folder: Path, printed: bytes) -> str:
    """Of what was printed, its numbers to 12 digits, and, after a site, of all of its files."""
    said = re.sub(rb'"judged_s": [0-9.]+', b"", printed)
    said = re.sub(rb"[0-9]+[.][0-9]+(e[-+]?[0-9]+)?", lambda number: b"%.12g" % float(number[0]), said)
    found = hashlib.sha256(said)
    for path in sorted((folder / "site").rglob("*")):
        if path.is_file():
            found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()[:16]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--days", type=int, default=200)
    parser.add_argument("--against", type=Path, metavar="SRC", help="sources of another version")
    parser.add_argument("--only", metavar="STEP,...", help="only these steps")
    parser.add_argument("--made", type=Path, metavar="STORE", help="make the fleet there and keep it, or take it")
    options = parser.parse_args()
    own = Path(__file__).resolve().parents[1] / "src"
    versions = {"this": own} | ({"other": options.against.resolve()} if options.against else {})
    steps: dict[str, tuple[str, ...]] = {
        "test": ("test", "--json"),
        "test again": ("test", "--json"),
        "propose": ("events", "propose", "--json"),
        "site": ("site", "-o", "site"),
        "alert": ("alert", "--prometheus", "watch.prom"),
        "a day more": ("test", "--json"),
    }
    if options.only:
        steps = {name: words for name, words in steps.items() if name in options.only.split(",")}
    same = True
    with tempfile.TemporaryDirectory() as name:
        made = options.made or Path(name) / "made"
        if not made.exists():
            make_store(made, options.nodes, options.days)
        for version in versions:
            (Path(name) / version).mkdir()
            shutil.copytree(made, Path(name) / version / "store")
        print(f"{options.nodes} nodes, {options.days} days, {len(FACTORS)} factors")
        print("| step | version | CPU s | MB | digest |\n| --- | --- | --- | --- | --- |")
        for step, words in steps.items():
            digests = set()
            for version, sources in versions.items():
                folder = Path(name) / version
                if step.startswith("a day"):
                    add_a_day(folder / "store", options.nodes, options.days)
                cpu_s, memory_mb, printed = command(sources, folder, words)
                digests.add(said := digest_of(folder, printed))
                print(f"| {step} | {version} | {cpu_s:.2f} | {memory_mb:.0f} | {said} |", flush=True)
            same &= len(digests) == 1
    if options.against:
        print(f"Both versions say {'the same, byte for byte' if same else 'DIFFERENT things'}.")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
