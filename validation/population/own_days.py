"""Which distribution the own part of days has: one Gaussian, Student's t, or a standard deviation of each cpu."""

import numpy
from scipy import optimize, special, stats

from lepaute.measure.fit.population.coefficients import TERMS, Coefficients
from lepaute.measure.fit.population.generative import Generative

NAMES = dict(zip(TERMS, ("alpha", "beta", "gamma"), strict=True))
SIMULATED = 999
#: Nodes of the quadrature over the factors of CPUs.
NODES = 80


def distributions(state: str, data: Coefficients, fit: Generative) -> list[tuple[str, ...]]:
    """A row for each coefficient: BIC of each distribution less that of one standard deviation for each cpu; excess
    kurtosis of the days divided by their cpu's standard deviation, and its two-sided p if they are Gaussian."""
    assert fit.scales is not None
    rows = []
    for at, term in enumerate(data.terms):
        values = fit.scales.residuals[:, at] / numpy.std(fit.scales.residuals[:, at])
        apart = [f"{value:+.0f}" for value in _bic(values, data.unit, fit.group_of_node[data.node_of_unit])]
        kurtosis, p = _kurtosis(values, data.unit)
        rows.append((state, NAMES[term], *apart, f"{kurtosis:+.2f}", f"{p:.3f}"))
    return rows


def _bic(values: numpy.ndarray, unit: numpy.ndarray, of_unit: numpy.ndarray) -> list[float]:
    """Of one Gaussian, Student's t and log-normal factors (a median for each group), less that of an sd a cpu."""
    rows, days = len(values), numpy.bincount(unit)
    square = numpy.bincount(unit, values**2)
    price = numpy.log(rows)
    single = -2.0 * float(stats.norm.logpdf(values, 0.0, numpy.sqrt(square / days)[unit]).sum()) + len(days) * price
    gaussian = -2.0 * float(stats.norm.logpdf(values, 0.0, numpy.std(values)).sum()) + price
    student = optimize.minimize(
        lambda q: -2.0 * stats.t.logpdf(values, numpy.exp(q[0]), 0.0, numpy.exp(q[1])).sum(),
        [1.0, -0.5], method="Nelder-Mead").fun  # fmt: skip
    node, weight = numpy.polynomial.hermite_e.hermegauss(NODES)
    groups = int(of_unit.max()) + 1

    def deviance(q: numpy.ndarray) -> float:
        log_sd = q[of_unit][:, None] + numpy.exp(q[groups]) * node
        density = -days[:, None] * log_sd - 0.5 * square[:, None] * numpy.exp(-2.0 * log_sd)
        total = special.logsumexp(density + numpy.log(weight / numpy.sqrt(2.0 * numpy.pi)), axis=1)
        return float(-2.0 * total.sum() + rows * numpy.log(2.0 * numpy.pi))

    medians = [numpy.mean(0.5 * numpy.log((square / days)[of_unit == number])) for number in range(groups)]
    factors = optimize.minimize(deviance, [*medians, -1.0], method="Nelder-Mead").fun
    return [gaussian - single, student + 2 * price - single, factors + (groups + 1) * price - single]


def _kurtosis(values: numpy.ndarray, unit: numpy.ndarray) -> tuple[float, float]:
    """Excess kurtosis of days divided by their cpu's standard deviation; p from Gaussian days of the same layout."""
    days = numpy.bincount(unit)

    def found(some: numpy.ndarray) -> float:
        centred = some - (numpy.bincount(unit, some) / days)[unit]
        return float(stats.kurtosis(centred / numpy.sqrt(numpy.bincount(unit, centred**2) / days)[unit]))

    rng = numpy.random.default_rng(1)
    under = numpy.array([found(rng.normal(size=len(values))) for _ in range(SIMULATED)])
    seen = found(values)
    beyond = min(numpy.sum(under >= seen), numpy.sum(under <= seen))
    return seen, min(1.0, 2.0 * (beyond + 1) / (SIMULATED + 1))
