"""The noise of messages: a mixture of normal distributions of the logarithm of a duration over its mean.

Logarithms, because modes of messages lie at factors of each other: a mixture of the relative residuals themselves would
give some messages durations below zero, and to cut those would move the mean.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lepaute.errors import FitError
from lepaute.fit.arrays import Floats

MOST_MODES = 4
#: Points that a mode must account for: fewer are a few odd messages, not a mode.
FEWEST_OF_A_MODE = 10
#: Durations that differ by less than this share are taken as equal: a clock's ticks must not become modes.
RESOLUTION = 0.01
#: So many points, at equal shares of the sorted ones, tell a mixture as well as more would.
MOST_POINTS = 4000
#: Random starts of the expectation-maximisation for each number of modes.
STARTS = 4


@dataclass(frozen=True, slots=True)
class Mode:
    """A share `weight` of the messages; mean and standard deviation of log(duration / fitted mean)."""

    weight: float
    mean: float
    sd: float


def fit_modes(log_ratio: Floats, *, most_modes: int = MOST_MODES, seed: int = 0) -> tuple[Mode, ...]:
    """The mixture of log(duration / fitted mean), in increasing order of the means, centred by `centred`.

    log_ratio : shape (n,), in any order and from any reference: a common shift does not matter
    seed      : of the starts of the search; the same values and seed give the same modes
    The number of modes, at most most_modes, has the least BIC of scikit-learn's GaussianMixture, among those numbers
    at which every mode accounts for FEWEST_OF_A_MODE points. None for fewer points than that: not enough to tell.
    Raises FitError for values that are not finite.
    """
    values = np.sort(np.asarray(log_ratio, dtype=np.float64))
    if not np.all(np.isfinite(values)):
        raise FitError("the noise of messages wants finite durations > 0; leave out the others")
    if len(values) < FEWEST_OF_A_MODE:
        return ()
    if len(values) > MOST_POINTS:
        values = values[np.linspace(0, len(values) - 1, MOST_POINTS).round().astype(np.int64)]
    best: tuple[Mode, ...] = (Mode(1.0, float(np.mean(values)), float(np.std(values))),)
    least = np.inf
    for count in range(1, min(most_modes, len(values) // FEWEST_OF_A_MODE) + 1):
        modes, criterion = _mixture(values, count, seed)
        if criterion < least and min(mode.weight for mode in modes) * len(values) >= FEWEST_OF_A_MODE:
            best, least = modes, criterion
    return centred(best)


def centred(modes: Sequence[Mode]) -> tuple[Mode, ...]:
    """The same modes, their means shifted alike, so that the mean factor on a duration is 1:
    sum of weight * exp(mean + sd^2 / 2), the mean of a mixture of lognormal distributions."""
    total = sum(mode.weight for mode in modes)
    mean = sum(mode.weight * np.exp(mode.mean + mode.sd**2 / 2) for mode in modes) / total
    shift = float(np.log(mean))
    return tuple(Mode(mode.weight / total, mode.mean - shift, mode.sd) for mode in modes)


def of_one_message(modes: Sequence[Mode]) -> tuple[Mode, ...]:
    """The noise of one message, from that of the average of two that followed each other (half a ping-pong).

    A mode is taken as a state that both messages met, since modes of half ping-pongs do not come in the binomial shares
    that independent ones would have; within a mode the two are independent, so one varies by sqrt(2) more.
    """
    return centred([Mode(mode.weight, mode.mean, mode.sd * float(np.sqrt(2.0))) for mode in modes])


def _mixture(values: Floats, count: int, seed: int) -> tuple[tuple[Mode, ...], float]:
    """The likeliest mixture of `count` modes that the search finds, in increasing order of means, and its BIC."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    floor = RESOLUTION**2
    search = GaussianMixture(
        count,
        reg_covar=floor,
        n_init=STARTS if count > 1 else 1,
        init_params="k-means++",
        max_iter=300,
        random_state=seed,
    )
    column = values[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a search that could still improve a little is good enough
        search.fit(column)
    variances = np.maximum(search.covariances_[:, 0, 0] - floor, 0.0)
    modes = tuple(
        Mode(float(weight), float(mean), float(np.sqrt(variance)))
        for weight, mean, variance in zip(search.weights_, search.means_[:, 0], variances, strict=True)
    )
    return tuple(sorted(modes, key=lambda mode: mode.mean)), float(search.bic(column))
