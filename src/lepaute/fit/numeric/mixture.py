"""Noise of several modes (N'): a Gaussian mixture of standardised residuals, with as many modes as Schwarz's criterion
pays for."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lepaute.fit.numeric.arrays import Floats

MOST_MODES = 4
#: A mixture is no better known from more points than these, and takes longer.
MOST_POINTS = 3000
#: Smallest standard deviation of a mode: repeated values must not make a spike.
LEAST_SD = 0.02


@dataclass(frozen=True, slots=True)
class Mode:
    """A normal mode: its share, mean and standard deviation; of kernels, in units of the standard deviation of all."""

    weight: float
    mean: float
    sd: float


def standardised_modes(z: Floats, *, most: int = MOST_MODES, seed: int = 0) -> tuple[Mode, ...]:
    """The modes of standardised residuals, by increasing mean; mean 0 and variance 1 together, exactly.

    z    : shape (points,), finite; MOST_POINTS of them, drawn by the seed, are used where there are more
    most : modes that are tried
    The same z and seed give the same modes; the order of z does not matter.
    """
    points = np.sort(z)
    if len(points) > MOST_POINTS:
        points = np.sort(np.random.default_rng(seed).choice(points, MOST_POINTS, replace=False))
    if len(points) < 4 or float(np.std(points)) <= 0.0:
        return (Mode(1.0, 0.0, 1.0),)
    modes = likeliest_modes(points, min(most, len(points) // 4), least_sd=LEAST_SD, seed=seed)
    weights, means, sds = (np.array([getattr(mode, name) for mode in modes]) for name in ("weight", "mean", "sd"))
    return standardised(weights, means, sds)


def likeliest_modes(
    points: Floats, most: int, *, least_sd: float, seed: int, starts: int = 1, fewest: int = 0
) -> tuple[Mode, ...]:
    """The mixture of 1 to `most` modes with the least BIC, by increasing mean; scikit-learn's GaussianMixture.

    points   : shape (n,), increasing
    least_sd : added in squares to every mode's, so that repeated values make no spike
    starts   : of the search for each number of modes; fewest: points that each of several modes accounts for
    """
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture
    from threadpoolctl import threadpool_limits

    column = points[:, None]
    # One thread of k-means: several of so few points wait for each other, on a busy machine for most of the time, and
    # add up in the order in which they end.
    with warnings.catch_warnings(), threadpool_limits(limits=1, user_api="openmp"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        fits = [
            GaussianMixture(
                count,
                reg_covar=least_sd**2,
                n_init=starts,
                # One start is a good one, by k-means; several are drawn, which is faster than several of those.
                init_params="kmeans" if starts == 1 else "k-means++",
                random_state=seed,
                max_iter=200,
                tol=1e-4,
            ).fit(column)
            for count in range(1, most + 1)
        ]
    usable = [fit for fit in fits if fit.n_components == 1 or fit.weights_.min() * len(points) >= fewest]
    best = min(usable, key=lambda fit: float(fit.bic(column)))
    order = np.argsort(best.means_[:, 0])
    return tuple(
        Mode(float(best.weights_[i]), float(best.means_[i, 0]), float(np.sqrt(best.covariances_[i, 0, 0])))
        for i in order
    )


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
