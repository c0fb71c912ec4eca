"""The steps of HPL in a calibration, and the time scale on which the speed of a core varies, as they show it.

Noise drawn call by call averages out within milliseconds; the steps of a calibration, of some tenths of a second, still
differ from each other by per cents. What of that lasts for a run and what is averaged by a long one, `stats.time_scale`
tells apart.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas

from lepaute.measure.fit.kernels.kernel_fit import FittedKernel
from lepaute.measure.fit.numeric import Integers
from lepaute.measure.fit.observations.calls import IN_CONTEXT, Calls, numbered
from lepaute.measure.fit.observations.columns import net_seconds
from lepaute.measure.fit.variability.days import OTHER_OPTIONS
from lepaute.stats.disturbance import SHORTEST_PART_S
from lepaute.stats.time_scale import StepSeries, TimeScale, fit_time_scale

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
