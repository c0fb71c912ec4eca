"""Application + platform -> predicted distribution of runs, by the native engine or by SMPI."""

import sys
import warnings
from collections.abc import Callable, Sequence, Sized
from collections.abc import Mapping as MappingOf
from dataclasses import replace
from functools import partial
from pathlib import Path

from lepaute.errors import InputError, PredictionWarning
from lepaute.kit.numbers import of_type, plain, whole
from lepaute.kit.text import counted, without_figures
from lepaute.simulate.application import Application
from lepaute.simulate.conditions import Conditions, Fidelity, Layers, Transfer, layers_of
from lepaute.simulate.engine import Engine, SimulatedRun, Simulator
from lepaute.simulate.machine.mapping import Mapping
from lepaute.simulate.platform.io import load_platform
from lepaute.simulate.platform.schema import Platform
from lepaute.simulate.prediction.assembling import outside_of, prediction_of
from lepaute.simulate.prediction.controls import controls_of, usual_runs
from lepaute.simulate.prediction.parts import RUNS as PART_RUNS
from lepaute.simulate.prediction.parts import simulators_of_parts
from lepaute.simulate.prediction.prediction import Prediction
from lepaute.simulate.prediction.request import PredictionRequest
from lepaute.simulate.prediction.trust import DRAWN, MIN_OUTSIDE, SEEDS, relative_sd, simulator_of_draws
from lepaute.simulate.prediction.warnings import idle_settings
from lepaute.simulate.tasks import Task, available_cores, run_tasks
from lepaute.simulate.tracing import TraceRequest
from lepaute.stats.control_variates import MIN_CONTROLLED, Controls

#: Most runs of all combinations together; each takes a millisecond at least.
MAX_RUNS = 1_000_000
#: A run: place of its application, name of the part that it draws alone, number.
Key = tuple[int, str, int]
WHOLE = ""  # in the place of a part's name: all layers


def predict(
    application: Application,
    platform: Platform | str | Path,
    *,
    runs: int | None = None,
    seed: int = 1,
    layers: Layers | None = None,
    settings: MappingOf[str, str | float] | None = None,
    applied: MappingOf[str, str] | None = None,
    mapping: Mapping | None = None,
    fidelity: Fidelity = "auto",
    trace: TraceRequest | None = None,
    engine: Engine | None = None,
    repeat: int = 0,
    progress: Callable[[float], None] | None = None,
    parts: bool = False,
    transfer: Transfer | None = None,
    lag_s: float | None = None,
    state: str = "undisturbed",
) -> Prediction:
    """How long one application will take on a platform: `runs` simulated runs, their mean and 95 % interval.

    Run i uses seed + i. The result is the same bit for bit, whatever the number of threads. What a reader of it must
    know is in `Prediction.warnings`, and raised by `warnings` as a `lepaute.PredictionWarning`.

    Parameters
    ----------
    application : what runs: `lepaute.Hpl`, `lepaute.Stencil`, or `lepaute.Program` of one's own code
    platform : where: a `Platform`, the name of a shipped one ("dahu"), or a YAML file
    runs : number of simulated runs; unless given 12 to 100, as many as are quick, and 10 of an emulated program
    seed : of the first run, from 0
    layers : of uncertainty that are drawn; all unless given
    settings : fields of the platform and knobs with other values, as `lepaute.override` takes them, such as
        {"scale.bandwidth": 2}; one that changes no time is named in a warning
    applied : such settings that the platform has already, recorded in the result
    mapping : ranks to cores; the first nodes one after the other unless given
    fidelity : "full" simulates every step, "sampled" windows of them, "auto" samples long runs of HPL
    trace : ranks and steps of the first run to trace, for `Prediction.trace`
    engine : what simulates; `simulate.native.Native()` or `simulate.smpi.emulate.Smpi()`, chosen by the application
    repeat : which of several runs on the same machines and days, from 0: they differ in their noise alone
    progress : called with the share of the runs done, from 0 to 1
    parts : whether to tell what the half-width is made of (`Prediction.parts`), which takes ten further runs a layer
    transfer : a layer learnt from other studies (`simulate.conditions.read_transfer`); none unless given
    lag_s : seconds between the calibration and the run, over which the machine drifts; unless given, the run is one
        within the time that the calibration took
    state : which runs times, rates and energy are of: "undisturbed", or "any", which may meet the slow state of the
        machine; `Prediction.any` is of these in both

    Returns
    -------
    A `Prediction`: `time_s` in seconds, `rate` in the unit of the application, `energy_j` in joules, each with mean,
    low and high; `to_frame()` has a row a run.

    Raises
    ------
    InputError : an argument that cannot be, a run that does not fit on the platform or is not simulated
    SimulationError : a deadlock

    Examples
    --------
    >>> import lepaute as lp
    >>> found = lp.predict(lp.Hpl(n=20_000, nb=128, p=4, q=4), "dahu", runs=10)
    >>> found.time_s.low < found.time_s.mean < found.time_s.high
    True
    """
    request = PredictionRequest(
        runs=runs,
        seed=seed,
        layers=Layers() if layers is None else layers,
        settings=settings,
        applied=applied,
        mapping=Mapping() if mapping is None else mapping,
        fidelity=fidelity,
        trace=trace,
        engine=engine,
        repeat=repeat,
        parts=parts,
        transfer=transfer,
        lag_s=lag_s,
        state=state,
    )
    (prediction,) = predict_all([application], platform, request, progress=progress)
    raise_warnings(prediction)
    return prediction


