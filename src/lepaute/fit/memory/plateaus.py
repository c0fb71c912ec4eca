"""Several curves over the same sizes, cut at the same places into pieces on which all are constant."""

import math
from collections.abc import Sequence

import numpy as np

from lepaute.fit.numeric.arrays import Floats
from lepaute.fit.segmentation.criterion import BREAKPOINT_PARAMETERS
from lepaute.fit.segmentation.cuts import best_cuts
from lepaute.fit.segmentation.points import Points

MOST_BREAKPOINTS = 24
#: A cache may end within one step of the sizes, and then the size in between is a piece of its own.
LEAST_SIZES = 1


def constant_pieces(x: Sequence[float] | Floats, y: Floats, sd: Floats) -> list[tuple[int, int]]:
    """(first, last) index of each piece, together all points.

    x : increasing, shape (points,); y : shape (curves, points); sd : standard errors of y, of the same shape
    The best cuts for each number of pieces; of these the number with the least sum of squares over variances plus
    log(points of all curves) for each level on each curve and BREAKPOINT_PARAMETERS times that for each cut: the
    `information_criterion` for noise that is known.
    """
    curves, points = y.shape
    xs = np.asarray(x, dtype=np.float64)
    ones = np.ones(points, dtype=np.int64)
    parts = [Points("ordinary", xs, at, by**-2.0, ones, ones) for at, by in zip(y, sd, strict=True)]
    partitions = best_cuts(parts, [1.0] * curves, True, LEAST_SIZES, MOST_BREAKPOINTS + 1)
    charge = (curves + BREAKPOINT_PARAMETERS) * math.log(curves * points)
    costs = [left + charge * len(cut) for cut, left in partitions]
    cuts = partitions[int(np.argmin(costs))][0]
    ends = [int(np.searchsorted(xs, cut, side="right")) for cut in cuts]
    return [(first, end - 1) for first, end in zip([0, *ends], [*ends, points], strict=True)]
