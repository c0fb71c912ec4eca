"""The lines of given segments, with intervals for their coefficients."""

import numpy as np
from scipy.stats import t as student

from lepaute import _core
from lepaute.fit.numeric.arrays import Floats
from lepaute.fit.numeric.least_squares import sandwich
from lepaute.fit.segmentation.points import Points
from lepaute.fit.segmentation.result import Interval, Line

CONFIDENCE = 0.95


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
    covariance = sandwich(jacobian, residual, weight, active)
    half = float(student.ppf(0.5 + CONFIDENCE / 2, free)) * np.sqrt(np.diag(covariance))
    bottom = 0.0 if points.logarithmic else -np.inf
    both = [(max(bottom, float(at - by)), float(at + by)) for at, by in zip((intercept, slope), half, strict=True)]
    return both[0], both[1]
