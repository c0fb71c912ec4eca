"""Does a change of the core's model leave what it predicts as it was? A law over seeds, of two builds of the core.

Any other order of events moves a single run of HPL by a per cent: bits are for changes that leave the model alone.

    validation/model_law.py --before SRC

SRC is the `src` of a checkout with its core (`make setup` there). 75 minutes on one core. Fixed before any result was
looked at:

* pairs: the same run, of the same seed, with both; dahu, NB 128, depth 1, 2ring, binary exchange, 8 x 8 ranks, all
  layers, in full; 1,000 pairs of N = 20,000, 400 of 50,000 and 200 of 100,000 for each way of laying the grid:
  by rows and by columns, with one process of a column on a node (8 nodes) and with four (2 and 16 nodes);
* goals: of each case the 95 % interval (Student) of the mean of the differences of log times inside +- 0.15 %; the
  ratio of the standard deviations of log times, in the mean over ways of one N, and over N of one way, within 10 %.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from math import log, sqrt
from pathlib import Path
from typing import Any

import numpy
import pandas
from support.report import ROOT, Goal, Options, markdown, run_study, say

from lepaute.stats.student import student_quantile

PAIRS = {20_000: 1000, 50_000: 400, 100_000: 200}
P = Q = 8
#: By name: how the grid is laid, and the node of each rank.
WAYS = {
    "rows, one of a column on a node": ("row", [rank // Q for rank in range(P * Q)]),
    "rows, four": ("row", [rank // (4 * Q) for rank in range(P * Q)]),
    "columns, one": ("column", [rank % P for rank in range(P * Q)]),
    "columns, four": ("column", [rank // 4 for rank in range(P * Q)]),
}
MEAN_LIMIT_PERCENT, SPREAD_LIMIT_PERCENT = 0.15, 10.0
#: Pairs of one process.
CHUNK = 100
OWN = {
    "--before": {"type": Path, "default": None, "help": "`src` of the version before, with its core"},
    "--share": {"type": float, "default": 1.0, "help": "of the pairs; less than 1 is a look, no result"},
}


def compared(options: Options) -> pandas.DataFrame:
    """A row a pair: n, way, seed, before_s, after_s."""
    if options.own.before is None:
        sys.exit("model_law.py: give the version to compare with: --before SRC")
    sources = {"before_s": options.own.before.resolve(), "after_s": ROOT / "src"}
    jobs = [(n, way, seeds) for n, pairs in PAIRS.items() for way in WAYS for seeds in chunks(pairs, options)]
    return pandas.concat([pairs_of(*job, sources) for job in jobs], ignore_index=True)


def chunks(pairs: int, options: Options) -> list[list[int]]:
    """The seeds of each process."""
    count = 2 if options.quick else round(pairs * options.own.share)
    return [list(range(first, min(first + CHUNK, count + 1))) for first in range(1, count + 1, CHUNK)]


def pairs_of(n: int, way: str, seeds: Sequence[int], sources: dict[str, Path]) -> pandas.DataFrame:
    """The pairs of one process each."""
    order, nodes = WAYS[way]
    hpl = {"n": n, "nb": 128, "p": P, "q": Q, "depth": 1, "bcast": "2ring", "pmap": order}
    asked = {
        "hpl": hpl,
        "platform": "dahu",
        "set": {},
        "noise": True,
        "seeds": seeds[:1],
        "runs": len(seeds),
        "nodes": nodes,
    }
    worker = Path(__file__).parent / "support" / "native_run.py"
    times = {}
    for name, source in sources.items():
        environment = os.environ | {"PYTHONPATH": str(source)}
        argv = [sys.executable, "-P", "-W", "ignore", str(worker), json.dumps(asked)]
        times[name] = json.loads(subprocess.check_output(argv, env=environment))["times_s"]
    frame = pandas.DataFrame({"n": n, "way": way, "seed": seeds, **times})
    say(n, way, seeds[0], len(seeds), f"{100.0 * numpy.log(frame['after_s'] / frame['before_s']).mean():+.3f} %")
    return frame


def laws(frame: pandas.DataFrame) -> pandas.DataFrame:
    """A row a case: pairs, mean difference in per cent with its interval, ratio of spreads."""
    rows = []
    for (n, way), pairs in frame.groupby(["n", "way"], sort=False):
        before, after = numpy.log(pairs["before_s"]), numpy.log(pairs["after_s"])
        mean, half = mean_percent(after - before)
        spreads = {"before_sd_percent": 100.0 * before.std(), "after_sd_percent": 100.0 * after.std()}
        rows.append({"n": n, "way": way, "pairs": len(pairs), "mean": mean, "half": half, **spreads})
    return pandas.DataFrame(rows)


def mean_percent(differences: Any) -> tuple[float, float]:
    """The mean of differences of logarithms in per cent, and half the width of its 95 % interval."""
    half = student_quantile(0.975, len(differences) - 1) * numpy.std(differences, ddof=1) / sqrt(len(differences))
    return 100.0 * float(numpy.mean(differences)), 100.0 * float(half)


def judged(frame: pandas.DataFrame) -> list[Goal]:
    table = laws(frame)
    goals = []
    for row in table.itertuples():
        met = abs(row.mean) + row.half <= MEAN_LIMIT_PERCENT
        limit = f"interval inside ± {MEAN_LIMIT_PERCENT:g} %"
        goals.append(Goal(f"mean, N = {row.n:,}, {row.way}", limit, f"{row.mean:+.3f} ± {row.half:.3f} %", met))
    for column in ("n", "way"):
        for value, rows in table.groupby(column, sort=False):
            ratio = numpy.exp(numpy.log(rows["after_sd_percent"] / rows["before_sd_percent"]).mean())
            met = abs(log(ratio)) <= log(1.0 + SPREAD_LIMIT_PERCENT / 100.0)
            what = f"ratio of spreads, {f'N = {value:,}' if column == 'n' else value}"
            goals.append(Goal(what, f"within {SPREAD_LIMIT_PERCENT:g} %", f"{ratio:.3f}", met))
    return goals


def text(frame: pandas.DataFrame) -> str:
    rows = [
        (f"{row.n:,}", row.way, f"{row.pairs}", f"{row.mean:+.3f} ± {row.half:.3f}",
         f"{row.before_sd_percent:.2f}", f"{row.after_sd_percent:.2f}")
        for row in laws(frame).itertuples()
    ]  # fmt: skip
    header = ("N", "grid", "pairs", "mean difference, %", "spread before, %", "now, %")
    return f"""## A change of the model, over seeds

HPL on 64 ranks of Dahu with two versions of the core (`validation/model_law.py --before SRC`).

{{goals}}

{markdown(header, rows)}
"""


if __name__ == "__main__":
    run_study(compared, judged, text, own=OWN, packed="%.6f")
