"""SMPI as an engine: SimGrid executes the code of a program, kernels and messages take simulated time."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from lepaute.errors import InputError
from lepaute.simulate.run import SimulatedRun
from lepaute.simulate.smpi.emulate import Keep, emulate_run
from lepaute.simulate.smpi.own_computing import LEAST_SHARE, Slowdowns, load_cpus, slowdowns_of
from lepaute.simulate.smpi.process import Limits
from lepaute.simulate.smpi.warnings import network_warnings

if TYPE_CHECKING:
    from lepaute.simulate.application import Application
    from lepaute.simulate.conditions import Conditions
    from lepaute.simulate.native import RunProgress
    from lepaute.simulate.smpi.emulated_run import EmulatedRun


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


class Printed:
    """Passes on what a program prints; after hold(), only when the block ends, unless forget() came before."""

    def __init__(self, on_line: Callable[[str], None] | None, on_complaint: Callable[[str], None] | None) -> None:
        self._to = {"line": on_line, "complaint": on_complaint}
        self._held: list[tuple[str, str]] | None = None

    def hold(self) -> None:
        self._held = []

    def forget(self) -> None:
        self._held = None

    def line(self, text: str) -> None:
        self._pass("line", text)

    def complaint(self, text: str) -> None:
        self._pass("complaint", text)

    def _pass(self, kind: str, text: str) -> None:
        to = self._to[kind]
        if self._held is not None:
            self._held.append((kind, text))
        elif to is not None:
            to(text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        held, self._held = self._held or [], None
        for kind, text in held:
            self._pass(kind, text)


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
        self._slowdowns: dict[Application, Slowdowns] = {}

    def prepare(self, application: "Application") -> None:
        application.emulation(1)
        place = (self._conditions.platform, application.ranks, application.threads_per_rank)
        self._conditions.mapping.cores(*place)

    def progress_of(self, application: "Application") -> None:
        return None

    def run(
        self, application: "Application", seed: int, *, first: bool, progress: "RunProgress | None" = None
    ) -> SimulatedRun:
        engine, conditions = self._engine, self._conditions
        began_s = time.perf_counter()
        program, arguments, options = application.emulation(seed)
        counted_in_all = program is not None  # a program of ours counts kernels in what it times
        program = program or engine.program
        if program is None:
            raise InputError(f"SMPI needs a program to emulate {application.name}; give Smpi(program=...)")
        options = options if engine.limits is None else replace(options, limits=engine.limits)
        ranks_on_node = self._ranks_on_node(application)
        cpus = load_cpus(ranks_on_node) if options.computing == "measured" and options.contention else ()
        printed = Printed(engine.on_line, engine.on_complaint) if first else Printed(None, None)

        def emulated(cpus: Sequence[int], slowdowns: Slowdowns | None) -> "EmulatedRun":
            return emulate_run(
                program,
                arguments,
                conditions.platform,
                application.ranks,
                seed=seed,
                run_seed=conditions.run_seed(seed),
                layers=conditions.layers,
                mapping=conditions.mapping,
                options=options,
                threads=application.threads_per_rank,
                folder=engine.folder,
                on_line=printed.line,
                on_complaint=printed.complaint,
                on_progress=engine.on_progress,
                keep=engine.keep if first else None,
                load_cpus=cpus,
                slowdowns=slowdowns,
            )

        slowdowns = self._slowdowns.get(application)
        with printed:
            if slowdowns is None and len(cpus) > 1:
                printed.hold()
                run = emulated(cpus, None)
                slowdowns = slowdowns_of(run.own, len(cpus), ranks_on_node, conditions.platform, options.memory_share)
                self._slowdowns[application] = slowdowns
                if run.own_share > LEAST_SHARE:
                    printed.forget()
                    run = emulated((), slowdowns)
            else:
                run = emulated((), slowdowns)
        run = replace(run, slowdowns=slowdowns, cores_timed=max(1, len(cpus)), ranks_on_node=ranks_on_node)
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

    def _ranks_on_node(self, application: "Application") -> int:
        """Of the node that has most."""
        platform, threads = self._conditions.platform, application.threads_per_rank
        cores = self._conditions.mapping.cores(platform, application.ranks, threads)
        return max(Counter(core // platform.nodes.cores for core in cores).values())

    def fidelity(self, run: SimulatedRun) -> str:
        return "smpi"

    def warnings(self, run: SimulatedRun) -> list[str]:
        return network_warnings(self._conditions.platform)
