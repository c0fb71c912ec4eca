"""The own part of the days of CPUs: its covariance in each group of nodes, and days that stand out."""

import numpy as np

from lepaute.fit.numeric.arrays import Floats, Integers
from lepaute.fit.population.coefficients import Coefficients
from lepaute.fit.population.day_scales import DayScales
from lepaute.stats.covariances import BetweenDays, nearest_covariance, unit_means

#: Chance of a note about outliers where there are none.
OUTLIERS = 0.01
#: Days of a cpu of which none can stand out: two are always equally far from their mean.
MOST_FEW = 4


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


def outlying_days(data: Coefficients, scales: DayScales | None) -> list[str]:
    """A sentence for each coefficient in which days of single CPUs are far from the other days of the same cpu.

    Grubbs' test (Annals of Mathematical Statistics 21, 1950) of each row, at OUTLIERS over all rows by Bonferroni.
    """
    from scipy import stats

    if scales is not None:
        residuals = scales.residuals
    else:
        deviations = data.values - unit_means(data.unit, data.values)[data.unit]
        residuals = deviations - unit_means(data.day, deviations)[data.day]
    days = np.bincount(data.unit)[data.unit, None]
    square = unit_means(data.unit, residuals**2)[data.unit] * days
    with np.errstate(divide="ignore", invalid="ignore"):
        share = residuals**2 / square
        p = 2.0 * stats.t.sf(np.sqrt(share * (days - 2.0) / (1.0 - share)), days - 2.0)
    counts = np.sum((p * len(residuals) < OUTLIERS) & (days > MOST_FEW), axis=0)
    return [
        f"{count} of {len(residuals)} days of single CPUs are outliers in {term}: they decide how much the days of "
        "those CPUs vary."
        for term, count in zip(data.terms, counts, strict=True)
        if count
    ]
