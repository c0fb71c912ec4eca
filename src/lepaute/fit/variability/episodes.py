"""What successive calls have in common: a core is a little faster or slower for a while, within one process.

Noise drawn call by call averages out within milliseconds; the steps of a calibration, of some tenths of a second, still
differ from each other by per cents. So durations get a component shared by all calls of an episode of a core.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lepaute.fit.kernels.kernel_fit import FittedKernel
from lepaute.fit.numeric.arrays import Floats
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
    """The spread of the steps of HPL around their models within a block; None with too few steps.

    table  : observations as `pooled_observations` makes them, in the order in which `fitted` got its calls
    A step of duration T is the mean of T / EPISODE_S episodes where it is longer than one, so that the variance of its
    ratio measured / model is relative_sd^2 * min(1, EPISODE_S / T). Ratios are taken against those of their block, core
    and probe; what is left holds the models' errors by size as well.
    """
    steps = hpl_steps(table, fitted)
    if steps is None or len(steps) < FEWEST_STEPS:
        return None
    sums = steps.groupby(["probe", "block", "cpu"], observed=True)[["measured_s", "predicted_s"]].transform("sum")
    expected = steps["predicted_s"] * sums["measured_s"] / sums["predicted_s"]
    ratio: Floats = (steps["measured_s"] / expected).to_numpy(dtype=np.float64)
    share = np.minimum(1.0, EPISODE_S / steps["predicted_s"].to_numpy(dtype=np.float64))
    return EpisodeEffect(relative_sd_of(ratio, share), EPISODE_S, len(steps))


def relative_sd_of(ratio: Floats, share: Floats) -> float:
    """Standard deviation of an episode from ratios whose variances are `share` times that of an episode."""
    return float(np.sqrt(np.sum((ratio - 1.0) ** 2) / np.sum(share)))


def hpl_steps(table: "pandas.DataFrame", fitted: Mapping[str, tuple[Calls, FittedKernel]]) -> "pandas.DataFrame | None":
    """Measured and predicted seconds of each step but the first of a design row, where they are not too short; its keys
    STEP, and start_s, when it began."""
    predicted = np.full(len(table), np.nan)
    names = table["kernel"].astype(str).to_numpy()
    for name, (calls, kernel) in fitted.items():
        rows = np.flatnonzero(names == name)
        if len(rows) == len(calls):  # not so for the glue, which is no row of the table
            predicted[rows] = kernel.predict(calls)
    inside = table["probe"].astype(str).str.startswith(IN_CONTEXT).to_numpy()
    chosen = inside & (table["position"].to_numpy() > 0) & np.isfinite(predicted)
    if not chosen.any():
        return None
    net_s = np.maximum(table["duration_s"].to_numpy(dtype=np.float64) - table["clock_cost_s"].to_numpy(), 0.0)
    keys = [column for column in STEP if column in table.columns]
    part = table.loc[chosen, keys].assign(
        measured_s=net_s[chosen], predicted_s=predicted[chosen], start_s=table["start_s"].to_numpy()[chosen]
    )
    grouped = part.groupby(keys, observed=True)
    steps: pandas.DataFrame = grouped[["measured_s", "predicted_s"]].sum().assign(start_s=grouped["start_s"].min())
    steps = steps.reset_index()
    return steps.loc[steps["predicted_s"] >= SHORTEST_STEP_S]
