"""The noise of messages: a mixture of normal distributions of the logarithm of a duration over its mean.

Logarithms, because modes of messages lie at factors of each other: a mixture of the relative residuals themselves would
give some messages durations below zero, and to cut those would move the mean.
"""

from collections.abc import Sequence

import numpy as np

from lepaute.errors import FitError
from lepaute.fit.numeric.arrays import Floats
from lepaute.fit.numeric.mixture import Mode, likeliest_modes

MOST_MODES = 4
#: Points that a mode must account for: fewer are a few odd messages, not a mode.
FEWEST_OF_A_MODE = 10
#: Durations that differ by less than this share are taken as equal: a clock's ticks must not become modes.
RESOLUTION = 0.01
#: So many points, at equal shares of the sorted ones, determine a mixture as well as more would.
MOST_POINTS = 4000
#: Durations below a twentieth of the median, or above twenty times, say no more about the noise than these.
WIDEST = float(np.log(20.0))
#: Of a mode: a wider one would draw messages of a hundred times the mean, which nobody measured.
LARGEST_SD = 1.0
#: Random starts of the expectation-maximisation for each number of modes.
STARTS = 4


def lognormal_modes(log_ratio: Floats, *, most_modes: int = MOST_MODES, seed: int = 0) -> tuple[Mode, ...]:
    """The mixture of log(duration / fitted mean), in increasing order of the means, centred by `centred`.

    log_ratio : shape (n,), in any order and from any reference: a common shift does not matter
    seed      : of the starts of the search; the same values and seed give the same modes
    The number of modes, at most most_modes, has the least BIC of scikit-learn's GaussianMixture, among those numbers
    at which every mode accounts for FEWEST_OF_A_MODE points. None for fewer points than that.
    Raises FitError for values that are not finite.
    """
    values = np.sort(np.asarray(log_ratio, dtype=np.float64))
    middle = float(np.median(values)) if len(values) else 0.0
    if not np.all(np.isfinite(values)):
        raise FitError("the noise of messages needs finite durations > 0; leave out the others")
    if len(values) < FEWEST_OF_A_MODE:
        return ()
    values = np.clip(values, middle - WIDEST, middle + WIDEST)
    if len(values) > MOST_POINTS:
        values = values[np.linspace(0, len(values) - 1, MOST_POINTS).round().astype(np.int64)]
    modes = likeliest_modes(
        values,
        min(most_modes, len(values) // FEWEST_OF_A_MODE),
        least_sd=RESOLUTION,
        seed=seed,
        starts=STARTS,
        fewest=FEWEST_OF_A_MODE,
    )
    return centred([Mode(mode.weight, mode.mean, _own_sd(mode.sd)) for mode in modes])


def _own_sd(sd: float) -> float:
    """Without what RESOLUTION has added."""
    return min(float(np.sqrt(max(sd**2 - RESOLUTION**2, 0.0))), LARGEST_SD)


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
    return centred([Mode(mode.weight, mode.mean, min(mode.sd * float(np.sqrt(2.0)), LARGEST_SD)) for mode in modes])
