"""Noise of several modes (N'): a Gaussian mixture of standardised residuals, with as many modes as Schwarz's criterion
pays for."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lepaute.fit.arrays import Floats

MOST_MODES = 4
#: A mixture is no better known from more points than these, and takes longer.
MOST_POINTS = 3000
#: Smallest standard deviation of a mode: repeated values must not make a spike.
LEAST_SD = 0.02


@dataclass(frozen=True, slots=True)
class Mode:
    """A normal mode in units of the standard deviation of the whole: its share, mean and standard deviation."""

    weight: float
    mean: float
    sd: float


def fit_modes(z: Floats, *, most: int = MOST_MODES, seed: int = 0) -> tuple[Mode, ...]:
    """The modes of standardised residuals, by increasing mean; mean 0 and variance 1 together, exactly.

    z    : shape (points,), finite; MOST_POINTS of them, drawn by the seed, are used where there are more
    most : modes that are tried
    The same z and seed give the same modes; the order of z does not matter.
    """
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    points = np.sort(z)
    if len(points) > MOST_POINTS:
        points = np.sort(np.random.default_rng(seed).choice(points, MOST_POINTS, replace=False))
    if len(points) < 4 or float(np.std(points)) <= 0.0:
        return (Mode(1.0, 0.0, 1.0),)
    column = points[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fits = [
            GaussianMixture(count, reg_covar=LEAST_SD**2, random_state=seed, max_iter=200, tol=1e-4).fit(column)
            for count in range(1, min(most, len(points) // 4) + 1)
        ]
    best = min(fits, key=lambda fit: float(fit.bic(column)))
    order = np.argsort(best.means_[:, 0])
    weights, means = best.weights_[order], best.means_[order, 0]
    return standardised(weights, means, np.sqrt(best.covariances_[order, 0, 0]))


def standardised(weights: Floats, means: Floats, sds: Floats) -> tuple[Mode, ...]:
    """The same mixture shifted and scaled to mean 0 and variance 1."""
    weights = weights / float(np.sum(weights))
    centre = float(np.sum(weights * means))
    scale = float(np.sqrt(np.sum(weights * ((means - centre) ** 2 + sds**2))))
    return tuple(
        Mode(float(weight), float((mean - centre) / scale), float(sd / scale))
        for weight, mean, sd in zip(weights, means, sds, strict=True)
    )


def log_density(z: Floats, modes: Sequence[Mode], blur: Floats) -> Floats:
    """Logarithm of the density of the mixture at z, each mode widened by `blur` (shape of z), in units of z."""
    terms = np.stack(
        [
            np.log(mode.weight)
            - 0.5 * np.log(2 * np.pi * (mode.sd**2 + blur**2))
            - 0.5 * (z - mode.mean) ** 2 / (mode.sd**2 + blur**2)
            for mode in modes
        ]
    )
    result: Floats = np.logaddexp.reduce(terms, axis=0)
    return result
