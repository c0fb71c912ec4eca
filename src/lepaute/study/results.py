"""Results of simulations: one run as it is kept and sent, the function that simulates it, and where results are kept.

Simulators are kept between the runs of a process: those of one configuration share what is made of the platform.
Results are written to a store as they come, so that a kill loses the last moments only.
"""

import json
import time
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from math import isnan
from threading import Lock
from typing import TYPE_CHECKING, Any

from lepaute.errors import LepauteError
from lepaute.simulate.application import GFLOPS
from lepaute.simulate.prediction.assembling import prediction_of
from lepaute.simulate.prediction.controls import controls_of
from lepaute.simulate.prediction.parts import sampling_changes
from lepaute.simulate.prediction.predicting import usual_engine
from lepaute.simulate.prediction.trust import simulator_of_draws
from lepaute.simulate.prediction.warnings import guesses_block_size
from lepaute.stats.control_variates import Controls
from lepaute.study.evaluation import Outcome, Trial
from lepaute.version import __version__

if TYPE_CHECKING:
    from lepaute.simulate.engine import Simulator
    from lepaute.study.configuration import Configuration, Configurations
    from lepaute.watch.store import Store

#: Simulators that a process keeps.
_MAX_KEPT = 64
#: Results that are not written yet are at most this many, and so old when another one comes.
MAX_HELD, LONGEST_HELD_S = 2_000, 2.0


@dataclass(frozen=True, slots=True)
class Simulated:
    """The result of a simulation; refusal : "" if there is one;  cpu_s : that it took, about.

    notes : what else a reader must know of it, by name, as JSON has it: caveats, messages_outside, guesses_block_size,
        sampling_changes; of a priced run its controls, as {runs, draws}
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
        if controls := self.notes.get("controls"):
            controls = [tuple(tuple(map(float, row)) for row in controls[name]) for name in Controls.__slots__]
        return Outcome(
            trial,
            responses,
            self.extrapolated,
            None,
            self.sampling_sd,
            self.notes.get("messages_outside", 0.0),
            tuple(self.notes.get("caveats", ())),
            self.notes.get("guesses_block_size", False),
            None if (changes := self.notes.get("sampling_changes")) is None else tuple(changes),
            None if controls is None else Controls(*controls),
        )


def simulate(configurations: "Configurations", trials: Sequence[Trial]) -> list[Simulated]:
    """The result of each trial, in their order; what cannot be simulated is refused, and nothing is raised for it."""
    return [_simulated(configurations, trial) for trial in trials]


def _simulated(configurations: "Configurations", trial: Trial) -> Simulated:
    try:
        configuration = configurations.at(trial.point)
    except LepauteError as error:
        return Simulated("", refusal=str(error))
    key, application = configuration.key(trial), configuration.application
    clock = time.thread_time
    began_s = clock()
    try:
        simulator, conditions = _SIMULATORS.of(configuration, trial), configuration.repeated(trial.repeat)
        with nullcontext() if simulator.parallel else _ALONE:
            if not simulator.parallel:  # the program runs in a process of its own
                clock = time.monotonic
                began_s = clock()
            run = simulator.run(application, trial.seed, first=False, priced=trial.priced > 0)
        prediction = prediction_of(application, conditions, simulator, [run])
        seeds = range(trial.seed, trial.seed + trial.priced)
        controls = controls_of(application, simulator, conditions, seeds) if trial.priced else None
    except LepauteError as error:
        return Simulated(key, refusal=" ".join(str(error).split()), cpu_s=clock() - began_s)
    (result,) = prediction.run_list
    if trial.drawn and result.undisturbed is not None:  # what extrapolation does has nothing to do with it
        result = result.undisturbed
    return Simulated(
        key,
        result.time_s,
        result.rate if application.rate == GFLOPS else None,
        result.energy_j,
        prediction.extrapolated_share or 0.0,
        prediction.sampling_sd,
        "",
        clock() - began_s,
        {
            "caveats": [warning for warning in prediction.warnings if warning not in prediction.trust.warnings],
            "messages_outside": prediction.trust.messages,
            "guesses_block_size": guesses_block_size(prediction),
            **({} if (changes := sampling_changes(run)) is None else {"sampling_changes": changes}),
            **({} if controls is None else {"controls": {"runs": controls.runs, "draws": controls.draws}}),
        },
    )


#: Emulations time what a program computes itself, which a second one would disturb.
_ALONE = Lock()


class _Simulators:
    """Those of the latest configurations."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int, str], Simulator] = OrderedDict()
        self._lock = Lock()

    def of(self, configuration: "Configuration", trial: Trial) -> "Simulator":
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
            if len(self._kept) > _MAX_KEPT:
                self._kept.popitem(last=False)
        return made


_SIMULATORS = _Simulators()


class Results:
    """Results by key: of this process, and of a store where there is one."""

    def __init__(self, store: "Store | None" = None) -> None:
        self._store = store
        self._known: dict[str, Simulated] = {}
        self._held: list[dict[str, object]] = []
        self._written_s = time.monotonic()

    @property
    def any(self) -> bool:
        """Whether there is a result yet that is no refusal."""
        return any(not result.refusal for result in self._known.values())

    def known(self, keys: Collection[str]) -> dict[str, Simulated]:
        """Those of the keys that have a result."""
        unknown = [key for key in keys if key not in self._known]
        if unknown and self._store is not None:
            for row in self._store.simulations(unknown).to_dict("records"):
                found = Simulated.of_row({str(name): value for name, value in row.items()})
                self._known[found.key] = found
        return {key: self._known[key] for key in keys if key in self._known}

    def add(self, configuration: "Configuration", trial: Trial, simulated: Simulated) -> None:
        """Keeps a result; written with others, soon."""
        if simulated.key in self._known:
            return
        self._known[simulated.key] = simulated
        if self._store is None:
            return
        if not self._held:
            self._written_s = time.monotonic()
        self._held.append(_row(configuration, trial, simulated))
        if len(self._held) >= MAX_HELD or time.monotonic() - self._written_s >= LONGEST_HELD_S:
            self.write()

    def write(self) -> None:
        """Writes what has not been written; raises EnvironmentProblem if that fails, the store being as it was."""
        if self._store is None or not self._held:
            return
        import pandas

        from lepaute.watch.store.tables import SIMULATIONS

        held, self._held = self._held, []
        frame = pandas.DataFrame(held, columns=list(SIMULATIONS.columns))
        for name, kind in SIMULATIONS.columns.items():
            if kind == "real":
                frame[name] = frame[name].astype("float64")
        self._store.add_simulations(frame)
        self._written_s = time.monotonic()


def _row(configuration: "Configuration", trial: Trial, simulated: Simulated) -> dict[str, object]:
    return {
        **{name: getattr(simulated, name) for name in Simulated.__slots__ if name != "notes"},
        "about": json.dumps(
            configuration.about
            | ({"drawn": trial.drawn} if trial.drawn else {})
            | ({"priced": trial.priced} if trial.priced else {})
            | ({"notes": dict(simulated.notes)} if simulated.notes else {}),
            sort_keys=True,
            separators=(",", ":"),
            default=str,
        ),
        "platform_sha256": configuration.conditions.platform_sha256,
        "seed": trial.seed,
        "repeat": trial.repeat,
        "version": __version__,
    }
