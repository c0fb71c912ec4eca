"""Application + platform -> predicted distribution of runs, by the native engine or by SMPI."""

import resource
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Sequence, Sized
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lepaute.errors import InputError, PredictionWarning
from lepaute.kit.numbers import of_type, plain, whole
from lepaute.kit.text import counted, without_figures
from lepaute.simulate.application import Application
from lepaute.simulate.conditions import Conditions, Fidelity, Layers, Transfer, at_lag, state_of
from lepaute.simulate.engine import Engine, SimulatedRun, Simulator
from lepaute.simulate.machine.mapping import Mapping
from lepaute.simulate.machine.population import on_its_day
from lepaute.simulate.platform.io import load_platform, override, setting_text
from lepaute.simulate.platform.schema import Platform
from lepaute.simulate.prediction.controls import controls_of, usual_runs
from lepaute.simulate.prediction.parts import RUNS as PART_RUNS
from lepaute.simulate.prediction.parts import parts_of, sampling_sd, sampling_warnings, simulators_of_parts
from lepaute.simulate.prediction.prediction import Prediction, Run, SimulationFigures
from lepaute.simulate.prediction.trust import (
    DRAWN,
    SEEDS,
    OutsideRanges,
    is_worth_drawing,
    outside_ranges,
    relative_sd,
    simulator_of_draws,
    trust_of,
)
from lepaute.simulate.prediction.warnings import idle_settings, warnings_of_run
from lepaute.simulate.tasks import Task, available_cores, run_tasks
from lepaute.simulate.tracing import TraceRequest
from lepaute.stats.control_variates import MIN_CONTROLLED, Controls
from lepaute.version import __version__

if TYPE_CHECKING:
    from lepaute.simulate.slow_state import SlowNodes

#: Of all combinations together; each takes a millisecond at least.
MAX_RUNS = 1_000_000
USUAL_MAPPING = {"mapping": "sequential"}
#: A run: place of its application, name of the part that it draws alone, number.
Key = tuple[int, str, int]
WHOLE = ""  # in the place of a part's name: all layers


@dataclass(frozen=True, kw_only=True)
class PredictionRequest:
    """How a prediction is made, whatever runs, on whatever platform; `predict` describes the fields."""

    runs: int | None = None
    seed: int = 1
    layers: Layers | None = None
    settings: MappingOf[str, str | float] | None = None
    applied: MappingOf[str, str] | None = None
    mapping: Mapping | None = None
    fidelity: Fidelity = "auto"
    trace: TraceRequest | None = None
    engine: Engine | None = None
    repeat: int = 0
    parts: bool = False
    transfer: Transfer | None = None
    lag_s: float | None = None
    state: str = "undisturbed"

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", whole(self.seed, "seed", 0, 2**63, "0 to 2^63 - 1"))
        object.__setattr__(self, "repeat", whole(self.repeat, "repeat", 0, 2**31, "0 to 2^31 - 1"))
        for name, value, type_ in (
            ("layers", self.layers, Layers),
            ("mapping", self.mapping, Mapping),
            ("trace", self.trace, TraceRequest),
        ):
            if value is not None:
                of_type(value, name, type_, f"a {type_.__name__} (from {type_.__module__})")
        if self.settings is not None:
            of_type(self.settings, "settings", MappingOf, 'fields and values, such as {"scale.bandwidth": "2"}')

    def conditions(
        self, platform: Platform, settings: MappingOf[str, str], trace: TraceRequest | None = None
    ) -> Conditions:
        """Those of the runs on a platform, of which these settings have other values."""
        machine, lag = at_lag(override(platform, settings) if settings else platform, self.lag_s)
        of_run = (self.layers or Layers(), self.mapping or Mapping(), self.fidelity, trace)
        applied = {**(self.applied or {}), **settings}
        return Conditions(machine, *of_run, applied, self.repeat, self.transfer, lag, state_of(self.state))


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
    InputError : an argument that cannot be, a run that does not fit on the platform, or one that the engine does not
        simulate
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
        layers=layers,
        settings=settings,
        applied=applied,
        mapping=mapping,
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

    Without their figures, so that a line that predicts many times tells each of them once: Python shows equal texts of
    a line once by default. Nothing where that is a line of this package: its commands print warnings themselves.
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
    engine, seed = request.engine or usual_engine(applications[0]), request.seed
    runs = usual_runs(applications, engine, request.fidelity) if request.runs is None else plain(request.runs)
    check_runs(applications, runs)
    if request.trace is not None and len(applications) > 1:
        raise InputError(f"a trace is of one combination, and there are {len(applications)}; shorten the lists")
    as_calibrated = load_platform(platform)
    changed = {field: setting_text(field, value) for field, value in (request.settings or {}).items()}
    conditions = request.conditions(as_calibrated, changed, request.trace)
    simulator = engine.on(conditions)
    priced = engine.samples and runs >= MIN_CONTROLLED
    costs = run_s or [application.on().events for application in applications]
    tasks: list[Task[Key, SimulatedRun]] = []
    for at, (application, cost) in enumerate(zip(applications, costs, strict=True)):
        simulator.prepare(application)
        tasks += [
            task_of(simulator, application, (at, WHOLE, run), cost, seed + run, priced=priced and run == 0)
            for run in range(runs)
        ]
        tasks += [
            task_of(of_part, application, (at, name, run), cost, seed + run)
            for name, of_part in (simulators_of_parts(application, engine, conditions) if request.parts else {}).items()
            for run in range(PART_RUNS)
        ]
    if simulator.parallel:
        finished = run_tasks(tasks, progress, clocked=run_s is not None)
    else:
        finished = {task.key: task.work() for task in tasks}
    runs_of = by_application(finished, len(applications))
    tasks.clear()  # of ten thousand runs, as large as their results
    finished.clear()
    doubtful = {
        at: (application, cost)
        for at, (application, cost) in enumerate(zip(applications, costs, strict=True))
        if is_worth_drawing(application, engine, outside_of(application, runs_of[at][WHOLE][0], conditions).share)
    }

    def time_without(at: int, others: MappingOf[str, str]) -> float:
        simulator = engine.on(request.conditions(as_calibrated, others))
        simulator.prepare(applications[at])
        return task_of(simulator, applications[at], (at, "idle", 0), costs[at], seed).work().time_s

    idle = idle_settings(changed, [runs_of[at][WHOLE][0].time_s for at in range(len(applications))], time_without)
    draws = [
        task_of(of_draws, application, (at, name, draw), cost, draw)
        for at, (application, cost) in doubtful.items()
        for name in DRAWN
        for of_draws in [simulator_of_draws(name, application, engine, conditions)]
        for draw in SEEDS
    ]
    drawn = by_application(run_tasks(draws), len(applications))
    seeds = range(seed, seed + runs)
    pricing = [
        Task(at, cost, partial(controls_of, application, simulator, conditions, seeds))
        for at, (application, cost) in enumerate(zip(applications, costs, strict=True))
    ]
    controls = run_tasks(pricing) if priced else {}
    return [
        prediction_of(
            application,
            conditions,
            simulator,
            runs_of[at].pop(WHOLE),
            runs_of[at] if request.parts else None,
            relative_sd(*([run.time_s for run in drawn[at][name]] for name in DRAWN)) if at in doubtful else None,
            idle,
            controls.get(at),
            partial(predict_again, application, conditions, replace(request, runs=runs, engine=engine)),
        )
        for at, application in enumerate(applications)
    ]


