"""How much longer messages take while the machine does something else."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lepaute.fit.messages.series import Series
from lepaute.fit.numeric.arrays import Floats
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
            statistics: of the ratios, or, with fewer than 6 groups, of the repetitions in each; None with too few
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
        bounds = " (or so: too few)" if self.low is None else f" ({self.low:.2f} to {self.high:.2f})"
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
    groups = grouped(idle.within(*sizes), messages.within(*sizes))
    if not groups:
        return None
    ratios = np.sort([float(np.median(under) / np.median(still)) for still, under in groups])
    count = len(ratios)
    rank = median_rank(count, MISS)
    low, high = (float(ratios[rank - 1]), float(ratios[count - rank])) if rank else _of_repetitions(groups)
    return ConditionEffect(link, condition, sizes, float(np.median(ratios)), low, high, count)


def _of_repetitions(groups: list[tuple[Floats, Floats]]) -> tuple[float | None, float | None]:
    """Bounds of the median ratio from intervals of all medians at once, their chances of a miss shared out evenly."""
    lows, highs = [], []
    for pair in groups:
        bounds = []
        for values in map(np.sort, pair):
            rank = median_rank(len(values), MISS / (2 * len(groups)))
            if not rank:
                return None, None
            bounds.append((float(values[rank - 1]), float(values[len(values) - rank])))
        (still_low, still_high), (under_low, under_high) = bounds
        lows.append(under_low / still_high)
        highs.append(under_high / still_low)
    return float(np.median(lows)), float(np.median(highs))


def grouped(idle: Series, messages: Series) -> list[tuple[Floats, Floats]]:
    """Durations of either series by groups of sizes that both have; one size is never in two groups."""
    both = np.concatenate([idle.size_bytes, messages.size_bytes])
    uppers = np.unique(both)
    if len(uppers) > GROUPS:
        uppers = np.unique(np.quantile(both, np.linspace(0, 1, GROUPS + 1)[1:], method="higher"))
    groups = []
    for number in range(len(uppers)):
        pair = [
            part.duration_s[np.searchsorted(uppers, part.size_bytes, side="left") == number]
            for part in (idle, messages)
        ]
        if min(map(len, pair)) >= FEWEST_IN_A_GROUP:
            groups.append((pair[0], pair[1]))
    return groups
