"""Ellipses in the picture of a population hold so many pairs as they say."""

import numpy as np
from matplotlib.path import Path as Curve
from scipy import stats

from lepaute.measure.fit.population.plot import SHARE, ellipse


def test_so_many_pairs_lie_within_an_ellipse_as_it_says() -> None:
    # A correct program misses this bound once in 10^6 seeds.
    n, covariance, centre = 20_000, np.array([[4.0, 5.0], [5.0, 10.0]]), np.array([70.0, 2.0])
    pairs = np.random.default_rng(20261127).multivariate_normal(centre, covariance, n)
    inside = int(Curve(ellipse(centre, covariance).T).contains_points(pairs).sum())
    low, high = stats.binom.ppf([5e-7, 1 - 5e-7], n, SHARE)
    assert low <= inside <= high
