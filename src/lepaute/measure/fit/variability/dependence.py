"""How the clock explains what successive calls have in common, and what the noise of a model leaves out.

A platform has two layers for what calls have in common: effects of whole processes (days), and the wandering of a core.
It leaves out the order of the calls, which the report measures, with what a process has in common divided out.

Noise drawn call by call averages out within milliseconds; the steps of HPL in a calibration, of some tenths of a
second, still differ by per cents. What of that lasts for a run, and what is averaged, `stats.time_scale` tells.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas

from lepaute.kit.text import percent
from lepaute.measure.archive import Archive
from lepaute.measure.fit.kernels.kernel_fit import FittedKernel
from lepaute.measure.fit.kernels.polynomial import CUT_SD
from lepaute.measure.fit.numeric import Booleans, Floats, Integers
from lepaute.measure.fit.observations.calls import IN_CONTEXT, Calls, numbered, place_of
from lepaute.measure.fit.observations.columns import net_seconds
from lepaute.measure.fit.variability.days import OTHER_OPTIONS
from lepaute.stats import algebra
from lepaute.stats.disturbance import SHORTEST_PART_S
from lepaute.stats.time_scale import StepSeries, TimeScale, fit_time_scale

MIN_STEPS_OF_CLOCK = 30
#: Samples of the monitoring further apart than this say nothing of what was between them.
LONGEST_GAP_S = 10.0
#: A clock that hardly moves cannot explain anything: width of its middle 90 %, relative.
MIN_RANGE = 0.002
PROCESS = ("probe", "block", "attempt", "cpu")
#: Calls summed to see how sums scatter: the most of which there are enough sums.
BATCHES = (50, 10, 4)
MIN_CALLS = 200
MIN_BATCHES = 20
SIZE_CLASSES = 8
#: A kernel is reported as a limit of the model where sums scatter by this much more than the layers predict.
MATTERS = 1.25


@dataclass(frozen=True, slots=True)
class FrequencyEffect:
    """Regression of log(measured / model) of steps on the logarithm of their core's frequency, core by core.

    relative_range : of the frequency, from its 5 % to its 95 % quantile
    exponent       : duration goes with frequency to this power; -1 if the clock decides alone
    error          : its standard error
    explained      : share of the steps' variance
    """

    relative_range: float
    exponent: float
    error: float
    explained: float

    @property
    def sentence(self) -> str:
        clock = f"the clock of a core varied by {percent(self.relative_range)} while steps of HPL were measured"
        if self.relative_range < MIN_RANGE:
            return f"frequency: {clock}: too little to matter."
        return (
            f"frequency: {clock}, and explains {100 * self.explained:.0f} % of what differs between them (duration "
            f"goes with frequency to the power {self.exponent:.2f} ± {self.error:.2f}); models hold for its mean."
        )


def monitoring_of(archive: Archive, hosts: tuple[str, ...]) -> dict[int, "pandas.DataFrame"]:
    """The monitoring of each host by its position, where the archive has it with a frequency of cores.

    Monitoring numbers hardware threads; its columns get the numbers of the cores whose processes are bound to them.
    """
    tables = {}
    for position, host in enumerate(hosts):
        name = f"monitoring/{host}.parquet"
        if name not in archive.members():
            continue
        frame = archive.table(name)
        if "monotonic_s" in frame.columns and any(str(column).startswith("frequency_core") for column in frame.columns):
            machine = archive.about.machines.get(host)
            layout = None if machine is None else machine.layout
            cores = {f"frequency_core{pu}_hz": core for core, pu in enumerate(layout.pu if layout is not None else ())}
            if cores:
                known = [column for column in frame.columns if column == "monotonic_s" or column in cores]
                frame = frame[known].rename(columns={name: f"frequency_core{core}_hz" for name, core in cores.items()})
            tables[position] = frame
    return tables


def frequency_effect(
    table: pandas.DataFrame,
    fitted: Mapping[str, tuple[Calls, FittedKernel]],
    monitoring: Mapping[int, "pandas.DataFrame"],
) -> FrequencyEffect | None:
    """The effect of the clock on the steps of HPL; None without monitoring of it or with too few steps.

    table      : observations as `pooled_observations` makes them, in the order in which `fitted` got its calls
    monitoring : samples by the position of the node, see `place_of`: monotonic_s, of the probes, frequency_core<N>_hz
    """
    steps = hpl_steps(table, fitted) if monitoring else None
    if steps is None:
        return None
    start_s, cpu = steps["start_s"].to_numpy(dtype=np.float64), steps["cpu"].to_numpy(dtype=np.int64)
    frequency_hz = np.full(len(steps), np.nan)
    for number in np.unique(cpu):
        node, core = place_of(int(number))
        column = f"frequency_core{core}_hz"
        if node in monitoring and column in monitoring[node].columns:
            samples = monitoring[node][["monotonic_s", column]].dropna().sort_values("monotonic_s")
            mine = cpu == number
            frequency_hz[mine] = _at(start_s[mine], *(samples[name].to_numpy(np.float64) for name in samples.columns))
    known = np.isfinite(frequency_hz) & (frequency_hz > 0)
    if np.count_nonzero(known) < MIN_STEPS_OF_CLOCK:
        return None
    ratio = (steps["measured_s"] / steps["predicted_s"]).to_numpy(dtype=np.float64)
    return _regression(np.log(ratio[known]), frequency_hz[known], cpu[known])


def _at(time_s: Floats, sampled_s: Floats, values: Floats) -> Floats:
    """Values between samples; NaN if these are too far apart, or on one side only."""
    if len(sampled_s) < 2:
        return np.full(len(time_s), np.nan)
    after = np.clip(np.searchsorted(sampled_s, time_s), 1, len(sampled_s) - 1)
    inside: Booleans = (time_s >= sampled_s[0]) & (time_s <= sampled_s[-1])
    near = inside & (sampled_s[after] - sampled_s[after - 1] <= LONGEST_GAP_S)
    return np.where(near, np.interp(time_s, sampled_s, values), np.nan)


def _regression(log_ratio: Floats, frequency_hz: Floats, cpu: "np.typing.NDArray[np.int64]") -> FrequencyEffect:
    low, high = np.quantile(frequency_hz, [0.05, 0.95])
    _, code = np.unique(cpu, return_inverse=True)
    x, y = (y - (np.bincount(code, y) / np.bincount(code))[code] for y in (np.log(frequency_hz), log_ratio))
    power, total = algebra.dot(x, x), algebra.dot(y, y)
    slope = algebra.dot(x, y) / power if power > 0 else 0.0
    unexplained = float(np.sum((y - slope * x) ** 2))
    degrees = max(len(x) - len(np.unique(code)) - 1, 1)
    return FrequencyEffect(
        float(high / low - 1.0),
        slope,
        float(np.sqrt(unexplained / degrees / power)) if power > 0 else float("inf"),
        1.0 - unexplained / total if total > 0 else 0.0,
    )


@dataclass(frozen=True, slots=True)
class DependenceReport:
    """Dependence of the successive calls of a kernel, inside the processes that measured it.

    lag_1, lag_10, lag_100 : autocorrelation of the standardised residuals
    batch            : calls in the sums of the next two; 0 if there are too few
    width            : standard deviation of the sum of this many successive calls over what independent ones would have
    width_modelled   : the same that the platform's wandering makes
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
        """The autocorrelations at lags 1, 10 and 100; NaN if no process made this many calls."""
        return self.lag_1, self.lag_10, self.lag_100

    @property
    def is_limit(self) -> bool:
        """Whether sums scatter more than the platform's layers say."""
        return self.width > MATTERS * self.width_modelled

    @property
    def sentence(self) -> str:
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
    table: pandas.DataFrame, fitted: Mapping[str, tuple[Calls, FittedKernel]], wandering_relative_sd: float
) -> list[DependenceReport]:
    """A report for each kernel with enough calls inside steps of HPL.

    table : observations as `pooled_observations` makes them, in the order in which `fitted` got its calls
    """
    # hashes: np.unique would sort all texts
    process = numbered([pandas.factorize(table[column].astype(str), sort=True)[0] for column in PROCESS])
    start_s = table["start_s"].to_numpy(dtype=np.float64)
    reports = []
    for rows, calls, kernel in fitted_rows(table, fitted):
        counted = np.flatnonzero(calls.in_context & ~calls.cold & calls.nonempty())
        if len(counted) < MIN_CALLS:
            continue
        order = counted[np.lexsort((start_s[rows[counted]], process[rows[counted]]))]
        reports.append(report_of(calls, kernel, order, process[rows[order]], wandering_relative_sd))
    return reports


