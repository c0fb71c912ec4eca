"""One covariance for all machines of a group: what their days differ by, each around the mean of its own machine.

The model is that of the generative populations (Cornebize's thesis, equation 4.4; `fit.population`): an observation
of machine p on day d is N(mu_p, Sigma_T), with the same Sigma_T for all. Machines whose scatter differs break it, and
so do days that all of them share: then fewer values are independent than are counted.
"""

from dataclasses import dataclass

import numpy as np

from lepaute.stats.expanding import Booleans, ExpandingMoments, Floats, Integers
from lepaute.watch.reference import References


@dataclass(frozen=True, slots=True)
class PooledScatter:
    """For each observation: sum of products of deviations, shape (rows, p, p), and their degrees of freedom."""

    scatter: Floats
    degrees_of_freedom: Integers


def pooled_scatter(
    moments: ExpandingMoments, r: int, found: References, started_s: Floats, group: Integers
) -> PooledScatter:
    """What the series of the same group say that are current when an observation starts, by what started before it.

    group : shape (rows,), the same for all rows of a series
    A series counts from the event at its beginning to the next one: an event may change the scatter, too. The window
    that is tested does not count. Sums are made anew after each event, so that nothing has to cancel.
    """
    rows, p = moments.mean.shape
    kept: Booleans = ~found.outlier
    scatter: Floats = np.zeros((rows, p, p))
    degrees: Integers = np.zeros(rows, np.int64)
    # a value adds to the scatter, unless it is the first of its series
    first_of_series = np.zeros(rows, np.bool_)
    order = np.lexsort((started_s, found.series))
    kept_order = order[kept[order]]
    first_of_series[kept_order[np.unique(found.series[kept_order], return_index=True)[1]]] = True
    adds = kept & ~first_of_series
    begin_s, end_s = found.begin_s[found.series], found.end_s[found.series]
    for number in np.unique(group):
        members = np.flatnonzero(group == number)
        members = members[np.argsort(started_s[members], kind="stable")]
        bounds = np.unique(np.concatenate([begin_s[members], end_s[members], [-np.inf, np.inf]]))
        adding = members[adds[members]]
        for low, high in zip(bounds[:-1], bounds[1:], strict=True):
            now = members[np.searchsorted(started_s[members], low) : np.searchsorted(started_s[members], high)]
            if len(now) == 0:
                continue
            current = adding[(begin_s[adding] <= low) & (end_s[adding] >= high) & (started_s[adding] < high)]
            old = started_s[current] < low
            new = current[~old]
            sums = np.concatenate([np.zeros((1, p, p)), np.cumsum(moments.increment[new], axis=0)])
            sums += moments.increment[current[old]].sum(axis=0)
            before = np.searchsorted(started_s[new], started_s[now], side="left")
            scatter[now] = sums[before]
            degrees[now] = before + int(old.sum())
    # Where there is a reference, each of the r - 1 earlier values of the window has added to its series.
    return PooledScatter(scatter - moments.window_scatter, np.maximum(0, degrees - (r - 1)))
