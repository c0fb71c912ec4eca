"""What the machines of a group have in common on a day: the weather, the season, an upgrade of all of them."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lepaute.stats.moderation import FEWEST_PEERS

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

#: Days over which the slow part of a common effect is a mean: a season, not the weather.
SLOW_DAYS = 15


@dataclass(slots=True)
class CommonEffect:
    """What the machines of each group have in common, day by day.

    groups : of each stream, numbers from 0, shape (streams,)
    effect, slow : of each group, the latest effect and its slow part; 0 before there are enough machines
    here  : whether enough of its machines had a value on the latest day
    """

    groups: Integers
    effect: Floats
    slow: Floats
    days: Floats
    here: Booleans

    @classmethod
    def start(cls, groups: Integers) -> "CommonEffect":
        size = int(groups.max()) + 1
        return cls(groups, np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size, np.bool_))

    def take(self, deviations: Floats) -> Floats:
        """Quick and slow part of the effect of a day, by its `deviations`, of each stream, shape (streams, 2).

        Where too few machines have a value, the effect is what it was before.
        """
        found = common_effect(deviations, self.groups)
        self.here = np.isfinite(found)
        self.effect = np.where(self.here, found, self.effect)
        self.days += self.here
        gain = self.here / np.clip(self.days, 1.0, SLOW_DAYS)
        self.slow = self.slow + gain * (self.effect - self.slow)
        return np.stack([self.effect - self.slow, self.slow], axis=1)[self.groups]


def common_effect(deviations: Floats, groups: Integers) -> Floats:
    """For each group, the median deviation of its streams: what all share; NaN for fewer than FEWEST_PEERS.

    It is taken off the values before these are judged, and is a stream of its own: a change there is a platform event.
    """
    size = int(groups.max()) + 1
    order = np.lexsort((deviations, groups))  # NaN last in its group
    begin = np.searchsorted(groups[order], np.arange(size))
    finite = np.bincount(groups, weights=np.isfinite(deviations), minlength=size).astype(np.int64)
    ranked = deviations[order]
    middle = begin + np.maximum(finite - 1, 0) // 2
    upper = begin + finite // 2
    last = len(ranked) - 1
    medians = (ranked[np.minimum(middle, last)] + ranked[np.minimum(upper, last)]) / 2
    return np.asarray(np.where(finite >= FEWEST_PEERS, medians, np.nan), dtype=np.float64)
