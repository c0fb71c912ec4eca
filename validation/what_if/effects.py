"""Relative effects and orders, ours against the published ones."""

from collections.abc import Sequence
from itertools import combinations

import pandas
from support.report import Goal, at_most

#: Below this, two published times count as equal: block sizes of shared allocations and huge pages alone shift such an
#: emulation by up to 1 % each way, and ours draws other noise.
RESOLUTION_PERCENT = 2.0
EFFECT_LIMIT_POINTS = 5.0


def relative_effects(frame: pandas.DataFrame, column: str, baseline: str, by: Sequence[str]) -> pandas.Series:
    """Mean over the platforms of 100 * (column / baseline - 1), for each combination of `by`."""
    percent = 100.0 * (frame[column] / frame[baseline] - 1.0)
    return percent.groupby([frame[key] for key in by]).mean()


def effect_goals(ours: pandas.Series, published: pandas.Series, what: str) -> list[Goal]:
    """Effects in per cent, with the same index: same sign where there is one to speak of, and near each other."""
    marked = published[published.abs() >= RESOLUTION_PERCENT].index
    same = int((ours[marked] * published[marked] > 0.0).sum())
    direction = f"{what}: same direction where the published effect is at least {RESOLUTION_PERCENT:g} %"
    met = same == len(marked) if len(marked) else None
    farthest = (ours - published).abs().max()
    return [
        Goal(direction, "all", f"{same} of {len(marked)}", met),
        at_most(f"{what}: largest difference of the effects", EFFECT_LIMIT_POINTS, farthest, "points"),
    ]


def same_order(ours: pandas.Series, published: pandas.Series) -> tuple[int, int]:
    """(pairs in the same order, pairs), over the pairs whose published times differ by RESOLUTION_PERCENT or more."""
    same = pairs = 0
    for one, other in combinations(published.index, 2):
        low, high = sorted((published[one], published[other]))
        if 100.0 * (high / low - 1.0) < RESOLUTION_PERCENT:
            continue
        pairs += 1
        same += bool((ours[one] - ours[other]) * (published[one] - published[other]) > 0.0)
    return same, pairs
