"""Application + platform -> predicted distribution of runs, by the native engine."""

import resource
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from lepaute import _core
from lepaute.errors import InputError, SimulationError
from lepaute.simulate.energy import energy_of_run
from lepaute.simulate.estimate import available_cores, estimated_run_s, work_of
from lepaute.simulate.fidelity import (
    WINDOWS,
    check_fidelity,
    is_sampled,
    sampling_warning,
    simulated_share,
)
from lepaute.simulate.hpl import Hpl
from lepaute.simulate.machine import machine_of
from lepaute.simulate.mapping import Mapping, thinned
from lepaute.simulate.message_use import message_use, message_warnings
from lepaute.simulate.outside_ranges import outside_ranges
from lepaute.simulate.population import on_its_day
from lepaute.simulate.prediction import Prediction, Run, SimulationFigures
from lepaute.simulate.tasks import Task, run_tasks
from lepaute.simulate.tracing import TraceRequest, breakdown_of_run, trace_of_run
from lepaute.simulate.warnings import warnings_of
from lepaute.version import __version__

if TYPE_CHECKING:
    from lepaute.platform.schema import Platform

GLUE = ("pdfact_glue", "pdupdate_glue")  # ours, not the application's: a platform without them lacks nothing
DEFAULT_RUNS = 10
#: Categories of a rank's time in which messages move; the others are computing and waiting.
MOVING = ("overhead", "transfer", "contention")


@dataclass(frozen=True, slots=True)
class Layers:
    """Which layers of uncertainty a run draws; each can be switched off."""

    coefficients: bool = True
    days: bool = True
    discrepancy: bool = True
    noise: bool = True

    def to_core(self) -> _core.Layers:
        layers = _core.Layers()
        for name in ("coefficients", "days", "discrepancy", "noise"):
            setattr(layers, name, getattr(self, name))
        return layers


@dataclass(frozen=True, slots=True)
class Finished:
    """One simulated run, and when (on the clock of time.perf_counter) it began and ended."""

    result: _core.HplResult
    began_s: float
    ended_s: float


def predict(
    hpl: Hpl,
    platform: "Platform",
    *,
    runs: int = DEFAULT_RUNS,
    seed: int = 1,
    layers: Layers | None = None,
    settings: dict[str, str] | None = None,
    mapping: Mapping | None = None,
    fidelity: str = "auto",
    trace: TraceRequest | None = None,
    progress: Callable[[float], None] | None = None,
) -> Prediction:
    """Simulates `runs` runs; run i uses seed + i. Deterministic, whatever the number of threads.

    settings : overrides of the platform that were applied before, recorded in the result
    mapping : ranks to cores; the first nodes one after the other unless given
    fidelity : auto, full or sampled
    trace : ranks and steps of the first run to trace
    progress : called with the share of the runs done, from 0 to 1
    Raises InputError for what the engine does not simulate or what does not fit, SimulationError on a deadlock.
    """
    (prediction,) = predict_all(
        [hpl],
        platform,
        runs=runs,
        seed=seed,
        layers=layers,
        settings=settings,
        mapping=mapping,
        fidelity=fidelity,
        trace=trace,
        progress=progress,
    )
    return prediction


