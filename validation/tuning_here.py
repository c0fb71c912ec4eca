"""Tuning on this machine: ten real runs that the simulation chooses, against ten random ones, on an exhaustive table.

    .venv/bin/python validation/tuning_here.py --folder DIR [--calibrate] [--quick]   measures: twelve minutes, idle
    .venv/bin/python validation/tuning_here.py                                        judges the table that is kept

Fixed before any real run of this table was made:

* calibration: `lepaute calibrate --nb 64,128,256`, seed 1, on the same machine in the same hour;
* table: HPL at N = 6000 on both cores, all combinations of NB 64, 96, 128, 160, 192, 256 (three of them calibrated, the
  others between these), grids 1 x 2 and 2 x 1, look-ahead 0 and 1, NBMIN 2 and 8; HPL's defaults otherwise: 48
  configurations. Three real runs of each in shuffled order (order seed 1), through the campaign of `lepaute verify`:
  predictions with seeds 1 to 20 and all layers sealed before, disturbed runs marked and made again. Runs that count are
  the undisturbed ones; where a configuration has none, all of its runs;
* truth: the mean of the runs that count; regret: that of the chosen configuration over the smallest, less 1;
* tuning: lepaute.study.tune_real.correct as it is, with the tolerance of the command, at most ten real runs. A real run
  is drawn from those of the table that the repetition has not drawn yet; where all were, one of them again;
* random search: ten configurations at random, a real run each, the fastest is chosen;
* 500 repetitions, which differ in what is drawn; repetition i uses seed i;
* goal: the 95 % interval (normal) of the mean paired difference in regret, tuning less random search, lies below 0; or
  the landscape is flat: of the 12 best configurations (by their means) the last is at most 3 % slower than the first;
* shown, never judged: the simulation alone (the smallest mean of its 20 runs), how many real runs tuning made, how much
  runs of one configuration scatter, and the errors of the predictions.
"""

import sys
from itertools import product
from math import sqrt
from pathlib import Path

import numpy
import pandas
from scipy.stats import f_oneway
from support.goals import Goal, markdown
from support.options import Options, options_of
from support.real_runs import calibrated, campaign, tell
from support.report import finish, run_main

from lepaute import Hpl, load_platform
from lepaute.study.evaluation import Outcome, Point, Trial
from lepaute.study.tune_real import correct

STUDY = "tuning_here"
MEASURED = (64, 128, 256)
N, BLOCK_SIZES, GRIDS, DEPTHS, LEAVES = 6000, (64, 96, 128, 160, 192, 256), ((1, 2), (2, 1)), (0, 1), (2, 8)
FIELDS = ("nb", "p", "q", "depth", "nbmin")
SIMULATED_RUNS, REPEATS, REAL_RUNS, REPETITIONS = 20, 3, 10, 500
FLAT_PERCENT = 3.0
TUNING, RANDOM = "tuning", "random search"
OWN = {
    "--folder": {"type": Path, "help": "measure: calibration and campaign, resumed where they were begun"},
    "--calibrate": {"action": "store_true", "help": "with --folder: the calibration alone"},
}


def main() -> int:
    options = options_of(__doc__, (), own=OWN)
    if options.own.folder is not None:
        measured(options)
    runs = pandas.read_csv(options.table(f"{STUDY}_runs"))
    simulated = pandas.read_csv(options.table(f"{STUDY}_simulated"))
    frame = pandas.read_csv(options.table(STUDY)) if options.summarise else repeated(runs, simulated, options.quick)
    goals = judged(frame, runs)
    return finish(options, STUDY, frame, goals, text(frame, runs, simulated))


