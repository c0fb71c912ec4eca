"""How far successive calls are from independent: what the noise of a model, drawn call by call, leaves out.

A platform has three layers for it: what a whole process has in common (days), what calls of a tenth of a second have in
common (episodes), and the order of the calls, which it leaves out: a call may be faster or slower by the one before it.
The report measures the last two, with what a process has in common divided out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lepaute.fit.kernels.kernel_fit import FittedKernel
from lepaute.fit.kernels.polynomial import CUT_SD
from lepaute.fit.numeric.arrays import Floats, Integers
from lepaute.fit.observations.calls import Calls

if TYPE_CHECKING:
    import pandas

PROCESS = ("probe", "block", "attempt", "cpu")
#: Calls summed to see how sums scatter: the most of which there are enough sums.
BATCHES = (50, 10, 4)
FEWEST_CALLS = 200
FEWEST_BATCHES = 20
SIZE_CLASSES = 8
#: A kernel is reported as a limit of the model where sums scatter by this much more than the layers predict.
MATTERS = 1.25


@dataclass(frozen=True, slots=True)
class DependenceReport:
    """Dependence of the successive calls of a kernel, inside the processes that measured it.

    lag_1, lag_10, lag_100 : autocorrelation of the standardised residuals
    batch            : calls in the sums of the next two; 0 where there are too few
    width            : standard deviation of the sum of so many successive calls over what independent ones would have
    width_modelled   : the same that the platform's episodes make
    previous_percent : change of a duration when the call of the same kernel before it is twice as large, per cent;
                       between calls of about the same size
    previous_error   : its standard error
    """

    kernel: str
    n_calls: int
    lag_1: float
    lag_10: float
    lag_100: float
    batch: int
    width: float
    width_modelled: float
    previous_percent: float
    previous_error: float

    @property
    def lags(self) -> tuple[float, float, float]:
        """The autocorrelations at lags 1, 10 and 100; NaN where no process made so many calls."""
        return self.lag_1, self.lag_10, self.lag_100

    @property
    def is_limit(self) -> bool:
        """Whether sums scatter more than the platform's layers say."""
        return self.width > MATTERS * self.width_modelled

    @property
    def sentence(self) -> str:
        """What that means, for a reader of the fit's report."""
        if not self.batch:
            return f"{self.kernel}: too few successive calls."
        text = (
            f"{self.kernel}: sums of {self.batch} successive calls scatter {self.width:.1f} times as much as "
            f"independent calls, and the shared component of the model makes that {self.width_modelled:.1f}"
        )
        text += ": a limit of the model." if self.is_limit else ", which covers it."
        if abs(self.previous_percent) > max(0.5, 3.0 * self.previous_error):
            text += (
                f" A call after one of twice the size takes {self.previous_percent:+.1f} %, which is not modelled: "
                "the mix of sizes matters."
            )
        return text


def dependence_reports(
    table: "pandas.DataFrame", fitted: Mapping[str, tuple[Calls, FittedKernel]], episode_relative_sd: float
) -> list[DependenceReport]:
    """A report for each kernel with enough calls inside steps of HPL.

    table : observations as `pooled_observations` makes them, in the order in which `fitted` got its calls
    """
    codes, categories = table["kernel"].cat.codes.to_numpy(), table["kernel"].cat.categories
    process = _process_numbers(table)
    start_s = table["start_s"].to_numpy(dtype=np.float64)
    reports = []
    for name, (calls, kernel) in fitted.items():
        rows = np.flatnonzero(codes == categories.get_loc(name)) if name in categories else codes[:0]
        if len(rows) != len(calls):  # the glue, which is no row of the table
            continue
        counted = np.flatnonzero(calls.in_context & ~calls.cold & calls.nonempty())
        if len(counted) < FEWEST_CALLS:
            continue
        order = counted[np.lexsort((start_s[rows[counted]], process[rows[counted]]))]
        reports.append(report_of(calls, kernel, order, process[rows[order]], episode_relative_sd))
    return reports


