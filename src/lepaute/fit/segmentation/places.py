"""How well the place of a breakpoint is known."""

from itertools import pairwise

import numpy as np

from lepaute import _core
from lepaute.fit.numeric.arrays import Floats, Integers
from lepaute.fit.segmentation.points import MOST_CANDIDATES, Points, thinned
from lepaute.fit.segmentation.result import Interval

#: -2 log(1 - sqrt(0.95)): Hansen (2000), "Sample splitting and threshold estimation", Econometrica 68, table I.
CRITICAL = -2.0 * float(np.log(1.0 - np.sqrt(0.95)))
#: A side with fewer degrees of freedom takes the variance of the whole fit.
ENOUGH_FOR_VARIANCE = 4
#: Places whose sum of squares is above the least by more than so many critical values are not looked at.
MARGIN = 4.0


def breakpoint_intervals(
    points: Points, breakpoints: tuple[float, ...], residual: float, constant: bool, least: int
) -> tuple[Interval, ...]:
    """95 % interval of each breakpoint, its neighbours held where they are.

    residual : sum of squares of the whole fit
    A place belongs to it where twice the logarithm of its likelihood is no more than the critical value below that of
    the likeliest place; each side has a variance of its own, estimated anew for each place. Exact in the limit for
    small jumps (Hansen 2000, equation 13, with one variance), too wide for large ones: with the true lines and
    variances the likelihood ratio is a martingale in the points on either side, and goes beyond exp(c/2) with
    probability exp(-c/2) at most. The place that was chosen by least squares always belongs to it. The jump lies
    anywhere between a size of the lower segment and the next larger one, so the interval ends at that one.
    """
    if not breakpoints:
        return ()
    edges = _places(points, breakpoints)
    series = points.series(edges)
    by_edge = _Sides(points, edges, constant)
    free = max(1, len(points) - by_edge.coefficients_of_place * (len(breakpoints) + 1))
    variance = max(residual, points.least_residual) / free
    cuts = [0, *(np.searchsorted(edges, breakpoints) + 1).tolist(), len(edges)]
    result = []
    for (low, cut), high in zip(pairwise(cuts[:-1]), cuts[2:], strict=True):
        costs = np.array(_core.split_costs(series, low, high, points.logarithmic, constant, least))
        chosen = cut - low - 1
        # A breakpoint that was given and leaves too few points on one side is compared with no other place.
        near = by_edge.likely(costs, low, high, chosen, variance) if np.isfinite(costs[chosen]) else np.array([chosen])
        inside = near + low
        first, last = min(inside[0], cut - 1), max(inside[-1], cut - 1)
        above = points.x[points.x > edges[last]]
        result.append((float(edges[first]), float(above[0] if len(above) else points.x[-1])))
    return tuple(result)


class _Sides:
    """Sums of squares of the two sides of a place."""

    def __init__(self, points: Points, edges: Floats, constant: bool) -> None:
        self._points = points
        self._series = points.series(points.x[-1:])
        self._end = [0, *np.searchsorted(points.x, edges, side="right").tolist()]
        self._constant = constant
        self._coefficients = 1 if constant else 2
        self.coefficients_of_place = self._coefficients + 1

    def likely(self, costs: Floats, low: int, high: int, chosen: int, variance: float) -> Integers:
        """The places, from `low`, that belong to the interval."""
        widest = max(variance, *self._variances(self._of(low, chosen, high), variance))
        # Further away the mean alone rules a place out, whatever the variances.
        near = np.flatnonzero(costs - np.min(costs) <= MARGIN * CRITICAL * widest)
        sides = np.array([self._of(low, int(place), high) for place in near])  # (places, squares or numbers, sides)
        variances = self._variances(sides.swapaxes(0, 1), variance)
        deviance = np.sum(sides[:, 0] / variances + sides[:, 1] * np.log(variances), axis=1)
        result: Integers = near[deviance <= np.min(deviance) + CRITICAL].astype(np.int64)
        return result

    def _of(self, low: int, place: int, high: int) -> Floats:
        """Sums of squares of the sides of a place, and their numbers of points; shape (2, 2)."""
        begin, middle, end = self._end[low], self._end[low + place + 1], self._end[high]
        squares = [
            _core.best_line(self._series, one, other, self._points.logarithmic, self._constant)[2]
            for one, other in ((begin, middle), (middle, end))
        ]
        return np.array([squares, [middle - begin, end - middle]], dtype=np.float64)

    def _variances(self, sides: Floats, whole: float) -> Floats:
        free = sides[1] - self._coefficients
        own = sides[0] / np.maximum(free, 1.0)
        floor = self._points.least_residual / len(self._points)
        result: Floats = np.where(free >= ENOUGH_FOR_VARIANCE, np.maximum(own, floor), whole)
        return result


def _places(points: Points, breakpoints: tuple[float, ...]) -> Floats:
    """The ends of segments that are compared: all x, or of very many some, those that were chosen included."""
    result: Floats = np.union1d(thinned(points.x, MOST_CANDIDATES) if points.logarithmic else points.x, breakpoints)
    return result