def predict_again(
    application: Application,
    conditions: Conditions,
    request: PredictionRequest,
    *,
    progress: Callable[[float], None] | None = None,
    engine: Engine | None = None,
) -> Prediction:
    """The same with the next `repeat`;  engine : another one than that of the request."""
    repeated = replace(request, trace=None, parts=False, repeat=request.repeat + 1, engine=engine or request.engine)
    # The platform of the conditions has the settings and the drift already.
    repeated = replace(repeated, settings=None, applied=conditions.settings, lag_s=None)
    (prediction,) = predict_all([application], conditions.platform, repeated, progress=progress)
    return prediction


def by_application(finished: MappingOf[Key, SimulatedRun], count: int) -> list[dict[str, list[SimulatedRun]]]:
    """The runs of each application by name, in the order of their numbers."""
    runs_of: list[dict[str, list[SimulatedRun]]] = [{} for _ in range(count)]
    for at, name, run in sorted(finished):
        runs_of[at].setdefault(name, []).append(finished[at, name, run])
    return runs_of


def task_of(
    simulator: Simulator, application: Application, key: Key, cost: float, seed: int, *, priced: bool = False
) -> Task[Key, SimulatedRun]:
    """The run with `seed`, to be done; the first one of all is traced or shown."""
    progress = simulator.progress_of(application)
    first = key == (0, WHOLE, 0)
    work = partial(simulator.run, application, seed, first=first, progress=progress, priced=priced)
    if key[2]:  # without what is told of the first one alone, and takes ten times the memory of the rest
        return Task(key, cost, lambda: replace(work(), kernels={}, message_use=None, breakdown=None), progress)
    return Task(key, cost, work, progress)


