"""What is typical of the neighbourhood: local medians, and a weighted line."""

import numpy as np

from lepaute.fit.numeric.arrays import Floats


def local_median(x: Floats, y: Floats, groups: int = 60) -> Floats:
    """Median of y among the points of neighbouring x, interpolated in log(1 + x); shape of y, above zero where y is."""
    order = np.argsort(x, kind="stable")
    parts = [part for part in np.array_split(order, max(1, min(groups, len(x) // 5))) if len(part)]
    centres = np.array([np.log1p(max(0.0, float(np.median(x[part])))) for part in parts])
    medians = np.array([float(np.median(y[part])) for part in parts])
    result: Floats = np.interp(np.log1p(np.maximum(x, 0.0)), centres, medians)
    return result


def weighted_line(x: Floats, y: Floats, weight: Floats) -> tuple[float, float]:
    """Intercept and slope of the weighted least squares line; slope 0 where x does not vary."""
    mean_x, mean_y = float(np.average(x, weights=weight)), float(np.average(y, weights=weight))
    spread = float(np.sum(weight * (x - mean_x) ** 2))
    if spread <= 1e-24 * float(np.sum(weight * x**2)) or spread == 0.0:
        return mean_y, 0.0
    slope = float(np.sum(weight * (x - mean_x) * (y - mean_y))) / spread
    return mean_y - slope * mean_x, slope
