"""The native engine: applications written against the core."""

import time
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar

from lepaute import _core
from lepaute.errors import InputError, LepauteError, SimulationError
from lepaute.simulate.fidelity import check_fidelity
from lepaute.simulate.machine import machine_of
from lepaute.simulate.message_use import message_use, message_warnings
from lepaute.simulate.population import on_its_day
from lepaute.simulate.run import KernelUse, Sampling, SimulatedRun, Sizes
from lepaute.simulate.tracing import breakdown_of_run, nodes_of, trace_of_run
from lepaute.version import __version__

if TYPE_CHECKING:
    from lepaute.platform.schema import Platform
    from lepaute.simulate.application import Application
    from lepaute.simulate.conditions import Conditions

#: Categories of a rank's time in which messages move; the others are computing and waiting.
MOVING = ("overhead", "transfer", "contention")


@dataclass(frozen=True)
class Native:
    """The native engine; it has no options."""

    samples: ClassVar[bool] = True

    def on(self, conditions: "Conditions") -> "NativeSimulator":
        return NativeSimulator(conditions)


class RunProgress:
    """How far one run has come; any thread may look, or cancel it."""

    def __init__(self, application: "Application", *, sampled: bool) -> None:
        self.core = _core.Progress()
        self._application, self._sampled = application, sampled

    def share_done(self) -> float:
        """From 0 to 1, weighted by the cost of what is done."""
        return self._application.share_done(self.core.begun_steps, sampled=self._sampled)

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
        self._machines: dict[int, _core.Machine] = {}
        self._cores: dict[tuple[int, int], list[int]] = {}
        self._lock = Lock()

    def prepare(self, application: "Application") -> None:
        if not application.native:
            raise InputError(f"{application.name} has no native form; emulate it by SMPI")
        check_fidelity(application, self._conditions.fidelity)
        if self._conditions.trace is not None:
            self._conditions.trace.check(application)
        self._machine(application)
        self._core_of_rank(application)

    def progress_of(self, application: "Application") -> RunProgress:
        return RunProgress(application, sampled=self._is_sampled(application))

    def run(
        self, application: "Application", seed: int, *, first: bool, progress: RunProgress | None = None
    ) -> SimulatedRun:
        conditions = self._conditions
        began_s = time.perf_counter()
        platform, machine = conditions.platform, self._machine(application)
        if application.kernel_models:
            platform = on_its_day(platform, seed, days=conditions.layers.days)
            if platform is not conditions.platform:
                machine = machine_of(platform, application.threads_per_rank)
        cores = self._core_of_rank(application)
        trace = conditions.trace if first else None
        try:
            run_seed = conditions.run_seed(seed)
            result = application.simulate(
                machine,
                self._layers,
                cores,
                seed,
                sampled=self._is_sampled(application),
                trace=trace,
                run_seed=run_seed,
                progress=None if progress is None else progress.core,
            )
        except LepauteError:
            raise
        except (RuntimeError, ValueError) as error:
            raise SimulationError(f"{error}; platform {platform.name}, {application.label}") from error
        run = simulated_run(result, application, conditions.platform, seed, began_s)
        if trace is None:
            return run
        return replace(run, trace=trace_of_run(result, self._metadata(application, seed, cores)))

    def measure(self, small: "Application", whole: "Application", trial_steps: int = 0) -> float:
        """Seconds of one core that a run of `small`, on cores like those of `whole`, takes; of so many steps of it."""
        machine, cores = self._machine(whole), small.cores_like(whole, self._core_of_rank(whole))
        began_s = time.thread_time()
        small.simulate(machine, self._layers, cores, 1, trial_steps=trial_steps)
        return time.thread_time() - began_s

    def fidelity(self, run: SimulatedRun) -> str:
        return "full" if run.sampling is None else "sampled"

    def warnings(self, run: SimulatedRun) -> list[str]:
        return message_warnings(run.message_use or ())

    def _is_sampled(self, application: "Application") -> bool:
        conditions = self._conditions
        return application.is_sampled(conditions.fidelity, traced=conditions.trace is not None)

    def _machine(self, application: "Application") -> _core.Machine:
        threads, kernels = application.threads_per_rank, self._conditions.platform.kernels
        if not application.kernel_models and kernels:
            threads = kernels[0].threads  # none of them is called: any will do
        with self._lock:
            if threads not in self._machines:
                self._machines[threads] = machine_of(self._conditions.platform, threads)
            return self._machines[threads]

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


def simulated_run(
    result: _core.RunResult, application: "Application", platform: "Platform", seed: int, began_s: float
) -> SimulatedRun:
    """The run of a result of the core."""
    kernels = kernels_of(result)
    breakdown = breakdown_of_run(result, application.ranks)
    sampling = None
    if (simulated_steps := getattr(result, "simulated_steps", application.steps)) < application.steps:
        sampling = Sampling(simulated_steps, application.steps, tuple(getattr(result, "sampling_changes_s", ())))
    waiting_share = result.waiting_s / max(application.ranks * result.time_s, 1e-300)
    return SimulatedRun(
        seed=seed,
        time_s=result.time_s,
        whole_s=result.time_s,
        messages=result.messages,
        engine_bytes=result.engine_bytes,
        computing_s=result.computing_s,
        waiting_s=result.waiting_s,
        moving=waiting_share if application.waiting_moves else sum(breakdown.shares[name] for name in MOVING),
        kernels=kernels,
        message_use=message_use(platform, result.message_use),
        messages_s=sum(use.time_s for use in result.message_use.values()),
        sampling=sampling,
        breakdown=breakdown,
        began_s=began_s,
        ended_s=time.perf_counter(),
    )


def kernels_of(result: _core.RunResult) -> dict[str, KernelUse]:
    """The kernels that a run called, by name."""
    return {
        name: KernelUse(
            use.calls,
            use.time_s,
            use.unmodelled_calls,
            use.clipped_means,
            use.extrapolated_time_s,
            sizes_of(use.outside_low),
            sizes_of(use.outside_high),
        )
        for name, use in result.kernels.items()
        if use.calls or use.unmodelled_calls
    }


def sizes_of(size: Any) -> Sizes:
    return Sizes(size.m, size.n, size.k)
