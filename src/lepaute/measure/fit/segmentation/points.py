"""Points as the core takes them, where to cut them best, what a criterion charges for each cut, and the lines between
cuts, with intervals of their coefficients and of the places."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import fsum
from typing import Any, Literal, get_args

import numpy as np

from lepaute import _core
from lepaute.errors import FitError
from lepaute.measure.fit.numeric import Floats, Integers, sandwich
from lepaute.stats.student import student_quantile

Objective = Literal["ordinary", "weighted", "log"]
Interval = tuple[float, float]
Shape = Literal["line", "constant"]
#: Cuts of the logarithmic objective are sought among all distinct x up to this many, else among this many of them.
MAX_CANDIDATES = 500
#: Nothing measured is known better: residuals below these shares of a value are taken for zero.
RESOLUTION = {"ordinary": 1e-9, "weighted": 1e-9, "log": 1e-6}
#: Where all values are zero: a sum of squares whose logarithm, and inverse, is a number.
LEAST = 1e-300
#: What one breakpoint counts for, in parameters.
BREAKPOINT_PARAMETERS = 5.0
#: What has to be left of each series for a breakpoint: with fewer one of ten lines of six or seven points would be cut.
MIN_FREEDOM = 3.0
#: Times that each cut is moved to its best place between its neighbours.
SWEEPS = 2
CONFIDENCE = 0.95
#: -2 log(1 - sqrt(0.95)): Hansen (2000), "Sample splitting and threshold estimation", Econometrica 68, table I.
CRITICAL = -2.0 * float(np.log(1.0 - np.sqrt(0.95)))
#: A side with fewer degrees of freedom takes the variance of the whole fit.
ENOUGH_FOR_VARIANCE = 4
#: Places whose sum of squares is above the least by more than this many critical values are not looked at.
MARGIN = 4.0


@dataclass(frozen=True, slots=True)
class Points:
    """Distinct x in increasing order, all vectors of shape (distinct x,).

    value  : median of y at that x; with the logarithmic objective, median of log y: a few calls that took far longer
             than others move no breakpoint
    weight : of the squared residuals: how often x occurs over the mean of that, times x^-2 with the weighted objective
    repeats: how often x occurs
    merged_count: how many distinct x the point stands for: 1 unless `merged`
    """

    objective: Objective
    x: Floats
    value: Floats
    weight: Floats
    repeats: Integers
    merged_count: Integers

    def __len__(self) -> int:
        return len(self.x)

    @property
    def logarithmic(self) -> bool:
        return self.objective == "log"

    @property
    def least_residual(self) -> float:
        """The sum of squares of residuals that are as small as they can be known; > 0."""
        scale = 1.0 if self.logarithmic else float(np.mean(self.weight * self.value**2))
        return max(len(self) * RESOLUTION[self.objective] ** 2 * scale, LEAST)

    def series(self, edges: Floats, scale: float = 1.0) -> "_core.FitSeries":
        """For the core: cells are the points up to each of `edges`, increasing, the last at or above all x."""
        first = np.concatenate([[0], np.searchsorted(self.x, edges, side="right")]).astype(np.uint32)
        sizes = np.concatenate([[0], np.cumsum(self.merged_count)])[first].astype(np.uint32)
        return _core.FitSeries.make(self.x, self.value, self.weight, first, sizes, scale)


def points_of(x: Any, y: Any, objective: Objective) -> Points:
    """Checks and aggregates points, shape (n,) each.

    Raises FitError for vectors that differ in length, are empty, hold what is no finite number, only one x, or values
    that the objective does not take: log wants y > 0 and x >= 0, weighted x > 0.
    """
    try:
        xs, ys = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise FitError("segment needs two vectors of numbers") from None
    if xs.shape != ys.shape or xs.ndim != 1 or len(xs) < 3:
        raise FitError(f"segment needs two vectors of the same length, at least 3; got shapes {xs.shape}, {ys.shape}")
    if not (np.all(np.isfinite(xs)) and np.all(np.isfinite(ys))):
        raise FitError("segment needs finite numbers; leave out the missing values")
    if objective not in get_args(Objective):
        raise FitError(f"objective is {objective!r}; it is ordinary, weighted or log")
    if objective == "log" and np.any(ys <= 0):
        raise FitError("objective log needs y > 0; use ordinary, or leave the others out")
    if objective == "log" and np.any(xs < 0):
        raise FitError("objective log needs x >= 0; use ordinary")
    if objective == "weighted" and np.any(xs <= 0):
        raise FitError("objective weighted needs x > 0; use log or ordinary, or leave the others out")
    order = np.lexsort((ys, xs))
    xs, ys = xs[order], ys[order]
    values = np.log(ys) if objective == "log" else ys
    distinct, begin, repeats = np.unique(xs, return_index=True, return_counts=True)
    if len(distinct) < 2:
        raise FitError(f"segment needs more than one size; all {len(xs)} points have x = {distinct[0]:g}")
    medians = (values[begin + (repeats - 1) // 2] + values[begin + repeats // 2]) / 2.0  # each x has its y in order
    factor = distinct**-2.0 if objective == "weighted" else np.ones_like(distinct)
    weight = repeats / np.mean(repeats) * factor
    return Points(objective, distinct, medians, weight, repeats.astype(np.int64), np.ones_like(begin))


def thinned(edges: Floats, most: int) -> Floats:
    """`most` of more edges, at equal shares of them, the last included."""
    if len(edges) <= most:
        return edges
    result: Floats = edges[np.linspace(0, len(edges) - 1, most + 1).round().astype(np.int64)[1:]]
    return result


def merged(part: Points, edges: Floats) -> Points:
    """One point for those up to each of `edges`: at the mean of log(x), or of x where one is 0, with their weight."""
    begin = np.concatenate([[0], np.searchsorted(part.x, edges, side="right")])
    begin = begin[:-1][np.diff(begin) > 0]
    weight = np.add.reduceat(part.weight, begin)
    positive = np.maximum(part.x, np.finfo(np.float64).tiny)
    lowest, highest = np.minimum.reduceat(part.x, begin), np.maximum.reduceat(part.x, begin)
    x = np.exp(np.add.reduceat(part.weight * np.log(positive), begin) / weight)
    x = np.where(lowest > 0, x, np.add.reduceat(part.weight * part.x, begin) / weight)
    x = np.clip(x, lowest, highest)  # rounding would carry a point alone across its edge
    value = np.add.reduceat(part.weight * part.value, begin) / weight
    repeats, merged_count = np.add.reduceat(part.repeats, begin), np.add.reduceat(part.merged_count, begin)
    return Points(part.objective, x, value, weight, repeats, merged_count)


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
    known truth, before any measurement was segmented (validation/segmentation_truth.py,
    docs/design/decisions/segmentation.md).
    The variance is the unbiased one: rss / n of few points goes to nothing as lines meet two points each, and its
    logarithm would beat every charge. Chosen among seven ways in the same manner (validation/segmentation_truth.py).
    Infinite, but for one segment, where a series has fewer than MIN_FREEDOM of these left.
    """
    counts = np.arange(1, len(rss) + 1)
    n = np.asarray(points, dtype=np.float64)
    of_each = counts * coefficients + (counts - 1) / len(n)
    freedom = n[None, :] - of_each[:, None]
    parameters = counts * coefficients * len(n) + BREAKPOINT_PARAMETERS * (counts - 1)
    result: Floats = (n * np.log(rss / np.maximum(freedom, 1.0))).sum(axis=1) + parameters * np.log(n.sum())
    result[1:][np.any(freedom[1:] < MIN_FREEDOM - 1e-9, axis=1)] = np.inf
    return result


