"""Program + platform -> predicted distribution of runs, by SimGrid/SMPI: the program's own code is executed."""

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from lepaute.errors import InputError, SimulationError
from lepaute.kit.quantities import checked_pattern
from lepaute.kit.temporary import plain_name, temporary_folder
from lepaute.simulate.conditions import Conditions, Layers
from lepaute.simulate.engine import SimulatedRun
from lepaute.simulate.machine.core import wiring
from lepaute.simulate.machine.mapping import Mapping
from lepaute.simulate.machine.memory import check_memory
from lepaute.simulate.machine.population import with_network_of_run
from lepaute.simulate.native import RunProgress
from lepaute.simulate.platform.nodes import most_ranks
from lepaute.simulate.platform.schema import Platform
from lepaute.simulate.platform.simgrid import export_xml, holds_loopback, host_name
from lepaute.simulate.platform.simgrid.exporting import MAX_NODES_WITH_ROUTES
from lepaute.simulate.smpi import building
from lepaute.simulate.smpi.emulated_run import (
    MIN_SHARE,
    EmulatedRun,
    Slowdowns,
    load_cpus,
    read_report,
    run_of,
    slowdowns_of,
)
from lepaute.simulate.smpi.process import (
    AlgorithmError,
    Limits,
    OwnLines,
    may_be_an_algorithm,
    run_watched,
    why_it_failed,
)
from lepaute.simulate.smpi.request import Computing, Files, Folding, check_copies, check_limits, request_text
from lepaute.simulate.smpi.warnings import network_warnings
from lepaute.simulate.tracing import nodes_of

if TYPE_CHECKING:
    from lepaute.simulate.application import Application

#: A call of MPI_Test that costs nothing would let a loop of them spin at one simulated date for ever.
_MIN_TEST_S = 1e-8
#: Below each stack: a large array on the stack reaches over a single page into the memory of another rank.
_GUARD_PAGES = 1024
#: MPI libraries whose choice of algorithms SMPI knows, by its own names.
COLLECTIVES = {"openmpi": "ompi", "mpich": "mpich", "mvapich2": "mvapich2", "intelmpi": "impi"}
#: Libraries that are tried where SMPI fails at the algorithms of one; then its own.
TRIED = 2


def drawn_collectives(seed: int, failing: Collection[str] = ()) -> tuple[str | None, ...]:
    """The MPI library whose algorithms the run of this seed follows where nobody said, and what follows where SMPI
    fails at these: the next one, then SMPI's own. Each of COLLECTIVES in turn, so that runs of successive seeds have
    equal shares of them; not those that are known to fail."""
    libraries = tuple(COLLECTIVES)
    turned = (libraries[(seed - 1 + at) % len(libraries)] for at in range(len(libraries)))
    return (*[library for library in turned if library not in failing][:TRIED], None)


@dataclass(frozen=True, slots=True)
class Options:
    """How a program is emulated.

    computing : what the program computes itself, outside of BLAS and LAPACK, is timed on this machine and charged
        ("measured"), timed and not charged ("none"), or neither ("untimed")
    contention : what waits for memory becomes slower where ranks share a node; the program runs once more
    memory_share : of what it computes itself that waits for memory; None: what that run shows
    privatize : each rank has its own global variables
    stack_kib : of each rank
    value_pattern : a regular expression with one group, of the seconds that the program prints; the last match counts
    collectives : the MPI library whose choice of algorithms collective operations follow, of COLLECTIVES; None: not
        known, a program draws one a run; SMPI's own, the simplest, where that layer is off
    sleeping_probes : a loop of MPI_Iprobe costs no event a turn
    Raises InputError for a pattern that is none, and for a library that is none of COLLECTIVES.
    """

    computing: Computing = "measured"
    contention: bool = True
    memory_share: float | None = None
    privatize: bool = True
    folding: Folding = field(default_factory=Folding)
    limits: Limits = field(default_factory=Limits)
    stack_kib: int = 1024
    value_pattern: str | None = None
    collectives: str | None = None
    sleeping_probes: bool = True

    def __post_init__(self) -> None:
        if self.value_pattern is not None:
            checked_pattern(self.value_pattern)
        if self.collectives is not None and self.collectives not in COLLECTIVES:
            raise InputError(f"collectives is {self.collectives[:80]!r}; it must be one of {', '.join(COLLECTIVES)}")


