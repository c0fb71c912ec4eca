"""The distribution over runs that a simulation predicts."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lepaute.errors import InputError
from lepaute.simulate.hpl import Hpl
from lepaute.stats.intervals import prediction_interval

if TYPE_CHECKING:
    import pandas as pd

    from lepaute.simulate.message_use import MessageUse
    from lepaute.simulate.outside_ranges import OutsideRanges
    from lepaute.simulate.tracing import RunBreakdown
    from lepaute.trace import Trace


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean of the runs and the 95 % prediction interval for one further run; low and high are None for one run."""

    mean: float
    low: float | None
    high: float | None

    @property
    def half_width_percent(self) -> float | None:
        """Half the interval in per cent of the mean."""
        if self.low is None or self.high is None:
            return None
        return 100.0 * (self.high - self.low) / 2.0 / self.mean

    def to_dict(self) -> dict[str, float | None]:
        return {"mean": self.mean, "low": self.low, "high": self.high}


def spread_of(values: list[float]) -> Spread:
    """Spread of the values of the runs (design, section 2)."""
    low, high = prediction_interval(values)
    return Spread(sum(values) / len(values), low, high)


def spread_where_known(values: list[float | None]) -> Spread | None:
    """Spread of the values of the runs; None unless all are known."""
    known = [value for value in values if value is not None]
    return spread_of(known) if len(known) == len(values) else None


@dataclass(frozen=True, slots=True)
class Run:
    """One simulated run; `seed` repeats it. energy_j is None where the platform does not say what a node draws."""

    seed: int
    time_s: float
    rate_gflops: float
    energy_j: float | None = None


@dataclass(frozen=True, slots=True)
class SimulationFigures:
    """About the simulation itself; outside the promise that a prediction repeats bit for bit (but for messages)."""

    wall_s: float
    peak_rss_bytes: int
    engine_bytes: int
    messages: int


@dataclass(frozen=True)
class Prediction:
    """What HPL will do on a platform, with its uncertainty. Keys of the JSON as in the design, section 5.

    kernel_time_s : seconds over all ranks in each kernel, of the first run
    waiting_s : seconds over all ranks inside communication, of the first run
    message_use : messages by class of links, of the first run, where the platform knows the sizes it was fitted to
    mapping : ranks to cores, as the parameters show it
    nodes : number of nodes that hold ranks
    outside : what the first run spent outside the ranges of the models
    breakdown : where the time of all ranks of the first run went
    trace : of the first run, where one was asked for
    """

    hpl: Hpl
    platform_name: str
    platform_sha256: str
    seed: int
    run_list: tuple[Run, ...]
    fidelity: str
    warnings: tuple[str, ...]
    simulation: SimulationFigures
    kernel_time_s: dict[str, float]
    waiting_s: float
    settings: dict[str, str]
    version: str
    mapping: dict[str, Any] = field(default_factory=lambda: {"mapping": "sequential"})
    nodes: int = 1
    message_use: "tuple[MessageUse, ...]" = ()
    outside: "OutsideRanges | None" = None
    breakdown: "RunBreakdown | None" = field(default=None, compare=False, repr=False)
    trace: "Trace | None" = field(default=None, compare=False, repr=False)

    @property
    def time_s(self) -> Spread:
        """Time of the solver, in seconds."""
        return spread_of([run.time_s for run in self.run_list])

    @property
    def rate_gflops(self) -> Spread:
        """HPL's rate, in Gflop/s; its mean is the mean of the runs' rates."""
        return spread_of([run.rate_gflops for run in self.run_list])

    @property
    def energy_j(self) -> Spread | None:
        """Energy of the nodes used, in joules; None where the platform does not say what a node draws."""
        return spread_where_known([run.energy_j for run in self.run_list])

    @property
    def runs(self) -> "pd.DataFrame":
        """A row a run: seed, time_s, rate_gflops."""
        import pandas as pd

        return pd.DataFrame([{"seed": r.seed, "time_s": r.time_s, "rate_gflops": r.rate_gflops} for r in self.run_list])

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of the contract."""
        parameters = self.hpl.parameters() | self.mapping
        if self.settings:
            parameters["set"] = self.settings
        return {
            "application": "hpl",
            "platform": self.platform_name,
            "platform_sha256": self.platform_sha256,
            "parameters": parameters,
            "seed": self.seed,
            "time_s": self.time_s.to_dict(),
            "rate_gflops": self.rate_gflops.to_dict(),
            **({"energy_j": self.energy_j.to_dict()} if self.energy_j else {}),
            "runs": [{"seed": r.seed, "time_s": r.time_s, "rate_gflops": r.rate_gflops} for r in self.run_list],
            "fidelity": self.fidelity,
            "warnings": list(self.warnings),
            **({"outside_ranges": self.outside.to_dict()} if self.outside else {}),
            "simulation": {
                "wall_s": self.simulation.wall_s,
                "peak_rss_bytes": self.simulation.peak_rss_bytes,
                "engine_bytes": self.simulation.engine_bytes,
                "messages": self.simulation.messages,
            },
            "version": self.version,
        }

    def to_json(self, path: str | Path) -> None:
        """Writes the JSON object to `path` whole or not at all."""
        from lepaute.kit.files import write_whole

        write_whole(path, json.dumps(self.to_dict(), indent=2) + "\n")

    def plot(self, path: str | Path) -> None:
        """A PNG of the runs and their interval."""
        from lepaute.simulate.plot import plot_prediction

        if len(self.run_list) < 2:
            raise InputError("a picture of a distribution needs at least 2 runs; ask for more with --runs")
        plot_prediction(self, Path(path))
