"""What benchmarks of one mpirun would report of the calls of a comparison.

Figure 29 and section 6.3 of Hunold & Carpen-Amarie, "MPI Benchmarking Revisited"; a scheme chooses what to report:

osu    : one mpirun, the mean of its calls, each timed by itself; the mean over ranks (OSU Micro-Benchmarks)
intel  : one mpirun, a rank's time for all its calls over their number; the greatest of the ranks (t_max of the Intel
         MPI Benchmarks, which time a loop without a synchronisation inside: what overlaps there is not in such rows)
skampi : one mpirun, calls until the relative standard error of their mean is small (algorithm 10), their mean
"""

import numpy as np
import numpy.typing as npt
import pandas

from lepaute.measure.compare.summaries import ROW

#: SKaMPI's stopping rule: relative standard error at which it stops, and the calls that it makes at least.
STANDARD_ERROR, MIN_CALLS = 0.1, 8


def one_run_values(raw: pandas.DataFrame, calls: pandas.DataFrame, duration: str) -> pandas.DataFrame:
    """A row for each mpirun and ROW, columns osu_s, intel_s, skampi_s.

    raw   : a row a call and rank, with mpirun, ROW, call (below 0: to warm up), rank, start_ns, end_ns
    calls : a row a call in the order in which they were made, with mpirun, ROW and `duration`, seconds, which SKaMPI's
            rule sees; it leaves out calls that started late, and an mpirun without any other has no skampi_s (NaN)
    """
    keys = ["mpirun", *ROW]
    raw = raw[raw["call"] >= 0]
    local = raw[[*keys, "rank"]].assign(local_s=(raw["end_ns"] - raw["start_ns"]) * 1e-9)
    ranks = local.groupby([*keys, "rank"], observed=True)["local_s"].mean().groupby(keys, observed=True)
    table = ranks.agg(osu_s="mean", intel_s="max")
    until = calls.groupby(keys, observed=True)[duration].agg(lambda each: stopped_mean(each.to_numpy()))
    return table.join(until.rename("skampi_s")).reset_index()


def stopped_mean(durations: npt.NDArray[np.float64]) -> float:
    """The mean of the calls until SKaMPI's rule stops: relative standard error of the mean, and a least number.

    durations: in the order in which they were made, any unit; all of them where the rule never stops
    """
    counts = np.arange(1, len(durations) + 1)
    means = np.cumsum(durations) / counts
    squares = np.cumsum(durations**2)
    variance = np.maximum(squares - counts * means**2, 0.0) / np.maximum(counts - 1, 1)
    stops = (counts >= MIN_CALLS) & (np.sqrt(variance / counts) <= STANDARD_ERROR * means)
    at = int(np.argmax(stops)) if stops.any() else len(durations) - 1
    return float(means[at])
