"""How many segments: what a criterion charges for each."""

from collections.abc import Sequence

import numpy as np

from lepaute.fit.numeric.arrays import Floats

#: What one breakpoint counts for, in parameters.
BREAKPOINT_PARAMETERS = 5.0
#: What has to be left of each series for a breakpoint: with fewer one of ten lines of six or seven points would be cut.
LEAST_FREEDOM = 3.0


def information_criterion(rss: Floats, points: Sequence[int], coefficients: int) -> Floats:
    """Schwarz's criterion with breakpoints that count for five parameters each, for 1, 2, ... segments.

    rss          : shape (counts, series): residual sum of squares of each series with that many segments, > 0
    points       : number of points of each series
    coefficients : of one segment of one series

    sum over series of n log(rss / f), plus log(total n) for each coefficient and five times that for each breakpoint;
    f are the series' degrees of freedom: its points less its coefficients and its share of the breakpoints.
    The likelihood jumps along the place of a breakpoint, and the search over places is exhaustive, so that one counts
    for more than the one parameter it is (Hall, Osborn and Sakkas, "Inference on structural breaks using information
    criteria", The Manchester School 81 (2013), find three); the five was chosen among six charges on random models with
    known truth, before any measurement was segmented (validation/segmentation_truth.py, docs/defense_of_design.md).
    The variance is the unbiased one: rss / n of few points goes to nothing as lines meet two points each, and its
    logarithm would beat every charge. Chosen among seven ways in the same manner (validation/segmentation_tables.py).
    Infinite, but for one segment, where a series has fewer than LEAST_FREEDOM of these left.
    """
    counts = np.arange(1, len(rss) + 1)
    n = np.asarray(points, dtype=np.float64)
    of_each = counts * coefficients + (counts - 1) / len(n)
    freedom = n[None, :] - of_each[:, None]
    parameters = counts * coefficients * len(n) + BREAKPOINT_PARAMETERS * (counts - 1)
    result: Floats = (n * np.log(rss / np.maximum(freedom, 1.0))).sum(axis=1) + parameters * np.log(n.sum())
    result[1:][np.any(freedom[1:] < LEAST_FREEDOM - 1e-9, axis=1)] = np.inf
    return result


def fewest_segments_of_least(criterion: Floats) -> int:
    """Number of segments with the least criterion; of equal ones, to rounding, the fewest."""
    least = float(criterion.min())
    return int(np.flatnonzero(criterion <= least + 1e-9 * max(1.0, abs(least)))[0]) + 1
