"""Block sizes that were not measured: real HPL on this machine against predictions between and beyond those that were.

Eight minutes of an otherwise idle machine of two cores, 84 real runs. Fixed before any result was looked at:

* calibration: `lepaute calibrate --nb 64,128,256`, seed 1; cases: N = 3000 and 6000, NB = 16 to 256 (seven), grids 1 x
  2 and 2 x 1; 10 simulated runs, all layers, sealed before three real runs each in shuffled order, as `lepaute verify`
  does;
* 96 and 192, between: comparable, and the mean of the real runs inside in 7 of 8 cases (intervals of exactly 95 %: 94
  times in a hundred). 16 and 32, beyond: "not comparable", or judged like the others;
* order at N = 3000, on each grid: all pairs of comparable block sizes whose real means differ by more than 3 % and
  twice the standard error are predicted in the same order (Kendall's tau beside it); the one named best is at most 3 %
  slower than the fastest comparable one.
"""

import math
import tempfile
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pandas
from scipy.stats import kendalltau
from support.real_runs import calibrated, campaign
from support.report import Goal, Options, run_study

from lepaute import Hpl, Platform, load_platform

MEASURED, BETWEEN, BEYOND = (64, 128, 256), (96, 192), (16, 32)
BLOCK_SIZES = tuple(sorted((*MEASURED, *BETWEEN, *BEYOND)))
ORDERS, GRIDS, RUNS, REPEATS = (3000, 6000), ((1, 2), (2, 1)), 10, 3
RANKED_N = 3000
TELLING_PERCENT, STANDARD_ERRORS = 3.0, 2.0
QUICK_ORDERS, QUICK_BLOCK_SIZES, QUICK_GRIDS = (800,), (32, 96, 128), ((1, 2),)
TEXT = """## Block sizes between and beyond those measured

Real HPL on this machine, predicted from a calibration at NB = 64, 128, 256 (`validation/block_sizes.py`).

{goals}

{cases}
"""

OWN = {
    "--folder": {"type": Path, "help": "keep calibration and campaign here (a temporary folder)"},
    "--platform": {"type": Path, "help": "a platform of this machine, in the place of a calibration"},
}


def compared(options: Options) -> pandas.DataFrame:
    """Calibrates, predicts, runs and compares; a row a case."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.own.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        platform = (
            load_platform(options.own.platform)
            if options.own.platform
            else calibrated(folder, "block-sizes", MEASURED, quick=options.quick)
        )
        return verified(platform, folder / "campaign", quick=options.quick)


def verified(platform: Platform, folder: Path, *, quick: bool) -> pandas.DataFrame:
    """A row a case: what `verify` compares, with extrapolated_share and comparable."""
    orders, block_sizes, grids = (
        (QUICK_ORDERS, QUICK_BLOCK_SIZES, QUICK_GRIDS) if quick else (ORDERS, BLOCK_SIZES, GRIDS)
    )
    runs, repeats = (3, 1) if quick else (RUNS, REPEATS)
    cases = [Hpl(n=n, nb=nb, p=p, q=q) for n in orders for p, q in grids for nb in block_sizes]
    found = campaign(cases, platform, runs, repeats, folder)
    found.save(folder, "HPL by block size: predicted and measured")
    predictions = [case.prediction for case in found.cases]
    return found.table.assign(
        extrapolated_share=[prediction.extrapolated_share for prediction in predictions],
        comparable=[prediction.comparable for prediction in predictions],
    )


def judged(frame: pandas.DataFrame) -> list[Goal]:
    between = frame[frame["nb"].isin(BETWEEN)]
    inside, count = int(between["inside_interval"].astype(bool).sum()), len(between)
    least = count - 1 if count == len(BETWEEN) * len(ORDERS) * len(GRIDS) else count
    flagged = between[~between["comparable"]]
    goals = [
        Goal("NB 96 and 192: inside the interval", f"{least} of {count}", f"{inside} of {count}", inside >= least),
        Goal("NB 96 and 192: comparable", f"{count} of {count}", f"{count - len(flagged)} of {count}", flagged.empty),
    ]
    for grid, part in ranked(frame):
        pairs = list(telling_pairs(part))
        right = sum(same_order for *_, same_order in pairs)
        tau = kendalltau(part["predicted_time_s"], part["measured_time_s"]).statistic if len(part) > 1 else math.nan
        reached = f"{right} of {len(pairs)}, Kendall's tau {tau:.2f}"
        goals.append(Goal(f"order at {grid}", "every pair", reached, right == len(pairs) if pairs else None))
        if len(part):
            best = part.loc[part["predicted_time_s"].idxmin()]
            slower = 100.0 * (best["measured_time_s"] / part["measured_time_s"].min() - 1.0)
            what = f"named best at {grid}: NB {best['nb']:.0f}"
            goal = f"at most {TELLING_PERCENT:g} % slower than the fastest"
            goals.append(Goal(what, goal, f"{slower:.1f} %", bool(slower <= TELLING_PERCENT)))
    return goals


def ranked(frame: pandas.DataFrame) -> Iterator[tuple[str, pandas.DataFrame]]:
    """(N and grid in words, the comparable block sizes) of the order that is judged."""
    order = RANKED_N if (frame["n"] == RANKED_N).any() else frame["n"].min()
    for (p, q), part in frame[frame["n"] == order].groupby(["p", "q"]):
        yield f"N = {order}, {p} x {q}", part[part["comparable"].astype(bool)]


def telling_pairs(part: pandas.DataFrame) -> Iterator[tuple[int, int, bool]]:
    """(block size, block size, whether predicted in the order that they have) of pairs that differ in reality."""
    for (_, one), (_, other) in combinations(part.iterrows(), 2):
        difference = one["measured_time_s"] - other["measured_time_s"]
        variance = sum(
            row["measured_sd_s"] ** 2 / (row["n_runs"] - (0 if row["only_disturbed"] else row["n_disturbed"]))
            for row in (one, other)
            if not math.isnan(row["measured_sd_s"])
        )
        smaller = min(one["measured_time_s"], other["measured_time_s"])
        if abs(difference) > max(TELLING_PERCENT / 100.0 * smaller, STANDARD_ERRORS * math.sqrt(variance)):
            same = (one["predicted_time_s"] - other["predicted_time_s"]) * difference > 0.0
            yield int(one["nb"]), int(other["nb"]), bool(same)


if __name__ == "__main__":
    run_study(compared, judged, TEXT, own=OWN)
