"""The spread of values of which a few are outliers, and the correlation of neighbours in a series."""

import numpy as np

from lepaute.stats.expanding import Floats, Integers
from lepaute.stats.student import SD_OF_MAD


def robust_sd(values: Floats, middle: float | None = None) -> float:
    """The standard deviation by the median distance from `middle`, which is the median of the values if None."""
    return SD_OF_MAD * float(np.median(np.abs(values - (np.median(values) if middle is None else middle))))


def row_medians(values: Floats) -> Floats:
    """The medians along the last axis, without NaN among the values: to sort takes less time than np.median."""
    ordered, count = np.sort(values, axis=-1), values.shape[-1]
    return np.asarray((ordered[..., (count - 1) // 2] + ordered[..., count // 2]) / 2)


def medians_of(members: Integers, values: Floats) -> Floats:
    """The median of the values of members 0, 1, ..., all of whom have some, without NaN; both of shape (values,)."""
    count = np.bincount(members)
    ordered, starts = values[np.argsort(members, kind="stable")], np.cumsum(count) - count
    medians = np.empty(len(count))
    for length in np.unique(count).tolist():
        places = starts[same := np.flatnonzero(count == length)]
        medians[same] = row_medians(ordered[places[:, None] + np.arange(length)])
    return medians


def lag_correlation(deviations: Floats, lag: int = 1) -> Floats:
    """Of values `lag` apart along the last axis, from their deviations from the mean; NaN if all of them are 0."""
    products = (deviations[..., lag:] * deviations[..., :-lag]).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(products / (deviations * deviations).sum(axis=-1))