def raise_warnings(prediction: Prediction) -> None:
    """Raises the warnings of a prediction by `warnings`, at the line that called the function that calls this one.

    Without their figures, so that each is told once a process (`errors`). Nothing where that is a line of this package:
    its commands print warnings themselves.
    """
    if str(sys._getframe(2).f_globals.get("__name__", "")).startswith("lepaute."):  # noqa: SLF001
        return
    for text in prediction.warnings:
        about = without_figures(text)
        figures = "" if about == text else " (figures in Prediction.warnings)"
        warnings.warn(f"{about}{figures}", PredictionWarning, stacklevel=3)


def predict_all(
    applications: Sequence[Application],
    platform: Platform | str | Path,
    request: PredictionRequest,
    *,
    progress: Callable[[float], None] | None = None,
    run_s: Sequence[float] | None = None,
) -> list[Prediction]:
    """Predicts each of `applications`, as `predict` does, in their order; all (application, run) pairs share the cores.

    run_s : seconds that a run of each is expected to take: the longest start first, and progress counts them; without,
        the number of events stands for them
    """
    for application in applications:
        _check_application(application)
    batch = _Batch(applications, platform, request, run_s)
    runs_of = batch.simulate(progress)
    extrapolation_sds, idle = batch.extrapolation_sds(runs_of), batch.idle_settings(runs_of)
    controls = batch.controls()
    return [
        prediction_of(
            application,
            batch.conditions,
            batch.simulator,
            runs_of[at].pop(WHOLE),
            runs_of[at] if request.parts else None,
            extrapolation_sds.get(at),
            idle,
            controls.get(at),
            batch.request,
        )
        for at, application in enumerate(applications)
    ]


