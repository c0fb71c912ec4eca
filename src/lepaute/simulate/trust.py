"""How far a prediction may be trusted: one statement, which all commands show and decide by.

What counts is how uncertain the predicted time is for the kernels that are used outside of their fitted ranges, which
is simulated: runs that draw the errors of extrapolation and nothing else, against the same runs without them. Shares of
the time do not tell it. Waiting dilutes a share of the time of all ranks, and a panel in which one column of ranks is
extrapolated while all others wait for it may be a hundredth of the computing and a third of the time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum, sqrt
from typing import TYPE_CHECKING, Any

from lepaute.kit.text import percent
from lepaute.simulate.layers import Layers, layers_of

if TYPE_CHECKING:
    from lepaute.platform.schema import Platform
    from lepaute.simulate.application import Application
    from lepaute.simulate.conditions import Conditions
    from lepaute.simulate.engine import Engine, Simulator
    from lepaute.simulate.outside_ranges import OutsideRanges
    from lepaute.simulate.run import SimulatedRun

#: What is compared with others has a time that extrapolation makes uncertain by no larger a standard deviation.
MOST_UNCERTAIN = 0.05
#: Where that was not simulated (a single run, an emulated program), no larger share of its computing is outside.
MOST_COMPUTING = 0.5
#: Messages of sizes outside take no larger share of computing and moving messages.
MOST_MESSAGES = 0.2
#: Seeds of the draws. They are the same for all predictions and commands, so that equal predictions are judged alike.
SEEDS = (1, 2, 3, 4)
#: Of computing. A smaller share outside is not looked into: on the longest path it is a hundred times as much at most.
LEAST_OUTSIDE = 1e-4
#: Layers that are on in the two runs of each seed.
DRAWN: Mapping[str, tuple[str, ...]] = {"extrapolated": ("extrapolation",), "as fitted": ()}


@dataclass(frozen=True, slots=True)
class Trust:
    """What is known of a prediction's validity.

    computing : share of the time of all kernels that is outside of the ranges of their models
    messages  : share that messages of sizes outside have of computing and moving messages
    time_relative_sd : standard deviation of the predicted time that errors of extrapolated kernels give; None where it
        was not simulated
    """

    computing: float
    messages: float = 0.0
    time_relative_sd: float | None = None

    @property
    def comparable(self) -> bool:
        """Whether the prediction may be called better or worse than another one."""
        return not self.reasons

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not comparable, in words; none where it is."""
        found: list[str] = []
        if self.time_relative_sd is None:
            if self.computing > MOST_COMPUTING:
                found.append(f"{percent(self.computing)} of its computing is extrapolated")
        elif self.time_relative_sd > MOST_UNCERTAIN:
            found.append(f"extrapolation alone makes its time uncertain by +- {percent(1.96 * self.time_relative_sd)}")
        if self.messages > MOST_MESSAGES:
            found.append(f"messages of sizes outside take {percent(self.messages)} of its computing and communication")
        return tuple(found)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The caveat that goes with the prediction; none where it is comparable."""
        return (f"not comparable with other predictions: {'; '.join(self.reasons)}",) if self.reasons else ()

    def to_dict(self) -> dict[str, Any]:
        """The value of `trust` in the JSON of a prediction."""
        return {
            "comparable": self.comparable,
            "extrapolated_share": self.computing,
            "messages_share": self.messages,
            "extrapolation_relative_sd": self.time_relative_sd,
            "reasons": list(self.reasons),
        }


def trust_of(outside: "OutsideRanges | None", time_relative_sd: float | None) -> Trust:
    """The statement on a prediction; outside : of its first run."""
    if outside is None:
        return Trust(0.0)
    if outside.share < LEAST_OUTSIDE:
        time_relative_sd = 0.0
    return Trust(outside.share, outside.messages_of_work, time_relative_sd)


def is_worth_drawing(application: "Application", engine: "Engine", share: float) -> bool:
    """Whether so much of the computing is outside that its effect is simulated, where that takes no whole program."""
    return share >= LEAST_OUTSIDE and application.kernel_models and engine.samples


def cost_in_runs(application: "Application", platform: "Platform") -> float:
    """What the draws cost at most, in runs of the application in full."""
    if "extrapolation" not in layers_of(platform, application):
        return 0.0
    share = application.simulated_share("sampled") if "sampled" in application.fidelities else 1.0
    return len(DRAWN) * len(SEEDS) * share


def simulator_of_draws(
    name: str, application: "Application", engine: "Engine", conditions: "Conditions"
) -> "Simulator":
    """What simulates the runs of a name in DRAWN; sampled where that is possible."""
    sampled = "sampled" in application.fidelities
    simulator = engine.on(
        replace(
            conditions,
            layers=Layers.only(*DRAWN[name]),
            fidelity="sampled" if sampled else conditions.fidelity,
            trace=None,
            repeat=0,
        )
    )
    simulator.prepare(application)
    return simulator


def relative_sd(extrapolated_s: Sequence[float], as_fitted_s: Sequence[float]) -> float:
    """Standard deviation of the logarithm of the time, from runs of equal seeds with and without the errors."""
    from lepaute import _core

    pairs = list(zip(extrapolated_s, as_fitted_s, strict=True))
    squares = [_core.natural_log(one / other) ** 2 for one, other in pairs if min(one, other) > 0.0]
    return sqrt(fsum(squares) / len(squares)) if squares else 0.0


def relative_sd_of_runs(runs: "Mapping[str, Sequence[SimulatedRun]]") -> float:
    """The same of simulated runs, by their name in DRAWN."""
    return relative_sd(*([run.time_s for run in runs[name]] for name in DRAWN))
