"""How much of a run is simulated: all of it, or windows of its steps."""

from lepaute.errors import InputError
from lepaute.simulate.hpl import Hpl

FIDELITIES = ("auto", "full", "sampled")
FULL_BELOW = 8_000_000  # steps x ranks up to which `auto` simulates every step
WINDOWS = (5, 16, 32)  # windows, steps that warm up each, steps whose time is taken


def check_fidelity(fidelity: str) -> None:
    """Raises InputError for a word that is none."""
    if fidelity not in FIDELITIES:
        raise InputError(f"fidelity is {fidelity!r}; it is one of {', '.join(FIDELITIES)}")


def is_sampled(hpl: Hpl, fidelity: str, *, traced: bool) -> bool:
    """Are only windows of the run simulated? A traced run is simulated in full unless that is asked for."""
    if fidelity == "auto":
        return not traced and hpl.steps * hpl.ranks > FULL_BELOW
    return fidelity == "sampled"


def simulated_share(hpl: Hpl, fidelity: str) -> float:
    """About how much of the steps is simulated."""
    count, warm_up, measured = WINDOWS
    sampled = count * (warm_up + measured)
    return min(1.0, sampled / hpl.steps) if is_sampled(hpl, fidelity, traced=False) else 1.0


def sampling_warning(simulated: int, steps: int, error: float) -> str:
    """What a reader of a sampled prediction must know; error: relative, of the time of a run."""
    return (
        f"sampled: {simulated} of {steps} steps were simulated; leaving out one window more would change the time by "
        f"up to {100.0 * error:.2f} %, which is no part of the interval (--fidelity full simulates all)"
    )
