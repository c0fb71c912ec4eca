"""The generative model against the published day-by-day calibrations: does what it draws look like what was measured?

Fixed before any fit to these data was looked at:

* data: dahu/kernels/dgemm_daily_{good,slownodes}.csv.gz; rows of one cpu and date averaged; mnk, intercept,
  mnk_residual (alpha, beta, gamma of the thesis). Model: fit.population.generative with its defaults. Synthetic data:
  nodes and days drawn by the package, seeds 1 to 20, in the layout of the observed;
* levels: the mean of each cpu; the mean of each day over all CPUs of its deviations; what is left of each row.
  Kolmogorov-Smirnov of each coefficient and the energy distance (Szekely & Rizzo, 2004), by the observed standard
  deviations: 12 tests a state. p by 999 permutations of nodes (of the days: days); of 20 twice the median (Rueger,
  1978);
* twice: fitted to all nodes (p is too large), and to a random half, compared with the other, 20 halvings;
* goal: in each state and way none of the 12 is below 0.05 after Holm's correction. Can it fail? Shown, not judged: one
  Gaussian for all nodes; no difference between CPUs (thesis, 4.2.2);
* what is promised on simulated hierarchies is tested (tests/promises/test_generative_promises.py).

Corrected after a first run: means of CPUs are compared as distances from the median of all, since draws of one model
differ by the common part of their days; a control is shown, p of two draws of the model. Later the model, not the
goals, was changed for the missed level "between days, own": each cpu has a standard deviation of its own days,
log-normal between CPUs, chosen by BIC before p was computed again; then the last level with the median as the effect of
a day was added, shown.
"""

from collections.abc import Iterator

import numpy
import pandas
from population.two_sample import combined, levels, own_from_the_median, p_values, some_nodes, synthetic
from scipy import stats
from support.report import Goal, Options, finish, markdown, options_of, run_main

from lepaute.measure.fit.population.coefficients import Coefficients, read_coefficients
from lepaute.measure.fit.population.generative import Generative, generative
from lepaute.simulate.machine.population import scaled
from lepaute.simulate.platform.population import Population
from lepaute.stats.multiple_tests import holm

STATES = {"good": "dahu/kernels/dgemm_daily_good.csv.gz", "slow nodes": "dahu/kernels/dgemm_daily_slownodes.csv.gz"}
STATISTICS = ("KS alpha", "KS beta", "KS gamma", "energy")
SEEDS = 20
ALL, HELD_OUT = "fitted to all nodes", "held out"
CONTROL, CONTROL_SEED = "a draw of the model itself", 500
MEDIAN = "fitted to all nodes; days by their median"
SHOWN = ("one Gaussian for all nodes", "no difference between CPUs", CONTROL, MEDIAN)


def main() -> int:
    options = options_of(__doc__, tuple(STATES.values()))
    data = {state: read_coefficients(options.data(file)) for state, file in STATES.items()}
    fits = {state: generative(one) for state, one in data.items()}
    if options.summarise:
        frame = pandas.read_csv(options.table("generative"))
    else:
        frame = pandas.DataFrame([row for state in STATES for row in compared(state, data[state], options)])
    return finish(options, "generative", frame, agreement_goals(frame), text(frame, data, fits))


def compared(state: str, data: Coefficients, options: Options) -> Iterator[dict[str, object]]:
    """A row for each p: state, way, level, statistic, seed, p."""
    whole = generative(data).population()
    ways = {
        ALL: whole,
        HELD_OUT: None,
        "one Gaussian for all nodes": generative(data, most_groups=1).population(),
        "no difference between CPUs": scaled(whole, 0.0, 1.0),
        CONTROL: whole,
        MEDIAN: whole,
    }
    for way, model in ways.items():
        for seed in range(1, (2 if options.quick else SEEDS) + 1):
            population, judge = halved(data, seed) if model is None else (model, data)
            if way == CONTROL:
                judge = synthetic(whole, data, CONTROL_SEED + seed)
            taken = own_from_the_median if way == MEDIAN else levels
            drawn = taken(synthetic(population, judge, seed))
            for level, observed in taken(judge).items():
                found = p_values(observed, drawn[level], seed)
                for statistic, p in zip(STATISTICS, found, strict=True):
                    yield {"state": state, "way": way, "level": level, "statistic": statistic, "seed": seed, "p": p}


