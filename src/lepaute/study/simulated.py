"""One simulated run as it is kept and sent: plain values, and the function that simulates it.

Simulators are kept between the runs of a process: those of one configuration share what is made of the platform.
"""

import json
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from threading import Lock
from typing import TYPE_CHECKING, Any

from lepaute.errors import LepauteError
from lepaute.study.evaluation import Outcome, Trial

if TYPE_CHECKING:
    from lepaute.simulate.engine import Simulator
    from lepaute.study.configuration import Configuration, Configurations

_MOST_KEPT = 64


@dataclass(frozen=True, slots=True)
class Simulated:
    """The result of a simulation; refusal : "" where there is one;  cpu_s : that it took, about.

    notes : what else a reader must know of it, by name, as JSON has it: caveats, messages_outside, guesses_block_size
    """

    key: str
    time_s: float | None = None
    rate_gflops: float | None = None
    energy_j: float | None = None
    extrapolated: float = 0.0
    sampling_sd: float = 0.0
    refusal: str = ""
    cpu_s: float = 0.0
    notes: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> "Simulated":
        """Of a row of the store's table."""
        values: dict[str, Any] = {name: row[name] for name in cls.__slots__ if name != "notes"}
        absent = {name: None for name, value in values.items() if isinstance(value, float) and isnan(value)}
        return cls(**(values | absent), notes=json.loads(row["about"]).get("notes", {}))

    def outcome(self, trial: Trial, configurations: "Configurations") -> Outcome:
        """With the responses that follow from these."""
        if self.refusal or self.time_s is None:
            return Outcome(trial, refusal=self.refusal or "nothing was simulated")
        responses = {"time_s": self.time_s}
        if self.rate_gflops is not None:
            responses["rate_gflops"] = self.rate_gflops
        if self.energy_j is not None:
            responses["energy_j"] = self.energy_j
            if self.rate_gflops is not None and self.energy_j > 0.0:
                responses["gflops_per_watt"] = self.rate_gflops * self.time_s / self.energy_j
        try:
            responses |= configurations.derived(trial.point, responses)
        except LepauteError as error:
            return Outcome(trial, refusal=str(error))
        return Outcome(
            trial,
            responses,
            self.extrapolated,
            None,
            self.sampling_sd,
            self.notes.get("messages_outside", 0.0),
            tuple(self.notes.get("caveats", ())),
            self.notes.get("guesses_block_size", False),
        )


def simulate(configurations: "Configurations", trials: Sequence[Trial]) -> list[Simulated]:
    """The result of each trial, in their order; what cannot be simulated is refused, and nothing is raised for it."""
    return [_simulated(configurations, trial) for trial in trials]


def _simulated(configurations: "Configurations", trial: Trial) -> Simulated:
    from lepaute.simulate.application import GFLOPS
    from lepaute.simulate.prediction.predicting import prediction_of
    from lepaute.simulate.prediction.warnings import guesses_block_size

    try:
        configuration = configurations.at(trial.point)
    except LepauteError as error:
        return Simulated("", refusal=str(error))
    key, application = configuration.key(trial), configuration.application
    began_s = time.thread_time()
    try:
        simulator = _SIMULATORS.of(configuration, trial)
        run = simulator.run(application, trial.seed, first=False)
        prediction = prediction_of(application, configuration.repeated(trial.repeat), simulator, [run], None)
    except LepauteError as error:
        return Simulated(key, refusal=" ".join(str(error).split()), cpu_s=time.thread_time() - began_s)
    (result,) = prediction.run_list
    return Simulated(
        key,
        result.time_s,
        result.rate if application.rate == GFLOPS else None,
        result.energy_j,
        prediction.extrapolated_share or 0.0,
        prediction.sampling_sd,
        "",
        time.thread_time() - began_s,
        {
            "caveats": [each for each in prediction.warnings if each not in prediction.trust.warnings],
            "messages_outside": prediction.trust.messages,
            "guesses_block_size": guesses_block_size(prediction),
        },
    )


class _Simulators:
    """Those of the latest configurations."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int, str], Simulator] = OrderedDict()
        self._lock = Lock()

    def of(self, configuration: "Configuration", trial: Trial) -> "Simulator":
        from lepaute.simulate.prediction.predicting import usual_engine
        from lepaute.simulate.prediction.trust import simulator_of_draws

        place = (configuration.digest, trial.repeat, trial.drawn)
        with self._lock:
            known = self._kept.get(place)
            if known is not None:
                self._kept.move_to_end(place)
                return known
        application = configuration.application
        engine = usual_engine(application)
        if trial.drawn:
            made = simulator_of_draws(trial.drawn, application, engine, configuration.conditions)
        else:
            made = engine.on(configuration.repeated(trial.repeat))
            made.prepare(application)
        with self._lock:
            self._kept[place] = made
            if len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return made


_SIMULATORS = _Simulators()
