"""Promises on simulated hierarchies: coverage of intervals, variances found again, groups found again."""

import numpy
from scipy import stats
from support.goals import Goal

from lepaute.fit.coefficients import TERMS
from lepaute.fit.generative import generative
from lepaute.fit.simulated_hierarchy import dahu_like, simulated

SEED = 20261121
SLOW_NODES, SLOW_BY_SD = 4, 5.0


def recovered(repetitions: int) -> dict[str, numpy.ndarray]:
    """Of each repetition: hits of the intervals of theta, variances over the truth (shapes (r, 3)), and whether the
    groups were right, with one group and with slow nodes (r,)."""
    truth, rng = dahu_like(), numpy.random.default_rng(SEED)
    hits, spatial, temporal, single, slow = [], [], [], [], []
    for _ in range(repetitions):
        data = simulated(truth, rng)
        single.append(len(generative(data).groups) == 1)
        one = generative(data, most_groups=1)
        low, high = one.groups[0].interval()
        hits.append((low <= truth.theta) & (truth.theta <= high))
        spatial.append(numpy.diag(one.groups[0].covariance_spatial) / numpy.diag(truth.covariance_spatial))
        temporal.append(numpy.diag(one.covariance_temporal) / numpy.diag(truth.covariance_temporal))
        found = generative(simulated(truth, rng, slow_nodes=SLOW_NODES, slow_by_sd=SLOW_BY_SD)).group_of_node
        slow.append(numpy.array_equal(found, (numpy.arange(len(found)) < SLOW_NODES).astype(int)))
    lists = {"hits": hits, "spatial": spatial, "temporal": temporal, "single": single, "slow": slow}
    return {name: numpy.array(value) for name, value in lists.items()}


def recovery_goals(found: dict[str, numpy.ndarray]) -> list[Goal]:
    """The promises, judged."""
    count = len(found["hits"])
    low, high = stats.binom.ppf([1e-6, 1 - 1e-6], count, 0.95)
    hits = found["hits"].sum(axis=0)
    goals = [
        Goal(
            f"simulated: 95 % intervals of theta that hold it, of {count} ({', '.join(TERMS)})",
            f"{low:.0f} to {high:.0f}",
            ", ".join(str(int(value)) for value in hits),
            bool(numpy.all((hits >= low) & (hits <= high))),
        )
    ]
    for name, symbol in (("spatial", "Sigma_S"), ("temporal", "Sigma_T")):
        mean = found[name].mean(axis=0)
        goals.append(
            Goal(
                f"simulated: mean of the variances in {symbol} over the truth",
                "0.95 to 1.05",
                ", ".join(f"{value:.3f}" for value in mean),
                bool(numpy.all(numpy.abs(mean - 1.0) <= 0.05)),
            )
        )
    for name, what in (
        ("single", "one group, found"),
        ("slow", f"{SLOW_NODES} of 32 nodes {SLOW_BY_SD:g} sd slower, found exactly"),
    ):
        share = 100.0 * float(found[name].mean())
        goals.append(Goal(f"simulated: {what}", "at least 90 %", f"{share:.1f} %", share >= 90.0))
    return goals
