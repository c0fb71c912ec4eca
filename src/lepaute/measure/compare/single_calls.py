"""What single calls of a row look like: how they are distributed in each mpirun, depend on those before, and change.

Everything is taken from the calls themselves, in the order in which an mpirun made them; an mpirun is what differs by
chance (section 5 of the paper), so medians and intervals are over mpiruns.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, sqrt
from typing import Any, cast

import numpy as np
import pandas
from scipy import stats

from lepaute.measure.compare.summaries import ROW
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
    """The table without rows."""
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

    As R's acf of the ranks: sums over pairs by the sum of squares of all. NaN with fewer than three values, or where
    all are equal.
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