def predict_all(
    hpls: Sequence[Hpl],
    platform: "Platform",
    *,
    runs: int = DEFAULT_RUNS,
    seed: int = 1,
    layers: Layers | None = None,
    settings: dict[str, str] | None = None,
    mapping: Mapping | None = None,
    fidelity: str = "auto",
    trace: TraceRequest | None = None,
    progress: Callable[[float], None] | None = None,
    run_s: Sequence[float] | None = None,
) -> list[Prediction]:
    """Predicts each of `hpls`, as `predict` does, in their order; all (combination, run) pairs share the cores.

    run_s : seconds that a run of each is expected to take: the longest start first, and progress counts them; without,
        the number of events stands for them
    """
    if runs < 1:
        raise InputError(f"runs is {runs}; at least one run is simulated")
    if not 0 <= seed < 2**63:
        raise InputError(f"seed is {seed}; it is a whole number from 0 to 2^63 - 1")
    check_request(hpls, fidelity, trace)
    mapping = mapping or Mapping()
    core_layers = (layers or Layers()).to_core()
    machines = {threads: machine_of(platform, threads) for threads in {hpl.threads_per_rank for hpl in hpls}}
    with_days = (layers or Layers()).days
    cores = {shape: mapping.cores(platform, *shape) for shape in {(hpl.ranks, hpl.threads_per_rank) for hpl in hpls}}

    def one(hpl: Hpl, run_seed: int, wanted: TraceRequest | None) -> Finished:
        began_s = time.perf_counter()
        today = on_its_day(platform, run_seed, days=with_days)
        machine = machines[hpl.threads_per_rank] if today is platform else machine_of(today, hpl.threads_per_rank)
        try:
            result = _core.simulate_hpl(
                core_parameters(hpl, sampled=is_sampled(hpl, fidelity, traced=trace is not None)),
                machine,
                core_layers,
                cores[hpl.ranks, hpl.threads_per_rank],
                run_seed,
                *trace_choice(hpl, wanted),
            )
        except (RuntimeError, ValueError) as error:
            where = f"platform {platform.name}, {hpl.p} x {hpl.q} ranks, n = {hpl.n}"
            raise SimulationError(f"{error}; {where}") from error
        return Finished(result, began_s, time.perf_counter())

    tasks = [
        Task((at, run), cost_s, partial(one, hpl, seed + run, trace if run == 0 else None))
        for at, (hpl, cost_s) in enumerate(zip(hpls, run_s or [work_of(hpl).events for hpl in hpls], strict=True))
        for run in range(runs)
    ]
    finished = run_tasks(tasks, progress, clocked=run_s is not None)
    first_day = on_its_day(platform, seed, days=with_days)
    return [
        prediction_of(
            hpl,
            platform,
            first_day,
            [finished[at, run] for run in range(runs)],
            seed=seed,
            settings=settings or {},
            mapping=mapping.to_dict(platform, hpl.ranks, hpl.threads_per_rank),
            node_of_rank=[core // platform.nodes.cores for core in cores[hpl.ranks, hpl.threads_per_rank]],
            traced=trace is not None,
        )
        for at, hpl in enumerate(hpls)
    ]


def expected_run_s(
    hpls: Sequence[Hpl],
    platform: "Platform",
    *,
    runs: int = DEFAULT_RUNS,
    mapping: Mapping | None = None,
    fidelity: str = "auto",
) -> list[float] | None:
    """Seconds that one core takes to simulate a run of each of `hpls`; None where all runs together are quick.

    Some tiny problems are simulated for it, in a tenth of a second or 3 % of the prediction.
    """
    mapping = mapping or Mapping()
    layers = Layers().to_core()

    @cache
    def machine(threads: int) -> _core.Machine:
        return machine_of(platform, threads)

    def measure(small: Hpl, whole: Hpl) -> float:
        there = machine(whole.threads_per_rank)
        cores = mapping.cores(platform, whole.ranks, whole.threads_per_rank)
        chosen = thinned(cores, (whole.p, whole.q), (small.p, small.q), by_row=whole.pmap == "row")
        began_s = time.thread_time()
        _core.simulate_hpl(core_parameters(small), there, layers, chosen, 1)
        return time.thread_time() - began_s

    whole_s = estimated_run_s(hpls, runs, available_cores(), measure)
    if whole_s is None:
        return None
    return [run_s * simulated_share(hpl, fidelity) for hpl, run_s in zip(hpls, whole_s, strict=True)]


def prediction_of(
    hpl: Hpl,
    platform: "Platform",
    first_day: "Platform",
    finished: Sequence[Finished],
    *,
    seed: int,
    settings: dict[str, str],
    mapping: dict[str, Any],
    node_of_rank: Sequence[int],
    traced: bool,
) -> Prediction:
    """The prediction that the finished runs of one combination, from `seed` on, make together; `traced`: the first.

    first_day : `platform` as the first run saw it: models that are drawn anew have no fitted ranges
    """
    ranks_on_node = Counter(node_of_rank)
    results = [one.result for one in finished]
    first = results[0]
    kernels = first.kernels
    own = {name: use for name, use in kernels.items() if name not in GLUE}
    told = warnings_of(hpl, platform, own, max(ranks_on_node.values()))
    sent = message_use(platform, first.message_use)
    told += message_warnings(sent)
    breakdown = breakdown_of_run(first, hpl.ranks)
    is_part = first.simulated_steps < hpl.steps
    if is_part:
        error = max(result.sampling_error_s / result.time_s for result in results)
        told.append(sampling_warning(first.simulated_steps, hpl.steps, error))
    return Prediction(
        hpl=hpl,
        platform_name=platform.name,
        platform_sha256=platform.sha256,
        seed=seed,
        run_list=tuple(
            Run(
                seed + i,
                result.time_s,
                hpl.rate_gflops(result.time_s),
                energy_of_run(
                    platform,
                    nodes=len(ranks_on_node),
                    ranks=hpl.ranks,
                    time_s=result.time_s,
                    computing_s=result.computing_s,
                    threads=hpl.threads_per_rank,
                ),
            )
            for i, result in enumerate(results)
        ),
        fidelity="sampled" if is_part else "full",
        warnings=tuple(told),
        simulation=SimulationFigures(
            wall_s=max(one.ended_s for one in finished) - min(one.began_s for one in finished),
            peak_rss_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            engine_bytes=max(result.engine_bytes for result in results),
            messages=first.messages,
        ),
        kernel_time_s={name: use.time_s for name, use in kernels.items() if use.time_s > 0.0},
        waiting_s=first.waiting_s,
        message_use=sent,
        settings=settings,
        mapping=mapping,
        nodes=len(ranks_on_node),
        outside=outside_ranges(
            kernels,
            first_day,
            hpl.ranks * first.time_s,
            messages=sent,
            messages_s=sum(use.time_s for use in first.message_use.values()),
            moving=sum(breakdown.shares[name] for name in MOVING),
        ),
        version=__version__,
        breakdown=breakdown,
        trace=trace_of_run(
            first,
            {
                "application": "hpl",
                "parameters": hpl.parameters() | mapping | ({"set": settings} if settings else {}),
                "platform": platform.name,
                "platform_sha256": platform.sha256,
                "seed": seed,
                "ranks": hpl.ranks,
                "nodes": list(node_of_rank),
                "version": __version__,
            },
        )
        if traced
        else None,
    )


def trace_choice(hpl: Hpl, wanted: TraceRequest | None) -> tuple[Sequence[int] | None, Sequence[int] | None]:
    """Ranks and steps as the core takes them."""
    if wanted is None:
        return None, None
    return (range(hpl.ranks) if wanted.ranks is None else wanted.ranks), wanted.steps


def check_request(hpls: Sequence[Hpl], fidelity: str, trace: TraceRequest | None) -> None:
    """Raises InputError for a fidelity or a trace that cannot be had."""
    check_fidelity(fidelity)
    if trace is not None:
        if len(hpls) > 1:
            raise InputError(f"a trace is of one combination, and there are {len(hpls)}; shorten the lists of HPL.dat")
        trace.check(hpls[0])


def core_parameters(hpl: Hpl, *, sampled: bool = False) -> _core.HplParameters:
    """The parameters as the core takes them; sampled: windows of the steps are simulated."""
    parameters = _core.HplParameters()
    for name, value in hpl.parameters().items():
        if name != "threads_per_rank":
            setattr(parameters, name, value)
    parameters.sampled = sampled
    parameters.windows = _core.HplWindows(*WINDOWS)
    return parameters
