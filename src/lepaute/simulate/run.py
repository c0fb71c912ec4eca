"""What one simulated run was like, whichever engine simulated it; a value that other processes can be sent."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from lepaute.simulate.message_use import MessageUse
    from lepaute.simulate.smpi.emulated_run import EmulatedRun
    from lepaute.simulate.tracing import RunBreakdown
    from lepaute.trace import Trace


class Sizes(NamedTuple):
    """Parameters of a kernel call."""

    m: float = 0.0
    n: float = 0.0
    k: float = 0.0


NOWHERE = Sizes()


class KernelUse(NamedTuple):
    """Calls of a kernel or routine over all ranks of a run.

    time_s              : of all calls; extrapolated_time_s of those with parameters outside the fitted ranges
    unmodelled_calls    : calls that cost nothing, since the platform has no model
    clipped_means       : calls whose mean duration was below zero, and taken as zero
    outside_low, outside_high : smallest and largest parameters among the calls outside the fitted ranges
    """

    calls: int
    time_s: float
    unmodelled_calls: int = 0
    clipped_means: int = 0
    extrapolated_time_s: float = 0.0
    outside_low: Sizes = NOWHERE
    outside_high: Sizes = NOWHERE


class Sampling(NamedTuple):
    """Windows of the steps were simulated, not all; changes_s: what each window left out would change time_s by."""

    simulated_steps: int
    steps: int
    changes_s: tuple[float, ...] = ()


@dataclass(frozen=True)
class SimulatedRun:
    """One simulated run; `seed` repeats it.

    time_s      : of what the application times; whole_s of all that its kernels are counted in
    computing_s : seconds inside kernels, waiting_s inside communication, both over all ranks
    moving      : share of the time of all ranks in moving messages
    kernels     : of those that were called
    message_use : by class of links, where the platform knows the sizes it was fitted to; None where the engine does
                  not tell. messages_s : time of the messages of all classes, each as if alone
    sampling    : None where every step was simulated
    breakdown   : where the time of all ranks went; None where the engine does not tell
    began_s, ended_s : of the simulation, on the clock of time.perf_counter
    emulated    : what SMPI tells besides
    """

    seed: int
    time_s: float
    whole_s: float
    messages: int
    engine_bytes: int
    computing_s: float
    waiting_s: float
    moving: float = 0.0
    kernels: Mapping[str, KernelUse] = field(default_factory=dict)
    message_use: "tuple[MessageUse, ...] | None" = None
    messages_s: float | None = None
    sampling: Sampling | None = None
    breakdown: "RunBreakdown | None" = field(default=None, compare=False, repr=False)
    trace: "Trace | None" = field(default=None, compare=False, repr=False)
    began_s: float = 0.0
    ended_s: float = 0.0
    emulated: "EmulatedRun | None" = field(default=None, compare=False, repr=False)
