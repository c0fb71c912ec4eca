"""Promises on simulated hierarchies: coverage of intervals, variances found again, groups found again."""

import numpy
import pandas
from scipy import stats
from support.report import Goal, at_least

from lepaute.measure.fit.population.coefficients import TERMS
from lepaute.measure.fit.population.generative import generative
from population.simulated import dahu_like, simulated

SEED = 20261121
SLOW_NODES, SLOW_BY_SD = 4, 5.0


def recovered(repetitions: int) -> pandas.DataFrame:
    """A row a repetition: for each coefficient whether the interval of theta holds it and the variances over the truth;
    whether the groups were right, with one group and with slow nodes."""
    truth, rng = dahu_like(), numpy.random.default_rng(SEED)
    rows = []
    for _ in range(repetitions):
        data = simulated(truth, rng)
        single = len(generative(data).groups) == 1
        one = generative(data, most_groups=1)
        low, high = one.groups[0].interval()
        spatial = numpy.diag(one.groups[0].covariance_spatial) / numpy.diag(truth.covariance_spatial)
        temporal = numpy.diag(one.covariance_temporal) / numpy.diag(truth.covariance_temporal)
        found = generative(simulated(truth, rng, slow_nodes=SLOW_NODES, slow_by_sd=SLOW_BY_SD)).group_of_node
        row = {"single": single, "slow": numpy.array_equal(found, (numpy.arange(len(found)) < SLOW_NODES).astype(int))}
        for at, term in enumerate(TERMS):
            row[f"hit {term}"] = low[at] <= truth.theta[at] <= high[at]
            row[f"spatial {term}"], row[f"temporal {term}"] = spatial[at], temporal[at]
        rows.append(row)
    return pandas.DataFrame(rows)


def recovery_goals(found: pandas.DataFrame) -> list[Goal]:
    count = len(found)
    low, high = stats.binom.ppf([1e-6, 1 - 1e-6], count, 0.95)
    hits = found[[f"hit {term}" for term in TERMS]].sum().to_numpy()
    what = f"simulated: 95 % intervals of theta that hold it, of {count} ({', '.join(TERMS)})"
    seen, met = ", ".join(str(int(value)) for value in hits), bool(numpy.all((hits >= low) & (hits <= high)))
    goals = [Goal(what, f"{low:.0f} to {high:.0f}", seen, met)]
    for name, symbol in (("spatial", "Sigma_S"), ("temporal", "Sigma_T")):
        mean = found[[f"{name} {term}" for term in TERMS]].mean().to_numpy()
        what = f"simulated: mean of the variances in {symbol} over the truth"
        seen = ", ".join(f"{value:.3f}" for value in mean)
        goals.append(Goal(what, "0.95 to 1.05", seen, bool(numpy.all(numpy.abs(mean - 1.0) <= 0.05))))
    for name, what in (
        ("single", "one group, found"),
        ("slow", f"{SLOW_NODES} of 32 nodes {SLOW_BY_SD:g} sd slower, found exactly"),
    ):
        share = 100.0 * float(found[name].mean())
        goals.append(at_least(f"simulated: {what}", 90, share))
    return goals
