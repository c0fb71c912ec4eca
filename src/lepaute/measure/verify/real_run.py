"""Real runs on this machine, of HPL under mpirun, with the CPU time they got and what else the machine did meanwhile.

A launcher binds as it numbers cores; here rank r is bound to the CPUs of line r of a list, as the simulation places it.
Also real runs of a command of the user's, which prints the time that was predicted.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.command import run_command
from lepaute.kit.hpl_output import ResultLines
from lepaute.kit.mpi_launcher import find_launcher
from lepaute.kit.mpi_library import check_program
from lepaute.kit.quantities import checked_pattern, value_in
from lepaute.kit.temporary import temporary_folder
from lepaute.measure.experiment.ranks import CPUS, SCRIPT, cpus_text, rank_script
from lepaute.measure.hpl_source import build_hpl
from lepaute.measure.kernel_set import CORETYPE, blas_environment
from lepaute.measure.layout import layout_here
from lepaute.measure.machine_load import Load, load_between, sample
from lepaute.measure.sentinel import LIMIT_S, Guard, duration_of
from lepaute.measure.toolchain import start_here
from lepaute.simulate import Application, Hpl
from lepaute.simulate.apps.hpl.hpl_dat import TO_STDOUT, HplDat
from lepaute.simulate.apps.hpl.parameters import check_sayable
from lepaute.simulate.prediction.document import cell_of
from lepaute.stats.disturbance import off_core_causes


class Here:
    """What is run on this machine."""

    __slots__ = ()

    def watch(self, guard: Guard) -> float:
        """Seconds of a call of the sentinel. Raises EnvironmentProblem if it fails."""
        with temporary_folder("lepaute-sentinel-") as folder:
            design, out = folder / "design.csv", folder / "raw.csv"
            design.write_text(guard.design)
            run_command(
                guard.words(str(guard.program), str(design), str(out), _pus(guard.cores)),
                what="the sentinel",
                timeout_s=LIMIT_S,
                environment=guard.environment,
                folder=folder,
            )
            return duration_of(path.read_text() for path in sorted(folder.glob(f"{out.name}.r*")))


@cache
def _pus(cores: int) -> tuple[int, ...]:
    """As a calibration binds to them; of all where there are fewer."""
    layout = layout_here()
    return layout.pus(range(min(cores, len(layout.cores))))


# HPL needs the matrix, the panels and the buffers of MPI: about a fifth more than 8 N^2 bytes at small sizes.
MEMORY_FACTOR = 1.2
#: Files in its folder that an HPL may write its report to, whatever device its input names: what the input calls the
#: output file (the HPL that Lepaute builds, and some vendors'), and that of the HPL inside HPCC.
REPORTS = ("HPL.out", "hpccoutf.txt")


@dataclass(frozen=True, slots=True)
class RankLoad:
    """Load of one rank of a run: its core's time over the solver."""

    rank: int
    cpu: int
    wall_s: float
    cpu_s: float
    voluntary_switches: int
    involuntary_switches: int


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """Load of a node during a run."""

    name: str
    load: Load


@dataclass(frozen=True, slots=True)
class RealRun:
    """Times of one run of the real program."""

    time_s: float  # as the program tells it: of HPL the solver
    ranks: tuple[RankLoad, ...]  # empty for a user's own program
    machine: Load  # from before the program was started until after it ended; of several nodes, all of them together
    nodes: tuple[NodeLoad, ...] = ()  # each by itself, where the run was made on nodes


