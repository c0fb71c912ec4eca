"""Block sizes that were not measured: real HPL on this machine against predictions between and beyond those that were.

    .venv/bin/python validation/block_sizes.py [--folder DIR] [--platform FILE] [--quick] [--summarise]

Takes about eight minutes of an otherwise idle machine of two cores: two to calibrate, six for 84 real runs. Fixed
before any result was looked at:

* calibration: `lepaute calibrate --nb 64,128,256` (the default), seed 1; --platform takes the fit of another one;
* cases: N = 3000 and 6000, NB = 16, 32, 64, 96, 128, 192 and 256, grids 1 x 2 and 2 x 1, HPL's defaults otherwise; 10
  simulated runs with seeds 1 to 10 and all layers; predictions sealed before the first real run, as `lepaute verify`
  does; real runs three times each in shuffled order, disturbed ones marked and made again as there;
* 96 and 192 are between the measured block sizes: at most a fifth of their time is extrapolated, and the mean of the
  real runs is inside the interval in at least 7 of the 8 cases (with intervals of exactly 95 %: 94 times in a hundred);
* 16 and 32 are beyond: each is "not comparable", or its order is judged like that of the others;
* order at N = 3000, on each grid: of all pairs of comparable block sizes whose real means differ by more than 3 % and
  by more than twice the standard error of their difference (others have no order that one could predict), all are
  predicted in the same order by the means. Kendall's tau over the comparable ones is told beside it;
* the block size named best at N = 3000 is on each grid at most 3 % slower in reality than the fastest comparable one.
"""

import argparse
import math
import sys
import tempfile
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pandas
from matplotlib.figure import Figure
from scipy.stats import kendalltau
from support.goals import Goal, markdown, reached
from support.options import Options, options_of
from support.report import finish, signed

from lepaute import Hpl, Platform, load_platform, predict
from lepaute.archive import Archive
from lepaute.fit import platform_and_models
from lepaute.measure.calibration.campaign import calibrate
from lepaute.platform import dump_platform
from lepaute.verify.campaign import Plan
from lepaute.verify.real_run import Here, built_program, check_machine
from lepaute.verify.seal import JOURNAL_FILE
from lepaute.verify.verification import chosen_runs, verify

STUDY = "block_sizes"
MEASURED, BETWEEN, BEYOND = (64, 128, 256), (96, 192), (16, 32)
BLOCK_SIZES = tuple(sorted((*MEASURED, *BETWEEN, *BEYOND)))
ORDERS, GRIDS, RUNS, REPEATS = (3000, 6000), ((1, 2), (2, 1)), 10, 3
RANKED_N = 3000
TELLING_PERCENT, STANDARD_ERRORS = 3.0, 2.0
QUICK_ORDERS, QUICK_BLOCK_SIZES, QUICK_GRIDS = (800,), (32, 96, 128), ((1, 2),)


def main() -> int:
    options = options_of(__doc__, (), add_own=add_own)
    frame = pandas.read_csv(options.table(STUDY)) if options.summarise else compared(options)
    goals = judged(frame)
    return finish(options, STUDY, frame, goals, text(frame), picture(frame), finding(goals))


