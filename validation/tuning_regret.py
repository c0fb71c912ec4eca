"""Regret of tuning on Dahu: the real time of what the simulation chooses, over the real best.

simulated_replicates.py simulates, once, what is judged here. Fixed before any choice was looked at:

* data: 36 configurations of the factorial study (mean of 8 real runs each), 14 grids of 960 ranks (mean of 7);
* simulations: simulated_replicates.py, 10 seeds each (20 were planned and took too long). Seed s of the study permutes
  them for tuning (common random numbers; beyond the tenth they begin anew), and draws at random for random search;
* tuning: study.tune.halve with tolerance 0; random search: as many simulations of configurations in a random order, the
  smallest mean is chosen. Budgets: half, once, twice and four times as many as configurations; judged: once and twice;
* regret: real mean time of the chosen one over the smallest, less 1; goal: over 200 seeds the 95 % interval (normal) of
  the mean paired difference, tuning less random search, lies below 0;
* never judged: Netlib's rules of thumb (depth 1, 1ring-modified, mix, NB 32 to 256; grids as square as possible with P
  at most Q), a configuration at random, the smallest mean over all 10 seeds, and ten real runs with study.tune_real (8
  simulated seeds) against ten of random configurations.
"""

import sys
from math import sqrt

import numpy
import pandas
from factorial import REAL as FACTORIAL
from geometry import REAL as GEOMETRY
from simulated_replicates import SEEDS, TABLE, studies
from support.replicates import read_replicates
from support.report import Goal, Options, markdown, run_study, say

from lepaute import Hpl
from lepaute.study.evaluation import Evaluate, Outcome, Point, Trial
from lepaute.study.tune import halve
from lepaute.study.tune_real import correct

REPETITIONS, REAL_RUNS, REAL_SEEDS = 200, 10, 8
BUDGETS = (0.5, 1.0, 2.0, 4.0)
JUDGED = (1.0, 2.0)
FIELDS = ("nb", "depth", "bcast", "swap", "p", "q")
SHOWN = (
    *("tuning", "tuning, best within ranges", "random search", "tuning, real runs", "random search, real runs"),
    *("all simulations", "Netlib", "any"),
)


def compared(options: Options) -> pandas.DataFrame:
    """A row a (study, method, budget, repetition): the regret in per cent; repetition -1 of what has none."""
    runs = read_replicates(options.table(TABLE))
    runs = runs[(runs["repeat"] == 0) & runs["seed"].isin(SEEDS)]
    rows: list[tuple[str, str, float, int, float]] = []
    for study, (real, configurations) in zip(("factorial", "grids"), studies(options), strict=True):
        if set(runs[runs["configuration"].isin(configurations)].groupby("configuration").size()) != {len(SEEDS)}:
            sys.exit("tuning_regret.py: not all runs are simulated; run simulated_replicates.py first")
        rows += [(study, *row) for row in regrets(configurations, runs, real)]
    return pandas.DataFrame(rows, columns=["study", "method", "budget", "repetition", "regret_percent"])


def regrets(
    configurations: dict[str, Hpl], runs: pandas.DataFrame, real: pandas.DataFrame
) -> list[tuple[str, float, int, float]]:
    """(method, budget over the number of configurations, repetition, regret)"""
    points = {name: Point({key: hpl.parameters()[key] for key in FIELDS}) for name, hpl in configurations.items()}
    names = {point: name for name, point in points.items()}
    table = {(row.configuration, row.seed): row for row in runs.itertuples()}
    real_runs = {name: part["time_s"].to_numpy() for name, part in real.groupby("name")}
    means = {name: float(times.mean()) for name, times in real_runs.items()}
    best = min(means.values())

    def regret(name: str) -> float:
        return 100.0 * (means[name] / best - 1.0)

    every = {name: runs[runs["configuration"] == name]["time_s"].to_numpy() for name in configurations}
    rows = [
        ("all simulations", 0.0, -1, regret(min(every, key=lambda name: numpy.log(every[name]).mean()))),
        ("any", 0.0, -1, float(numpy.mean([regret(name) for name in configurations]))),
        ("Netlib", 0.0, -1, float(numpy.mean([regret(name) for name in by_rule(configurations)]))),
    ]
    for repetition in range(REPETITIONS):
        if repetition % 20 == 0:
            say(f"{len(configurations)} configurations: repetition {repetition}")
        generator = numpy.random.default_rng([repetition, len(configurations)])
        order = generator.permutation(list(SEEDS))
        evaluate = evaluated(names, table, order)
        for budget in BUDGETS:
            count = round(budget * len(configurations))
            # A multiple of 10: the same order of the seeds, another part of the configurations.
            found = halve(list(names), evaluate, count, tolerance=0.0, seed=len(SEEDS) * repetition)
            first = min(found.ranking.standings, key=lambda one: (-one.runs, one.ratio)).point
            rows.append(("tuning", budget, repetition, regret(names[first])))
            rows.append(("tuning, best within ranges", budget, repetition, regret(names[found.best])))
            rows.append(("random search", budget, repetition, regret(searched(every, count, generator))))
        simulated = evaluate([Trial(point, seed) for point in names for seed in range(REAL_SEEDS)])

        def real_run(point: Point, generator: numpy.random.Generator = generator) -> float:
            return float(generator.choice(real_runs[names[point]]))

        chosen = correct(simulated, real_run, REAL_RUNS)
        rows.append(("tuning, real runs", 0.0, repetition, regret(names[chosen.best])))
        order = generator.permutation(list(configurations))[:REAL_RUNS]
        tried = {str(name): float(generator.choice(real_runs[str(name)])) for name in order}
        rows.append(("random search, real runs", 0.0, repetition, regret(min(tried, key=tried.__getitem__))))
    return rows


