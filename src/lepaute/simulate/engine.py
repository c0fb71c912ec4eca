"""What an engine is, and what it tells of one run: values that other processes can be sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

if TYPE_CHECKING:
    from lepaute.simulate.application import Application
    from lepaute.simulate.conditions import Conditions
    from lepaute.simulate.native import RunProgress
    from lepaute.simulate.platform.schema import Platform
    from lepaute.simulate.smpi.emulated_run import EmulatedRun
    from lepaute.simulate.trace import Trace
    from lepaute.simulate.tracing import RunBreakdown


class Sizes(NamedTuple):
    """Parameters of a kernel call."""

    m: float = 0.0
    n: float = 0.0
    k: float = 0.0


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
    outside_low: Sizes = Sizes()
    outside_high: Sizes = Sizes()

    def outside(self, name: str, platform: "Platform") -> str:
        """Which parameters of kernel `name` left the fitted ranges, and those: "k = 64..64, fitted in 128..2048"."""
        met, ranges = [], []
        if self.outside_low.n > self.outside_high.n:  # of no size
            return "on other numbers of ranks than it was measured on"
        fitted = [piece.range for model in platform.kernels if model.kernel == name for piece in model.pieces]
        for letter, met_low, met_high in zip("mnk", self.outside_low, self.outside_high, strict=True):
            met.append(f"{letter} = {met_low:.0f}..{met_high:.0f}")
            pairs = [bounds for piece in fitted for name_, bounds in (piece or {}).items() if name_ == letter]
            if not pairs:
                continue
            low, high = min(low for low, _ in pairs), max(high for _, high in pairs)
            if met_low < low or met_high > high:
                ranges.append(f"{met[-1]}, fitted in {low:.0f}..{high:.0f}")
        return "; ".join(ranges) or f"{', '.join(met)}, not fitted together"

    def extrapolated(self, name: str, platform: "Platform") -> str:
        """Warning about a kernel of which some time is outside the fitted ranges."""
        share = 100.0 * self.extrapolated_time_s / self.time_s
        return f"{share:.0f} % of {name} time is outside the fitted ranges: {self.outside(name, platform)}"


#: Classes of links in words.
MESSAGES = {
    "loopback": "messages inside nodes",
    "remote": "messages between nodes",
    "loopback_noncontiguous": "messages with gaps inside nodes",
    "remote_noncontiguous": "messages with gaps between nodes",
    "loopback_busy": "messages inside nodes to ranks that compute",
    "remote_busy": "messages between nodes to ranks that compute",
}


@dataclass(frozen=True, slots=True)
class MessageUse:
    """The messages of one class of links in one run.

    link         : one of loopback, remote, and each of them with _noncontiguous or _busy
    fitted_bytes : smallest and largest size that the model of the class was fitted to, both inclusive
    time_s       : sum of the times of all messages, each as if it were alone and without noise; outside_time_s of
                   those whose size is outside fitted_bytes
    outside_from_bytes, outside_to_bytes : smallest and largest size among those, None if there are none
    """

    link: str
    fitted_bytes: tuple[int, int]
    messages: int
    bytes: float
    time_s: float
    outside_messages: int
    outside_bytes: float
    outside_time_s: float
    outside_from_bytes: float | None
    outside_to_bytes: float | None


class Sampling(NamedTuple):
    """Windows of the steps were simulated, not all; changes_s: what each window left out would change time_s by."""

    simulated_steps: int
    steps: int
    changes_s: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """One simulated run; `seed` repeats it.

    time_s      : of what the application times; whole_s of all that its kernels are counted in
    computing_s : seconds inside kernels, waiting_s inside communication, both over all ranks
    group_computing_s : computing_s of the ranks on each group of nodes; empty where all are alike
    moving      : share of the time of all ranks in moving messages
    message_use : by class of links, where the platform knows the sizes it was fitted to; None if the engine does
                  not tell. messages_s : time of the messages of all classes, each as if alone
    sampling    : None if every step was simulated
    breakdown   : where the time of all ranks went; None if the engine does not tell
    began_s, ended_s : of the simulation, on the clock of time.perf_counter
    """

    seed: int
    time_s: float
    whole_s: float
    messages: int
    engine_bytes: int
    computing_s: float
    waiting_s: float
    group_computing_s: tuple[float, ...] = ()
    moving: float = 0.0
    kernels: Mapping[str, KernelUse] = field(default_factory=dict)
    message_use: tuple[MessageUse, ...] | None = None
    messages_s: float | None = None
    sampling: Sampling | None = None
    breakdown: "RunBreakdown | None" = field(default=None, compare=False, repr=False)
    trace: "Trace | None" = field(default=None, compare=False, repr=False)
    began_s: float = 0.0
    ended_s: float = 0.0
    emulated: "EmulatedRun | None" = field(default=None, compare=False, repr=False)


class Simulator(Protocol):
    """An engine under conditions that all runs of a prediction share.

    parallel     : whether several threads may run() at once
    tells_energy : whether computing and communicating are told apart so that the energy follows
    """

    parallel: bool
    tells_energy: bool

    def prepare(self, application: "Application") -> None:
        """Makes what all runs of `application` share; raises InputError for what cannot be simulated."""

    def progress_of(self, application: "Application") -> "RunProgress | None":
        """Meter of how far a run has come, for run(); None if the engine does not know."""

    def run(
        self,
        application: "Application",
        seed: int,
        *,
        first: bool,
        progress: "RunProgress | None" = None,
        priced: bool = False,
    ) -> SimulatedRun:
        """One run; the `first` of a prediction is the one that is traced or shown, a `priced` one that of effects().

        Raises InputError for what does not fit, SimulationError if the application fails or ends in a deadlock.
        """

    def effects(self, application: "Application", seeds: Sequence[int]) -> "list[list[float]] | None":
        """How many times as long the parts of the priced run take under the draws of each seed, without its noise.

        The parts: computing, and the messages of each class of links. None if the engine cannot tell.
        """

    def fidelity(self, run: SimulatedRun) -> str:
        """How the run was simulated, in a word for the JSON."""

    def warnings(self, run: SimulatedRun) -> list[str]:
        """Warnings about how the engine sees the platform; a sentence each."""


class Engine(Protocol):
    """An engine and its options: a value that can be sent to another process.

    samples : whether it can simulate windows of an application's steps in the place of all
    """

    samples: ClassVar[bool]

    def on(self, conditions: "Conditions") -> Simulator:
        """Its simulator under these conditions."""
