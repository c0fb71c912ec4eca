"""The own part of the days of CPUs: its covariance in each group of nodes, and whether its tails are Gaussian."""

import numpy as np

from lepaute.fit.numeric.arrays import Floats, Integers
from lepaute.fit.population.coefficients import Coefficients
from lepaute.fit.population.day_scales import DayScales
from lepaute.stats.covariances import BetweenDays, nearest_covariance, unit_means

#: Excess kurtosis of days that is noted (Student's t of five degrees of freedom has 6), if it is five standard errors.
LONG_TAILS = 5.0


def covariances_of_groups(data: Coefficients, of_unit: Integers, days: BetweenDays) -> list[Floats | None] | None:
    """Sigma_T (its own part) of each group where groups differ in it, by BIC; None where they do not.

    For CPUs that are alike in the standard deviation of their days. Every group needs twice as many degrees of freedom
    as there are coefficients.
    """
    size, count = len(data.terms), int(of_unit.max()) + 1
    deviations = data.values - unit_means(data.unit, data.values)[data.unit]
    label = of_unit[data.unit]
    freedom = np.array(
        [np.sum(label == number) - len(np.unique(data.unit[label == number])) for number in range(count)]
    )
    if count < 2 or np.any(freedom < 2 * size) or np.any(np.diag(days.total) <= 0):
        return None
    root = np.sqrt(np.diag(days.total))
    parts = [deviations[label == number] / root for number in range(count)]
    scatters = [part.T @ part for part in parts]
    _, pooled = np.linalg.slogdet(np.sum(scatters, axis=0) / freedom.sum())
    singles = [np.linalg.slogdet(scatter / n)[1] for scatter, n in zip(scatters, freedom, strict=True)]
    gain = freedom.sum() * pooled - float(np.dot(freedom, singles))
    if not gain > (count - 1) * size * (size + 1) / 2 * np.log(freedom.sum()):
        return None
    common = np.zeros((size, size)) if days.common is None else days.common
    return [
        nearest_covariance(scatter / n * np.outer(root, root) - common, np.diag(days.total))[0]
        for scatter, n in zip(scatters, freedom, strict=True)
    ]


def long_tails(data: Coefficients, of_unit: Integers, scales: DayScales | None) -> list[str]:
    """A sentence for each coefficient whose days have longer tails than a Gaussian, group by group alike.

    Where CPUs differ in the standard deviation of their days, each is judged by its own: a mixture of Gaussians of
    different widths has long tails that no cpu has.
    """
    label = of_unit[data.unit]
    if scales is not None:
        variance = np.einsum("gii->gi", scales.typical)[label] * np.exp(2.0 * scales.log_scale)[data.unit]
        residuals = scales.residuals
    else:
        deviations = data.values - unit_means(data.unit, data.values)[data.unit]
        residuals = deviations - unit_means(data.day, deviations)[data.day]
        groups = range(int(of_unit.max()) + 1)
        variance = np.array([np.var(residuals[label == number], axis=0) for number in groups])[label]
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = np.mean(residuals**4 / variance**2, axis=0) - 3.0
    limit = max(LONG_TAILS, 5.0 * float(np.sqrt(24.0 / len(residuals))))
    return [
        f"the days of {term} have far longer tails than a Gaussian (excess kurtosis {value:.0f}): a few days decide "
        "how much is drawn on most."
        for term, value in zip(data.terms, excess, strict=True)
        if value > limit
    ]
