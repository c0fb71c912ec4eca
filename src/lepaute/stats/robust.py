"""The spread of values of which a few are outliers, and the correlation of neighbours in a series."""

import numpy as np

from lepaute.stats.expanding import Floats
from lepaute.stats.student import SD_OF_MAD


def robust_sd(values: Floats, middle: float | None = None) -> float:
    """The standard deviation by the median distance from `middle`, which is the median of the values if None."""
    return SD_OF_MAD * float(np.median(np.abs(values - (np.median(values) if middle is None else middle))))


def lag_correlation(deviations: Floats, lag: int = 1) -> Floats:
    """Of values `lag` apart along the last axis, from their deviations from the mean; NaN if all of them are 0."""
    products = (deviations[..., lag:] * deviations[..., :-lag]).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(products / (deviations * deviations).sum(axis=-1))
