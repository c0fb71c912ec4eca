"""A slow trend in a series that should have none."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import erfc, sqrt
from typing import TYPE_CHECKING

from lepaute.stats.correlation import cautious_correlation
from lepaute.stats.series import FEWEST, ordered_series

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

#: Longer series are cut into this many groups at most and their medians taken: all pairs are compared.
MOST_VALUES = 1500


@dataclass(frozen=True, slots=True)
class Drift:
    """A trend, relative to the median value."""

    significant: bool  # and at least the least size over the series
    relative_per_hour: float
    relative_total: float  # from the first date to the last
    p_value: float
    note: str | None  # why nothing can be said, where that is so

    def __str__(self) -> str:
        """The trend as text; `value` is a duration, so more is slower."""
        if self.note:
            return self.note
        if not self.significant:
            return "no drift"
        way = "slower" if self.relative_total > 0 else "faster"
        total, rate = abs(self.relative_total), abs(self.relative_per_hour)
        return f"became {100 * total:.2g} % {way} gradually ({100 * rate:.2g} % an hour, p = {self.p_value:.2g})"


def drift(
    time_s: Sequence[float], values: Sequence[float], *, false_alarms: float = 0.01, least_size: float = 0.01
) -> Drift:
    """Whether the values rise or fall in the course of time: Mann-Kendall's test, Theil and Sen's slope.

    time_s, values : n dates in any order and values > 0 in any one unit, as in `ordered_series`
    false_alarms   : chance that a series without a trend is called drifting
    least_size     : relative change over the whole series below which a trend is not called one, however certain it is
    Correlated neighbours make the test give false alarms; its variance is therefore multiplied by (1 + rho) / (1 -
    rho), the inverse share of values that are as good as independent (Yue & Wang, Water Resources Management 18, 2004),
    rho taken cautiously and from what the slope leaves. A step is a trend for this test as well:
    ask it about the stretches between steps (`find_steps` first).
    Fewer than 8 dates: p-value 1, and a note. Raises InputError for a series that cannot be.
    """
    import numpy as np

    dates, x = ordered_series(time_s, values)
    if len(x) < FEWEST:
        return Drift(False, 0.0, 0.0, 1.0, f"too few values for a drift: {len(x)} dates, at least {FEWEST} are needed")
    if len(x) > MOST_VALUES:
        size = -(-len(x) // MOST_VALUES)
        dates, x = (np.array([np.median(v[i : i + size]) for i in range(0, len(v), size)]) for v in (dates, x))
    slope_per_s, rising = theil_sen(dates, x)
    p = _mann_kendall(x, rising, cautious_correlation(x - slope_per_s * (dates - dates[0])))
    middle = float(np.median(x))
    total = slope_per_s * float(dates[-1] - dates[0]) / middle
    significant = p <= false_alarms and abs(total) >= least_size
    return Drift(significant, 3600 * slope_per_s / middle, total, p, None)


def theil_sen(dates: "Floats", x: "Floats") -> tuple[float, float]:
    """(median slope of all pairs, number of rising pairs less falling ones); dates increasing, shape (n,), n >= 2."""
    import numpy as np

    early, late = np.triu_indices(len(x), 1)
    rise = x[late] - x[early]
    return float(np.median(rise / (dates[late] - dates[early]))), float(np.sign(rise).sum())


def _mann_kendall(x: "Floats", rising: float, rho: float) -> float:
    """Two-sided p-value by the normal approximation, with ties (Kendall, Rank Correlation Methods, 4th ed., 4.9)."""
    import numpy as np

    n = len(x)
    ties = np.unique(x, return_counts=True)[1]
    variance = (n * (n - 1) * (2 * n + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    if variance <= 0:
        return 1.0  # all values are equal
    z = max(0.0, abs(rising) - 1) / sqrt(variance * (1 + rho) / (1 - rho))
    return erfc(z / sqrt(2))
