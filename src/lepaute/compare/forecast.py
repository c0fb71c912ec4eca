"""How many mpiruns a library would decide a row that is undecided.

Two things decide: a difference is shown, or none above the margin is possible any more. With the standard error e of
the shift after n mpiruns, both grow as 1 / sqrt(n): a true shift d is shown about when n' mpiruns have
|d| = z e sqrt(n / n'), and is within the margin m about when m - |d| = 1.96 e sqrt(n / n'). Fewer mpiruns than the
clearest arrangement takes show nothing (`aligned_ranks.values_to_decide`). The true shift is not known; it is taken as
Student's t around the estimate, with the deviation e and the degrees of freedom of n mpiruns of each library, and the
forecast is the median of what its values would need, with the range of the middle four fifths. From fewer than LEAST
mpiruns nothing is said: their spread is hardly known.
"""

from dataclasses import dataclass
from math import ceil, inf, isfinite
from statistics import NormalDist

import numpy as np

from lepaute.stats.aligned_ranks import values_to_decide
from lepaute.stats.student import student_quantile

_NORMAL = NormalDist()
#: Values of the true shift that are looked at: quantiles of its distribution.
_QUANTILES = 199
#: A forecast above this many times the mpiruns made says only that it is far away.
MOST_TIMES = 100
#: Mpiruns of each library from which a forecast is made.
LEAST = 5


@dataclass(frozen=True, slots=True)
class Forecast:
    """Mpiruns of each library in all, those made included; inf where more than MOST_TIMES as many would be needed."""

    likely: float
    low: float
    high: float


def mpiruns_to_decide(
    shift: float, standard_error: float, mpiruns: int, significance: float, margin: float
) -> Forecast | None:
    """None where nothing can be said: of too few mpiruns, or where the standard error is not known.

    shift, margin  : logarithms of ratios; standard_error : of the shift, after `mpiruns` of each library
    significance   : two-sided p-value at which a difference counts as shown
    """
    if not (mpiruns >= LEAST and isfinite(shift) and isfinite(standard_error) and standard_error > 0):
        return None
    quantiles = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    truths = np.abs(shift + standard_error * np.array([student_quantile(q, 2 * mpiruns - 2) for q in quantiles]))
    unit = standard_error * standard_error * mpiruns  # variance of the shift after one mpirun
    shown = unit * (_NORMAL.inv_cdf(1 - significance / 2) / np.maximum(truths, 1e-12)) ** 2
    shown = np.maximum(shown, values_to_decide(significance))
    left = margin - truths
    none_left = np.where(left > 0, unit * (_NORMAL.inv_cdf(0.975) / np.maximum(left, 1e-12)) ** 2, inf)
    needed = np.maximum(np.minimum(shown, none_left), mpiruns + 1)
    low, likely, high = (_whole(float(value), mpiruns) for value in np.quantile(needed, [0.1, 0.5, 0.9]))
    return Forecast(likely, low, high)


def _whole(value: float, mpiruns: int) -> float:
    return inf if value > MOST_TIMES * mpiruns else float(ceil(value))