def evaluated(names: dict[Point, str], table: dict[tuple[str, int], "object"], order: numpy.ndarray) -> Evaluate:
    """Looks trials up: seed i is the i-th of `order`.

    Those that judge a point are not in the table: it is judged by the share of its computing that is extrapolated.
    """

    def evaluate(trials: "list[Trial]") -> list[Outcome]:
        found = []
        for trial in trials:
            if trial.drawn:
                found.append(Outcome(trial, refusal="not in the table"))
                continue
            row = table[names[trial.point], int(order[trial.seed % len(order)])]
            found.append(
                Outcome(trial, {"time_s": row.time_s}, row.extrapolated, sampling_sd=row.sampling_sd)  # type: ignore[attr-defined]
            )
        return found

    return evaluate  # type: ignore[return-value]


def searched(every: dict[str, numpy.ndarray], budget: int, generator: numpy.random.Generator) -> str:
    """What random search chooses."""
    found: dict[str, list[float]] = {}
    order: list[str] = []
    for _ in range(budget):
        order = order or list(generator.permutation(list(every)))
        name = str(order.pop())
        found.setdefault(name, []).append(float(generator.choice(every[name])))
    return min(found, key=lambda name: float(numpy.mean(found[name])))


def by_rule(configurations: dict[str, Hpl]) -> list[str]:
    """What Netlib's rules of thumb allow."""
    if any("x" in name for name in configurations):
        flat = {name: hpl.q / hpl.p for name, hpl in configurations.items() if hpl.p <= hpl.q}
        return [min(flat, key=flat.__getitem__)]
    return [
        name
        for name, hpl in configurations.items()
        if hpl.depth == 1 and hpl.bcast == "1ring-modified" and hpl.swap == "mix" and 32 <= hpl.nb <= 256
    ]


def difference_of(frame: pandas.DataFrame, study: str, one: str, other: str, budget: float) -> tuple[float, float]:
    """Mean of the paired difference in regret, points of per cent, and half its 95 % interval."""
    part = frame[(frame["study"] == study) & (frame["budget"] == budget)]
    wide = part.pivot_table(index="repetition", columns="method", values="regret_percent")
    apart = wide[one] - wide[other]
    return float(apart.mean()), 1.96 * float(apart.std()) / sqrt(len(apart))


def judged(frame: pandas.DataFrame) -> list[Goal]:
    goals = []
    for study in frame["study"].unique():
        for budget in JUDGED:
            mean, half = difference_of(frame, study, "tuning", "random search", budget)
            what = f"{study}, {budget:g} simulations a configuration: regret of tuning less that of random search"
            goals.append(Goal(what, "95 % interval below 0", f"{mean:+.2f} ± {half:.2f} points", mean + half < 0.0))
    return goals


def text(frame: pandas.DataFrame) -> str:
    once = frame[frame["budget"].isin([0.0, 1.0])].groupby(["study", "method"])["regret_percent"].mean().unstack()
    rows = [(study, *(f"{once.loc[study, method]:.2f} %" for method in SHOWN)) for study in frame["study"].unique()]
    return f"""## Dahu: regret of tuning

The real time of the configuration that is chosen, over the real best, less 1: 36 configurations of the factorial study
and 14 grids of 960 ranks, 200 seeds (`validation/tuning_regret.py`).

{{goals}}

Mean regret with one simulation a configuration, with ten real runs, and without a budget; within ranges: of those
that spend at most a fifth of their time where kernels are extrapolated:

{markdown(("study", *SHOWN), rows)}

{{cases}}
"""


if __name__ == "__main__":
    run_study(compared, judged, text, needs=(FACTORIAL, GEOMETRY))
