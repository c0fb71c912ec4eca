"""How much of a run is simulated: all of it, or windows of its steps."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lepaute.errors import InputError

if TYPE_CHECKING:
    from lepaute.simulate.application import Application
    from lepaute.simulate.run import SimulatedRun


def check_fidelity(application: "Application", fidelity: str) -> None:
    """Raises InputError for a fidelity that the application does not have."""
    if fidelity not in application.fidelities:
        raise InputError(f"fidelity is {fidelity!r}; it is one of {', '.join(application.fidelities)}")


def sampling_warnings(runs: "Sequence[SimulatedRun]") -> list[str]:
    """What a reader of a sampled prediction must know."""
    sampling = runs[0].sampling
    if sampling is None:
        return []
    error = max(run.sampling.error_s / run.time_s for run in runs if run.sampling is not None)
    return [
        f"sampled: {sampling.simulated_steps} of {sampling.steps} steps were simulated; one window less would change "
        f"the time by up to {100.0 * error:.2f} %, which the interval does not include (--fidelity full simulates all)"
    ]
