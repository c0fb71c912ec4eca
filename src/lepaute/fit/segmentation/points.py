"""Points as the core takes them: in increasing x, repeated x as one point with a weight."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from lepaute import _core
from lepaute.errors import FitError
from lepaute.fit.numeric.arrays import Floats, Integers

Objective = Literal["ordinary", "weighted", "log"]
Shape = Literal["line", "constant"]

#: Cuts of the logarithmic objective are sought among all distinct x up to this many, else among so many of them.
MOST_CANDIDATES = 500
#: Nothing measured is known better: residuals below these shares of a value are taken for zero.
RESOLUTION = {"ordinary": 1e-9, "weighted": 1e-9, "log": 1e-6}
#: Where all values are zero: a sum of squares whose logarithm, and inverse, is a number.
LEAST = 1e-300


@dataclass(frozen=True, slots=True)
class Points:
    """Distinct x in increasing order, all vectors of shape (distinct x,).

    value  : median of y at that x; with the logarithmic objective, median of log y: a few calls that took far longer
             than others move no breakpoint
    weight : of the squared residuals: how often x occurs over the mean of that, times x^-2 with the weighted objective
    repeats: how often x occurs
    stands : how many distinct x the point stands for: 1 unless `merged`
    """

    objective: Objective
    x: Floats
    value: Floats
    weight: Floats
    repeats: Integers
    stands: Integers

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
        sizes = np.concatenate([[0], np.cumsum(self.stands)])[first].astype(np.uint32)
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


def common_x(parts: Sequence[Points]) -> Floats:
    """Distinct x of all series together, increasing: each may be the last of a segment."""
    return np.unique(np.concatenate([part.x for part in parts]))


def thinned(edges: Floats, most: int) -> Floats:
    """Of more than `most` edges that many at equal shares of them, the last included."""
    if len(edges) <= most:
        return edges
    at = np.linspace(0, len(edges) - 1, most + 1).round().astype(np.int64)[1:]
    result: Floats = edges[at]
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
    return Points(
        part.objective,
        x,
        value,
        weight,
        np.add.reduceat(part.repeats, begin),
        np.add.reduceat(part.stands, begin),
    )
