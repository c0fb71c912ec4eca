"""How much longer messages take while the machine does something else."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lepaute.fit.arrays import Floats
from lepaute.fit.messages import Series
from lepaute.stats.rank_interval import median_rank

#: Sizes are put into so many groups of neighbours, where there are more of them.
GROUPS = 20
#: A group counts with so many messages under either condition.
FEWEST_IN_A_GROUP = 3
#: Chance that the interval of a ratio misses it.
MISS = 0.05


@dataclass(frozen=True, slots=True)
class ConditionEffect:
    """Time of messages under a condition over that of the same messages on idle nodes.

    sizes : above the first and up to the second, in bytes (the eager limit parts them)
    ratio : median over groups of sizes of the ratio of medians; low and high bound it with 95 % confidence by order
            statistics, None with fewer than 6 groups
    """

    link: str
    condition: str
    sizes: tuple[float, float]
    ratio: float
    low: float | None
    high: float | None
    groups: int

    def sentence(self) -> str:
        """For a reader of the fit."""
        where = "inside nodes" if self.link == "local" else "between nodes"
        low, high = self.sizes
        which = f"up to {high:.0f} bytes" if low < 0 else f"above {low:.0f} bytes"
        if low < 0 and high == float("inf"):
            which = "of all sizes"
        bounds = "" if self.low is None else f" ({self.low:.2f} to {self.high:.2f})"
        return f"Messages {where} {which} take {self.ratio:.2f}{bounds} times as long under {self.condition} as idle."


def condition_effects(link: str, by_condition: Mapping[str, Series], eager_bytes: float) -> tuple[ConditionEffect, ...]:
    """Effects of all conditions but idle, up to the eager limit and above it; none where idle was not measured.

    by_condition : times of messages, by condition
    """
    idle = by_condition.get("idle")
    if idle is None:
        return ()
    bounds = [(-1.0, eager_bytes), (eager_bytes, float("inf"))]
    return tuple(
        effect
        for condition, messages in by_condition.items()
        if condition != "idle"
        for low, high in bounds
        if low < high and (effect := _effect(link, condition, (low, high), idle, messages)) is not None
    )


def _effect(
    link: str, condition: str, sizes: tuple[float, float], idle: Series, messages: Series
) -> ConditionEffect | None:
    ratios = np.sort(median_ratios(idle.within(*sizes), messages.within(*sizes)))
    count = len(ratios)
    if count == 0:
        return None
    rank = median_rank(count, MISS)
    low, high = (float(ratios[rank - 1]), float(ratios[count - rank])) if rank else (None, None)
    return ConditionEffect(link, condition, sizes, float(np.median(ratios)), low, high, count)


def median_ratios(idle: Series, messages: Series) -> Floats:
    """Ratio of the medians of either series in groups of sizes that both have; one size is never in two groups."""
    both = np.concatenate([idle.size_bytes, messages.size_bytes])
    uppers = np.unique(both)
    if len(uppers) > GROUPS:
        uppers = np.unique(np.quantile(both, np.linspace(0, 1, GROUPS + 1)[1:], method="higher"))
    ratios = []
    for number in range(len(uppers)):
        pair = [
            part.duration_s[np.searchsorted(uppers, part.size_bytes, side="left") == number]
            for part in (idle, messages)
        ]
        if min(map(len, pair)) >= FEWEST_IN_A_GROUP:
            ratios.append(float(np.median(pair[1]) / np.median(pair[0])))
    return np.array(ratios, dtype=np.float64)
