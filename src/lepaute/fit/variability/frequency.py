"""How far the clock of a core explains what its steps of HPL take beyond their models."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lepaute.fit.kernels.kernel_fit import FittedKernel
from lepaute.fit.numeric.arrays import Booleans, Floats
from lepaute.fit.observations.calls import Calls, place_of
from lepaute.fit.variability.episodes import hpl_steps

if TYPE_CHECKING:
    import pandas

    from lepaute.archive import Archive

FEWEST_STEPS = 30
#: Samples of the monitoring further apart than this say nothing of what was between them.
LONGEST_GAP_S = 10.0
#: A clock that hardly moves cannot explain anything: width of its middle 90 %, relative.
LEAST_RANGE = 0.002


@dataclass(frozen=True, slots=True)
class FrequencyEffect:
    """Regression of log(measured / model) of steps on the logarithm of their core's frequency, core by core.

    n_steps        : steps whose frequency is known
    relative_range : of the frequency, from its 5 % to its 95 % quantile
    exponent       : duration goes with frequency to this power; -1 where the clock decides alone
    error          : its standard error
    explained      : share of the steps' variance
    """

    n_steps: int
    relative_range: float
    exponent: float
    error: float
    explained: float

    @property
    def sentence(self) -> str:
        """What that means, for a reader of the fit's report."""
        clock = f"the clock of a core varied by {100 * self.relative_range:.1f} % while steps of HPL were measured"
        if self.relative_range < LEAST_RANGE:
            return f"frequency: {clock}: too little to matter."
        return (
            f"frequency: {clock}, and explains {100 * self.explained:.0f} % of what differs between them (duration "
            f"goes with frequency to the power {self.exponent:.2f} +- {self.error:.2f}); models hold for its mean."
        )


def monitoring_of(archive: "Archive", hosts: tuple[str, ...]) -> dict[int, "pandas.DataFrame"]:
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
    table: "pandas.DataFrame",
    fitted: Mapping[str, tuple[Calls, FittedKernel]],
    monitoring: Mapping[int, "pandas.DataFrame"],
) -> FrequencyEffect | None:
    """The effect of the clock on the steps of HPL; None without monitoring of it or with too few steps.

    table      : observations as `pooled_observations` makes them, in the order in which `fitted` got its calls
    monitoring : samples by the position of the node, see `place_of`: monotonic_s, the clock of the probes, and
                 frequency_core<N>_hz
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
    if np.count_nonzero(known) < FEWEST_STEPS:
        return None
    ratio = (steps["measured_s"] / steps["predicted_s"]).to_numpy(dtype=np.float64)
    return _regression(np.log(ratio[known]), frequency_hz[known], cpu[known])


def _at(time_s: Floats, sampled_s: Floats, values: Floats) -> Floats:
    """Values between samples; NaN where these are too far apart, or on one side only."""
    if len(sampled_s) < 2:
        return np.full(len(time_s), np.nan)
    after = np.clip(np.searchsorted(sampled_s, time_s), 1, len(sampled_s) - 1)
    inside: Booleans = (time_s >= sampled_s[0]) & (time_s <= sampled_s[-1])
    near = inside & (sampled_s[after] - sampled_s[after - 1] <= LONGEST_GAP_S)
    return np.where(near, np.interp(time_s, sampled_s, values), np.nan)


def _regression(log_ratio: Floats, frequency_hz: Floats, cpu: "np.typing.NDArray[np.int64]") -> FrequencyEffect:
    low, high = np.quantile(frequency_hz, [0.05, 0.95])
    _, code = np.unique(cpu, return_inverse=True)
    x, y = (
        values - (np.bincount(code, values) / np.bincount(code))[code] for values in (np.log(frequency_hz), log_ratio)
    )
    power, total = float(x @ x), float(y @ y)
    slope = float(x @ y) / power if power > 0 else 0.0
    left = float(np.sum((y - slope * x) ** 2))
    degrees = max(len(x) - len(np.unique(code)) - 1, 1)
    return FrequencyEffect(
        len(x),
        float(high / low - 1.0),
        slope,
        float(np.sqrt(left / degrees / power)) if power > 0 else float("inf"),
        1.0 - left / total if total > 0 else 0.0,
    )