@dataclass(frozen=True, slots=True)
class HplProgram(Here):
    """The real HPL: the driver of Lepaute, which reports each rank in JSON, or a user's own xhpl.

    coretype: value of OPENBLAS_CORETYPE, that of the calibration; None leaves it unset.
    """

    path: Path
    is_driver: bool
    coretype: str | None = None

    def check(self, hpl: Hpl) -> None:
        check_machine(hpl)

    def run(self, hpl: Hpl, timeout_s: float) -> RealRun:
        """Runs HPL once, in a folder of its own, rank r on core r, or on the next `threads_per_rank` cores.

        Raises EnvironmentProblem if the program fails, prints no result, or takes over timeout_s (it is ended then).
        """
        layout, threads = layout_here(), hpl.threads_per_rank
        places = [layout.pus(range(rank * threads, (rank + 1) * threads)) for rank in range(hpl.ranks)]
        with temporary_folder("lepaute-hpl-") as folder:
            for name, text in hpl_input_files(hpl, self).items():
                (folder / name).write_text(text)
            if places == [(rank,) for rank in range(hpl.ranks)]:  # as every launcher numbers them
                start, words = start_here(hpl.ranks, coretype=self.coretype), [str(self.path)]
            else:
                start, words = find_launcher().start(hpl.ranks), ["sh", str(folder / SCRIPT)]
                environment = blas_environment(hpl.threads_per_rank, self.coretype)
                (folder / SCRIPT).write_text(rank_script(str(folder), str(self.path), environment))
                (folder / CPUS).write_text(cpus_text(places))
            before = sample()
            record = run_command(
                [*start.argv, *words],
                what="the real HPL",
                timeout_s=timeout_s,
                environment=start.environment,
                folder=folder,
            )
            machine = load_between(before, sample(), os.cpu_count() or 1)
            reports = [folder / name for name in REPORTS]
            report = "".join(path.read_text(errors="replace") for path in reports if path.is_file())
            time_s, ranks = parse_output(self, hpl, record.stdout, report)
        return RealRun(time_s, ranks, machine)

    def sealed(self) -> dict[str, Any]:
        return {
            "sha256": hashlib.sha256(self.path.read_bytes()).hexdigest(),
            "is_driver": self.is_driver,
            "coretype": self.coretype,
        }


def check_machine(hpl: Hpl) -> None:
    """Refuses a run that this machine cannot make.

    Raises InputError for too few cores or free memory, or options that HPL lacks; EnvironmentProblem without mpirun.
    """
    check_sayable(hpl, "threads_per_rank")
    find_launcher()
    check_cores(hpl, f"grid {hpl.p}x{hpl.q}", "Choose a smaller --grid, or use `lepaute predict hpl`.")
    check_memory(hpl, 1.0, available_bytes(Path("/proc/meminfo").read_text()), "")


def check_cores(application: Application, what: str, remedy: str) -> None:
    """Raises InputError if this machine has fewer cores than the application needs."""
    cores = len(layout_here().cores)
    if (needed := application.ranks * application.threads_per_rank) > cores:
        raise InputError(f"{what} needs {needed} cores for the real run; this machine offers {cores}. {remedy}")


def check_memory(hpl: Hpl, share: float, available: int, where: str) -> None:
    """Raises InputError if that share of a run does not fit into the free memory; where: such as " on node1"."""
    needed = MEMORY_FACTOR * hpl.memory_bytes * share
    if needed > available:
        largest = int((available / (MEMORY_FACTOR * 8 * share)) ** 0.5)
        raise InputError(
            f"N = {hpl.n} needs {needed / 1e9:.1f} GB for the real run{where}; {available / 1e9:.1f} GB are free. "
            f"Choose N <= {largest // 1000 * 1000}."
        )


def user_program(path: Path, *, here: bool = True) -> HplProgram:
    """A user's own xhpl; raises InputError if it cannot be run, if `here` by the mpirun on PATH."""
    if not path.is_file() or not os.access(path, os.X_OK):
        raise InputError(f"--xhpl {path}: not an executable file. Give the path of a built xhpl.")
    if here:
        check_program(find_launcher(), path)
    return HplProgram(path.resolve(), is_driver=False)


def build_program(progress: Callable[[str], None] | None = None) -> HplProgram:
    """Lepaute's driver around the real HPL, built first where it is not (`progress` is told what is being built).

    Raises EnvironmentProblem if it cannot be built.
    """
    return HplProgram(build_hpl(progress=progress) / "xhpl-lepaute", is_driver=True)


def hpl_input_files(hpl: Hpl, program: HplProgram) -> dict[str, str]:
    """What HPL reads, by name: the HPL inside HPCC reads the second one, every other HPL the first."""
    text = hpl_input_text(hpl, to_stdout=not program.is_driver)
    return {"HPL.dat": text, "hpccinf.txt": text}