def report_of(
    calls: Calls, kernel: FittedKernel, order: Integers, process: Integers, wandering_relative_sd: float
) -> DependenceReport:
    """The report on one kernel.

    order   : indices of the calls that count, process by process, in the order in which they were made
    process : number of the process of each of those, shape of order
    """
    inside = calls.where(order)
    mean, deviation = kernel.predict(inside), np.maximum(kernel.deviation(inside), 1e-300)
    good = (mean > 0) & (deviation > 1e-3 * mean)
    inside, mean, deviation, process = inside.where(good), mean[good], deviation[good], process[good]
    if len(mean) < MIN_CALLS:
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
    shared = float(np.mean(np.minimum(1.0, (wandering_relative_sd * mean / deviation) ** 2)))
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


def _correlation(z: Floats, code: Integers, lag: int) -> float:
    """Mean product of z and z `lag` calls later in the same process; NaN if there is none."""
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
        if np.count_nonzero(full) >= MIN_BATCHES:
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


MIN_STEPS = 20
STEP = ("probe", "block", "attempt", "launch", "cpu", "design_row", "position")


def time_scale_of(table: pandas.DataFrame, fitted: Mapping[str, tuple[Calls, FittedKernel]]) -> TimeScale | None:
    """Time scale of the cores; None with too few steps or a single block.

    table  : observations as `pooled_observations` makes them, in the order in which `fitted` got its calls
    Steps of probes whose options of HPL are others in each block are left out: what differs is no effect of the block.
    """
    steps = hpl_steps(table, fitted)
    if steps is None:
        return None
    steps = steps[(steps["probe"].astype(str) != OTHER_OPTIONS).to_numpy()]
    if len(steps) < MIN_STEPS:
        return None
    keys = [column for column in STEP[:5] if column in steps.columns]
    steps = steps.sort_values([*keys, "start_s"])
    codes: dict[str, Integers] = {
        column: np.asarray(steps[column].astype("category").cat.codes, dtype=np.int64) for column in keys
    }
    process = numbered([codes[column] for column in keys])
    _, first, number = np.unique(process, return_index=True, return_inverse=True)
    # -1 if launches are not known: each process is then one.
    unknown = steps["launch"].to_numpy() < 0 if "launch" in keys else np.ones(len(steps), dtype=np.bool_)
    launch = numbered([np.where(unknown, -1, codes.get("launch", process)), np.where(unknown, process, -1)])
    predicted_s = steps["predicted_s"].to_numpy(dtype=np.float64)
    measured_s = steps["measured_s"].to_numpy(dtype=np.float64)
    try:
        return fit_time_scale(
            StepSeries(
                steps["start_s"].to_numpy(dtype=np.float64),
                measured_s,
                np.log(measured_s / predicted_s),
                steps["variance_s2"].to_numpy(dtype=np.float64) / predicted_s**2,
                number.astype(np.int64),
                codes["block"][first],
                numbered([codes["block"], launch])[first],
                numbered([codes["probe"], codes["cpu"]])[first],
            )
        )
    except ValueError:  # one block, or processes of one step
        return None


