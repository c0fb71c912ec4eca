"""How many observations give a mean with a wanted precision; how many calls each of them is best made of.

Stein's two-stage procedure. A first stage of n values has the variance s^2 with n - 1 degrees of freedom. With
N >= (t s / d)^2 values in all, the first ones among them, the mean is within d of the truth with the stated confidence,
whatever the true variance is, where values are normal and independent: N depends on the first stage through s alone,
which the mean is independent of.
Source: C. Stein, "A two-sample test for a linear hypothesis whose power is independent of the variance", Annals of
Mathematical Statistics 16 (1945).
"""

from collections.abc import Sequence
from math import ceil, inf, isfinite, sqrt
from statistics import NormalDist, stdev

from lepaute.errors import InputError
from lepaute.stats.student import student_quantile

#: Standard deviation of a median of normal values over that of their mean, in large samples.
MEDIAN_FACTOR = 1.2533


def values_needed(first_stage: Sequence[float], half_width: float, confidence: float = 0.95) -> float:
    """N of the procedure, at least the first stage; infinite where that has fewer than two values.

    half_width: d, in the unit of the values; raises InputError where it is not above 0
    """
    if not (isfinite(half_width) and half_width > 0):
        raise InputError(f"the wanted half-width is {half_width!r}; it must be above 0")
    count = len(first_stage)
    if count < 2:
        return inf
    needed = (student_quantile(0.5 + confidence / 2, count - 1) * stdev(first_stage) / half_width) ** 2
    return max(count, ceil(needed)) if isfinite(needed) else inf


def median_deviation(values: Sequence[float]) -> float:
    """The d with which a median of n values like these has the standard deviation d / sqrt(n), in large samples.

    values: in the order of their measurement, at least 4. Their spread is taken from the interquartile range, so that a
    single outlier, which a median does not see, does not count; dependence of successive values from the correlation
    of the ranks of neighbours r, as if they were an autoregressive series: (1 + r) / (1 - r) times the variance.
    """
    import numpy as np

    if len(values) < 4:
        raise InputError(f"{len(values)} values tell nothing of their spread; give at least 4")
    low, high = np.quantile(values, [0.25, 0.75])
    spread = float(high - low) / (2 * NormalDist().inv_cdf(0.75))
    ranks = np.argsort(np.argsort(values, kind="stable"), kind="stable").astype(float)
    correlation = float(np.clip(np.corrcoef(ranks[1:], ranks[:-1])[0, 1], 0.0, 0.9)) if len(values) > 4 else 0.0
    return MEDIAN_FACTOR * spread * sqrt((1 + correlation) / (1 - correlation))


def calls_for_median(deviation: float, half_width: float, confidence: float = 0.95) -> float:
    """How many values give a median with that half-width; deviation: of `median_deviation`."""
    return (NormalDist().inv_cdf(0.5 + confidence / 2) * deviation / half_width) ** 2


def calls_for_least_error(deviation: float, between: float, mpirun_s: float, call_s: float) -> float:
    """How many calls an mpirun has so that the mean over mpiruns has the least variance for the time they take.

    deviation: of a call, of `median_deviation`; between: standard deviation of the effects of mpiruns
    mpirun_s, call_s: what an mpirun takes without calls, and each call
    Source: W. G. Cochran, Sampling Techniques (3rd ed., 1977), section 10.6: with m mpiruns of n calls the variance
    (between^2 + deviation^2 / n) / m has its least value, for m (mpirun_s + n call_s) seconds, at the n returned.
    """
    return inf if between <= 0 else deviation / between * sqrt(mpirun_s / call_s)
