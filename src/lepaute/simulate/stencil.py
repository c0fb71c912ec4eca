"""A 3D halo-exchange stencil with an all-reduction in each iteration: its parameters, and its prediction."""

import json
import math
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lepaute import _core
from lepaute.errors import InputError, SimulationError
from lepaute.simulate.energy import energy_of_run
from lepaute.simulate.machine import machine_of
from lepaute.simulate.mapping import Mapping
from lepaute.simulate.message_use import message_use, message_warnings
from lepaute.simulate.outside_ranges import OutsideRanges, outside_ranges
from lepaute.simulate.predict import Layers
from lepaute.simulate.prediction import SimulationFigures, Spread, spread_of, spread_where_known
from lepaute.simulate.runs import DEFAULT_RUNS, simulate_runs
from lepaute.version import __version__

if TYPE_CHECKING:
    from lepaute.platform.schema import Platform

ALLREDUCES = ("none", "binomial", "recursive-doubling", "ring")
_LARGEST_COUNT = 2**31 - 1  # of processes and of cells along a dimension: the core counts in 32 and 64 bits


@dataclass(frozen=True, slots=True)
class Stencil:
    """One run: `cells` of a box on a `grid` of processes along x, y and z, ranks in the order of MPI_Cart_create.

    Each iteration exchanges the faces with the six neighbours (x, y, z; one way, then the other), sweeps over the
    cells, and reduces `allreduce_values` doubles over all ranks. A cell takes cell_time_s, or what its cell_bytes take
    from the node's memory bandwidth shared by the node's ranks, whichever is longer; noise_relative_sd is the relative
    standard deviation of a sweep. halo is in layers of cells, value_bytes are sent for each cell of a face.
    Raises InputError for what cannot be.
    """

    cells: tuple[int, int, int]
    grid: tuple[int, int, int] = (1, 1, 1)
    iterations: int = 1
    allreduce: str = "recursive-doubling"
    allreduce_values: int = 1
    periodic: bool = True
    halo: int = 1
    value_bytes: float = 8.0
    cell_time_s: float = 0.0
    cell_bytes: float = 0.0
    node_memory_Bps: float | None = None  # noqa: N815 - the unit
    noise_relative_sd: float = 0.0

    def __post_init__(self) -> None:
        for name in ("iterations", "allreduce_values", "halo"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _LARGEST_COUNT:
                raise InputError(f"{name} is {value!r}; a stencil needs a whole number >= 1")
        for name in ("value_bytes", "cell_time_s", "cell_bytes", "noise_relative_sd"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0.0):
                raise InputError(f"{name} is {value!r}; it is a finite number >= 0")
        if self.allreduce not in ALLREDUCES:
            raise InputError(f"allreduce is {self.allreduce!r}; it is one of {', '.join(ALLREDUCES)}")
        for axis, processes, cells in zip("xyz", self.grid, self.cells, strict=True):
            if not (1 <= processes <= cells <= _LARGEST_COUNT):
                raise InputError(f"{cells} cells along {axis} cannot be shared by {processes} processes; both are >= 1")
            if cells // processes < self.halo:
                raise InputError(
                    f"{cells} cells along {axis} leave {cells // processes} to a process, fewer than the "
                    f"{self.halo} layers of the halo; take fewer processes along {axis} or a thinner halo"
                )
        if self.cell_bytes > 0.0 and not (self.node_memory_Bps and 0.0 < self.node_memory_Bps < math.inf):
            raise InputError("the time of cell_bytes needs the memory bandwidth of a node, in bytes per second")
        if self.cell_time_s == 0.0 and self.cell_bytes == 0.0:
            raise InputError("say what a cell costs: a cell time, or bytes per cell and the memory bandwidth of a node")

    @property
    def ranks(self) -> int:
        """Number of MPI processes."""
        return math.prod(self.grid)

    def rate_cells_per_s(self, time_s: float) -> float:
        """Cells computed a second, over all iterations, by a run of `time_s` seconds."""
        return math.prod(self.cells) * self.iterations / time_s

    def parameters(self) -> dict[str, Any]:
        """The parameters by name, as a prediction's JSON shows them."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return values | {"grid": list(self.grid), "cells": list(self.cells)}


@dataclass(frozen=True, slots=True)
class StencilRun:
    """One simulated run; `seed` repeats it. energy_j is None where the platform does not say what a node draws."""

    seed: int
    time_s: float
    rate_cells_per_s: float
    energy_j: float | None


@dataclass(frozen=True)
class StencilPrediction:
    """What a stencil will do on a platform, with its uncertainty. Its JSON is that of the other predictions, with
    `rate_cells_per_s` in the place of HPL's rate.

    computing_s, waiting_s : seconds over all ranks in the sweeps and inside communication, of the first run
    outside : messages of sizes that were not fitted, in the first run; all time inside communication counts as moving
    """

    stencil: Stencil
    platform_name: str
    platform_sha256: str
    seed: int
    run_list: tuple[StencilRun, ...]
    warnings: tuple[str, ...]
    simulation: SimulationFigures
    computing_s: float
    waiting_s: float
    settings: dict[str, str]
    version: str
    outside: OutsideRanges

    @property
    def time_s(self) -> Spread:
        """Time of all iterations, in seconds."""
        return spread_of([run.time_s for run in self.run_list])

    @property
    def rate_cells_per_s(self) -> Spread:
        """Cells computed a second; its mean is the mean of the runs' rates."""
        return spread_of([run.rate_cells_per_s for run in self.run_list])

    @property
    def energy_j(self) -> Spread | None:
        """Energy of the nodes used, in joules; None where the platform does not say what a node draws."""
        return spread_where_known([run.energy_j for run in self.run_list])

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        energy = self.energy_j
        return {
            "application": "stencil",
            "platform": self.platform_name,
            "platform_sha256": self.platform_sha256,
            "parameters": self.stencil.parameters() | ({"set": self.settings} if self.settings else {}),
            "seed": self.seed,
            "time_s": self.time_s.to_dict(),
            "rate_cells_per_s": self.rate_cells_per_s.to_dict(),
            **({"energy_j": energy.to_dict()} if energy else {}),
            "runs": [
                {"seed": run.seed, "time_s": run.time_s, "rate_cells_per_s": run.rate_cells_per_s}
                for run in self.run_list
            ],
            "fidelity": "full",
            "warnings": list(self.warnings),
            "outside_ranges": self.outside.to_dict(),
            "simulation": {
                "wall_s": self.simulation.wall_s,
                "peak_rss_bytes": self.simulation.peak_rss_bytes,
                "engine_bytes": self.simulation.engine_bytes,
                "messages": self.simulation.messages,
            },
            "version": self.version,
        }

    def to_json(self, path: str | Path) -> None:
        """Writes the JSON object to `path` whole or not at all."""
        from lepaute.kit.files import write_whole

        write_whole(path, json.dumps(self.to_dict(), indent=2) + "\n")


def predict_stencil(
    stencil: Stencil,
    platform: "Platform",
    *,
    runs: int = DEFAULT_RUNS,
    seed: int = 1,
    layers: Layers | None = None,
    settings: dict[str, str] | None = None,
    progress: Callable[[int], None] | None = None,
) -> StencilPrediction:
    """Simulates `runs` runs; run i uses seed + i. Deterministic, whatever the number of threads.

    settings : overrides of the platform that were applied before, recorded in the result
    progress : called with the number of runs done
    Raises InputError for what does not fit, SimulationError on a deadlock.
    """
    started = time.perf_counter()
    cores = Mapping().cores(platform, stencil.ranks)
    nodes = len({core // platform.nodes.cores for core in cores})
    # The sweep has a cost of its own, so the platform may have models for any number of threads, or none.
    threads = platform.kernels[0].threads if platform.kernels else 1
    machine = machine_of(platform, threads)
    parameters = core_parameters(stencil)
    core_layers = (layers or Layers()).to_core()

    def one(run_seed: int) -> _core.RunResult:
        return _core.simulate_stencil(parameters, machine, core_layers, cores, run_seed)

    try:
        results = simulate_runs(one, seed, runs, progress)
    except (RuntimeError, ValueError) as error:
        grid = " x ".join(map(str, stencil.grid))
        raise SimulationError(f"{error}; platform {platform.name}, {grid} ranks") from error
    sent = message_use(platform, results[0].message_use)
    all_ranks_s = stencil.ranks * results[0].time_s
    return StencilPrediction(
        stencil=stencil,
        platform_name=platform.name,
        platform_sha256=platform.sha256,
        seed=seed,
        run_list=tuple(
            StencilRun(
                seed + i,
                result.time_s,
                stencil.rate_cells_per_s(result.time_s),
                energy_of_run(
                    platform, nodes=nodes, ranks=stencil.ranks, time_s=result.time_s, computing_s=result.computing_s
                ),
            )
            for i, result in enumerate(results)
        ),
        warnings=(
            *warnings_of(platform),
            *message_warnings(sent),
        ),
        simulation=SimulationFigures(
            wall_s=time.perf_counter() - started,
            peak_rss_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            engine_bytes=max(result.engine_bytes for result in results),
            messages=results[0].messages,
        ),
        computing_s=results[0].computing_s,
        waiting_s=results[0].waiting_s,
        settings=settings or {},
        version=__version__,
        outside=outside_ranges(
            {},
            platform,
            all_ranks_s,
            messages=sent,
            messages_s=sum(use.time_s for use in results[0].message_use.values()),
            moving=results[0].waiting_s / max(all_ranks_s, 1e-300),
        ),
    )


def core_parameters(stencil: Stencil) -> _core.StencilParameters:
    """The parameters as the core takes them."""
    parameters = _core.StencilParameters()
    for name in stencil.__slots__:
        setattr(parameters, name, getattr(stencil, name))
    return parameters


def warnings_of(platform: "Platform") -> list[str]:
    """What a reader of the prediction must be told."""
    told = ["the cost of a cell is the one that was given, exactly: the interval does not cover an error in it"]
    if platform.days is None:
        told.append("the interval covers call noise only: the platform has no day layer")
    return told
