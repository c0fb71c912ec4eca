"""The density behind a prediction interval, for pictures: of the logarithm of one further value."""

from collections.abc import Sequence
from math import fsum, log, sqrt

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from lepaute.stats.control_variates import Adjusted, Controls, adjusted
from lepaute.stats.expanding import Floats
from lepaute.stats.intervals import EMPIRICAL_FROM, standard_deviation

#: Of the grid on which the parts are added up, and how much wider than what is asked for it is.
POINTS, WIDER = 2049, 4.0


def predictive_density(
    values: Sequence[float], at: Floats, common_sd: float = 0.0, controls: Controls | None = None
) -> Floats:
    """Probability per unit of the value, at each of `at`, for one further value; arguments as of `prediction_interval`.

    values : R >= 2 numbers > 0 that are not all equal;  at : > 0, shape (k,), in their unit
    The logarithm is a sum of independent parts (see there), so its density is their convolution: Student's t of what
    the controls leave of the values, from 40 values on these values, smoothed; what the controls explain of the draws,
    smoothed; a normal error of standard deviation common_sd. Smoothed samples keep their variance.
    """
    left = adjusted([log(value) for value in values], controls)
    mean = fsum(left.logs) / len(left.logs)
    wanted = np.log(at) - mean
    reach = WIDER * max(float(np.abs(wanted).max()), 1e-9)
    grid = np.linspace(-reach, reach, POINTS)
    density = _of_left(left, mean, grid)
    step = grid[1] - grid[0]
    if left.explained:
        density = np.convolve(density, _smoothed(np.array(left.explained), grid), mode="same") * step
    if common_sd > step:
        density = np.convolve(density, norm.pdf(grid, scale=common_sd), mode="same") * step
    result: Floats = np.interp(wanted, grid, density) / at
    return result


def _of_left(left: Adjusted, mean: float, grid: Floats) -> Floats:
    """Of what the controls do not explain, about its mean."""
    count = len(left.logs)
    if count >= EMPIRICAL_FROM:
        return _smoothed(np.array(left.logs) - mean, grid)
    freedom = count - 1 - left.estimated
    scale = standard_deviation(left.logs) * sqrt((1.0 + left.widening) * ((count - 1) / freedom))
    density: Floats = student.pdf(grid, freedom, scale=max(scale, 0.5 * (grid[1] - grid[0])))
    return density


def _smoothed(sample: Floats, grid: Floats) -> Floats:
    """A kernel estimate with the variance of the sample, about 0 (Silverman, Density Estimation, 1986, 3.31, 6.4.1)."""
    sd = max(float(sample.std(ddof=1)), float(grid[1] - grid[0]))
    quarter, three = np.quantile(sample, [0.25, 0.75])
    width = 0.9 * min(sd, max((three - quarter) / 1.349, 0.1 * sd)) * len(sample) ** -0.2
    density: Floats = norm.pdf(grid[:, None], loc=sample / sqrt(1.0 + (width / sd) ** 2), scale=width).mean(axis=1)
    return density
