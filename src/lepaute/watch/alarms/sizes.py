"""How large a change is for which there is an alarm, and when it began."""

from dataclasses import dataclass

import numpy as np

from lepaute.stats.expanding import Floats


@dataclass(frozen=True, slots=True)
class Change:
    """first : the first value of the new level, by its position; before : the old level, in the unit of the values.

    size, low, high : the new level over the old one, less 1, and its interval of 95 %
    """

    first: int
    before: float
    size: float
    low: float
    high: float


def size_of_change(values: Floats, direction: int) -> Change:
    """The change in this direction (1, -1) that separates the values best, shape (n,), n >= 2, in order of time.

    It begins where the sum of squares within both levels is smallest. The interval is Welch's, of as many independent
    values as the correlation of neighbours within the levels leaves, and widened for the date, which is chosen.
    """
    from scipy.special import stdtrit

    n = len(values)
    k = np.arange(1, n)
    sums = np.cumsum(values)[:-1]
    before, after = sums / k, (values.sum() - sums) / (n - k)
    gain = np.where(np.sign(after - before) == direction, (after - before) ** 2 * k * (n - k) / n, -1.0)
    first = int(k[gain.argmax()])
    old, new = values[:first], values[first:]
    within = np.concatenate([old - old.mean(), new - new.mean()])
    degrees = max(n - 2, 1)
    spread = float((within**2).sum()) / degrees
    neighbours = float((within[1:] * within[:-1]).sum() / max(float((within**2).sum()), 1e-300))
    rho = min(max(neighbours + 1 / np.sqrt(n), 0.0), 0.9)
    worth = (1 - rho) / (1 + rho)
    error = np.sqrt(spread / worth * (1 / len(old) + 1 / len(new)))
    half = float(-stdtrit(max(degrees * worth, 1.0), 0.025)) * error
    difference = float(new.mean() - old.mean())
    base = float(old.mean())
    scale = base or np.nan
    ends = sorted(((difference - half) / scale, (difference + half) / scale))
    return Change(first, base, difference / scale, *ends)
