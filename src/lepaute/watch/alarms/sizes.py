"""How large a change is for which there is an alarm, and when it began."""

from dataclasses import dataclass

import numpy as np

from lepaute.stats.expanding import Floats

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Change:
    """first : the first value of the new level, by its position; before : the old level, in the unit of the values.

    size, low, high : the new level over the old one, less 1, and its interval of 95 %
    p_value : of no change at that position, two-sided
    """

    first: int
    before: float
    size: float
    low: float
    high: float
    p_value: float


def size_of_change(values: Floats, direction: int) -> Change:
    """The change in this direction (1, -1) that separates the values best, shape (n,), n >= 2, in order of time.

    It begins where the sum of squares within both levels is smallest. The interval is widened for the date, which is
    chosen, by what the correlation of neighbours could still be.
    """
    n = len(values)
    k = np.arange(1, n)
    sums = np.cumsum(values)[:-1]
    before, after = sums / k, (values.sum() - sums) / (n - k)
    gain = np.where(np.sign(after - before) == direction, (after - before) ** 2 * k * (n - k) / n, -1.0)
    first = int(k[gain.argmax()])
    return size_at(values, first, correlation_within(values, first) + 1 / np.sqrt(n))


def size_at(values: Floats, first: int, correlation: float) -> Change:
    """The change at a known position, 0 < first < n, n >= 3; neighbours are correlated so much.

    Student's interval for a common variance, of as many independent values as the correlation leaves.
    """
    from scipy.special import stdtr, stdtrit

    old, new = values[:first], values[first:]
    degrees = max(len(values) - 2, 1)
    spread = float(((old - old.mean()) ** 2).sum() + ((new - new.mean()) ** 2).sum()) / degrees
    rho = min(max(correlation, 0.0), 0.9)
    worth = (1 - rho) / (1 + rho)
    error = np.sqrt(spread / worth * (1 / len(old) + 1 / len(new)))
    free = max(degrees * worth, 1.0)
    half = float(stdtrit(free, 0.5 + CONFIDENCE / 2)) * error
    difference, base = float(new.mean() - old.mean()), float(old.mean())
    p = 2 * float(stdtr(free, -abs(difference) / error)) if error > 0 else float(difference == 0)
    scale = base or np.nan
    ends = sorted(((difference - half) / scale, (difference + half) / scale))
    low, high = ends
    return Change(first, base, difference / scale, low, high, p)


def correlation_within(values: Floats, first: int) -> float:
    """Of neighbours, within both levels."""
    within = np.concatenate([values[:first] - values[:first].mean(), values[first:] - values[first:].mean()])
    return float((within[1:] * within[:-1]).sum() / max(float((within**2).sum()), 1e-300))
