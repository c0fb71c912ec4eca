"""What single calls of a row look like: how they are distributed in each mpirun, depend on those before, and change.

Everything is taken from the calls themselves, in the order in which an mpirun made them; an mpirun is what differs by
chance (section 5 of the paper), so medians and intervals are over mpiruns.

Flags are what speaks against taking the mpiruns of a row as independent values of one distribution. None of it makes
the verdict wrong: tests are by ranks and in blocks. It says where to look.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, sqrt
from typing import Any, cast

import numpy as np
import pandas
from scipy import stats

from lepaute.kit.text import counted, exact_size, seconds
from lepaute.measure.compare.summaries import ROW
from lepaute.measure.comparison.cases import name_of
from lepaute.stats.expanding import Floats, Integers
from lepaute.stats.intervals import median_interval
from lepaute.stats.robust import lag_correlation
from lepaute.stats.student import NORMAL_975

#: Distances of calls whose correlation is taken, as long as an mpirun has four times as many.
LAGS = 20
#: Bins of the numbers of calls in an mpirun, and of run-times.
NUMBERS, TIMES = 30, 36
#: Run-times beyond these percentiles of all calls are put into the outermost bins.
LEAST, MOST = 1.0, 99.0
#: Calls below which an mpirun has no halves to compare.
MIN_CALLS = 8
#: Chance that an interval misses.
_MISS = 0.05


@dataclass(frozen=True)
class SingleCalls:
    """Single calls of one library and row.

    mpiruns     : numbers of the mpiruns, in the order of their starts; shape (m,)
    quartiles_s : of the calls of each; shape (m, 3)
    shares      : of the calls of each, in bins between `edges_s`; shape (m, TIMES); edges are those of the whole row
    correlations: quartiles over mpiruns of the correlation of the ranks of calls that are 1, 2, ... apart; shape (k, 3)
    calls       : of an mpirun, median over mpiruns
    course_s    : of the calls of all mpiruns, in bins of their numbers: quartiles and mean; shape (b, 4)
    numbers     : middles of these bins, the first call is 1; shape (b,)
    later_over_earlier: median over mpiruns of the median of the second half of the calls over that of the first;
                  NaN with fewer than MIN_CALLS calls; later_low, later_high: 95 % interval, NaN if there is none
    """

    library: str
    operation: str
    form: str
    size_bytes: int
    mpiruns: Integers
    quartiles_s: Floats
    edges_s: Floats
    shares: Floats
    correlations: Floats
    calls: int
    numbers: Floats
    course_s: Floats
    later_over_earlier: float
    later_low: float
    later_high: float

    def to_dict(self) -> dict[str, Any]:
        """The figures that sentences state."""
        return {
            **{name: getattr(self, name) for name in ("library", "operation", "form")},
            "size_bytes": int(self.size_bytes),
            "mpiruns": len(self.mpiruns),
            "calls": self.calls,
            "correlations": [float(each) for each in self.correlations[:, 1]],
            **{name: getattr(self, name) for name in ("later_over_earlier", "later_low", "later_high")},
        }


def of_rows(calls: pandas.DataFrame, left: str, right: str) -> "Iterator[tuple[SingleCalls, ...]]":
    """For each row in turn, what there is of the left library and of the right one.

    calls: columns library, mpirun, ROW and run_s (seconds, NaN: not known), in the order in which calls were made
    """
    known = calls[calls["run_s"].notna() & calls["library"].isin([left, right])]
    for key, table in known.groupby(list(ROW), observed=True, sort=False):
        row = cast("tuple[str, str, int]", key)
        every_s = table["run_s"].to_numpy(dtype=np.float64)
        yield of_row(row, {label: _in_mpiruns(table, label) for label in (left, right)}, bins_of(every_s))


def no_calls() -> pandas.DataFrame:
    return pandas.DataFrame(columns=["library", "mpirun", *ROW, "run_s"])


def bins_of(times_s: Floats) -> Floats:
    """TIMES bins of equal logarithms, shape (TIMES + 1,)."""
    low, high = np.percentile(times_s, [LEAST, MOST])
    low = max(float(low), 1e-12)
    return np.geomspace(low / 1.02, 1.02 * max(float(high), low), TIMES + 1)


def of_row(
    row: tuple[str, str, int], sides: "dict[str, dict[int, Floats]]", edges_s: Floats
) -> tuple[SingleCalls, ...]:
    """sides: of each library the run-times of each mpirun's calls, in their order; one without calls is left out."""
    return tuple(_of_side(label, row, mpiruns, edges_s) for label, mpiruns in sides.items() if mpiruns)