def parse_output(program: HplProgram, hpl: Hpl, output: str, report: str = "") -> tuple[float, tuple[RankLoad, ...]]:
    """Duration and ranks; report: what HPL wrote into the files REPORTS."""
    if program.is_driver:
        return _parse_driver_output(output, hpl)
    return parse_hpl_output(output + report, hpl), ()


def _parse_driver_output(output: str, hpl: Hpl) -> tuple[float, tuple[RankLoad, ...]]:
    """Duration and ranks from the JSON line of Lepaute's driver; other lines of output are passed over."""
    for line in output.splitlines():
        if not line.startswith("{"):
            continue
        try:
            record: dict[str, Any] = json.loads(line)
            names = [field.name for field in fields(RankLoad)]
            ranks = tuple(RankLoad(**{name: rank[name] for name in names}) for rank in record["ranks"])
            ran = tuple(int(record[key]) for key in ("n", "nb", "p", "q"))
            time_s = float(record["time_s"])
        except (ValueError, KeyError, TypeError) as error:
            raise EnvironmentProblem(f"the HPL driver printed an invalid result line ({error}): {line[:200]}") from None
        _check_same_run(ran, hpl)
        return time_s, ranks
    raise EnvironmentProblem(f"the HPL driver printed no result; the end of its output: {_tail(output)}")


def parse_hpl_output(output: str, hpl: Hpl) -> float:
    """Duration from the result line that HPL prints (WR... for row-major, WC... for column-major)."""
    lines = ResultLines("the output of HPL")
    try:
        found = (lines.result(line, number) for number, line in enumerate(output.splitlines(), start=1))
        result = next((each for each in found if each is not None), None)
    except InputError as problem:
        raise EnvironmentProblem(str(problem)) from None
    if result is None:
        raise EnvironmentProblem(f"HPL printed no result line (WR... or WC...); the end of its output: {_tail(output)}")
    _check_same_run((result.n, result.nb, result.p, result.q), hpl)
    return result.time_s


def _check_same_run(ran: tuple[int, ...], hpl: Hpl) -> None:
    asked = (hpl.n, hpl.nb, hpl.p, hpl.q)
    if ran != asked:
        raise EnvironmentProblem(
            f"HPL ran N, NB, P, Q = {ran} instead of {asked}: it did not read the input file written for it. "
            "Check that it reads HPL.dat from its working directory."
        )


def available_bytes(meminfo: str) -> int:
    """Free memory, from the text of /proc/meminfo."""
    for line in meminfo.splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise EnvironmentProblem("/proc/meminfo has no MemAvailable; Lepaute runs the real HPL on Linux only")


def _tail(output: str, characters: int = 300) -> str:
    words = " | ".join(line.strip() for line in output.splitlines() if line.strip())
    return words[-characters:] if words else "(nothing)"


TO_FILE = 8  # any device but HPL's 6 and 7

# HPL checks the solution only where the threshold is positive; the check takes longer than some solves.
NO_RESIDUAL_CHECK = -1.0


def hpl_input_text(hpl: Hpl, to_stdout: bool = True) -> str:
    """The text of the input file for exactly one run of the solver, without a check of its result.

    to_stdout: HPL's report goes to standard output, else to its file (a driver that speaks JSON there wants that).
    """
    return HplDat.of(hpl, threshold=NO_RESIDUAL_CHECK, device=TO_STDOUT if to_stdout else TO_FILE).text()


class _Runs(Protocol):
    def check(self, application: Any, /) -> None:
        """Raises InputError if the run does not fit there."""

    def run(self, application: Any, timeout_s: float, /) -> RealRun:
        """Makes one real run; raises EnvironmentProblem if it fails or takes longer."""
        ...


class Program(_Runs, Protocol):
    """What a campaign runs on this machine: HPL, or a command of the user's; of the applications that it runs."""

    def sealed(self) -> dict[str, Any]:
        """Part that is sealed with the predictions."""
        ...


class Site(_Runs, Protocol):
    """What a campaign needs of the place of its real runs."""

    def watch(self, guard: Guard) -> float:
        """Runs a sentinel on all cores; the seconds of a call. Raises EnvironmentProblem if it fails."""
        ...