def hpl_steps(table: pandas.DataFrame, fitted: Mapping[str, tuple[Calls, FittedKernel]]) -> pandas.DataFrame | None:
    """Measured and predicted seconds of each step but the first of a design row, where they are not too short; its keys
    STEP; start_s, when it began; and variance_s2, that of the sum of its calls if these are independent."""
    predicted, deviation = np.full(len(table), np.nan), np.zeros(len(table))
    for rows, calls, kernel in fitted_rows(table, fitted):
        predicted[rows], deviation[rows] = kernel.predict(calls), kernel.deviation(calls)
    inside = table["probe"].astype(str).str.startswith(IN_CONTEXT).to_numpy()
    chosen = inside & (table["position"].to_numpy() > 0) & np.isfinite(predicted)
    if not chosen.any():
        return None
    keys = [column for column in STEP if column in table.columns]
    part = table.loc[chosen, keys].assign(
        measured_s=np.maximum(net_seconds(table), 0.0)[chosen],
        predicted_s=predicted[chosen],
        variance_s2=deviation[chosen] ** 2,
        start_s=table["start_s"].to_numpy()[chosen],
    )
    grouped = part.groupby(keys, observed=True)
    steps: pandas.DataFrame = (
        grouped[["measured_s", "predicted_s", "variance_s2"]].sum().assign(start_s=grouped["start_s"].min())
    )
    steps = steps.reset_index()
    return steps.loc[steps["predicted_s"] >= SHORTEST_PART_S]


def fitted_rows(
    table: pandas.DataFrame, fitted: Mapping[str, tuple[Calls, FittedKernel]]
) -> Iterator[tuple[Integers, Calls, FittedKernel]]:
    """The rows of the table that the calls of each model are, with both; the glue is no row of the table."""
    kernels = table["kernel"].astype("category").cat
    codes, numbers = kernels.codes.to_numpy(), {name: code for code, name in enumerate(kernels.categories)}
    for name, (calls, kernel) in fitted.items():
        rows = np.flatnonzero(codes == numbers.get(name, len(numbers)))
        if len(rows) == len(calls):
            yield rows, calls, kernel