def emulate_run(
    program: Path,
    arguments: Sequence[str],
    platform: "Platform",
    ranks: int,
    *,
    seed: int = 1,
    run_seed: int | None = None,
    layers: Layers | None = None,
    mapping: Mapping | None = None,
    options: Options | None = None,
    threads: int = 1,
    folder: Path | None = None,
    on_line: Callable[[str], None] | None = None,
    on_complaint: Callable[[str], None] | None = None,
    on_progress: Callable[[float], None] | None = None,
    keep: "Keep | None" = None,
    load_cpus: Sequence[int] = (),
    slowdowns: Slowdowns | None = None,
    drawn: str | None = None,
) -> EmulatedRun:
    """Runs `program` once on `ranks` ranks of the simulated platform.

    run_seed : of another run on the machine and day of `seed`;  load_cpus, slowdowns : of own code, see `Slowdowns`
    drawn : the MPI library, of COLLECTIVES, whose algorithms the run follows where the options name none
    Raises InputError for what does not fit, EnvironmentProblem without SimGrid or beyond a limit of this system,
    SimulationError if the program fails, hangs or ends in a deadlock. Nothing is left behind.
    """
    options = options or Options()
    if ranks < 1:
        raise InputError(f"np is {ranks}; a program has at least one rank")
    simgrid, program = building.find_simgrid(), building.emulable(program)
    if mapping is None and ranks > (most := most_ranks(platform, threads)):
        raise InputError(f"np is {ranks}; platform {platform.name} has cores for {most} ranks")
    library = building.build_library()
    known = tuple(COLLECTIVES) if drawn else ()
    warnings = building.program_caveats(program, library / building.LIBRARY, ranks, options.collectives, known)
    cores = (mapping or Mapping()).cores(platform, ranks, threads)
    check_limits(ranks, options.stack_kib, options.folding.from_bytes)
    with (
        temporary_folder("lepaute-smpi-", plain=True) as folder_of_run,
        plain_name(library / building.LIBRARY, folder_of_run) as preloaded,
        ExitStack() as kept_names,
    ):
        recorder = ""
        if keep is not None and keep.calls is not None:
            recorder = f":{kept_names.enter_context(plain_name(building.build_call_recorder(), folder_of_run))}"
        if options.privatize:
            check_copies(ranks, program.stat().st_size, folder_of_run)
        files = Files(
            folder_of_run / "report.json",
            folder_of_run / "progress",
            folder_of_run / "kernels" if keep and keep.kernels else None,
        )
        text = request_text(
            platform,
            cores,
            seed=seed,
            run_seed=run_seed,
            layers=layers or Layers(),
            folding=options.folding,
            files=files,
            threads=threads,
            computing=options.computing,
            load_cpus=load_cpus,
            slowdowns=slowdowns,
            sleeping_probes=options.sleeping_probes,
        )
        (folder_of_run / "request").write_text(text, encoding="utf-8")
        of_run = with_network_of_run(platform, seed, layers or Layers())
        # Route by route where that is what keeps latencies and shares right.
        routes = not of_run.topology.is_switch and of_run.nodes.count <= MAX_NODES_WITH_ROUTES
        exported = export_xml(of_run, wiring(of_run), every_route=routes, tables=holds_loopback(of_run))
        (folder_of_run / "platform.xml").write_text(exported.text, encoding="utf-8")
        hosts = [host_name(platform, core // platform.nodes.cores) for core in cores]
        (folder_of_run / "hostfile").write_text("\n".join(hosts) + "\n", encoding="utf-8")
        settings = settings_of(of_run, ranks, replace(options, collectives=options.collectives or drawn), folder_of_run)
        if keep is not None and keep.trace is not None:
            settings |= keep.settings()
        argv = [
            str(simgrid.smpimain),
            str(program),
            *(f"--cfg={name}:{value}" for name, value in settings.items()),
            "--log=root.thresh:error",
            "--log=smpi_pmpi.thresh:warning",  # which argument was wrong
            str(folder_of_run / "platform.xml"),
            *arguments,
        ]
        ended = run_watched(
            argv,
            environment={
                # The threads of OpenMP compute on cores of this machine that nobody times.
                "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
                "LD_PRELOAD": f"{preloaded}{recorder}",
                "LEPAUTE_EMULATION": str(folder_of_run / "request"),
                **({building.RECORDER_VARIABLE: str(keep.calls)} if recorder and keep else {}),
            },
            folder=folder,
            limits=options.limits,
            progress_file=files.progress,
            on_line=on_line,
            on_complaint=_of_the_program(on_complaint),
            on_progress=on_progress,
        )
        report = read_report(files.report)
        failure = why_it_failed(ended, report, ranks, has_blas=building.calls_blas(program, library / building.LIBRARY))
        if failure is not None:
            kind = AlgorithmError if drawn and may_be_an_algorithm(ended) else SimulationError
            raise kind(f"{program.name} on {ranks} ranks: {failure}")
        if keep and keep.kernels and files.kernel_log and files.kernel_log.is_file():
            keep.kernels.write_bytes(files.kernel_log.read_bytes())
        if keep is not None and keep.nodes is not None:
            keep.nodes.write_text(json.dumps(nodes_of(platform, cores)), encoding="utf-8")
    assert report is not None
    run = run_of(report, ended, seed, options.value_pattern, warnings)
    return replace(run, collectives=options.collectives or drawn)


@dataclass(frozen=True, slots=True)
class Keep:
    """Files kept of a run for a trace: SMPI's own trace, in the Paje format, the kernels, the calls of MPI, and the
    nodes of the ranks, as metadata in JSON."""

    trace: Path | None = None
    kernels: Path | None = None
    calls: Path | None = None
    nodes: Path | None = None

    def settings(self) -> dict[str, str]:
        of_smpi = (f"tracing/smpi{which}" for which in ("", "/computing", "/sleeping", "/display-sizes"))
        switched_on = dict.fromkeys(("tracing", *of_smpi), "yes")
        return {**switched_on, "tracing/filename": str(self.trace), "tracing/precision": "12"}


def _of_the_program(on_complaint: Callable[[str], None] | None) -> Callable[[str], None] | None:
    """Passes on what the program says, and not what SimGrid does."""
    if on_complaint is None:
        return None
    lines = OwnLines()
    return lambda line: on_complaint(line) if lines.keeps(line) else None


def settings_of(platform: "Platform", ranks: int, options: Options, folder: Path) -> dict[str, str]:
    """Settings that the file of the platform does not decide; they win over those in it."""
    return ({} if options.collectives is None else {"smpi/coll-selector": COLLECTIVES[options.collectives]}) | {
        "network/model": "SMPI",  # as smpirun says
        "smpi/np": str(ranks),
        "smpi/hostfile": str(folder / "hostfile"),
        "smpi/privatization": "dlopen" if options.privatize else "no",
        "smpi/tmpdir": str(folder),
        "smpi/wtime": "0",  # simblas charges it without the sleep
        "smpi/test": repr(max(platform.network.costs.test_s, _MIN_TEST_S)),
        "smpi/simulate-computation": "no",  # simblas times it
        "smpi/display-timing": "no",
        "contexts/stack-size": str(options.stack_kib),
        "contexts/guard-size": str(_GUARD_PAGES),
    }


@dataclass(frozen=True, slots=True)
class Smpi:
    """SMPI and how it runs programs.

    program  : of an application that does not name it itself, as HPL: that of build_hpl_smpi() for its copy_l
    limits   : in the place of the application's
    folder   : where the program runs; the present one unless given
    on_line, on_complaint : are given each line that the first run prints on standard output, and on standard error
    on_progress : is given the simulated date, in seconds
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
        self._slowdowns: dict[Application, Slowdowns] = {}
        self._failing: dict[str, str] = {}  # libraries at whose algorithms SMPI fails, and how

    def prepare(self, application: "Application") -> None:
        application.on().emulation(1)
        platform, mapping = self._conditions.platform, self._conditions.mapping
        check_memory(application, platform, mapping.cores(platform, application.ranks, application.threads_per_rank))

    def progress_of(self, application: "Application") -> None:
        return None

    def effects(self, application: "Application", seeds: Sequence[int]) -> None:
        return None

    def run(
        self,
        application: "Application",
        seed: int,
        *,
        first: bool,
        progress: "RunProgress | None" = None,
        priced: bool = False,
    ) -> SimulatedRun:
        if not ("collectives" in application.on().draws and self._conditions.layers.collectives):
            return self._run(application, seed, first, None)
        *libraries, own = drawn_collectives(seed, self._failing)
        for library in libraries:
            try:
                return self._run(application, seed, first, library)
            except AlgorithmError as failure:
                self._failing[str(library)] = str(failure)
        try:
            return self._run(application, seed, first, own)
        except SimulationError:
            self._failing.clear()  # it is the program that fails
            raise

    def _run(self, application: "Application", seed: int, first: bool, drawn: str | None) -> SimulatedRun:
        """The run with the algorithms of the library `drawn`; what it prints is held back until it has ended well."""
        engine, conditions = self._engine, self._conditions
        began_s = time.perf_counter()
        program, arguments, options = application.on().emulation(seed)
        counted_in_all = program is not None  # a program of ours counts kernels in what it times
        program = program or engine.program
        if program is None:
            raise InputError(f"SMPI needs a program to emulate {application.name}; give Smpi(program=...)")
        options = options if engine.limits is None else replace(options, limits=engine.limits)
        platform, threads = conditions.platform, application.threads_per_rank
        cores = conditions.mapping.cores(platform, application.ranks, threads)
        ranks_on_node = max(Counter(core // platform.nodes.cores for core in cores).values())
        cpus = load_cpus(ranks_on_node) if options.computing == "measured" and options.contention else ()
        held: list[tuple[Callable[[str], None], str]] = []  # what a run that may be repeated has printed

        def printing(on_text: Callable[[str], None] | None, hold: bool) -> Callable[[str], None] | None:
            if on_text is None or not first:
                return None
            return (lambda text: held.append((on_text, text))) if hold or drawn else on_text

        def emulated(cpus: Sequence[int], slowdowns: Slowdowns | None, hold: bool = False) -> EmulatedRun:
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
                on_line=printing(engine.on_line, hold),
                on_complaint=printing(engine.on_complaint, hold),
                on_progress=engine.on_progress,
                keep=engine.keep if first else None,
                load_cpus=cpus,
                slowdowns=slowdowns,
                drawn=drawn,
            )

        slowdowns = self._slowdowns.get(application)
        try:
            if slowdowns is None and len(cpus) > 1:
                run = emulated(cpus, None, hold=True)
                slowdowns = slowdowns_of(run.own, len(cpus), ranks_on_node, conditions.platform, options.memory_share)
                self._slowdowns[application] = slowdowns
                if run.own_share > MIN_SHARE:
                    held.clear()
                    run = emulated((), slowdowns)
            else:
                run = emulated((), slowdowns)
        except AlgorithmError:
            held.clear()
            raise
        finally:
            for on_text, text in held:
                on_text(text)
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

    def fidelity(self, run: SimulatedRun) -> str:
        return "smpi"

    def warnings(self, run: SimulatedRun) -> list[str]:
        return network_warnings(self._conditions.platform) + [
            f"SMPI fails at the collective operations of {library}: its runs follow another, or SMPI's own ({why})"
            for library, why in self._failing.items()
        ]