def add_own(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--folder", type=Path, help="keep calibration and campaign here (a temporary folder)")
    parser.add_argument("--platform", type=Path, help="a platform of this machine, in the place of a calibration")


def compared(options: Options) -> pandas.DataFrame:
    """Calibrates, predicts, runs and compares; a row a case."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.own.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        platform = load_platform(options.own.platform) if options.own.platform else calibrated(folder, options.quick)
        return campaign(platform, folder / "campaign", quick=options.quick)


def calibrated(folder: Path, quick: bool) -> Platform:
    """The platform of this machine, measured now."""
    archive = calibrate(folder / "calibration.zip", nbs=MEASURED, quick=quick, seed=1, progress=tell)
    platform, _ = platform_and_models(Archive.open(archive), "block-sizes")
    dump_platform(platform, folder / "platform.yaml")
    return platform


def campaign(platform: Platform, folder: Path, *, quick: bool) -> pandas.DataFrame:
    """A row a case: what `verify` compares, with extrapolated_share and comparable."""
    orders, block_sizes, grids = (
        (QUICK_ORDERS, QUICK_BLOCK_SIZES, QUICK_GRIDS) if quick else (ORDERS, BLOCK_SIZES, GRIDS)
    )
    runs, repeats = (3, 1) if quick else (RUNS, REPEATS)
    cases = [Hpl(n=n, nb=nb, p=p, q=q) for n in orders for p, q in grids for nb in block_sizes]
    for case in cases:
        check_machine(case)
    folder.mkdir(parents=True, exist_ok=True)
    program, plan = built_program(print), Plan(repeats=repeats, order_seed=1)
    begun = chosen_runs(
        *(cases, program, plan, lambda case: predict(case, platform, runs=runs, seed=1)),
        *(folder, Here(program), tell),
        sealed=lambda seal, _: print(f"sealed: {seal.sha256} at {seal.created}"),
        resume=(folder / JOURNAL_FILE).is_file(),
    )
    found = verify(begun)
    found.save(folder, "HPL by block size: predicted and measured")
    predictions = [case.prediction for case in found.cases]
    return found.table.assign(
        extrapolated_share=[one.extrapolated_share for one in predictions],
        comparable=[one.comparable for one in predictions],
    )


def tell(what: str, share: float) -> None:
    print(f"{100.0 * share:3.0f} %  {what}", file=sys.stderr)


def judged(frame: pandas.DataFrame) -> list[Goal]:
    """The goals of the docstring."""
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
        best = part.loc[part["predicted_time_s"].idxmin()] if len(part) else None
        if best is not None:
            slower = 100.0 * (best["measured_time_s"] / part["measured_time_s"].min() - 1.0)
            goals.append(
                Goal(
                    f"named best at {grid}: NB {best['nb']:.0f}",
                    f"at most {TELLING_PERCENT:g} % slower than the fastest",
                    f"{slower:.1f} %",
                    bool(slower <= TELLING_PERCENT),
                )
            )
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


def text(frame: pandas.DataFrame) -> str:
    """The section of the page."""
    header = ("N", "grid", "NB", "predicted, s", "95 % interval, s", "extrapolated", "real, s", "error", "inside")
    rows = [
        (
            *(f"{row['n']}", f"{row['p']} x {row['q']}", f"{row['nb']}", f"{row['predicted_time_s']:.3f}"),
            f"{row['low_s']:.3f} to {row['high_s']:.3f}",
            f"{100.0 * row['extrapolated_share']:.0f} %" + ("" if row["comparable"] else ", not comparable"),
            *(f"{row['measured_time_s']:.3f}", signed(row["error_percent"]), "yes" if row["inside_interval"] else "NO"),
        )
        for _, row in frame.iterrows()
    ]
    return f"""## Block sizes between and beyond those measured

Real HPL on this machine, predicted from a calibration at NB = {", ".join(map(str, MEASURED))}
(`validation/block_sizes.py`, where the goals were fixed before).

{{goals}}

![Time by block size, predicted with its interval and real]({{picture}})

{markdown(header, rows)}
"""


def finding(goals: list[Goal]) -> str:
    """On top of the picture."""
    slower = max(float(goal.reached.split()[0]) for goal in goals if goal.what.startswith("named best"))
    inside = reached(goals, "NB 96 and 192: inside")
    return (
        f"{inside} times of NB 96 and 192 are inside; the NB named best is at most {slower} % slower than the fastest"
    )


def picture(frame: pandas.DataFrame) -> Figure:
    """Time by block size, a panel for each N and grid."""
    panels = list(frame.groupby(["n", "p", "q"]))
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(4.6 * columns, 1.0 + 3.0 * rows), layout="constrained")
    for place, ((n, p, q), part) in enumerate(panels):
        axes = figure.add_subplot(rows, columns, place + 1)
        for comparable, face in ((True, "#4c78a8"), (False, "white")):
            some = part[part["comparable"].astype(bool) == comparable]
            if some.empty:
                continue
            mean = some["predicted_time_s"]
            axes.errorbar(
                some["nb"],
                mean,
                yerr=[mean - some["low_s"], some["high_s"] - mean],
                fmt="o",
                color="#4c78a8",
                mfc=face,
                label="predicted, 95 % interval" if comparable else "predicted, not comparable (by extrapolation)",
            )
        axes.plot(part["nb"], part["measured_time_s"], "x", color="#222222", label="real")
        axes.set_xscale("log", base=2)
        axes.set_xticks(part["nb"], [str(nb) for nb in part["nb"]], fontsize=8)
        axes.minorticks_off()
        axes.set_title(f"N = {n}, {p} x {q}", fontsize=10)
        axes.set_xlabel("NB")
        axes.set_ylabel("time (s)")
    handles = {
        label: handle for axes in figure.axes for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    return figure


if __name__ == "__main__":
    sys.exit(main())
