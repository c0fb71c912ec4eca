"""The native engine: applications written against the core."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import fsum
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import ref

from lepaute import _core
from lepaute.errors import InputError, SimulationError
from lepaute.kit.text import significant, size_text
from lepaute.simulate.behaviour import Behaviour
from lepaute.simulate.engine import MESSAGES, KernelUse, MessageUse, Sampling, SimulatedRun, Sizes
from lepaute.simulate.machine.core import machine_of
from lepaute.simulate.machine.groups import group_computing_s
from lepaute.simulate.machine.memory import check_memory
from lepaute.simulate.machine.population import on_its_day
from lepaute.simulate.platform.schema import Platform
from lepaute.simulate.tasks import Task, available_cores, run_tasks
from lepaute.simulate.tracing import TraceRequest, breakdown_of_run, nodes_of, trace_of_run
from lepaute.version import __version__

if TYPE_CHECKING:
    from lepaute.simulate.application import Application
    from lepaute.simulate.conditions import Conditions

#: Categories of a rank's time in which messages move; the others are computing and waiting.
MOVING = ("overhead", "transfer", "contention")
#: Share of the time of messages; below it, an extrapolation is not worth a sentence.
SMALL_SHARE = 0.005


@dataclass(frozen=True)
class Native:
    """The native engine; it has no options."""

    samples: ClassVar[bool] = True

    def on(self, conditions: "Conditions") -> "NativeSimulator":
        return NativeSimulator(conditions)


class RunProgress:
    """How far one run has come; any thread may look, or cancel it."""

    __slots__ = ("_behaviour", "_sampled", "core")

    def __init__(self, behaviour: "Behaviour", *, sampled: bool) -> None:
        self.core = _core.Progress()
        self._behaviour, self._sampled = behaviour, sampled

    def share_done(self) -> float:
        """From 0 to 1, weighted by the cost of what is done."""
        return self._behaviour.share_done(self.core.begun_steps, sampled=self._sampled)

    def cancel(self) -> None:
        """The run ends soon, with SimulationError."""
        self.core.cancel()


class NativeSimulator:
    """The native engine under fixed conditions: what is made of the platform is made once, for all runs."""

    parallel = True
    tells_energy = True

    def __init__(self, conditions: "Conditions") -> None:
        self._conditions = conditions
        self._layers = conditions.layers.to_core()
        self._cores: dict[tuple[int, int], list[int]] = {}
        self._priced: dict[Application, _core.SharedDraws] = {}
        self._lock = Lock()

    def prepare(self, application: "Application") -> None:
        fidelity = self._conditions.fidelity
        if not application.about.core:
            raise InputError(f"{application.name} has no native form; emulate it by SMPI")
        if fidelity not in application.about.fidelities:
            raise InputError(f"fidelity is {fidelity!r}; it is one of {', '.join(application.about.fidelities)}")
        if self._conditions.trace is not None:
            self._conditions.trace.check(application)
        check_memory(application, self._conditions.platform, self._core_of_rank(application))
        self._machine(application)

    def progress_of(self, application: "Application") -> RunProgress:
        return RunProgress(self._behaviour_of(application), sampled=self._is_sampled(application))

    def run(
        self,
        application: "Application",
        seed: int,
        *,
        first: bool,
        progress: RunProgress | None = None,
        priced: bool = False,
    ) -> SimulatedRun:
        conditions = self._conditions
        behaviour = self._behaviour_of(application)
        began_s = time.perf_counter()
        machine, cores = self._machine_of(application, seed), self._core_of_rank(application)
        if priced:
            machine = machine.copy()
            machine.network.counts_all_sizes = True
        trace = conditions.trace if first else None
        try:
            result = simulate(
                behaviour,
                machine,
                self._layers,
                cores,
                seed,
                sampled=self._is_sampled(application),
                trace=trace,
                run_seed=conditions.run_seed(seed),
                progress=None if progress is None else progress.core,
            )
        except InputError as error:
            raise InputError(f"{error}; platform {conditions.platform.name}, {application.label} ranks") from error
        except RuntimeError as error:
            raise SimulationError(f"{error}; platform {conditions.platform.name}, {application.label} ranks") from error
        if priced:
            run_seed = conditions.run_seed(seed)
            self._priced[application] = _core.SharedDraws(result, machine, self._layers, cores, seed, run_seed)
        run = _simulated_run(result, behaviour, seed, began_s)
        if conditions.platform.groups is not None:
            of_ranks_s = run.breakdown.by_rank_s[:, 0].tolist() if run.breakdown else []  # the first of CATEGORIES
            sums_s = group_computing_s(conditions.platform, cores, of_ranks_s, run.computing_s)
            run = replace(run, group_computing_s=sums_s)
        if trace is None:
            return run
        return replace(run, trace=trace_of_run(result, self._metadata(application, seed, cores)))

    def effects(self, application: "Application", seeds: Sequence[int]) -> list[list[float]] | None:
        draws, run_seed = self._priced.get(application), self._conditions.run_seed
        if draws is None:
            return None
        if not self._draws_population(application):
            machine, pairs = self._machine(application), [(seed, run_seed(seed)) for seed in seeds]
            size = -(-len(pairs) // available_cores())
            parts = [pairs[at : at + size] for at in range(0, len(pairs), size)]
            done = run_tasks([Task(at, 1.0, partial(draws.effects, machine, part)) for at, part in enumerate(parts)])
            return [effect for at in range(len(parts)) for effect in done[at]]
        return [draws.effects(self._machine_of(application, seed), [(seed, run_seed(seed))])[0] for seed in seeds]

    def measure(self, application: "Application", trial_steps: int = 0) -> float:
        """Seconds of one core that a run takes; of this many steps of it."""
        behaviour, machine = self._behaviour_of(application), self._machine(application)
        cores = self._core_of_rank(application)
        began_s = time.thread_time()
        simulate(behaviour, machine, self._layers, cores, 1, trial_steps=trial_steps)
        return time.thread_time() - began_s

    def fidelity(self, run: SimulatedRun) -> str:
        return "full" if run.sampling is None else "sampled"

    def warnings(self, run: SimulatedRun) -> list[str]:
        return _message_warnings(run.message_use or ())

    def _is_sampled(self, application: "Application") -> bool:
        traced = self._conditions.trace is not None
        return self._behaviour_of(application).is_sampled(self._conditions.fidelity, traced=traced)

    def _behaviour_of(self, application: "Application") -> "Behaviour":
        return application.on(self._conditions.platform)

    def _draws_population(self, application: "Application") -> bool:
        return self._conditions.draws_population and self._behaviour_of(application).kernels.modelled

    def _machine(self, application: "Application") -> _core.Machine:
        threads, kernels = application.threads_per_rank, self._conditions.platform.kernels
        if kernels and not self._behaviour_of(application).kernels.modelled:
            threads = kernels[0].threads  # none of them is called: any will do
        return shared_machine(application, self._conditions.platform, threads)

    def _machine_of(self, application: "Application", seed: int) -> _core.Machine:
        if not self._draws_population(application):
            return self._machine(application)
        return _machine_for(application, on_its_day(self._conditions.platform, seed), application.threads_per_rank)

    def _core_of_rank(self, application: "Application") -> list[int]:
        shape = (application.ranks, application.threads_per_rank)
        with self._lock:
            if shape not in self._cores:
                self._cores[shape] = self._conditions.mapping.cores(self._conditions.platform, *shape)
            return self._cores[shape]

    def _metadata(self, application: "Application", seed: int, cores: list[int]) -> dict[str, Any]:
        conditions = self._conditions
        platform = conditions.platform
        mapping = conditions.mapping.to_dict(platform, application.ranks, application.threads_per_rank)
        settings = {"set": dict(conditions.settings)} if conditions.settings else {}
        return {
            "application": application.name,
            "parameters": application.parameters() | mapping | settings | conditions.choices,
            "platform": platform.name,
            "platform_sha256": platform.sha256,
            "seed": seed,
            "ranks": application.ranks,
            **nodes_of(platform, cores),
            "version": __version__,
        }


#: By id of a platform: the platform, and what has been made of it, by threads of a rank and kernels of applications.
_MACHINES: dict[int, tuple["ref[Platform]", dict[tuple[int, Any], _core.Machine]]] = {}
_making = Lock()


def shared_machine(application: "Application", platform: "Platform", threads: int) -> _core.Machine:
    """`_machine_for`, made once as long as the platform lives; nobody may change it."""
    with _making:
        known = _MACHINES.get(id(platform))
        if known is None or known[0]() is not platform:
            known = _MACHINES[id(platform)] = (ref(platform, partial(_forget, id(platform))), {})
        key = (threads, application.on(platform).kernels.costs)
        if key not in known[1]:
            known[1][key] = _machine_for(application, platform, threads)
        return known[1][key]


def _machine_for(application: "Application", platform: "Platform", threads: int) -> _core.Machine:
    """The machine of the platform, with the kernels that the application has of its own."""
    machine, own = machine_of(platform, threads), application.on(platform).kernels.make()
    if own:
        machine.kernels = [*machine.kernels, *own]
    return machine


def _forget(number: int, gone: "ref[Platform]") -> None:
    """Drops what was made of a platform that is no more; its id may be another one's already."""
    if number in _MACHINES and _MACHINES[number][0] is gone:
        del _MACHINES[number]