def check_runs(applications: Sized, runs: int) -> None:
    """Raises InputError where the number of runs of each application cannot be."""
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
    """Seconds that one core takes to simulate a run of each; None where all runs together are quick, or nobody knows.

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


def prediction_of(
    application: Application,
    conditions: Conditions,
    simulator: Simulator,
    runs: Sequence[SimulatedRun],
    runs_of_parts: dict[str, list[SimulatedRun]] | None,
    extrapolation_sd: float | None = None,
    further_warnings: Sequence[str] = (),
    controls: Controls | None = None,
    again: "Callable[..., Prediction] | None" = None,
) -> Prediction:
    """The prediction that the runs of one application make together; runs_of_parts : that draw one layer alone each.

    extrapolation_sd : relative standard deviation of the time by errors of extrapolated kernels; None: not known
    """
    platform, first = conditions.platform, runs[0]
    if first.time_s <= 0.0:
        raise InputError(f"{application.title}: a run takes no time: its ranks compute nothing and move no message")
    place = (platform, application.ranks, application.threads_per_rank)
    ranks_on_node = Counter(core // platform.nodes.cores for core in conditions.mapping.cores(*place))
    outside = outside_of(application, first, conditions)
    trust = trust_of(outside, extrapolation_sd)
    mapping = conditions.mapping.to_dict(*place)
    slow = slow_nodes(platform, ranks_on_node, application.threads_per_rank)

    def run_of(run: SimulatedRun) -> Run:
        factor = 1.0 if conditions.transfer is None else conditions.transfer.factor(run.seed, application)
        undisturbed = scaled(run, factor)
        if slow is None or conditions.state != "any":
            return undisturbed
        slowed_s = slow.slowed_s(undisturbed.time_s, run.seed, conditions.run_seed(run.seed))
        return replace(scaled(run, factor * (slowed_s / undisturbed.time_s)), undisturbed=undisturbed)

    def scaled(run: SimulatedRun, factor: float) -> Run:
        time_s, computing_s, energy = run.time_s * factor, run.computing_s * factor, None
        if simulator.tells_energy and platform.power is not None:
            energy = platform.power.energy_j(
                platform.nodes.cores,
                time_s=time_s,
                nodes=len(ranks_on_node),
                computing_core_s=application.threads_per_rank * computing_s,
                # All that is not computing: a rank inside MPI polls, on one core, and one that has ended waits there.
                communicating_core_s=max(0.0, application.ranks * time_s - computing_s),
            )
        rate = None if application.rate is None else application.rate.of(application, time_s)
        details = {name: getattr(run.emulated, name) for name in application.about.run_details}
        return Run(run.seed, time_s, rate, energy, details)

    return Prediction(
        application=application,
        platform_name=platform.name,
        platform_sha256=conditions.platform_sha256,
        seed=first.seed,
        run_list=tuple(map(run_of, runs)),
        fidelity=simulator.fidelity(first),
        warnings=(
            *warnings_of_run(application, platform, first, max(ranks_on_node.values())),
            *(conditions.lag.warnings if conditions.lag is not None and application.on().kernels.modelled else []),
            *simulator.warnings(first),
            *sampling_warnings(runs),
            *trust.warnings,
            *further_warnings,
            *(
                ["the platform has no slow state: any run is an undisturbed one"]
                * (conditions.state == "any" and not slow)
            ),
        ),
        simulation=figures_of(runs),
        settings=dict(conditions.settings),
        version=__version__,
        mapping={} if mapping == USUAL_MAPPING and not application.about.names_mapping else mapping,
        nodes=len(ranks_on_node),
        sampling_sd=sampling_sd(runs),
        outside=outside,
        trust=trust,
        parts=None
        if runs_of_parts is None
        else parts_of(application, conditions, simulator, runs_of_parts, sampling_sd(runs)),
        controls=controls,
        first=first,
        conditions=conditions,
        slow=slow,
        once_more=again,
    )


def slow_nodes(platform: Platform, ranks_on_node: MappingOf[int, int], threads: int) -> "SlowNodes | None":
    """The nodes on which enough cores compute for the slow state; None where the platform has none."""
    if (state := platform.slow_state) is None:
        return None
    from lepaute.simulate.slow_state import SlowNodes

    count = sum(ranks * threads >= (state.least_busy_cores or 1) for ranks in ranks_on_node.values())
    errors = (state.share_error / (1.0 - state.share), state.length_error, state.factor_error)
    return SlowNodes(count, state.share, state.length_s, state.factor, state.factor_relative_sd, errors)


def outside_of(application: Application, run: SimulatedRun, conditions: Conditions) -> OutsideRanges:
    """What a run computed outside of the fitted ranges; models that were drawn anew for it have none."""
    platform = conditions.platform
    return outside_ranges(
        run.kernels,
        on_its_day(platform, run.seed, days=conditions.layers.days) if application.on().kernels.modelled else platform,
        run.computing_s,
        messages=run.message_use,
        messages_s=run.messages_s,
        moving_s=run.moving * application.ranks * run.whole_s,
    )


def figures_of(runs: Sequence[SimulatedRun]) -> SimulationFigures:
    emulated = [run.emulated for run in runs if run.emulated is not None]
    own_peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return SimulationFigures(
        wall_s=max(run.ended_s for run in runs) - min(run.began_s for run in runs),
        peak_rss_bytes=max((run.peak_rss_bytes for run in emulated), default=own_peak_bytes),
        engine_bytes=max(run.engine_bytes for run in runs),
        messages=runs[0].messages,
        cpu_s=sum(run.cpu_s for run in emulated) if emulated else None,
        folded_bytes=emulated[0].folded_bytes if emulated else None,
    )


def usual_engine(application: Application) -> Engine:
    """What simulates `application` unless another engine is asked for."""
    if application.about.core:
        from lepaute.simulate.native import Native

        return Native()
    from lepaute.simulate.smpi.emulate import Smpi

    return Smpi()
