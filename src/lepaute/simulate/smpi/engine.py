"""SMPI as an engine: SimGrid executes the code of a program, kernels and messages take simulated time."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from lepaute.errors import InputError
from lepaute.simulate.run import SimulatedRun
from lepaute.simulate.smpi.emulate import Keep, emulate_run
from lepaute.simulate.smpi.process import Limits
from lepaute.simulate.smpi.warnings import network_warnings

if TYPE_CHECKING:
    from lepaute.simulate.application import Application
    from lepaute.simulate.conditions import Conditions


@dataclass(frozen=True, slots=True)
class Smpi:
    """SMPI and how it runs programs.

    program  : of an application that does not name it itself, as HPL: that of build_hpl_smpi() for its copy_l
    limits   : in the place of the application's
    folder   : where the program runs; the present one unless given
    on_line, on_complaint : are given each line that the first run prints on standard output, and on standard error
    on_progress : is given the simulated date, in seconds
    keep     : traces of the first run to keep
    """

    samples: ClassVar[bool] = False

    program: Path | None = None
    limits: Limits | None = None
    folder: Path | None = None
    on_line: Callable[[str], None] | None = None
    on_complaint: Callable[[str], None] | None = None
    on_progress: Callable[[float], None] | None = None
    keep: Keep | None = None

    def on(self, conditions: "Conditions") -> "SmpiSimulator":
        return SmpiSimulator(self, conditions)


class SmpiSimulator:
    """SMPI under fixed conditions; one process a run, one after the other: each may fill the memory of this machine."""

    parallel = False
    tells_energy = False

    def __init__(self, engine: Smpi, conditions: "Conditions") -> None:
        if conditions.trace is not None:
            raise InputError("SMPI does not trace chosen ranks and steps; keep its own trace with Smpi(keep=...)")
        if conditions.fidelity == "sampled":
            raise InputError("SMPI executes all of a program; fidelity is one of auto, full")
        self._engine = engine
        self._conditions = conditions

    def prepare(self, application: "Application") -> None:
        application.emulation(1)
        place = (self._conditions.platform, application.ranks, application.threads_per_rank)
        self._conditions.mapping.cores(*place)

    def run(self, application: "Application", seed: int, *, first: bool) -> SimulatedRun:
        engine, conditions = self._engine, self._conditions
        began_s = time.perf_counter()
        program, arguments, options = application.emulation(seed)
        counted_in_all = program is not None  # a program of ours counts kernels in what it times
        program = program or engine.program
        if program is None:
            raise InputError(f"SMPI needs a program to emulate {application.name}; give Smpi(program=...)")
        run = emulate_run(
            program,
            arguments,
            conditions.platform,
            application.ranks,
            seed=seed,
            run_seed=conditions.run_seed(seed),
            layers=conditions.layers,
            mapping=conditions.mapping,
            options=options if engine.limits is None else replace(options, limits=engine.limits),
            threads=application.threads_per_rank,
            folder=engine.folder,
            on_line=engine.on_line if first else None,
            on_complaint=engine.on_complaint if first else None,
            on_progress=engine.on_progress,
            keep=engine.keep if first else None,
        )
        return SimulatedRun(
            seed=seed,
            time_s=run.time_s,
            whole_s=run.program_s if counted_in_all else run.time_s,
            messages=run.messages,
            engine_bytes=run.peak_rss_bytes,
            computing_s=run.computing_s,
            waiting_s=application.ranks * run.time_s - run.computing_s,
            kernels=run.kernels,
            began_s=began_s,
            ended_s=time.perf_counter(),
            emulated=run,
        )

    def fidelity(self, run: SimulatedRun) -> str:
        return "smpi"

    def warnings(self, run: SimulatedRun) -> list[str]:
        return network_warnings(self._conditions.platform)
