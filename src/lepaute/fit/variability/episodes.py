"""What successive calls have in common: a core is a little faster or slower for a while, within one process.

Noise drawn call by call averages out within milliseconds; the steps of a calibration, of some tenths of a second, still
differ from each other by per cents. So durations get a component shared by all calls of an episode of a core.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lepaute.fit.kernels.kernel_fit import FittedKernel
from lepaute.fit.numeric.arrays import Floats, Integers
from lepaute.fit.observations.calls import IN_CONTEXT, Calls

if TYPE_CHECKING:
    import pandas

#: Length of an episode: about that of a step of the calibration, in which it shows.
EPISODE_S = 0.1
#: Shorter steps show the errors of the models of small calls rather than the state of the core.
SHORTEST_STEP_S = 0.02
FEWEST_STEPS = 10
STEP = ("probe", "block", "attempt", "cpu", "design_row", "position")


@dataclass(frozen=True, slots=True)
class EpisodeEffect:
    """Relative standard deviation of an episode of duration_s seconds; n_steps it was seen in."""

    relative_sd: float
    duration_s: float
    n_steps: int


def episode_effect(table: "pandas.DataFrame", fitted: Mapping[str, tuple[Calls, FittedKernel]]) -> EpisodeEffect | None:
    """The spread of the steps of HPL around their models within a block; None with too few steps, or where the scatter
    of single calls explains it.

    table  : observations as `pooled_observations` makes them, in the order in which `fitted` got its calls
    A step of duration T is the mean of T / EPISODE_S episodes where it is longer than one, so that the variance of its
    ratio measured / model is relative_sd^2 * min(1, EPISODE_S / T), and that of its single calls, which a simulation
    draws as well. Ratios are taken against those of their block, core and probe, to which each step contributes; what
    is left holds the models' errors by size as well.
    """
    steps = hpl_steps(table, fitted)
    if steps is None or len(steps) < FEWEST_STEPS:
        return None
    process = steps.groupby(["probe", "block", "cpu"], observed=True)
    sums = process[["measured_s", "predicted_s"]].transform("sum")
    expected = steps["predicted_s"] * sums["measured_s"] / sums["predicted_s"]
    ratio: Floats = (steps["measured_s"] / expected).to_numpy(dtype=np.float64)
    predicted_s = steps["predicted_s"].to_numpy(dtype=np.float64)
    share = np.minimum(1.0, EPISODE_S / predicted_s)
    calls = steps["variance_s2"].to_numpy(dtype=np.float64) / predicted_s**2
    number = np.asarray(process.ngroup(), dtype=np.int64)
    weight = predicted_s / sums["predicted_s"].to_numpy(dtype=np.float64)
    relative_sd = relative_sd_of(ratio, _about_mean(share, weight, number), _about_mean(calls, weight, number))
    return EpisodeEffect(relative_sd, EPISODE_S, len(steps)) if relative_sd > 0.0 else None


def relative_sd_of(ratio: Floats, share: Floats, calls: Floats | float = 0.0) -> float:
    """Standard deviation of an episode from ratios whose variances are `share` times that of an episode and `calls`,
    that of single calls; 0 where these explain all, or no process made two steps."""
    shares = float(np.sum(share))
    return float(np.sqrt(max(0.0, float(np.sum((ratio - 1.0) ** 2 - calls))) / shares)) if shares > 0.0 else 0.0


def _about_mean(variance: Floats, weight: Floats, group: Integers) -> Floats:
    """Variances of deviations from the weighted means of their groups; all of shape (steps,), the weights of a group
    add up to 1."""
    of_means = np.bincount(group, weight**2 * variance)
    result: Floats = (1.0 - 2.0 * weight) * variance + of_means[group]
    return result


def hpl_steps(table: "pandas.DataFrame", fitted: Mapping[str, tuple[Calls, FittedKernel]]) -> "pandas.DataFrame | None":
    """Measured and predicted seconds of each step but the first of a design row, where they are not too short; its keys
    STEP; start_s, when it began; and variance_s2, that of the sum of its calls if these are independent."""
    predicted, deviation = np.full(len(table), np.nan), np.zeros(len(table))
    names = table["kernel"].astype(str).to_numpy()
    for name, (calls, kernel) in fitted.items():
        rows = np.flatnonzero(names == name)
        if len(rows) == len(calls):  # not so for the glue, which is no row of the table
            predicted[rows], deviation[rows] = kernel.predict(calls), kernel.deviation(calls)
    inside = table["probe"].astype(str).str.startswith(IN_CONTEXT).to_numpy()
    chosen = inside & (table["position"].to_numpy() > 0) & np.isfinite(predicted)
    if not chosen.any():
        return None
    net_s = np.maximum(table["duration_s"].to_numpy(dtype=np.float64) - table["clock_cost_s"].to_numpy(), 0.0)
    keys = [column for column in STEP if column in table.columns]
    part = table.loc[chosen, keys].assign(
        measured_s=net_s[chosen],
        predicted_s=predicted[chosen],
        variance_s2=deviation[chosen] ** 2,
        start_s=table["start_s"].to_numpy()[chosen],
    )
    grouped = part.groupby(keys, observed=True)
    steps: pandas.DataFrame = (
        grouped[["measured_s", "predicted_s", "variance_s2"]].sum().assign(start_s=grouped["start_s"].min())
    )
    steps = steps.reset_index()
    return steps.loc[steps["predicted_s"] >= SHORTEST_STEP_S]