def _in_mpiruns(table: pandas.DataFrame, label: str) -> "dict[int, Floats]":
    of_it = table[table["library"] == label]
    times_s, numbers = of_it["run_s"].to_numpy(dtype=np.float64), of_it["mpirun"].to_numpy(dtype=np.int64)
    order = np.argsort(numbers, kind="stable")
    found, first = np.unique(numbers[order], return_index=True)
    return dict(zip(found.tolist(), np.split(times_s[order], first[1:]), strict=True)) if len(found) else {}


def _of_side(label: str, row: tuple[str, str, int], mpiruns: "dict[int, Floats]", edges_s: Floats) -> SingleCalls:
    runs = list(mpiruns.values())
    calls = int(np.median([len(run) for run in runs]))
    inside = [np.clip(run, edges_s[0], edges_s[-1]) for run in runs]
    ratios = [float(np.median(run[len(run) // 2 :]) / np.median(run[: len(run) // 2]))
              for run in runs if len(run) >= MIN_CALLS]  # fmt: skip
    interval = median_interval(ratios, _MISS) if ratios else None
    numbers, course_s = _course(runs)
    return SingleCalls(
        label,
        *row,
        mpiruns=np.array(list(mpiruns), dtype=np.int64),
        quartiles_s=np.array([np.percentile(run, [25, 50, 75]) for run in runs]),
        edges_s=edges_s,
        shares=np.array([np.histogram(each, edges_s)[0] / len(each) for each in inside]),
        correlations=_over_mpiruns(runs, max(1, min(LAGS, calls // 4))),
        calls=calls,
        numbers=numbers,
        course_s=course_s,
        later_over_earlier=exp(float(np.median(np.log(ratios)))) if ratios else float("nan"),
        later_low=interval[0] if interval else float("nan"),
        later_high=interval[1] if interval else float("nan"),
    )


def _course(runs: list[Floats]) -> tuple[Floats, Floats]:
    """Bins of equally many numbers of calls: their middles, counted from 1, and what the calls in them took."""
    times_s = np.concatenate(runs)
    number = np.concatenate([np.arange(len(run)) for run in runs])
    longest = int(number.max()) + 1
    bins = min(NUMBERS, longest)
    bin_of = number * bins // longest
    order = np.argsort(bin_of, kind="stable")
    groups = np.split(times_s[order], np.searchsorted(bin_of[order], np.arange(1, bins)))
    middles = np.array(
        [float(np.mean(np.flatnonzero(np.arange(longest) * bins // longest == each))) + 1 for each in range(bins)]
    )
    return middles, np.array([[*np.percentile(group, [25, 50, 75]), group.mean()] for group in groups])


def _over_mpiruns(runs: list[Floats], lags: int) -> Floats:
    every = np.array([rank_correlations(run, lags) for run in runs])
    known = every[~np.isnan(every[:, 0])]
    if not len(known):
        return np.full((0, 3), np.nan)
    return np.asarray(np.percentile(known, [25, 50, 75], axis=0).T)


def rank_correlations(times: Floats, lags: int) -> Floats:
    """Correlation of the rank of a value with that of the value 1, 2, ..., `lags` before; shape (lags,).

    As R's acf of the ranks: sums over pairs by the sum of squares. NaN with fewer than three values, or equal ones.
    """
    if len(times) < 3:
        return np.full(lags, np.nan)
    rank = stats.rankdata(times) - (len(times) + 1) / 2
    return np.array([lag_correlation(rank, lag) for lag in range(1, lags + 1)])


def independent_band(calls: int, lag: int) -> tuple[float, float]:
    """Within which the correlation of independent values lies with a chance of about 95 %.

    Mean of exchangeable values -(n - k) / (n (n - 1)); variance (n - k) / (n (n + 2)) of Ljung and Box ("On a measure
    of lack of fit in time series models", Biometrika 65, 1978)
    """
    middle = -(calls - lag) / (calls * (calls - 1))
    half = NORMAL_975 * sqrt((calls - lag) / (calls * (calls + 2)))
    return middle - half, middle + half


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
