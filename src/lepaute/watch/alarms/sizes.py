"""How large a change is for which there is an alarm, and when it began; which direction of a factor is worse."""

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from lepaute.stats.expanding import Floats
from lepaute.stats.robust import lag_correlation

#: Larger is better: rates. Looked at first, since `_B_per_s` ends in `_s`.
_RATES = ("_flops", "_per_s", "_Hz")
#: Smaller is better: durations, whole or for a piece of work, and temperatures.
_COSTS = ("_s", "_degC")
CONFIDENCE = 0.95
#: Of degrees Celsius, changes count from this many times the least change of other factors on: as much as a door left
#: open does to 50 of them is a hundredth, to a rate nothing.
OF_TEMPERATURES = 5
#: Of workloads of the node test by the share of an application's time that its like takes at most: a half of it, a
#: fifth, a tenth (docs/design/decisions/watching.md). Those of users are not among them.
OF_WORKLOADS = {
    **dict.fromkeys(("memory", "cache", "branch", "vector"), 2),
    **dict.fromkeys(("network", "syscall"), 5),
    "disk": 10,
}


def least_change_of(factor: str, least_change: float) -> float:
    """The smallest relative change of the factor that counts, by that of dgemm's rate."""
    if factor.endswith("_degC"):
        return OF_TEMPERATURES * least_change
    kind, _, workload = factor.partition("_")
    return least_change * (OF_WORKLOADS.get(workload.partition("_")[0], 1) if kind == "workload" else 1)


def worse_direction(factor: str) -> int:
    """By the unit: -1 if a smaller value is worse, 1 where a larger one is, 0 if neither is, as of a power."""
    if factor.endswith(_RATES):
        return -1
    if factor.endswith(_COSTS) or "_s_per_" in factor:
        return 1
    return 0


def is_worse(factor: str, direction: int) -> bool:
    """Whether a change in this direction (-1, 1) is for the worse; of a factor for which neither is, any is."""
    return worse_direction(factor) in (0, direction)


@dataclass(frozen=True, slots=True)
class LevelChange:
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

    def columns(self, factor: str, direction: int) -> dict[str, object]:
        """As rows of alarms have them."""
        return {
            "direction": direction,
            "before": self.before,
            "size": self.size,
            "size_low": self.low,
            "size_high": self.high,
            "worse": is_worse(factor, direction),
        }


def largest_level_change(values: Floats, direction: int) -> LevelChange:
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


def size_at(values: Floats, first: int, correlation: float) -> LevelChange:
    """The change at a known position, 0 < first < n, n >= 3; neighbours are correlated so much.

    Student's interval for a common variance, of as many independent values as the correlation leaves.
    """
    return sizes_at(values[None], first, correlation)[0]


def sizes_at(values: Floats, first: int, correlation: float) -> list[LevelChange]:
    """`size_at` of each row, shape (series, n)."""
    old, new = values[:, :first], values[:, first:]
    base, difference = old.mean(axis=1), new.mean(axis=1) - old.mean(axis=1)
    degrees = max(values.shape[1] - 2, 1)
    squares = [((each - each.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) for each in (old, new)]
    rho = min(max(correlation, 0.0), 0.9)
    worth = (1 - rho) / (1 + rho)
    error = np.sqrt((squares[0] + squares[1]) / degrees / worth * (1 / old.shape[1] + 1 / new.shape[1]))
    free = max(degrees * worth, 1.0)
    half = float(stdtrit(free, 0.5 + CONFIDENCE / 2)) * error
    with np.errstate(divide="ignore", invalid="ignore"):
        p = np.where(error > 0, 2 * stdtr(free, -np.abs(difference) / error), difference == 0)
        scale = np.where(base == 0, np.nan, base)
        ends = np.sort(np.stack([(difference - half) / scale, (difference + half) / scale]), axis=0)
        columns = base, difference / scale, *ends, p
    return [LevelChange(first, *each) for each in zip(*(column.tolist() for column in columns), strict=True)]


def correlation_within(values: Floats, first: int) -> float:
    """Correlation of neighbours, within both levels."""
    return float(correlations_within(values[None], first)[0])


def correlations_within(values: Floats, first: int) -> Floats:
    """`correlation_within` of each row, shape (series, n)."""
    levels = (values[:, :first], values[:, first:])
    within = np.concatenate([level - level.mean(axis=1, keepdims=True) for level in levels], axis=1)
    return np.nan_to_num(lag_correlation(within))
