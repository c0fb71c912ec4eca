"""How far repetitions of a whole measurement differ: run-times of trials over the least of them.

Figure 29 and section 6.3 of Hunold & Carpen-Amarie, "MPI Benchmarking Revisited": a trial gives one value for each
row; all are divided by the least. What a trial reports is a scheme's choice:

osu    : one mpirun, the mean of its calls, each timed by itself; the mean over ranks (OSU Micro-Benchmarks)
intel  : one mpirun, a rank's time for all its calls over their number; the greatest of the ranks (t_max of the Intel
         MPI Benchmarks, which time a loop without a synchronisation inside: what overlaps there is not in such rows)
skampi : one mpirun, calls until the relative standard error of their mean is small (algorithm 10), their mean
mpiruns: the mean over n mpiruns of the medians of calls inside Tukey's fences (section 6.3 with 3.5)
"""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lepaute.compare.summaries import ROW
from lepaute.errors import InputError

if TYPE_CHECKING:
    import pandas

Floats = npt.NDArray[np.float64]

SCHEMES = ("osu", "intel", "skampi", "mpiruns")
TRIALS = 30
#: SKaMPI's stopping rule: relative standard error at which it stops, and the calls that it makes at least.
STANDARD_ERROR, LEAST_CALLS = 0.1, 8


def normalised(values: npt.ArrayLike) -> Floats:
    """Values of trials over the least of them. Raises InputError where one is not above 0 and finite, or none is."""
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0 or not (np.isfinite(array) & (array > 0)).all():
        raise InputError("the run-times of trials must be above 0, and at least one")
    result: Floats = array / array.min()
    return result


def one_run_values(raw: "pandas.DataFrame", calls: "pandas.DataFrame", duration: str) -> "pandas.DataFrame":
    """What benchmarks of one mpirun would report: a row for each mpirun and ROW, columns osu_s, intel_s, skampi_s.

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
    joined: pandas.DataFrame = table.join(until.rename("skampi_s")).reset_index()
    return joined


def stopped_mean(durations: Floats, standard_error: float = STANDARD_ERROR, least: int = LEAST_CALLS) -> float:
    """The mean of the calls until SKaMPI's rule stops: relative standard error of the mean, and a least number.

    durations: in the order in which they were made, any unit; all of them where the rule never stops
    """
    counts = np.arange(1, len(durations) + 1)
    means = np.cumsum(durations) / counts
    squares = np.cumsum(durations**2)
    variance = np.maximum(squares - counts * means**2, 0.0) / np.maximum(counts - 1, 1)
    stops = (counts >= max(least, 2)) & (np.sqrt(variance / counts) <= standard_error * means)
    at = int(np.argmax(stops)) if stops.any() else len(durations) - 1
    return float(means[at])


def resampled_trials(values: npt.ArrayLike, mpiruns: int, generator: np.random.Generator) -> Floats:
    """Normalised run-times of TRIALS repetitions of a measurement, each the mean of so many mpiruns.

    values : one for each mpirun that was made, shape (n,), of which mpiruns are drawn with replacement: repetitions at
             another hour, on a machine in another state, differ by more
    """
    drawn = generator.choice(np.asarray(values, dtype=np.float64), (TRIALS, mpiruns))
    return normalised(drawn.mean(axis=1))
