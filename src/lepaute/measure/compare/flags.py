"""What speaks against taking the mpiruns of a row as independent values of one distribution.

None of it makes the verdict wrong: tests are by ranks and in blocks. It says where to look.
"""

from dataclasses import dataclass
from typing import cast

import numpy as np
import pandas
from scipy import stats

from lepaute.kit.text import counted, exact_size, seconds
from lepaute.measure.compare.summaries import ROW
from lepaute.measure.comparison.cases import name_of

#: p-values at or below this are flagged, divided by the number of rows and libraries that are looked at.
SIGNIFICANT = 0.05
#: Mpiruns below which a trend says nothing.
MIN_MPIRUNS = 8
#: Two groups: of how many mpiruns, how far apart, in deviations and as a logarithm, and the share of the smaller one.
MIN_GROUPED, APART, MIN_GAP, MIN_SHARE = 12, 6.0, 0.1, 0.15


@dataclass(frozen=True, slots=True)
class Flags:
    """Flags of one library and row.

    trend_p     : that mpiruns, in the order of their starts, rise or fall by chance (Kendall's tau); NaN: too few
    first_s, last_s: medians of the first and of the last third of them
    groups_s    : medians of the two groups that the mpiruns fall into; () where they do not
    """

    library: str
    operation: str
    form: str
    size_bytes: int
    mpiruns: int
    trend_p: float
    first_s: float
    last_s: float
    groups_s: tuple[float, ...]


def flags(summaries: pandas.DataFrame, value: str = "median_s") -> tuple[Flags, ...]:
    """Flags of every library and row; summaries: as of `mpirun_summaries`, in the order of starts."""
    result = []
    for key, table in summaries.groupby(["library", *ROW], observed=True):
        library, operation, form, size_bytes = cast("tuple[str, str, str, int]", key)
        logs = np.log(table.sort_values("mpirun")[value].to_numpy(dtype=np.float64))
        third = -(-len(logs) // 3)
        result.append(
            Flags(
                library,
                operation,
                form,
                int(size_bytes),
                len(logs),
                _trend_p(logs),
                float(np.exp(np.median(logs[:third]))),
                float(np.exp(np.median(logs[-third:]))),
                tuple(float(np.exp(each)) for each in two_groups(logs)),
            )
        )
    return tuple(result)


def flagged(found: tuple[Flags, ...]) -> tuple[str, ...]:
    """One sentence for each kind of flag that was raised, with how many rows have it."""
    if not found:
        return ()
    level = SIGNIFICANT / len(found)
    return (*_trend_sentences([one for one in found if one.trend_p <= level]), *_grouped(found))


def two_groups(logs: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> tuple[float, ...]:
    """The medians of two groups of mpiruns that lie far apart; () where there are no two.

    Groups are those with the least squares around their means, each of MIN_SHARE of MIN_GROUPED mpiruns or more,
    further apart than APART times their mean deviation (Ashman, Bird & Zepf, Astronomical Journal 108,
    1994, ask for 2 of mixtures of normals; a cut through a single one has about 2.6) and than MIN_GAP.
    """
    values, count = np.sort(logs), len(logs)
    least = int(np.ceil(MIN_SHARE * count))
    if count < MIN_GROUPED:
        return ()
    cuts = range(least, count - least + 1)
    best = min(cuts, key=lambda cut: values[:cut].var() * cut + values[cut:].var() * (count - cut))
    low, high = values[:best], values[best:]
    spread = float(np.sqrt((low.var() + high.var()) / 2))
    gap = float(high.mean() - low.mean())
    return (float(np.median(low)), float(np.median(high))) if gap > max(APART * spread, MIN_GAP) else ()


def _grouped(found: tuple[Flags, ...]) -> list[str]:
    """A median of two groups says how often each occurred; a difference is that inside the groups' states."""
    two = [one for one in found if one.groups_s]
    if not two:
        return []
    worst = max(two, key=lambda one: one.groups_s[1] / one.groups_s[0])
    low, high = worst.groups_s
    return [
        f"in {len(two)} of {len(found)} rows and libraries mpiruns fall into two groups, such as {worst.library}, "
        f"{name_of(worst.operation, worst.form)} of {exact_size(worst.size_bytes)}: near {seconds(low)} and near "
        f"{seconds(high)}; medians say how often each came"
    ]


def _trend_sentences(found: list[Flags]) -> list[str]:
    """A library that becomes slower or faster is not the one that it was: that is said first, with how much."""
    if not found:
        return []
    worst = max(found, key=lambda one: abs(np.log(one.last_s / one.first_s)))
    name = name_of(worst.operation, worst.form)
    more = f", and so do {counted(len(found) - 1, 'other row')}" if len(found) > 1 else ""
    return [
        f"{worst.library} drifts: {name} of {exact_size(worst.size_bytes)} goes from {seconds(worst.first_s)} to "
        f"{seconds(worst.last_s)} while the campaign runs{more}"
    ]


def _trend_p(logs: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> float:
    if len(logs) < MIN_MPIRUNS or float(np.ptp(logs)) == 0.0:
        return float("nan")
    return float(stats.kendalltau(np.arange(len(logs)), logs).pvalue)
