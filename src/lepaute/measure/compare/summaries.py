"""One value for each mpirun and row of a comparison: a row is an operation, in one form, of one size.

Calls of an mpirun resemble each other more than those of another one (Hunold & Carpen-Amarie, "MPI Benchmarking
Revisited", section 5.2), so the mpirun is the unit that tests count. Its calls are collapsed after the fact, with and
without those beyond Tukey's fences (section 3.5); both stay in the table.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas

if TYPE_CHECKING:
    from pandas.core.groupby import SeriesGroupBy

#: What a row of the comparison is, and the columns that name an mpirun.
ROW = ("operation", "form", "size_bytes")
MPIRUN = ("library", "block", "mpirun")
#: Tukey's fences lie so many interquartile ranges outside the quartiles.
FENCE = 1.5
#: A call that takes more than so many medians of its mpirun is slow: what a median does not show.
SLOW = 3.0


def mpirun_summaries(calls: pandas.DataFrame, duration: str = "duration_s") -> pandas.DataFrame:
    """Medians and means of the calls of each mpirun, in seconds, one row for each of them and each row of ROW.

    calls    : columns MPIRUN, ROW and `duration`; one row a call, those to warm up left out
    duration : the column that holds a call's run-time, seconds; calls without one (NaN) are left out
    Columns of the result: MPIRUN, ROW, calls, calls_inside (the fences), median_s, mean_s of those inside, and
    median_all_s, mean_all_s, p90_s, p99_s of all calls, slow_share of those that take more than SLOW medians.
    """
    keys = [*MPIRUN, *ROW]
    known = calls.loc[calls[duration].notna(), [*keys, duration]]
    low, high = _tukey_fences(known.groupby(keys, observed=True)[duration])
    inside = known[(known[duration] >= low) & (known[duration] <= high)]
    every = known.groupby(keys, observed=True)[duration].agg(["size", "median", "mean"])
    kept = inside.groupby(keys, observed=True)[duration].agg(["size", "median", "mean"])
    kept.columns = ["calls_inside", "median_s", "mean_s"]
    every.columns = ["calls", "median_all_s", "mean_all_s"]
    table = kept.join(every)
    groups = known.groupby(keys, observed=True)[duration]
    table["p90_s"], table["p99_s"] = groups.quantile(0.9), groups.quantile(0.99)
    slow = known[duration] > SLOW * groups.transform("median")
    table["slow_share"] = slow.groupby([known[key] for key in keys], observed=True).mean()
    columns = [
        *("calls", "calls_inside", "median_s", "mean_s"),
        *("median_all_s", "mean_all_s", "p90_s", "p99_s", "slow_share"),
    ]
    return table[columns].reset_index()


def without_levels(summaries: pandas.DataFrame) -> pandas.DataFrame:
    """With medians whose geometric mean of each session (column `session`) is that of all: what is left is inside."""
    keys = [summaries[name] for name in ("library", *ROW)]
    logs = np.log(summaries["median_s"])
    level = logs.groupby([*keys, summaries["session"]], observed=True).transform("mean")
    return summaries.assign(median_s=np.exp(logs - level + level.groupby(keys, observed=True).transform("mean")))


def _tukey_fences(groups: "SeriesGroupBy[Any, Any]") -> "tuple[pandas.Series, pandas.Series]":
    """The lower and the upper fence of each value's group: quartiles less and plus FENCE interquartile ranges."""
    first, third = groups.transform("quantile", 0.25), groups.transform("quantile", 0.75)
    reach = FENCE * (third - first)
    return first - reach, third + reach