def report_of(
    calls: Calls, kernel: FittedKernel, order: Integers, process: Integers, episode_relative_sd: float
) -> DependenceReport:
    """The report on one kernel.

    order   : indices of the calls that count, process by process, in the order in which they were made
    process : number of the process of each of those, shape of order
    """
    inside = calls.where(order)
    mean, deviation = kernel.predict(inside), np.maximum(kernel.deviation(inside), 1e-300)
    good = (mean > 0) & (deviation > 1e-3 * mean)
    inside, mean, deviation, process = inside.where(good), mean[good], deviation[good], process[good]
    if len(mean) < FEWEST_CALLS:
        nothing = float("nan")
        return DependenceReport(calls.kernel, len(mean), nothing, nothing, nothing, 0, nothing, nothing, 0.0, nothing)
    measured = np.minimum(inside.duration_s, mean + CUT_SD * deviation)
    _, code = np.unique(process, return_inverse=True)
    level = (np.bincount(code, measured) / np.bincount(code, mean))[code]
    residual = measured - level * mean
    z = residual / deviation
    z = z - (np.bincount(code, z) / np.bincount(code))[code]
    variance = float(np.mean(z**2))
    lags = [_correlation(z, code, lag) / variance for lag in (1, 10, 100)]
    shared = float(np.mean(np.minimum(1.0, (episode_relative_sd * mean / deviation) ** 2)))
    batch, width, effective = _width(residual / np.sqrt(variance), deviation, code)
    previous, error = _effect_of_previous(inside, measured / (level * mean) - 1.0, mean, code)
    return DependenceReport(
        calls.kernel,
        len(z),
        lags[0],
        lags[1],
        lags[2],
        batch,
        width,
        float(np.sqrt(1.0 + (effective - 1.0) * shared)) if batch else float("nan"),
        previous,
        error,
    )


def _process_numbers(table: "pandas.DataFrame") -> Integers:
    import pandas

    number = np.zeros(len(table), dtype=np.int64)
    for column in PROCESS:
        code, _ = pandas.factorize(table[column].astype(str), sort=True)  # hashes: np.unique would sort all texts
        number = number * (int(code.max()) + 1) + code
    return number


def _correlation(z: Floats, code: Integers, lag: int) -> float:
    """Mean product of z and z `lag` calls later in the same process; NaN where there is none."""
    same = code[lag:] == code[:-lag]
    return float(np.mean((z[lag:] * z[:-lag])[same])) if same.any() else float("nan")


def _width(residual: Floats, deviation: Floats, code: Integers) -> tuple[int, float, float]:
    """Calls in a batch, the root of the variance of sums of so many over the sum of their variances, and how many calls
    of one size a batch is as good as: (sum sd)^2 / sum sd^2.  (0, NaN, NaN) where there are too few batches."""
    first = np.flatnonzero(np.concatenate([[True], code[1:] != code[:-1]]))
    place = np.arange(len(code)) - np.repeat(first, np.diff(np.append(first, len(code))))
    for size in BATCHES:
        batch = np.cumsum((place % size == 0).astype(np.int64)) - 1
        full = np.bincount(batch) == size
        if np.count_nonzero(full) >= FEWEST_BATCHES:
            sums, variances = np.bincount(batch, residual)[full], np.bincount(batch, deviation**2)[full]
            # Each batch in units of its own deviation: large calls would decide alone.
            effective = float(np.mean(np.bincount(batch, deviation)[full] ** 2 / variances))
            return size, float(np.sqrt(np.mean(sums**2 / variances))), effective
    return 0, float("nan"), float("nan")


def _effect_of_previous(calls: Calls, relative: Floats, mean: Floats, code: Integers) -> tuple[float, float]:
    """Per cent for each doubling of the size of the previous call of the kernel, and its standard error."""
    size = np.log2(calls.work())
    same = code[1:] == code[:-1]
    log_size, before, y, weight = size[1:][same], size[:-1][same], relative[1:][same], mean[1:][same]
    edges = np.unique(np.quantile(log_size, np.arange(1, SIZE_CLASSES) / SIZE_CLASSES))
    group = np.searchsorted(edges, log_size, side="left")
    total = np.maximum(np.bincount(group, weight), 1e-300)
    x = before - (np.bincount(group, weight * before) / total)[group]
    y = y - (np.bincount(group, weight * y) / total)[group]
    power = float(np.sum(weight * x**2))
    if power <= 1e-9 * float(np.sum(weight)):
        return 0.0, float("inf")  # the call before is always as large as the call's own size says
    slope = float(np.sum(weight * x * y)) / power
    error = float(np.sqrt(np.sum((weight * x * (y - slope * x)) ** 2))) / power
    return 100.0 * slope, 100.0 * error
