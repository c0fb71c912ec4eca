"""Piecewise affine fits with jumps: where to cut a range of sizes so that a line in each part fits best.

Exact for the candidates given: dynamic programming over the edges (Bellman 1961), costs of all segments from prefix
sums. The number of segments minimises Schwarz's criterion (BIC), where not told.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from lepaute.errors import FitError
from lepaute.fit.arrays import Floats

MOST_CANDIDATES = 500
Objective = Literal["ordinary", "relative", "log"]


@dataclass(frozen=True, slots=True)
class Line:
    """y = intercept + slope * x for low < x <= high (the first segment also holds at and below its low)."""

    low: float
    high: float
    intercept: float
    slope: float
    n_points: int


@dataclass(frozen=True, slots=True)
class SegmentedLine:
    """Affine pieces.

    breakpoints : upper ends of all segments but the last, increasing; each is a value of x that occurs
    segments    : one more than breakpoints
    gains       : gains[i] is the factor by which breakpoint number i + 1 divided the objective, >= 1
    """

    breakpoints: tuple[float, ...]
    segments: tuple[Line, ...]
    gains: tuple[float, ...]

    def predict(self, x: Any) -> Floats:
        """Fitted values, shape of x; beyond the data the first and the last line go on."""
        values = np.asarray(x, dtype=np.float64)
        which = np.searchsorted(np.array(self.breakpoints), values, side="left")
        intercepts = np.array([line.intercept for line in self.segments])
        slopes = np.array([line.slope for line in self.segments])
        result: Floats = intercepts[which] + slopes[which] * values
        return result


def segment(
    x: Any, y: Any, *, objective: Objective = "log", n_breakpoints: int | None = None, most_segments: int = 8
) -> SegmentedLine:
    """Fits affine pieces to points.

    x, y          : shape (n,), y > 0 unless the objective is ordinary
    objective     : "ordinary" squared errors; "relative" squared errors divided by the square of the local median;
                    "log" is for now treated as "relative" (equal to first order in the relative error)
    n_breakpoints : how many, or None for the number that BIC chooses, at most most_segments - 1
    Exact up to 500 distinct x; beyond, breakpoints are sought among 500 of them at equal shares of the points.
    Raises FitError for shapes that differ, fewer than three points, or more breakpoints than the points allow.
    """
    xs, ys = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if xs.shape != ys.shape or xs.ndim != 1 or len(xs) < 3:
        raise FitError(f"segment wants two vectors of the same length, at least 3; got shapes {xs.shape}, {ys.shape}")
    if not (np.all(np.isfinite(xs)) and np.all(np.isfinite(ys))):
        raise FitError("segment wants finite numbers; leave out the missing values")
    if objective not in ("ordinary", "relative", "log"):
        raise FitError(f"objective is {objective!r}; it is ordinary, relative or log")
    if objective != "ordinary" and np.any(ys <= 0):
        raise FitError(f"objective {objective} wants y > 0; use ordinary, or leave the others out")
    weight = np.ones_like(ys) if objective == "ordinary" else local_median(xs, ys) ** -2.0
    result = _segmented(xs, ys, weight, n_breakpoints, most_segments)
    if objective != "ordinary":
        # The local median smooths the jumps that are sought; the first fit does not.
        typical = np.clip(result.predict(xs), 0.2 * np.sqrt(1 / weight), 5.0 * np.sqrt(1 / weight))
        result = _segmented(xs, ys, typical**-2.0, n_breakpoints, most_segments)
    return result


def _segmented(xs: Floats, ys: Floats, weight: Floats, n_breakpoints: int | None, most_segments: int) -> SegmentedLine:
    """The best segments for given weights."""
    edges = candidate_edges(xs, MOST_CANDIDATES)
    cost = segment_costs(xs, ys, weight, edges, least=min(5, max(2, len(xs) // 5)))
    most = most_segments if n_breakpoints is None else n_breakpoints + 1
    paths, objectives = best_partitions(cost, most)
    if n_breakpoints is not None and len(paths) < most:
        raise FitError(f"{len(xs)} points do not allow {n_breakpoints} breakpoints; ask for fewer")
    tiny = 1e-24 * float(np.sum(weight * ys**2)) + 1e-300
    rss = np.maximum(np.array(objectives), tiny)
    count = most if n_breakpoints is not None else int(np.argmin(bic(rss[:, None], [len(xs)], 2))) + 1
    gains = tuple(float(rss[i] / rss[i + 1]) for i in range(count - 1))
    cuts = paths[count - 1]
    bounds = [0, *cuts, len(edges) - 1]
    lines = [_line(xs, ys, weight, edges[low], edges[high], first=low == 0) for low, high in pairwise(bounds)]
    return SegmentedLine(tuple(float(edges[cut]) for cut in cuts), tuple(lines), gains)


def bic(rss: Floats, points: Sequence[int], parameters_per_segment: int) -> Floats:
    """Schwarz's criterion for 1, 2, ... segments.

    rss    : shape (counts, series): residual sum of squares of each series with that many segments
    points : number of points of each series
    A breakpoint counts as a parameter as well.
    """
    counts = np.arange(1, len(rss) + 1)
    n = np.asarray(points, dtype=np.float64)
    parameters = counts * parameters_per_segment * len(n) + (counts - 1)
    result: Floats = (n * np.log(rss / n)).sum(axis=1) + parameters * np.log(n.sum())
    return result


def candidate_edges(x: Floats, most: int) -> Floats:
    """Increasing edges: one below all x, then distinct values of x, the largest last; at most `most` + 1 in all."""
    distinct = np.unique(x)
    if len(distinct) > most:
        ordered = np.sort(x)
        at = np.linspace(0, len(ordered) - 1, most + 1).round().astype(np.int64)[1:]
        distinct = np.unique(ordered[at])
    below = distinct[0] - max(1.0, abs(float(distinct[0])))
    return np.concatenate([[min(below, float(x.min()) - 1.0)], distinct])


def segment_costs(x: Floats, y: Floats, weight: Floats, edges: Floats, least: int = 5) -> Floats:
    """Weighted residual sums of squares of the best line over edges[i] < x <= edges[j], shape (edges, edges).

    Infinite where i >= j, where fewer than `least` points, or (but for the whole range) fewer than two distinct x, lie.
    """
    order = np.argsort(x, kind="stable")
    x, y, weight = x[order], y[order], weight[order]
    at = np.searchsorted(x, edges, side="right")

    def between(values: Floats) -> Floats:
        prefix = np.concatenate([[0.0], np.cumsum(values)])[at]
        result: Floats = prefix[None, :] - prefix[:, None]
        return result

    # Offsets that keep the sums small where the data are far from zero.
    s, sx, sy = between(weight), between(weight * x), between(weight * y)
    sxx, sxy, syy = between(weight * x * x), between(weight * x * y), between(weight * y * y)
    points = at[None, :] - at[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        varx = sxx - sx * sx / s
        covariance = sxy - sx * sy / s
        vary = syy - sy * sy / s
        straight = varx > 1e-12 * sxx
        rss = np.where(straight, vary - covariance**2 / varx, vary)
        cost = np.maximum(rss, 0.0)
    cost[(points < least) | (s <= 0) | ~straight] = np.inf
    if not np.isfinite(cost[0, -1]):
        cost[0, -1] = max(float(vary[0, -1]), 0.0)
    result: Floats = cost
    return result


def best_partitions(cost: Floats, most_segments: int) -> tuple[list[tuple[int, ...]], list[float]]:
    """Cheapest cuts into 1, 2, ... segments.

    cost : shape (E, E), cost[i, j] of a segment from edge i to edge j
    Returns for each number of segments that is possible, in order: the inner edges of the best partition, and its cost.
    """
    best = cost[0].copy()
    origins: list[Any] = []
    paths: list[tuple[int, ...]] = [()]
    objectives = [float(best[-1])]
    for _ in range(most_segments - 1):
        total = best[:, None] + cost
        origin = np.argmin(total, axis=0)
        best = total[origin, np.arange(len(origin))]
        origins.append(origin)
        if not np.isfinite(best[-1]):
            break
        cuts: list[int] = []
        end = len(origin) - 1
        for step in reversed(origins):
            end = int(step[end])
            cuts.append(end)
        paths.append(tuple(reversed(cuts)))
        objectives.append(float(best[-1]))
    return paths, objectives


def local_median(x: Floats, y: Floats, groups: int = 60) -> Floats:
    """Median of y among the points of neighbouring x, interpolated in log(1 + x); shape of y, above zero where y is."""
    order = np.argsort(x, kind="stable")
    parts = [part for part in np.array_split(order, max(1, min(groups, len(x) // 5))) if len(part)]
    centres = np.array([np.log1p(max(0.0, float(np.median(x[part])))) for part in parts])
    medians = np.array([float(np.median(y[part])) for part in parts])
    result: Floats = np.interp(np.log1p(np.maximum(x, 0.0)), centres, medians)
    return result


def _line(x: Floats, y: Floats, weight: Floats, low: float, high: float, *, first: bool) -> Line:
    inside = (x > low) & (x <= high)
    intercept, slope = affine(x[inside], y[inside], weight[inside])
    bottom = float(x[inside].min()) if first else float(low)
    return Line(bottom, float(high), intercept, slope, int(np.count_nonzero(inside)))


def affine(x: Floats, y: Floats, weight: Floats) -> tuple[float, float]:
    """Intercept and slope of the weighted least squares line; slope 0 where x does not vary."""
    mean_x, mean_y = float(np.average(x, weights=weight)), float(np.average(y, weights=weight))
    spread = float(np.sum(weight * (x - mean_x) ** 2))
    if spread <= 1e-24 * float(np.sum(weight * x**2)) or spread == 0.0:
        return mean_y, 0.0
    slope = float(np.sum(weight * (x - mean_x) * (y - mean_y))) / spread
    return mean_y - slope * mean_x, slope
