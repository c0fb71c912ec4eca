"""Does a change of the core's model leave what it predicts as it was? A law over seeds, of two builds of the core.

Another order of events moves a single run of HPL by up to a per cent: that all bits are equal is for changes that leave
the model alone.

    validation/model_law.py --before SRC

SRC is the `src` of a checkout with its core (`make setup` there). 75 minutes on one core, with --share 0.4 half an
hour. Fixed before any result was looked at:

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
from math import exp, log, sqrt
from pathlib import Path
from typing import Any

import numpy
import pandas
from support.report import ROOT, Goal, Options, at_most, markdown, run_study, say

from lepaute.stats.student import student_quantile

PAIRS = {20_000: 1000, 50_000: 400, 100_000: 200}
#: By name: how the grid is laid, and the node of each rank.
WAYS = {
    "rows, one of a column on a node": ("row", [rank // 8 for rank in range(64)]),
    "rows, four": ("row", [rank // 32 for rank in range(64)]),
    "columns, one": ("column", [rank % 8 for rank in range(64)]),
    "columns, four": ("column", [rank // 4 for rank in range(64)]),
}
MEAN_LIMIT_PERCENT, SPREAD_LIMIT_PERCENT = 0.15, 10.0
#: Pairs of one process.
CHUNK = 100
WORKER = Path(__file__).parent / "support" / "native_run.py"
OWN = {
    "--before": {"type": Path, "help": "`src` of the version before, with its core"},
    "--share": {"type": float, "default": 1.0, "help": "of the pairs"},
}


def compared(options: Options) -> pandas.DataFrame:
    """A row a pair: n, way, seed, before_s, after_s."""
    if options.own.before is None:
        sys.exit("model_law.py: give the version to compare with: --before SRC")
    frames = []
    for n, pairs in PAIRS.items():
        count = 2 if options.quick else round(pairs * options.own.share)
        for way in WAYS:
            for first in range(1, count + 1, CHUNK):
                seeds = range(first, min(first + CHUNK, count + 1))
                before, after = (times_s(n, way, seeds, src) for src in (options.own.before, ROOT / "src"))
                rows = {"n": n, "way": way, "seed": seeds, "before_s": before, "after_s": after}
                frames.append(pandas.DataFrame(rows))
                say(n, way, f"{len(seeds)} pairs from {first}")
    return pandas.concat(frames, ignore_index=True)


def times_s(n: int, way: str, seeds: Sequence[int], source: Path) -> list[float]:
    """Of the runs with these seeds, by the version in `source`."""
    order, nodes = WAYS[way]
    hpl = {"n": n, "nb": 128, "p": 8, "q": 8, "depth": 1, "bcast": "2ring", "pmap": order}
    asked = {"hpl": hpl, "platform": "dahu", "set": {}, "noise": True, "nodes": nodes}
    words = json.dumps(asked | {"seeds": seeds[:1], "runs": len(seeds)}, default=list)
    argv = [sys.executable, "-P", "-W", "ignore", str(WORKER), words]
    done = subprocess.check_output(argv, env=os.environ | {"PYTHONPATH": str(source.resolve())})
    return list(json.loads(done)["times_s"])


def mean_percent(differences: Any) -> tuple[float, float]:
    """The mean of differences of logarithms in per cent, and half the width of its 95 % interval."""
    half = student_quantile(0.975, len(differences) - 1) * numpy.std(differences, ddof=1) / sqrt(len(differences))
    return 100.0 * float(numpy.mean(differences)), 100.0 * float(half)


def laws(frame: pandas.DataFrame) -> pandas.DataFrame:
    """A row a case: the mean difference, half its interval, and the log of the ratio of spreads."""
    rows = []
    for (n, way), pairs in frame.groupby(["n", "way"], sort=False):
        before, after = (numpy.log(pairs[f"{which}_s"]) for which in ("before", "after"))
        mean, half = mean_percent(after - before)
        rows.append((n, way, len(pairs), mean, half, log(after.std() / before.std())))
    return pandas.DataFrame(rows, columns=["n", "way", "pairs", "mean", "half", "ratio"])


def judged(frame: pandas.DataFrame) -> list[Goal]:
    table = laws(frame)
    farthest = (table["mean"].abs() + table["half"]).max()
    ratio = exp(max(table.groupby(of)["ratio"].mean().abs().max() for of in ("n", "way")))
    return [
        at_most("means: farthest end of an interval", MEAN_LIMIT_PERCENT, farthest),
        at_most("spreads, of one N or one way: largest ratio - 1", SPREAD_LIMIT_PERCENT, 100.0 * (ratio - 1.0)),
    ]


def text(frame: pandas.DataFrame) -> str:
    rows = [
        (f"{row.n:,}", row.way, f"{row.pairs}", f"{row.mean:+.3f} ± {row.half:.3f}", f"{exp(row.ratio):.3f}")
        for row in laws(frame).itertuples()
    ]
    pairs = ", ".join(f"{count}" for count in laws(frame).groupby("n")["pairs"].sum())
    return f"""## A change of the model, over seeds

HPL on 64 ranks of Dahu before and after December 2026 (`validation/model_law.py`), {pairs} pairs.

{{goals}}

{markdown(("N", "grid", "pairs", "mean difference, %", "ratio of spreads"), rows)}
"""


if __name__ == "__main__":
    run_study(compared, judged, text, own=OWN, packed="%.6f")