def measured(options: Options) -> None:
    """Calibrates, predicts, runs for real; writes the two tables that are judged."""
    folder, quick = options.own.folder, options.quick
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "platform.yaml"
    platform = load_platform(path) if path.is_file() else calibrated(folder, "tuning-here", MEASURED, quick=quick)
    if options.own.calibrate:
        sys.exit(0)
    cases = [
        Hpl(n=400 if quick else N, nb=nb, p=p, q=q, depth=depth, nbmin=nbmin)
        for nb, (p, q), depth, nbmin in product(BLOCK_SIZES[:2] if quick else BLOCK_SIZES, GRIDS, DEPTHS, LEAVES)
    ]
    found = campaign(cases, platform, SIMULATED_RUNS, REPEATS, folder / "campaign")
    settings = [{name: getattr(case.hpl, name) for name in FIELDS} for case in found.cases]
    table = found.run_table
    columns = ["order", "repeat", "attempt", "started", "time_s", "disturbed", "causes"]
    runs = pandas.DataFrame([settings[case] for case in table["case"]], index=table.index).join(table[columns])
    rows = [
        {**setting, "seed": run.seed, "time_s": run.time_s, "extrapolated_share": case.prediction.extrapolated_share}
        for setting, case in zip(settings, found.cases, strict=True)
        for run in case.prediction.run_list
    ]
    options.table(STUDY).parent.mkdir(parents=True, exist_ok=True)
    runs.to_csv(options.table(f"{STUDY}_runs"), index=False)
    pandas.DataFrame(rows).to_csv(options.table(f"{STUDY}_simulated"), index=False)


def counting(runs: pandas.DataFrame) -> dict[Point, numpy.ndarray]:
    """Of each configuration the times that count."""
    found = {}
    for values, part in runs.groupby(list(FIELDS)):
        undisturbed = part[~part["disturbed"]]
        point = Point(dict(zip(FIELDS, values, strict=True)))
        found[point] = (undisturbed if len(undisturbed) else part)["time_s"].to_numpy()
    return found


def outcomes(simulated: pandas.DataFrame) -> list[Outcome]:
    """As a study has them."""
    return [
        Outcome(
            Trial(Point({name: getattr(row, name) for name in FIELDS}), row.seed),
            {"time_s": row.time_s},
            row.extrapolated_share,
        )
        for row in simulated.itertuples()
    ]


class Drawn:
    """Real runs of the table: each once, in random order; then again."""

    def __init__(self, times: dict[Point, numpy.ndarray], generator: numpy.random.Generator) -> None:
        self._times, self._generator = times, generator
        self._left: dict[Point, list[float]] = {}

    def __call__(self, point: Point) -> float:
        if not self._left.get(point):
            self._left[point] = list(self._generator.permutation(self._times[point]))
        return float(self._left[point].pop())


def repeated(runs: pandas.DataFrame, simulated: pandas.DataFrame, quick: bool) -> pandas.DataFrame:
    """A row a (repetition, method): the regret, and the real runs that it took."""
    times, known = counting(runs), outcomes(simulated)
    means = {point: float(each.mean()) for point, each in times.items()}
    best = min(means.values())
    rows = []
    for repetition in range(10 if quick else REPETITIONS):
        generator = numpy.random.default_rng(repetition)
        chosen = correct(known, Drawn(times, generator), REAL_RUNS, seed=1 + 100 * repetition)
        tried = [list(times)[at] for at in generator.permutation(len(times))[:REAL_RUNS]]
        draw = Drawn(times, generator)
        luckiest = min(((draw(point), at) for at, point in enumerate(tried)))[1]
        for method, point, count in ((TUNING, chosen.best, len(chosen.runs)), (RANDOM, tried[luckiest], len(tried))):
            rows.append((repetition, method, 100.0 * (means[point] / best - 1.0), count, str(point)))
        if repetition % 50 == 49:
            tell("repetitions", (repetition + 1) / REPETITIONS)
    return pandas.DataFrame(rows, columns=["repetition", "method", "regret_percent", "real_runs", "chosen"])