class _Batch:
    """Applications that are predicted together: the first one chooses engine and runs where the request does not."""

    def __init__(
        self,
        applications: Sequence[Application],
        platform: Platform | str | Path,
        request: PredictionRequest,
        run_s: Sequence[float] | None,
    ) -> None:
        self.applications, self.engine = applications, request.engine or usual_engine(applications[0])
        usual = request.runs is None
        self.runs = usual_runs(applications, self.engine, request.simulated_fidelity) if usual else plain(request.runs)
        check_runs(applications, self.runs)
        if request.trace is not None and len(applications) > 1:
            raise InputError(f"a trace is of one combination, and there are {len(applications)}; shorten the lists")
        self.request = replace(request, engine=self.engine, runs=self.runs)
        self.platform = load_platform(platform)
        self.conditions = request.conditions(self.platform)
        self.simulator = self.engine.on(self.conditions)
        self.priced = self.engine.samples and self.runs >= MIN_CONTROLLED
        self.costs, self.clocked = run_s or [application.on().events for application in applications], run_s is not None

    def simulate(self, progress: Callable[[float], None] | None) -> list[dict[str, list[SimulatedRun]]]:
        """The runs of each application by the part of the interval that they draw alone."""
        tasks, seed = [], self.request.seed
        for at, application in enumerate(self.applications):
            self.simulator.prepare(application)
            tasks += [
                self._task(self.simulator, (at, WHOLE, run), seed + run, priced=self.priced and run == 0)
                for run in range(self.runs)
            ]
            parts = simulators_of_parts(application, self.engine, self.conditions) if self.request.parts else {}
            tasks += [
                self._task(of_part, (at, name, run), seed + run)
                for name, of_part in parts.items()
                for run in range(PART_RUNS)
            ]
        if self.simulator.parallel:
            return self._by_application(run_tasks(tasks, progress, clocked=self.clocked))
        finished: dict[Key, SimulatedRun] = {}
        for task in tasks:
            finished[task.key] = task.work()
            if progress is not None:
                progress(sum(task.cost for task in tasks[: len(finished)]) / sum(task.cost for task in tasks))
        return self._by_application(finished)

    def extrapolation_sds(self, runs_of: Sequence[MappingOf[str, Sequence[SimulatedRun]]]) -> dict[int, float]:
        """Relative standard deviation of the time by errors of extrapolated kernels, by place of the application."""
        doubtful = [
            at
            for at, application in enumerate(self.applications)
            for outside in [outside_of(application, runs_of[at][WHOLE][0], self.conditions)]
            if outside.share >= MIN_OUTSIDE
            and self.engine.samples
            and "extrapolation" in layers_of(self.conditions.platform, application)
        ]
        tasks = [
            self._task(simulator, (at, name, draw), draw)
            for at in doubtful
            for name in DRAWN
            for simulator in [simulator_of_draws(name, self.applications[at], self.engine, self.conditions)]
            for draw in SEEDS
        ]
        drawn = self._by_application(run_tasks(tasks))
        return {at: relative_sd(*([run.time_s for run in drawn[at][name]] for name in DRAWN)) for at in doubtful}

    def idle_settings(self, runs_of: Sequence[MappingOf[str, Sequence[SimulatedRun]]]) -> tuple[str, ...]:
        """A warning for each setting that changes no time."""

        def time_without(at: int, others: MappingOf[str, str]) -> float:
            fewer = replace(self.request, settings=others, trace=None)
            simulator = self.engine.on(fewer.conditions(self.platform))
            simulator.prepare(self.applications[at])
            return self._task(simulator, (at, "idle", 0), fewer.seed).work().time_s

        return idle_settings(self.request.changed, [runs[WHOLE][0].time_s for runs in runs_of], time_without)

    def controls(self) -> dict[int, Controls | None]:
        """Control variates of the runs, by place of the application; none where no run was priced."""
        seeds = range(self.request.seed, self.request.seed + self.runs)
        tasks = [
            Task(at, cost, partial(controls_of, application, self.simulator, self.conditions, seeds))
            for at, (application, cost) in enumerate(zip(self.applications, self.costs, strict=True))
        ]
        return run_tasks(tasks) if self.priced else {}

    def _task(self, simulator: Simulator, key: Key, seed: int, *, priced: bool = False) -> Task[Key, SimulatedRun]:
        """The run with `seed`, to be done; the first one of all is traced or shown."""
        at, _, number = key
        application, cost = self.applications[at], self.costs[at]
        progress = simulator.progress_of(application)
        work = partial(simulator.run, application, seed, first=key == (0, WHOLE, 0), progress=progress, priced=priced)
        if number:  # without what is told of the first one alone, and takes ten times the memory of the rest
            return Task(key, cost, lambda: replace(work(), kernels={}, message_use=None, breakdown=None), progress)
        return Task(key, cost, work, progress)

    def _by_application(self, finished: MappingOf[Key, SimulatedRun]) -> list[dict[str, list[SimulatedRun]]]:
        """The runs of each application by name, in the order of their numbers."""
        runs_of: list[dict[str, list[SimulatedRun]]] = [{} for _ in self.applications]
        for at, name, run in sorted(finished):
            runs_of[at].setdefault(name, []).append(finished[at, name, run])
        return runs_of