def halved(data: Coefficients, seed: int) -> tuple[Population, Coefficients]:
    """The population fitted to a random half of the nodes, and the data of the other half."""
    order = numpy.random.default_rng(seed).permutation(data.nodes)
    fitted = generative(some_nodes(data, order[: data.nodes // 2]))
    return fitted.population(), some_nodes(data, order[data.nodes // 2 :])


def summary(frame: pandas.DataFrame) -> pandas.DataFrame:
    """One valid p for each state, way, level and statistic; the same after Holm's correction within state and way."""
    keys = ["state", "way", "level", "statistic"]
    whole = frame.groupby(keys, sort=False)["p"].agg(combined).reset_index()
    whole["adjusted"] = whole.groupby(["state", "way"], sort=False)["p"].transform(lambda p: list(holm(list(p))))
    return whole


def agreement_goals(frame: pandas.DataFrame) -> list[Goal]:
    """None of the twelve tests of a state and way speaks against the model."""
    whole = summary(frame)
    goals = []
    for (state, way), rows in whole.groupby(["state", "way"], sort=False):
        if way in SHOWN:
            continue
        worst = rows.loc[rows["adjusted"].idxmin()]
        what = f"{state}, {way}: least p of 12, after Holm's correction"
        seen = f"{worst['adjusted']:.3f} ({worst['statistic']}, {worst['level']})"
        goals.append(Goal(what, "at least 0.05", seen, bool(worst["adjusted"] >= 0.05)))
    return goals


def text(frame: pandas.DataFrame, data: dict[str, Coefficients], fits: dict[str, Generative]) -> str:
    control = frame[frame["way"] == CONTROL]["p"]
    told = "; ".join(f"{state}: {', '.join(str(group.nodes) for group in fit.groups)}" for state, fit in fits.items())
    ratio = "sd of single CPUs, 90th over 10th percentile"
    loud = (frame["way"] == CONTROL) & (frame["state"] == "slow nodes") & (frame["level"] == "between days, own")
    noisy = float((frame[loud & (frame["statistic"] == "KS gamma")]["p"] < 0.05).mean())
    widths = ("state", ratio, "the same in synthetic data", "days normal")
    return f"""## The generative model: synthetic and observed coefficients

Daily calibrations of dgemm on Dahu, 32 nodes, 64 CPUs; a generative model fitted to them
by `lepaute.measure.fit.population.generative`, and nodes and days drawn from it (`validation/generative.py`). p of
permutation tests that exchange whole nodes or days, {frame["seed"].max()} synthetic data sets each, combined as twice
the median; small: synthetic and observed differ. Groups of nodes: {told}.

{{goals}}

Of {len(control)} p of two draws of the fitted model against each other, {100.0 * float((control < 0.05).mean()):.1f} %
are below 0.05. The goal is missed for gamma with slow nodes, where a few loud CPUs, some 25 times the others, decide:
there {100.0 * noisy:.0f} % of the p of two draws of the model itself are below 0.05. With the median of the CPUs as the
effect of a day, nothing speaks against the model.

{markdown(widths, shapes(data, fits))}

{{cases}}
"""


def shapes(data: dict[str, Coefficients], fits: dict[str, Generative]) -> list[tuple[str, ...]]:
    """How much CPUs differ in the standard deviation of the own part of their days, and of how many the days are normal
    (Shapiro and Wilk, Bonferroni), a row a state; alpha, beta, gamma."""

    def spread(values: numpy.ndarray, unit: numpy.ndarray) -> str:
        sd = pandas.DataFrame(values).groupby(unit).std()
        return ", ".join(f"{ratio:.1f}" for ratio in sd.quantile(0.9) / sd.quantile(0.1))

    rows = []
    for state, one in data.items():
        own = levels(one)["between days, own"][0]
        drawn = levels(synthetic(fits[state].population(), one, 1))["between days, own"][0]
        p = numpy.array([stats.shapiro(one.values[one.unit == unit], axis=0).pvalue for unit in range(one.units)])
        normal = ", ".join(f"{count} of {one.units}" for count in (p * one.units > 0.05).sum(axis=0))
        rows.append((state, spread(own, one.unit), spread(drawn, one.unit), normal))
    return rows


if __name__ == "__main__":
    run_main(main)
