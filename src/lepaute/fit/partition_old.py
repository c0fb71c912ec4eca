"""Common cuts of several series by dynamic programming over given edges."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lepaute.fit.arrays import Floats


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