def fewest_segments_of_least(criterion: Floats) -> int:
    """Number of segments with the least criterion; of equal ones, to rounding, the fewest."""
    least = float(criterion.min())
    return int(np.flatnonzero(criterion <= least + 1e-9 * max(1.0, abs(least)))[0]) + 1


def best_cuts(
    parts: Sequence[Points],
    scales: Sequence[float],
    constant: bool,
    least: int,
    most: int,
    most_exact: int = MAX_CANDIDATES,
) -> list[tuple[tuple[float, ...], float]]:
    """The cuts into 1, 2, ... segments whose lines leave least, as many as there can be up to `most`.

    Each with what it leaves: the sum over the series of their sums of squares times their scales.

    scales : factors on the sums of squares of the series
    Exact, but for the logarithmic objective with more than `most_exact` distinct x: there neighbours are merged into
    two fifths as many points first, and the cuts between these are exact; once more with the points next to these cuts
    as they are, `most_exact` in all; each cut then moves to the best x of the two merged points beside it.
    """
    fine = np.unique(np.concatenate([part.x for part in parts]))
    if not parts[0].logarithmic or len(fine) <= most_exact:
        return _between(parts, scales, fine, constant, least, most)
    edges = thinned(fine, 2 * most_exact // 5)
    first = [one for one, _ in _between([merged(part, edges) for part in parts], scales, edges, constant, least, most)]
    opened = _opened(fine, edges, first, most_exact)
    cuts = [one for one, _ in _between([merged(part, opened) for part in parts], scales, opened, constant, least, most)]
    if not constant and len(parts) == 1:
        whole = parts[0].series(fine)
        cuts = [_sharpened(whole, fine, edges, cut, least) for cut in cuts]
    left = [
        [scale * residual_of(part, cut, constant) for part, scale in zip(parts, scales, strict=True)] for cut in cuts
    ]
    return [(one, fsum(costs)) for one, costs in zip(cuts, left, strict=True)]


def _left(series: "_core.FitSeries", begin: int, place: int, end: int) -> float:
    """Residual sum of two lines that meet before the point `place`."""
    return sum(_core.best_line(series, low, high, True, False)[2] for low, high in ((begin, place), (place, end)))


def _between(
    parts: Sequence[Points], scales: Sequence[float], edges: Floats, constant: bool, least: int, most: int
) -> list[tuple[tuple[float, ...], float]]:
    """The best cuts at `edges`, exactly."""
    scaled = [part.series(edges, scale) for part, scale in zip(parts, scales, strict=True)]
    partitions = _core.best_partitions(scaled, parts[0].logarithmic, constant, least, most)
    return [(tuple(float(edges[cut - 1]) for cut in one), float(cost)) for one, cost in partitions]


def _opened(fine: Floats, edges: Floats, cuts: Sequence[tuple[float, ...]], most: int) -> Floats:
    """The edges, and all x between those next to a cut, cuts of few first, `most` at most."""
    result = edges
    for cut in dict.fromkeys(place for one in cuts for place in one):
        at = int(np.searchsorted(edges, cut))
        low = edges[at - 1] if at else -np.inf
        wider: Floats = np.union1d(result, fine[(fine > low) & (fine <= edges[min(at + 1, len(edges) - 1)])])
        if len(wider) > most:
            break
        result = wider
    return result


def residual_of(part: Points, cuts: tuple[float, ...], constant: bool) -> float:
    """The sum of squares that the best lines between the cuts leave of one series."""
    bounds = [0, *np.searchsorted(part.x, cuts, side="right").tolist(), len(part)]
    series = part.series(part.x[-1:])
    lines = [_core.best_line(series, begin, end, part.logarithmic, constant) for begin, end in pairwise(bounds)]
    return fsum(left for _, _, left in lines)


def _sharpened(
    series: "_core.FitSeries", fine: Floats, edges: Floats, cuts: tuple[float, ...], least: int
) -> tuple[float, ...]:
    """Each cut at the best x between the candidates next to it, its neighbours held."""
    places = [int(np.searchsorted(fine, cut)) + 1 for cut in cuts]  # of the first point above
    for _ in range(SWEEPS):
        for number, cut in enumerate(cuts):
            begin = places[number - 1] if number else 0
            end = places[number + 1] if number + 1 < len(places) else len(fine)
            at = int(np.searchsorted(edges, cut))
            low = int(np.searchsorted(fine, edges[max(0, at - 1)])) + 1
            high = int(np.searchsorted(fine, edges[min(at + 1, len(edges) - 1)])) + 1
            low, high = max(low, begin + least), min(high, end - least)
            if low > high:
                continue
            # It was sought by following lines from one end of the range: the old place may still be better.
            place = int(_core.best_log_cut(series, begin, end, low, high))
            if _left(series, begin, place, end) < _left(series, begin, places[number], end):
                places[number] = place
    return tuple(float(fine[place - 1]) for place in places)


@dataclass(frozen=True, slots=True)
class Line:
    """y = intercept + slope * x for low < x <= high (the first segment also holds at and below its low).

    n_points           : how many were measured there, repetitions included
    intercept_interval : 95 %, given the breakpoints; from minus to plus infinity where too few sizes say anything
    slope_interval     : the same
    """

    low: float
    high: float
    intercept: float
    slope: float
    n_points: int
    intercept_interval: Interval = (-np.inf, np.inf)
    slope_interval: Interval = (-np.inf, np.inf)


def lines_of(points: Points, breakpoints: tuple[float, ...], constant: bool) -> tuple[Line, ...]:
    """The best line between each two neighbours of `breakpoints`."""
    bounds = [0, *np.searchsorted(points.x, breakpoints, side="right").tolist(), len(points)]
    series = points.series(points.x[-1:])
    lines = []
    for begin, end in zip(bounds[:-1], bounds[1:], strict=True):
        intercept, slope, _ = _core.best_line(series, begin, end, points.logarithmic, constant)
        low = float(points.x[begin] if begin == 0 else points.x[begin - 1])
        about = _intervals(points, slice(begin, end), intercept, slope, constant)
        repeats = int(points.repeats[begin:end].sum())
        lines.append(Line(low, float(points.x[end - 1]), intercept, slope, repeats, *about))
    return tuple(lines)


def _intervals(
    points: Points, part: slice, intercept: float, slope: float, constant: bool
) -> tuple[Interval, Interval]:
    """Intervals of intercept and slope that hold also where the noise is not that of the objective.

    Those of the logarithm come from the line's derivatives, and end at 0, which no coefficient goes below.
    """
    x, weight = points.x[part], points.weight[part]
    everything = (0.0 if points.logarithmic else -np.inf, np.inf)
    free = len(x) - (1 if constant else 2)
    if free < 1:
        return everything, (0.0, 0.0) if constant else everything
    fitted = intercept + slope * x
    by_slope = np.zeros_like(x) if constant else x
    jacobian: Floats = np.column_stack([np.ones_like(x), by_slope])
    residual = points.value[part] - fitted
    if points.logarithmic:
        jacobian = jacobian / fitted[:, None]
        residual = points.value[part] - np.log(fitted)
    active = np.array([True, not constant])
    half = student_quantile(0.5 + CONFIDENCE / 2, free) * np.sqrt(np.diag(sandwich(jacobian, residual, weight, active)))
    bottom = 0.0 if points.logarithmic else -np.inf
    both = [(max(bottom, float(at - by)), float(at + by)) for at, by in zip((intercept, slope), half, strict=True)]
    return both[0], both[1]


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
    result: Floats = np.union1d(thinned(points.x, MAX_CANDIDATES) if points.logarithmic else points.x, breakpoints)
    return result
