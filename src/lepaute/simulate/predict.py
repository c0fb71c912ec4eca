"""Application + platform -> predicted distribution of runs, by the native engine."""

import os
import resource
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lepaute import _core
from lepaute.errors import InputError, SimulationError
from lepaute.simulate.energy import energy_of_run
from lepaute.simulate.hpl import BROADCASTS, FACTORISATIONS, NOT_SIMULATED, Hpl
from lepaute.simulate.machine import machine_of
from lepaute.simulate.mapping import sequential
from lepaute.simulate.prediction import Prediction, Run, SimulationFigures
from lepaute.simulate.warnings import warnings_of
from lepaute.version import __version__

if TYPE_CHECKING:
    from lepaute.platform.schema import Platform

GLUE = ("pdfact_glue", "pdupdate_glue")  # ours, not the application's: a platform without them lacks nothing
DEFAULT_RUNS = 10


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


def predict(
    hpl: Hpl,
    platform: "Platform",
    *,
    runs: int = DEFAULT_RUNS,
    seed: int = 1,
    layers: Layers | None = None,
    settings: dict[str, str] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Prediction:
    """Simulates `runs` runs; run i uses seed + i. Deterministic, whatever the number of threads.

    settings : overrides of the platform that were applied before, recorded in the result
    progress : called with the number of runs done
    Raises InputError for what the engine does not simulate or what does not fit, SimulationError on a deadlock.
    """
    if runs < 1:
        raise InputError(f"runs is {runs}; at least one run is simulated")
    if not 0 <= seed < 2**63:
        raise InputError(f"seed is {seed}; it is a whole number from 0 to 2^63 - 1")
    refuse_what_is_not_simulated(hpl)
    started = time.perf_counter()
    cores = sequential(platform, hpl.ranks, hpl.threads_per_rank)
    machine = machine_of(platform, hpl.threads_per_rank)
    parameters = core_parameters(hpl)
    core_layers = (layers or Layers()).to_core()

    def one(run_seed: int) -> _core.HplResult:
        return _core.simulate_hpl(parameters, machine, core_layers, cores, run_seed)

    results = []
    try:
        with ThreadPoolExecutor(min(runs, os.cpu_count() or 1)) as pool:
            for result in pool.map(one, range(seed, seed + runs)):
                results.append(result)
                if progress is not None:
                    progress(len(results))
    except (RuntimeError, ValueError) as error:
        raise SimulationError(f"{error}; platform {platform.name}, {hpl.p} x {hpl.q} ranks, n = {hpl.n}") from error
    first = results[0]
    kernels = dict(zip(_core.kernel_names(), first.kernels, strict=True))
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
                    cores,
                    time_s=result.time_s,
                    computing_s=sum(use.time_s for use in result.kernels),
                    threads=hpl.threads_per_rank,
                ),
            )
            for i, result in enumerate(results)
        ),
        fidelity="full",
        warnings=tuple(warnings_of(hpl, platform, {name: use for name, use in kernels.items() if name not in GLUE})),
        simulation=SimulationFigures(
            wall_s=time.perf_counter() - started,
            peak_rss_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            engine_bytes=max(result.engine_bytes for result in results),
            messages=first.messages,
        ),
        kernel_time_s={name: use.time_s for name, use in kernels.items() if use.time_s > 0.0},
        waiting_s=first.waiting_s,
        settings=settings or {},
        version=__version__,
    )


def refuse_what_is_not_simulated(hpl: Hpl) -> None:
    """Raises InputError for the algorithms of HPL that the native engine does not have yet."""
    for name, values in NOT_SIMULATED.items():
        if getattr(hpl, name) in values:
            raise InputError(f"{name} {getattr(hpl, name)} is not simulated yet; see the README for what is")


def core_parameters(hpl: Hpl) -> _core.HplParameters:
    """The parameters as the core takes them."""
    parameters = _core.HplParameters()
    for name in ("n", "nb", "p", "q", "depth", "nbmin", "ndiv"):
        setattr(parameters, name, getattr(hpl, name))
    parameters.row_major = hpl.pmap == "row"
    parameters.set_algorithms(
        BROADCASTS.index(hpl.bcast), FACTORISATIONS.index(hpl.pfact), FACTORISATIONS.index(hpl.rfact)
    )
    return parameters