def repeated(prediction: Prediction, progress: Callable[[float], None] | None = None) -> Prediction:
    """The same runs with other noise, as a second real run of a day has, simulated at the first call; the prediction
    itself where it has no request."""
    request, conditions = prediction.request, prediction.conditions
    if request is None or conditions is None:
        return prediction
    if "_repeated" not in vars(prediction):
        # The platform of the conditions has the settings and the drift already.
        again = request.like(conditions.settings, repeat=request.repeat + 1, lag_s=None)
        (vars(prediction)["_repeated"],) = predict_all(
            [prediction.application], conditions.platform, again, progress=progress
        )
    again_with_other_noise: Prediction = vars(prediction)["_repeated"]
    return again_with_other_noise


def check_runs(applications: Sized, runs: int) -> None:
    """Raises InputError if the number of runs of each application cannot be."""
    if type(runs) is not int or runs < 1:
        raise InputError(f"runs is {runs!r:.80}; at least one run is simulated")
    if runs * len(applications) > MAX_RUNS:
        raise InputError(
            f"runs is {runs} of {counted(len(applications), 'combination')}; together they are at most {MAX_RUNS}"
        )


def simulate_one(
    application: Application,
    platform: Platform | str | Path,
    seed: int = 1,
    *,
    layers: Layers | None = None,
    mapping: Mapping | None = None,
    fidelity: Fidelity = "auto",
    trace: TraceRequest | None = None,
    engine: Engine | None = None,
) -> SimulatedRun:
    """One run: what `predict` simulates for this seed. It takes and returns values that can be sent to another process.

    Parameters
    ----------
    application, platform, layers, mapping, fidelity, trace, engine : as those of `predict`
    seed : of the run, from 0

    Returns
    -------
    A `SimulatedRun`: `time_s` in seconds, use of kernels and messages, where the time went

    Raises
    ------
    InputError, SimulationError : as `predict`

    Examples
    --------
    >>> import lepaute as lp
    >>> hpl = lp.Hpl(n=2000, p=2, q=2)
    >>> lp.simulate_one(hpl, "dahu", seed=1).time_s == lp.predict(hpl, "dahu", runs=1).run_list[0].time_s
    True
    """
    _check_application(application)
    seed = whole(seed, "seed", 0, 2**63, "0 to 2^63 - 1")
    conditions = Conditions(load_platform(platform), layers or Layers(), mapping or Mapping(), fidelity, trace)
    simulator = (engine or usual_engine(application)).on(conditions)
    simulator.prepare(application)
    return simulator.run(application, seed, first=True)


def expected_run_s(
    applications: Sequence[Application],
    platform: Platform,
    *,
    runs: int,
    mapping: Mapping | None = None,
    fidelity: Fidelity = "auto",
) -> list[float] | None:
    """Seconds that one core takes to simulate a run of each; None if all runs together are quick, or nobody knows.

    Some steps are simulated for it by the native engine, in a tenth of a second, up to two where it is long. Raises
    InputError for what cannot be.
    """
    from lepaute.simulate.native import Native

    check_runs(applications, runs)
    simulator = Native().on(Conditions(platform, mapping=mapping or Mapping()))
    for application in applications:
        simulator.prepare(application)
    return applications[0].on().estimated_run_s(applications, runs, available_cores(), simulator.measure, fidelity)


def _check_application(application: object) -> None:
    of_type(application, "application", Application, "one, such as lepaute.Hpl(n=20_000, nb=128, p=4, q=4)")


def usual_engine(application: Application) -> Engine:
    """Engine that simulates `application` unless another one is asked for."""
    if application.about.core:
        from lepaute.simulate.native import Native

        return Native()
    from lepaute.simulate.smpi.emulate import Smpi

    return Smpi()
