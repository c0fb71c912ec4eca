"""e-values for a shift of one value: its likelihood ratio under heavy-tailed noise, over the mean that it may have."""

from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import chdtri, gammaln

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

#: Shifts that are looked for, in standard deviations of an innovation; those between are found by their neighbours.
SHIFTS = np.array([0.5, 1.0, 2.0, 4.0, 10.0])
#: Of Student's t, heavy-tailed noise, and what a scale that is estimated by winsorised values is to that of t.
TAIL_DEGREES, HEAVY_SCALE = 4, 1.2


def log_factors(z: Floats, degrees: Integers) -> Floats:
    """log f(z) for each shift upwards, shape (values, len(SHIFTS)); degrees of freedom of the scale of each."""
    tail = np.minimum(degrees, TAIL_DEGREES)[:, None].astype(np.float64)
    at, from_shift = (HEAVY_SCALE * z[:, None]) ** 2, (HEAVY_SCALE * (z[:, None] - SHIFTS)) ** 2
    ratio = (tail + 1) / 2 * (np.log1p(at / tail) - np.log1p(from_shift / tail))
    means = log_means()
    return np.asarray(ratio - means[np.minimum(degrees, len(means)) - 1], dtype=np.float64)


@lru_cache(maxsize=1)
def log_means(most: int = 64) -> Floats:
    """The logarithm of the larger mean of t(z - D) / t(z) under both kinds of noise, over a scale that is estimated.

    Row d - 1 for a scale with d degrees of freedom, the last one for all further ones; a column each shift.
    """
    # on a grid that is fine in the middle and reaches far into the tails
    grid = np.linspace(-13.0, 13.0, 1041)
    z, step = np.sinh(grid), np.cosh(grid) * (grid[1] - grid[0])
    heavy = HEAVY_SCALE * np.exp(_log_t(HEAVY_SCALE * z, TAIL_DEGREES)) * step
    normal = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * step
    # and over equally likely scales
    scales = (np.arange(12) + 0.5) / 12
    rows = np.empty((most, len(SHIFTS)))
    for degrees in range(1, most + 1):
        if degrees > 16 and degrees % 8:  # hardly other than the one before
            rows[degrees - 1] = rows[degrees - 2]
            continue
        tail = min(degrees, TAIL_DEGREES)
        u = HEAVY_SCALE * z / np.sqrt(chdtri(degrees, 1 - scales) / degrees)[:, None]
        at = 1 + u**2 / tail
        for i, shift in enumerate(SHIFTS):
            ratio = (at / (1 + (u - HEAVY_SCALE * shift) ** 2 / tail)) ** ((tail + 1) / 2)
            rows[degrees - 1, i] = np.log(max(1.0, *((ratio * each).sum(axis=1).mean() for each in (normal, heavy))))
    return rows


def _log_t(z: Floats, degrees: float) -> Floats:
    constant = gammaln((degrees + 1) / 2) - gammaln(degrees / 2) - 0.5 * np.log(degrees * np.pi)
    return np.asarray(constant - (degrees + 1) / 2 * np.log1p(z * z / degrees), dtype=np.float64)