def simulate(
    behaviour: "Behaviour",
    machine: _core.Machine,
    layers: _core.Layers,
    core_of_rank: Sequence[int],
    seed: int,
    *,
    sampled: bool = False,
    trace: "TraceRequest | None" = None,
    run_seed: int | None = None,
    progress: _core.Progress | None = None,
    trial_steps: int = 0,
) -> _core.RunResult:
    """One run by the core; run_seed: another one on the machine and day of `seed`.

    progress : tells other threads how far it is;  trial_steps : as for Behaviour.core_parameters()
    Raises RuntimeError as the core does, and InputError for what it does not take.
    """
    chosen = (None, None) if trace is None else trace.to_core(behaviour.application.ranks)
    of_run = seed if run_seed is None else run_seed
    if "collectives" in behaviour.draws and not layers.collectives:
        of_run = 1
    parameters = behaviour.core_parameters(sampled=sampled, trial_steps=trial_steps, seed=of_run)
    program: Any = getattr(_core, f"simulate_{behaviour.application.about.core}")
    try:
        result: _core.RunResult = program(parameters, machine, layers, core_of_rank, seed, *chosen, run_seed, progress)
    except ValueError as error:
        raise InputError(str(error)) from error
    return result


def _simulated_run(result: _core.RunResult, behaviour: "Behaviour", seed: int, began_s: float) -> SimulatedRun:
    application = behaviour.application
    breakdown = breakdown_of_run(result, application.ranks)
    sampling, extrapolated = None, behaviour.kernels.extrapolated
    if (simulated_steps := getattr(result, "simulated_steps", application.steps)) < application.steps:
        sampling = Sampling(simulated_steps, application.steps, tuple(getattr(result, "sampling_changes_s", ())))
    waiting_share = result.waiting_s / max(application.ranks * result.time_s, 1e-300)
    return SimulatedRun(
        seed,
        result.time_s,
        result.time_s,
        *(result.messages, result.engine_bytes, result.computing_s, result.waiting_s),
        moving=fsum(breakdown.shares[name] for name in MOVING) if behaviour.kernels.modelled else waiting_share,
        kernels={
            name: KernelUse(
                use.calls,
                use.time_s,
                use.unmodelled_calls,
                use.clipped_means,
                use.time_s if name in extrapolated else use.extrapolated_time_s,
                _sizes(use.outside_low),
                _sizes(use.outside_high),
            )
            for name, use in result.kernels.items()
            if use.calls or use.unmodelled_calls
        },
        message_use=message_use(behaviour.platform, result.message_use),
        messages_s=fsum(use.time_s for use in result.message_use.values()),
        sampling=sampling,
        breakdown=breakdown,
        began_s=began_s,
        ended_s=time.perf_counter(),
    )


