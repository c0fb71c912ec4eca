"""What the half-width of a prediction is made of: how far runs spread that draw a single layer each.

The runs of a layer have the seeds of the prediction's first runs, so that they draw of it what those draw; all other
layers are off. What an application draws by itself (HPL: the rows of its pivots) is in all of them: it is known from
runs with every layer off, and taken out of the others run by run.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from typing import Any

from lepaute.kit.text import significant
from lepaute.simulate.application import Application
from lepaute.simulate.conditions import Conditions, Layers, layers_of
from lepaute.simulate.engine import Engine, SimulatedRun, Simulator
from lepaute.simulate.platform.schema import Platform
from lepaute.simulate.prediction.trust import simulator_of
from lepaute.stats.intervals import standard_deviation

#: Runs of each part. The standard deviation of 10 runs is known to a quarter of itself.
RUNS = 10
#: Parts that cost no more events, or no more than the prediction itself, are told unasked: some seconds of two cores.
FREE_EVENTS = 3e7


@dataclass(frozen=True, slots=True)
class Parts:
    """Relative standard deviation of the time that each layer alone gives, the largest first.

    runs : simulated for each;  fidelity : of these runs, which may be less than that of the prediction
    """

    relative_sd: Mapping[str, float]
    runs: int
    fidelity: str

    def half_widths(self, half_width: float) -> dict[str, float]:
        """The part of each layer in a half-width, in its unit: their squares sum up to its square.

        Independent effects add up by their variances; how far R runs let Student's interval reach multiplies all alike.
        """
        total = sqrt(fsum(sd * sd for sd in self.relative_sd.values()))
        return {name: half_width * sd / total if total else 0.0 for name, sd in self.relative_sd.items()}

    def to_dict(self, half_width_percent: float | None) -> dict[str, Any]:
        return {
            "half_width_percent": None if half_width_percent is None else self.half_widths(half_width_percent),
            "relative_sd": dict(self.relative_sd),
            "runs": self.runs,
            "fidelity": self.fidelity,
        }


def part_names(application: Application, platform: Platform, layers: Layers) -> tuple[str, ...]:
    """Names of the parts: of the layers that are on and draw something, and of what the application draws by itself."""
    own = _draw_of_no_layer(application, platform)
    of_layers = tuple(name for name in layers_of(platform, application) if getattr(layers, name))
    return (own, *of_layers) if own else of_layers


def _draw_of_no_layer(application: Application, platform: Platform) -> str:
    """What a seed decides besides the layers, in a word; empty if that is nothing."""
    return "".join(application.on(platform).draws - set(Layers.names()))


def cost_in_runs(application: Application, platform: Platform, layers: Layers) -> float:
    """Cost of the parts in runs of the application in full."""
    return len(part_names(application, platform, layers)) * RUNS * application.on().simulated_share("sampled")


def are_free(application: Application, platform: Platform, layers: Layers, runs: int, fidelity: str) -> bool:
    """Whether the parts cost little, or no more than the prediction of `runs` runs; by counts, never by a clock."""
    behaviour = application.on()
    own_runs, events = runs * behaviour.simulated_share(fidelity), behaviour.events
    return runs > 1 and cost_in_runs(application, platform, layers) * events <= max(FREE_EVENTS, own_runs * events)


def simulators_of_parts(application: Application, engine: Engine, conditions: "Conditions") -> dict[str, Simulator]:
    return {
        # No layer for what an application draws by itself.
        name: simulator_of(
            Layers.only(*({name} & set(Layers.names()))), application, engine, conditions, conditions.repeat
        )
        for name in part_names(application, conditions.platform, conditions.layers)
    }


def parts_of(
    application: Application,
    conditions: "Conditions",
    simulator: Simulator,
    runs_of: Mapping[str, Sequence[SimulatedRun]],
    sampling_sd: float = 0.0,
) -> Parts:
    """The parts that the runs of each tell, the layer learnt from other studies, and sampling, the largest first.

    runs_of : by name of the part, of equal seeds at equal places
    """
    from lepaute import _core

    logs = {name: [_core.natural_log(run.time_s) for run in runs] for name, runs in runs_of.items()}
    word = _draw_of_no_layer(application, conditions.platform)
    own = logs.pop(word, [0.0] * RUNS)
    sds = {word: standard_deviation(own)} if word else {}
    for name, values in logs.items():
        sds[name] = standard_deviation([alone - same for alone, same in zip(values, own, strict=True)])
    if conditions.transfer is not None:
        sds["transfer"] = conditions.transfer.total_sd
    if sampling_sd:
        sds["sampling"] = sampling_sd
    first = next((runs[0] for runs in runs_of.values()), None)
    return Parts(
        dict(sorted(sds.items(), key=lambda item: -item[1])), RUNS, "" if first is None else simulator.fidelity(first)
    )


#: The error of sampling is taken as normal with the standard deviation sqrt(MIN_SAMPLING_SD^2 + CHANGE_FACTOR^2 Q),
#: Q being the sum of the squares of the relative changes that one window less makes, each the mean over the runs.
#: Chosen by pairs of a sampled and a full run, tested on others (validation/sampling_error.py).
MIN_SAMPLING_SD = 0.001
CHANGE_FACTOR = 1.0


def sampling_sd(runs: Sequence[SimulatedRun]) -> float:
    """Relative standard deviation of what sampled runs are off from full ones; 0 if every step was simulated."""
    return sampling_sd_of(map(sampling_changes, runs))


def sampling_changes(run: SimulatedRun) -> tuple[float, ...] | None:
    """What each window left out would change the time by, relative to it; None if every step was simulated."""
    if run.sampling is None or run.time_s <= 0.0:
        return None
    return tuple(change_s / run.time_s for change_s in run.sampling.changes_s)


def sampling_sd_of(changes: "Iterable[Sequence[float] | None]") -> float:
    """`sampling_sd` of runs with these `sampling_changes`.

    Of their mean: what each run is off by itself, since stalls come at random, is a part of the spread of the runs.
    """
    by_windows: dict[int, list[Sequence[float]]] = {}  # a run that is certain early has fewer windows
    for of_run in changes:
        if of_run is not None:
            by_windows.setdefault(len(of_run), []).append(of_run)
    count = sum(map(len, by_windows.values()))
    # What windows miss of the smooth course they have in common: standard deviations add up.
    return fsum(len(alike) * _sd_of_mean(alike) for alike in by_windows.values()) / count if count else 0.0


def _sd_of_mean(changes: Sequence[Sequence[float]]) -> float:
    """Standard deviation of the mean of runs with the same windows; changes: by run and window."""
    means = [fsum(of_window) / len(changes) for of_window in zip(*changes, strict=True)]
    return sqrt(MIN_SAMPLING_SD * MIN_SAMPLING_SD + CHANGE_FACTOR * CHANGE_FACTOR * fsum(mean * mean for mean in means))


def sampling_warnings(runs: Sequence[SimulatedRun]) -> list[str]:
    """Warnings about a sampled prediction."""
    sampling = runs[0].sampling
    if sampling is None:
        return []
    return [
        f"sampled: {sampling.simulated_steps} of {sampling.steps} steps were simulated, with an error of "
        f"{significant(100.0 * sampling_sd(runs), 2)} % (a standard deviation), which the interval includes "
        "(--fidelity full simulates all)"
    ]
