"""How well the place of a breakpoint is known."""

from itertools import pairwise

import numpy as np

from lepaute import _core
from lepaute.fit.numeric.arrays import Floats
from lepaute.fit.segmentation.points import MOST_CANDIDATES, Points, thinned
from lepaute.fit.segmentation.result import Interval

#: -2 log(1 - sqrt(0.95)): Hansen (2000), "Sample splitting and threshold estimation", Econometrica 68, table I.
CRITICAL = -2.0 * float(np.log(1.0 - np.sqrt(0.95)))


def breakpoint_intervals(
    points: Points, breakpoints: tuple[float, ...], residual: float, constant: bool, least: int
) -> tuple[Interval, ...]:
    """95 % interval of each breakpoint, its neighbours held where they are.

    residual : sum of squares of the whole fit
    A place belongs to it where n (S(place) - S(best)) / S is at most the critical value, with S the sum of squares
    (Hansen 2000, equation 13: exact in the limit for small jumps, too wide for large ones). The jump lies anywhere
    between a size of the lower segment and the next larger one, so the interval ends at that one.
    """
    if not breakpoints:
        return ()
    edges = _places(points, breakpoints)
    series = points.series(edges)
    free = max(1, len(points) - (2 if constant else 3) * (len(breakpoints) + 1))
    variance = max(residual, points.least_residual) / free
    cuts = [0, *(np.searchsorted(edges, breakpoints) + 1).tolist(), len(edges)]
    result = []
    for (low, cut), high in zip(pairwise(cuts[:-1]), cuts[2:], strict=True):
        costs = np.array(_core.split_costs(series, low, high, points.logarithmic, constant, least))
        chosen = costs[cut - low - 1]
        # A breakpoint that was given and leaves too few points on one side is compared with no other place.
        near = (
            np.flatnonzero(costs - chosen <= CRITICAL * variance) if np.isfinite(chosen) else np.array([cut - low - 1])
        )
        inside = near + low
        above = points.x[points.x > edges[inside[-1]]]
        result.append((float(min(edges[inside[0]], edges[cut - 1])), float(above[0] if len(above) else points.x[-1])))
    return tuple(result)


def _places(points: Points, breakpoints: tuple[float, ...]) -> Floats:
    """The ends of segments that are compared: all x, or of very many some, those that were chosen included."""
    result: Floats = np.union1d(thinned(points.x, MOST_CANDIDATES) if points.logarithmic else points.x, breakpoints)
    return result