def _sizes(size: Any) -> Sizes:
    return Sizes(size.m, size.n, size.k)


def message_use(platform: "Platform", counted: "Mapping[str, _core.MessageUse]") -> tuple[MessageUse, ...]:
    """The classes of links that sent messages and whose fitted sizes are known; counted is by class of links."""
    uses = []
    for link, use in counted.items():
        fitted = platform.network.fitted_sizes[link]
        if fitted is None or not use.messages:
            continue
        sizes = (use.outside_low_bytes, use.outside_high_bytes) if use.outside_messages > 0 else (None, None)
        outside = (use.outside_messages, use.outside_bytes, use.outside_time_s, *sizes)
        uses.append(MessageUse(link, fitted, use.messages, use.bytes, use.time_s, *outside))
    return tuple(uses)


def _message_warnings(uses: Sequence[MessageUse]) -> list[str]:
    """A sentence for each class of links with a noticeable share of its time outside the fitted sizes."""
    total_s = fsum(use.time_s for use in uses)
    warnings = []
    for use in uses:
        if use.outside_from_bytes is None or use.outside_to_bytes is None:
            continue
        if use.outside_time_s <= max(SMALL_SHARE * use.time_s, 0.1 * SMALL_SHARE * total_s):
            continue
        share = 100.0 * use.outside_time_s / use.time_s
        met, fitted = (
            f"{size_text(low)} to {size_text(high)}"
            for low, high in ((use.outside_from_bytes, use.outside_to_bytes), use.fitted_bytes)
        )
        warnings.append(
            f"{significant(share, 2)} % of the time of {MESSAGES[use.link]} is of sizes outside the fitted ones: "
            f"{met}, fitted from {fitted}"
        )
    return warnings
