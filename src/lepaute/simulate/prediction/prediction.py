"""The distribution over runs that a simulation predicts."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lepaute.kit.later import later, pd
from lepaute.kit.notebook import Public, facts_html
from lepaute.kit.numbers import none_if_nan
from lepaute.kit.text import counted, scaled_unit, value_and_interval, with_interval
from lepaute.simulate.application import GFLOPS, Application
from lepaute.simulate.conditions import Conditions
from lepaute.simulate.engine import MessageUse, SimulatedRun
from lepaute.simulate.prediction.parts import Parts
from lepaute.simulate.prediction.request import PredictionRequest
from lepaute.simulate.prediction.trust import OutsideRanges, Trust
from lepaute.simulate.tracing import RunBreakdown
from lepaute.stats.control_variates import Controls
from lepaute.stats.intervals import basis_of_interval, expected, median_of_runs, prediction_interval

if TYPE_CHECKING:
    from matplotlib import axes

    from lepaute.simulate import slow_state
    from lepaute.simulate import trace as traces
    from lepaute.simulate.prediction import document
    from lepaute.simulate.prediction import plot as plots
else:
    axes = later("matplotlib.axes")
    traces = later("lepaute.simulate.trace")
    slow_state = later("lepaute.simulate.slow_state")
    document = later("lepaute.simulate.prediction.document")
    plots = later("lepaute.simulate.prediction.plot")


@dataclass(frozen=True, slots=True)
class Spread:
    """The mean to be expected and the 95 % prediction interval for one further run, in the unit of what is predicted.

    low, high : numbers always: NaN if one run says nothing about the spread, which JSON has as null
    """

    mean: float
    low: float
    high: float

    def _repr_html_(self) -> str:
        ends = self.interval() if self.has_interval else "one run: none"
        return facts_html("", [("mean", self.figure()), ("95 % of further runs", ends)])

    @property
    def has_interval(self) -> bool:
        """Whether there were two runs or more."""
        return not isnan(self.low)

    @property
    def half_width_percent(self) -> float | None:
        """Half the interval in per cent of the mean; None without one."""
        if not self.has_interval:
            return None
        return 100.0 * (self.high - self.low) / 2.0 / self.mean

    def to_dict(self) -> dict[str, float | None]:
        return {name: none_if_nan(value) for name, value in asdict(self).items()}

    def text(self, unit: str = "", factor: float = 1.0, basis: str = "95 %: ") -> str:
        """In the unit that suits it: 54.9 s (95 %: 53.0 to 57.0 s); factor: by which it is multiplied."""
        unit, scale = scaled_unit(unit, factor * self.mean)
        factor *= scale
        return with_interval(factor * self.mean, factor * self.low, factor * self.high, unit, basis)

    def amount(self, unit: str) -> str:
        """The mean in the unit that suits it: 777 Gflop/s."""
        scaled, factor = scaled_unit(unit, self.mean)
        return f"{self.figure(factor)} {scaled}"

    def figure(self, factor: float = 1.0) -> str:
        """The mean with the digits that its interval gives it, without a unit."""
        figure, bounds = value_and_interval(factor * self.mean, factor * self.low, factor * self.high)
        return figure or bounds.replace("up to", "<")

    def interval(self, factor: float = 1.0) -> str:
        """The interval with the digits of the mean, without a unit: 53.0 to 57.0; "-" without one."""
        return value_and_interval(factor * self.mean, factor * self.low, factor * self.high)[1] or "-"


def _slowed(undisturbed: Spread, effect: "slow_state.Effect") -> Spread:
    mean, low, high = undisturbed.mean, undisturbed.low, undisturbed.high
    return Spread(mean * effect.mean, low * effect.low, high * effect.high)


def spread_of(values: list[float], sampling_sd: float = 0.0, controls: Controls | None = None) -> Spread:
    """Spread of the values of the runs (design, section 2).

    sampling_sd : of an error that they have in common;  controls : of them, from draws that were not simulated
    What does not vary, such as a price, has an interval without width.
    """
    if len(values) > 1 and min(values) == max(values) and not sampling_sd:
        return Spread(values[0], values[0], values[0])
    return Spread(expected(values, controls), *prediction_interval(values, sampling_sd, controls).ends)


@dataclass(frozen=True, slots=True)
class Run:
    """One simulated run; `seed` repeats it.

    rate : in the unit of the application; None if it has none
    undisturbed : the same run without the slow state of the machine; None if it is itself
    energy_j : None if the platform does not say what a node draws
    """

    seed: int
    time_s: float
    rate: float | None = None
    energy_j: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    undisturbed: "Run | None" = field(default=None, compare=False, repr=False)

    @property
    def rate_gflops(self) -> float:
        """`rate` of an application that counts Gflop/s, as HPL does."""
        assert self.rate is not None
        return self.rate


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationFigures:
    """About the simulation itself; outside the promise that a prediction repeats bit for bit (but for messages)."""

    wall_s: float
    cpu_s: float | None = None
    peak_rss_bytes: int
    engine_bytes: int
    folded_bytes: float | None = None
    messages: int

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class AnyRun:
    """Any further run, whether it meets the slow state of the machine or not, as the intervals of `Prediction.any`.

    slower_by_most : how many times as long 95 % of these take at most; None if hardly any run meets it
    """

    time_s: Spread
    rate: Spread | None
    share_of_runs: float
    slower_by_most: float | None

    def to_dict(self, rate_key: str) -> dict[str, Any]:
        spreads = {"time_s": self.time_s.to_dict(), **({rate_key: self.rate.to_dict()} if self.rate else {})}
        return {**spreads, "share_of_runs": self.share_of_runs, "slower_by_most": self.slower_by_most}


@dataclass(frozen=True)
class Prediction(Public):
    """What an application will do on a platform, with its uncertainty. Keys of the JSON as in the design, section 5.

    mapping : ranks to cores, as the parameters show it
    nodes   : number of nodes that hold ranks
    sampling_sd : relative standard deviation of what windows of steps are off from all; 0 if all were simulated
    outside : what the first run computed outside the ranges of the models;  trust : what follows from that
    parts   : what the half-widths of its intervals are made of; None if that was not asked for
    controls : of the runs; None if the runs alone tell mean and interval
    slow    : the slow state of the nodes that it is on; None if the platform has none
    request : that it answers; None if it was read from a file, or not made by `predict_all`
    """

    _unlisted = frozenset(("conditions", "controls", "first", "request", "sampling_sd", "slow"))

    application: Application
    platform_name: str
    platform_sha256: str
    seed: int
    run_list: tuple[Run, ...]
    fidelity: str
    warnings: tuple[str, ...]
    simulation: SimulationFigures
    settings: dict[str, str]
    version: str
    mapping: dict[str, Any] = field(default_factory=lambda: {"mapping": "sequential"})
    nodes: int = 1
    sampling_sd: float = 0.0
    outside: OutsideRanges | None = None
    trust: Trust = Trust(0.0)  # noqa: RUF009 - immutable
    parts: Parts | None = None
    controls: Controls | None = field(default=None, compare=False, repr=False)
    first: SimulatedRun | None = field(default=None, compare=False, repr=False)
    conditions: Conditions | None = field(default=None, compare=False, repr=False)
    slow: "slow_state.SlowNodes | None" = field(default=None, compare=False, repr=False)
    request: PredictionRequest | None = field(default=None, compare=False, repr=False)

    @property
    def time_s(self) -> Spread:
        """Time of what the application times, in seconds: of an undisturbed run, unless `state` is any."""
        return self.any.time_s if self.any and self.state == "any" else self.undisturbed_time_s

    @property
    def rate(self) -> Spread | None:
        """In the unit of the application, of the same runs; its mean is the mean of rates."""
        return self.any.rate if self.any and self.state == "any" else self._undisturbed_rate

    @property
    def state(self) -> str:
        """Which runs `time_s`, `rate`, `energy_j` and `run_list` are of: "undisturbed" or "any"."""
        return "undisturbed" if self.conditions is None else self.conditions.state

    @cached_property
    def undisturbed_time_s(self) -> Spread:
        """Time of runs that do not meet the slow state of the machine."""
        return self._spread([run.time_s for run in self._undisturbed])

    @cached_property
    def _undisturbed_rate(self) -> Spread | None:
        return self._where_known([run.rate for run in self._undisturbed])

    @property
    def _undisturbed(self) -> list[Run]:
        return [run.undisturbed or run for run in self.run_list]

    @cached_property
    def any(self) -> AnyRun | None:
        """Time of any further run, in the slow state of the machine or not; None if the platform has no such state."""
        effect, rate = self._slowing, self._undisturbed_rate
        if effect is None:
            return None
        inverse = None
        if rate is not None:
            inverse = Spread(rate.mean * effect.mean_of_inverse, rate.low / effect.high, rate.high / effect.low)
        return AnyRun(_slowed(self.undisturbed_time_s, effect), inverse, effect.share, effect.most)

    @cached_property
    def _slowing(self) -> "slow_state.Effect | None":
        if self.slow is None:
            return None
        spread, values = self.undisturbed_time_s, [run.time_s for run in self._undisturbed]
        if not spread.has_interval or min(values) <= 0.0:
            return self.slow.effect(*[spread.mean] * 3)
        median_s = min(max(median_of_runs(values, self.controls), spread.low), spread.high)
        return self.slow.effect(median_s, spread.low, spread.high)

    @cached_property
    def interval_basis(self) -> str | None:
        """Basis of the interval of the time besides the runs, in words; None for a single run."""
        return basis_of_interval([run.time_s for run in self._undisturbed], self.controls)

    @property
    def rate_gflops(self) -> Spread:
        """`rate` of an application that counts Gflop/s, as HPL does; raises AttributeError for any other."""
        if self.rate is None or self.application.rate != GFLOPS:
            raise AttributeError(f"a prediction of {self.application.name} has no rate in Gflop/s")
        return self.rate

    @cached_property
    def energy_j(self) -> Spread | None:
        """Energy of the nodes used, in joules; None if the platform does not say what a node draws. In the slow
        state they are taken to draw as much."""
        spread = self._where_known([run.energy_j for run in self._undisturbed])
        return spread if spread is None or self.state != "any" or not self._slowing else _slowed(spread, self._slowing)

    def _spread(self, values: list[float]) -> Spread:
        return spread_of(values, self.sampling_sd, self.controls)

    def _where_known(self, values: list[float | None]) -> Spread | None:
        known = [value for value in values if value is not None]
        return self._spread(known) if len(known) == len(values) else None

    @property
    def extrapolated_share(self) -> float | None:
        """Share of computing that is outside the ranges of the models, of the first run; None: unknown."""
        return None if self.outside is None else self.outside.share

    @property
    def comparable(self) -> bool:
        """Whether the prediction may be called better or worse than another one: `trust` says why not."""
        return self.trust.comparable

    @property
    def runs(self) -> "pd.DataFrame":
        """A row a run: seed, time_s in seconds, the rate where the application has one, and its further details."""
        return document.runs_table(self)

    def to_frame(self) -> "pd.DataFrame":
        """A row a run: application, platform, ranks, parameters, conditions, then what `runs` has, and energy_j.

        Columns and their types depend on the application alone, but for a column "set FIELD" for each setting; what is
        not known is missing. Frames of several predictions can be put one below the other (`pandas.concat`).

        Examples
        --------
        >>> import lepaute as lp
        >>> table = lp.predict(lp.Hpl(n=20_000, nb=128, p=4, q=4), "dahu", runs=10).to_frame()
        >>> table[["n", "ranks", "time_s"]].shape
        (10, 3)
        """
        return document.table(self)

    def __repr__(self) -> str:
        return (
            f"<Prediction of {document.subject(self)}: {self.time_s.text('s')}, {counted(len(self.run_list), 'run')}>"
        )

    def _repr_html_(self) -> str:
        return document.html(self)

    @property
    def kernel_time_s(self) -> dict[str, float]:
        """Seconds over all ranks in each kernel, of the first run."""
        kernels = self.first.kernels if self.first else {}
        return {name: use.time_s for name, use in kernels.items() if use.time_s > 0.0}

    @property
    def message_use(self) -> tuple[MessageUse, ...]:
        """Messages of the first run by class of links, where the platform knows the sizes it was fitted to."""
        return (self.first.message_use if self.first else None) or ()

    @property
    def breakdown(self) -> RunBreakdown | None:
        """Breakdown of the time of all ranks of the first run."""
        return self.first.breakdown if self.first else None

    @property
    def trace(self) -> "traces.Trace | None":
        """Trace of the first run, if one was asked for."""
        return self.first.trace if self.first else None

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of the contract."""
        return document.content(self)

    def to_json(self, path: str | Path) -> None:
        """Writes the JSON object to `path`."""
        document.write(self, path)

    def plot(
        self, path: str | Path | None = None, *, ax: "axes.Axes | None" = None, real_s: Sequence[float] = ()
    ) -> "axes.Axes":
        """Draws the density of the time of a further run, its mean and 95 % prediction interval, and below it the runs.

        Parameters
        ----------
        path : of a picture that is written, by its ending a PNG, SVG or PDF, without one PNG and SVG; without a path, a
            notebook shows the picture
        ax : axes of Matplotlib to draw on; new ones unless given, whose figure has a title and says what it was made of
        real_s : times of real runs to draw beside it, in seconds

        Returns
        -------
        The axes, for further lines of one's own

        Raises
        ------
        InputError : where there is a single run, which has no distribution, or a real run took no time

        Examples
        --------
        >>> import lepaute as lp
        >>> ax = lp.predict(lp.Hpl(n=20_000, nb=128, p=4, q=4), "dahu", runs=10).plot("runs.png", real_s=[14.2, 14.4])
        >>> ax.get_xlabel()
        'time of a run (s)'
        """
        return plots.plot_prediction(self, path, ax, real_s)