def difference_of(frame: pandas.DataFrame) -> tuple[float, float]:
    """Mean of the paired difference in regret, points of per cent, and half its 95 % interval."""
    wide = frame.pivot(index="repetition", columns="method", values="regret_percent")
    apart = wide[TUNING] - wide[RANDOM]
    return float(apart.mean()), 1.96 * float(apart.std()) / sqrt(len(apart))


def judged(frame: pandas.DataFrame, runs: pandas.DataFrame) -> list[Goal]:
    """The goal, one way or the other."""
    mean, half = difference_of(frame)
    means = sorted(float(each.mean()) for each in counting(runs).values())
    spread = 100.0 * (means[len(means) // 4 - 1] / means[0] - 1.0)
    return [
        Goal(
            f"{REAL_RUNS} real runs: regret of tuning less that of random search; or the spread of the best quarter",
            f"95 % interval below 0, or at most {FLAT_PERCENT:g} %",
            f"{mean:+.2f} ± {half:.2f} points; {spread:.1f} %",
            mean + half < 0.0 or spread <= FLAT_PERCENT,
        )
    ]


def text(frame: pandas.DataFrame, runs: pandas.DataFrame, simulated: pandas.DataFrame) -> str:
    times = counting(runs)
    means = {point: float(each.mean()) for point, each in times.items()}
    best = min(means.values())
    predicted = {
        point: float(numpy.exp(numpy.log(part).mean()))
        for point, part in (
            (Point(dict(zip(FIELDS, values, strict=True))), group["time_s"])
            for values, group in simulated.groupby(list(FIELDS))
        )
    }
    alone = min(predicted, key=predicted.__getitem__)
    logs = [numpy.log(each) for each in times.values() if len(each) > 1]
    scatter = sqrt(sum(each.var(ddof=1) * (len(each) - 1) for each in logs) / sum(len(each) - 1 for each in logs))
    errors = [100.0 * (predicted[point] / means[point] - 1.0) for point in means]
    rows = [
        (
            method,
            f"{part['real_runs'].mean():.1f}",
            f"{part['regret_percent'].mean():.2f} %",
            f"{part['regret_percent'].quantile(0.95):.2f} %",
            f"{100.0 * (part['regret_percent'] < 1.0).mean():.0f} %",
        )
        for method, part in ((name, frame[frame["method"] == name]) for name in (TUNING, RANDOM))
    ]
    rows.append(("simulation alone", "0", f"{100.0 * (means[alone] / best - 1.0):.2f} %", "–", "–"))
    rows.append(("any", "0", f"{100.0 * (numpy.mean(list(means.values())) / best - 1.0):.2f} %", "–", "–"))
    header = ("method", "real runs", "mean regret", "95 % of the repetitions below", "below 1 %")
    disturbed = int(runs["disturbed"].sum())
    one_grid = [numpy.log(each) for point, each in times.items() if point["p"] == 1]
    alike = float(f_oneway(*one_grid).pvalue)
    return f"""## This machine: tuning with real runs

HPL at N = {N} on two cores: {len(means)} configurations (NB, grid, look-ahead, NBMIN), {REPEATS} real runs of each,
after a calibration at NB = 64, 128, 256; {len(runs)} runs were made, {disturbed} of them disturbed. Ten real runs that
`lepaute study tune --real-runs` would choose, against ten at random, drawn from that table {REPETITIONS} times
(`validation/tuning_here.py`).

{{goals}}

{markdown(header, rows)}

Runs of one configuration scatter by {100.0 * scatter:.1f} % (standard deviation), predictions are off by
{numpy.mean(errors):+.1f} % on average and by {numpy.std(errors, ddof=1):.1f} % about that.

{{cases}}

Found afterwards: among the {len(one_grid)} configurations of the grid 1 x 2 an F-test of the logarithms finds no
difference (p = {alike:.2f}), so that a regret against the best of them is mostly scatter.
"""


if __name__ == "__main__":
    run_main(main)
