"""What many streams have in common, variance and correlation, and how far that is to be believed over one's own."""

import numpy as np
import numpy.typing as npt
from scipy.special import digamma

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

#: The group's variance is worth at most so many values of one's own.
MOST_PRIOR_DEGREES = 40.0
#: Fewer streams say nothing of each other.
FEWEST_PEERS = 5


def moderated(variance: Floats, degrees: Floats, groups: Integers) -> tuple[Floats, Floats]:
    """The variance that the streams of a group have in common, and how many degrees of freedom it is worth: 0 for fewer
    than FEWEST_PEERS.

    The spread of the logarithms of their variances that chance does not explain tells how alike they are; it is taken
    one standard error larger than it looks.
    """
    usable = (degrees >= 1) & (variance > 0)
    half = np.maximum(degrees, 1.0) / 2
    weight = usable.astype(np.float64)
    size = int(groups.max()) + 1

    def mean(values: Floats) -> Floats:
        sums = np.bincount(groups, weights=np.where(usable, values, 0.0), minlength=size)
        return np.asarray(sums / np.maximum(peers, 1.0), dtype=np.float64)

    peers = np.bincount(groups, weights=weight, minlength=size)
    with np.errstate(divide="ignore"):
        log_variance = np.log(np.where(usable, variance, 1.0)) - digamma(half) + np.log(half)
    centre = mean(log_variance)
    squares = mean((log_variance - centre[groups]) ** 2) * peers / np.maximum(peers - 1, 1.0)
    chance = mean(_trigamma(half))
    spread = np.maximum(squares - chance, 0.0) + squares * np.sqrt(2 / np.maximum(peers - 1, 1.0))
    worth = np.where(peers >= FEWEST_PEERS, np.minimum(MOST_PRIOR_DEGREES, 2 / np.maximum(spread, 1e-9) + 1), 0.0)
    prior = np.exp(centre + digamma(np.maximum(worth, 1.0) / 2) - np.log(np.maximum(worth, 1.0) / 2))
    return prior[groups], worth[groups]


def moderated_correlation(seen: Floats, pairs: Floats, groups: Integers) -> tuple[Floats, Floats, Floats]:
    """The correlation that the streams of a group have in common, how many pairs of values it is worth, and all pairs.

    seen  : that of each stream, by `pairs` pairs of neighbours; its variance by chance is about 2 / pairs
    All of shape (streams,), worth 0 for fewer than FEWEST_PEERS; as in `moderated`, the spread that chance does not
    explain counts, one standard error larger than it looks.
    """
    size = int(groups.max()) + 1
    usable = pairs > 0
    all_pairs: Floats = np.bincount(groups, weights=pairs, minlength=size).astype(np.float64)
    peers = np.bincount(groups, weights=usable, minlength=size)
    mean = np.bincount(groups, weights=pairs * seen, minlength=size) / np.maximum(all_pairs, 1.0)
    off = np.where(usable, (seen - mean[groups]) ** 2, 0.0)
    squares = np.bincount(groups, weights=off, minlength=size) / np.maximum(peers - 1, 1.0)
    chance = 2 * peers / np.maximum(all_pairs, 1.0)
    spread = np.maximum(squares - chance, 0.0) + squares * np.sqrt(2 / np.maximum(peers - 1, 1.0))
    alike = np.where(peers >= FEWEST_PEERS, np.minimum(2 / np.maximum(spread, 1e-9), all_pairs), 0.0).astype(np.float64)
    return mean[groups], alike[groups], all_pairs[groups]


def _trigamma(x: Floats) -> Floats:
    """For x >= 1/2, to 1e-6: SciPy's takes milliseconds for some thousand streams."""
    below = 1 / x**2 + 1 / (x + 1) ** 2 + 1 / (x + 2) ** 2 + 1 / (x + 3) ** 2
    far = 1 / (x + 4)
    return np.asarray(below + far + far**2 / 2 + far**3 / 6 - far**5 / 30, dtype=np.float64)
