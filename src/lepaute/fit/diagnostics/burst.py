"""A stretch of the measurement in which all was slower, or faster, and before and after which it was not.

A test by ranks cannot see it where it is short: three values of ninety may be the largest by chance. What tells is how
far they are from the others, so this is a rule and no test: LEAST_VALUES neighbours in time, all on one side, all
beyond CUT_SD robust standard deviations of the series. Where processes differ by chance alone, normally distributed,
one campaign of twelve processes in three hundred has such a stretch, and fewer of more processes (`tests/promises`).
"""

from dataclasses import dataclass

import numpy as np

from lepaute.fit.diagnostics.by_time import Series
from lepaute.fit.diagnostics.flag import Limits
from lepaute.fit.numeric import Booleans

#: Of the level: a stretch by a tenth slower is worth a word, by a third it spoils what was measured in it.
BURST = Limits(0.10, 0.30)
CUT_SD = 7.0
LEAST_VALUES = 3
FEWEST_PROCESSES = 12


@dataclass(frozen=True, slots=True)
class Burst:
    """From start_s to end_s the level was 1 + relative_size times that of the rest (medians), robust_sd away."""

    start_s: float
    end_s: float
    relative_size: float
    robust_sd: float


def burst_of(series: Series) -> Burst | None:
    """The stretch that is farthest from the rest; None where there is none, or there are too few processes."""
    if len(np.unique(series.process)) < FEWEST_PROCESSES:
        return None
    middle = float(np.median(series.level))
    scale = 1.4826 * float(np.median(np.abs(series.level - middle)))
    if scale <= 0.0:
        return None
    away = (series.level - middle) / scale
    best: Burst | None = None
    for side in (1.0, -1.0):
        for first, last in _runs(side * away > CUT_SD):
            if last - first < LEAST_VALUES:
                continue
            inside = slice(first, last)
            rest = np.concatenate([series.level[:first], series.level[last:]])
            burst = Burst(
                float(series.start_s[inside].min()),
                float(series.end_s[inside].max()),
                float(np.median(series.level[inside]) / np.median(rest)) - 1.0,
                float(np.median(away[inside])),
            )
            if best is None or abs(burst.robust_sd) > abs(best.robust_sd):
                best = burst
    return best


def _runs(mask: Booleans) -> list[tuple[int, int]]:
    """First and one past last of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    return [(int(low), int(high)) for low, high in zip(edges[::2], edges[1::2], strict=True)]
