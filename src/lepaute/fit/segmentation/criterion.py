"""How many segments: what a criterion charges for each."""

from collections.abc import Sequence

import numpy as np

from lepaute.fit.arrays import Floats

#: What one breakpoint counts for, in parameters.
BREAKPOINT_PARAMETERS = 3.0


def information_criterion(rss: Floats, points: Sequence[int], coefficients: int) -> Floats:
    """Schwarz's criterion with breakpoints that count for three parameters each, for 1, 2, ... segments.

    rss          : shape (counts, series): residual sum of squares of each series with that many segments, > 0
    points       : number of points of each series
    coefficients : of one segment of one series

    sum over series of n log(rss / n), plus log(total n) for each coefficient and three times that for each breakpoint.
    Source of the three: Hall, Osborn and Sakkas, "Inference on structural breaks using information criteria",
    The Manchester School 81 (2013), section 3; Schwarz's own count of one, made for parameters in which the likelihood
    is smooth, finds too many breakpoints where the search over their places is exhaustive (docs/defense_of_design.md).
    """
    counts = np.arange(1, len(rss) + 1)
    n = np.asarray(points, dtype=np.float64)
    parameters = counts * coefficients * len(n) + BREAKPOINT_PARAMETERS * (counts - 1)
    result: Floats = (n * np.log(rss / n)).sum(axis=1) + parameters * np.log(n.sum())
    return result


def fewest_segments_of_least(criterion: Floats) -> int:
    """Number of segments with the least criterion; of equal ones, to rounding, the fewest."""
    least = float(criterion.min())
    return int(np.flatnonzero(criterion <= least + 1e-9 * max(1.0, abs(least)))[0]) + 1