def disturbances(ranks: tuple[RankLoad, ...], machine: Load, nodes: tuple[NodeLoad, ...] = ()) -> tuple[str, ...]:
    """Why the run counts as disturbed, one short phrase a cause; empty when it does not.

    By the rule of `stats.disturbance`, fixed before any run. Three of its witnesses are blind to how long the solver
    took: the CPU time of each rank against its wall time, that of other processes on the whole machine (a neighbour
    takes memory bandwidth and cache even where it leaves the core alone), and the time that the hypervisor took. Both
    come from /proc/stat, whose granularity matters for short runs: in 64 quiet runs the CPU time of others came out
    between -0.04 and +0.03 s. The sentinels around the run see a slower host of a virtual machine, or a lower clock.

    ranks may be empty (a user's xhpl does not report them); then only the load of the machine is judged.
    nodes: of a run on nodes, each of which is judged by itself in the place of `machine`, their sum
    """
    off_core = (cause for rank in ranks for cause in off_core_causes(rank.rank, rank.cpu_s, rank.wall_s))
    on_nodes = (f"{cause} on {node.name}" for node in nodes for cause in node.load.disturbances())
    return (*off_core, *(on_nodes if nodes else machine.disturbances()))


#: {ranks}, {grid} and {grid[0]}; a variable of a shell, ${HOME}, is none.
_PLACEHOLDER = re.compile(r"(?<!\$)\{([A-Za-z_]\w*)(?:\[(\d{1,3})\])?\}")


@dataclass(frozen=True, slots=True)
class Command(Here):
    """A command whose words may have parameters of the application in braces.

    pattern  : finds the seconds in what it prints on standard output; the last match counts
    timeout_s: of a run, instead of what the campaign gives it
    coretype : value of OPENBLAS_CORETYPE, that of the calibration; None leaves it as it is
    Raises InputError for a pattern that is none.
    """

    words: tuple[str, ...]
    pattern: str
    timeout_s: float | None = None
    coretype: str | None = None

    def __post_init__(self) -> None:
        checked_pattern(self.pattern)

    def of(self, application: Application) -> tuple[str, ...]:
        """Its words for one run; raises InputError for what is in braces and no parameter."""
        values = application.parameters() | {"ranks": application.ranks}

        def filled(match: re.Match[str]) -> str:
            name, place = match[1], match[2]
            value = values.get(name)
            parts = value if isinstance(value, list) else []
            if name not in values or (place and int(place) >= len(parts)):
                known = ", ".join(f"{{{each}}}" for each in values)
                raise InputError(f"the command has {match[0]:.80}, which {application.title} has not; it has {known}")
            return str(cell_of(parts[int(place)] if place else value))

        return tuple(_PLACEHOLDER.sub(filled, word) for word in self.words)

    def check(self, application: Application) -> None:
        """Raises InputError if there is no such program, or this machine has too few cores."""
        program = self.of(application)[0]
        if shutil.which(program) is None:
            raise InputError(f"{program:.200}: no such program; the command to run comes after two dashes")
        check_cores(application, application.label, "Take fewer ranks.")

    def run(self, application: Application, timeout_s: float) -> RealRun:
        """Raises EnvironmentProblem if it fails, prints no time, or takes longer than timeout_s."""
        before = sample()
        record = run_command(
            self.of(application),
            what="the command",
            timeout_s=self.timeout_s or timeout_s,
            environment={} if self.coretype is None else {CORETYPE: self.coretype},
        )
        machine = load_between(before, sample(), os.cpu_count() or 1)
        try:
            time_s = value_in(record.stdout.splitlines(), self.pattern)
        except ValueError as problem:
            raise EnvironmentProblem(str(problem)) from None
        if time_s == 0.0:
            raise EnvironmentProblem("the program printed a time of 0 s, which tells nothing; let it print more digits")
        return RealRun(time_s, (), machine)

    def sealed(self) -> dict[str, Any]:
        """With the SHA-256 of the programs among its words."""
        found = {word: shutil.which(word) for word in self.words}
        programs = {word: hashlib.sha256(Path(path).read_bytes()).hexdigest() for word, path in found.items() if path}
        return {
            "command": list(self.words),
            "sha256": programs,
            "time_pattern": self.pattern,
            "coretype": self.coretype,
        }
