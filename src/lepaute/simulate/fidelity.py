"""How much of a run is simulated: all of it, or windows of its steps."""

from collections.abc import Sequence
from math import sqrt
from typing import TYPE_CHECKING

from lepaute.errors import InputError

if TYPE_CHECKING:
    from lepaute.simulate.application import Application
    from lepaute.simulate.run import SimulatedRun


#: The error of sampling is taken as normal with the standard deviation sqrt(LEAST_SAMPLING_SD^2 + CHANGE_FACTOR^2 Q),
#: Q being the sum of the squares of the relative changes that one window less makes, each the mean over the runs.
#: Chosen by pairs of a sampled and a full run, tested on others (validation/sampling_error.py).
LEAST_SAMPLING_SD = 0.001
CHANGE_FACTOR = 1.0


def check_fidelity(application: "Application", fidelity: str) -> None:
    """Raises InputError for a fidelity that the application does not have."""
    if fidelity not in application.fidelities:
        raise InputError(f"fidelity is {fidelity!r}; it is one of {', '.join(application.fidelities)}")


def sampling_sd(runs: "Sequence[SimulatedRun]") -> float:
    """Relative standard deviation of what sampled runs are off from full ones; 0 where every step was simulated.

    Of their mean: what each run is off by itself, since stalls come at random, is a part of the spread of the runs.
    """
    by_windows: dict[int, list[list[float]]] = {}  # a run that is certain early has fewer windows
    for run in runs:
        if run.sampling is not None and run.time_s > 0.0:
            changes = [change_s / run.time_s for change_s in run.sampling.changes_s]
            by_windows.setdefault(len(changes), []).append(changes)
    count = sum(map(len, by_windows.values()))
    # What windows miss of the smooth course they have in common: standard deviations add up.
    return sum(len(alike) * _sd_of_mean(alike) for alike in by_windows.values()) / count if count else 0.0


def _sd_of_mean(changes: Sequence[Sequence[float]]) -> float:
    """Of the mean of runs with the same windows; changes: by run and window."""
    means = [sum(of_window) / len(changes) for of_window in zip(*changes, strict=True)]
    return sqrt(
        LEAST_SAMPLING_SD * LEAST_SAMPLING_SD + CHANGE_FACTOR * CHANGE_FACTOR * sum(mean * mean for mean in means)
    )


def sampling_warnings(runs: "Sequence[SimulatedRun]") -> list[str]:
    """What a reader of a sampled prediction must know."""
    sampling = runs[0].sampling
    if sampling is None:
        return []
    return [
        f"sampled: {sampling.simulated_steps} of {sampling.steps} steps were simulated, with an error of "
        f"{100.0 * sampling_sd(runs):.2g} % (a standard deviation), which the interval includes "
        "(--fidelity full simulates all)"
    ]
