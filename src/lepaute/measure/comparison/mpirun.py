"""A start of mpirun: a fresh run of a library's probe, what it wrote, and what else the machine did meanwhile.

Which algorithm a library runs for a case, where that can be seen: Open MPI's are exported functions, which its
components call across shared objects: the dynamic linker's log (LD_DEBUG=bindings, ld.so(8)) names those that really
ran, whatever rules chose them (probes/probe_algorithms.c). MPICH hides its own; only an algorithm that a variable of
the environment demands is known. All else is unknown.

Trials: each library once with all that is asked for, before anything is compared; what a library lacks."""

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.command import complaint_of
from lepaute.kit.mpi_launcher import MPICH, OPEN_MPI, Start
from lepaute.measure.comparison.cases import BLOCKING, COLLECTIVES, NOTHING, Case, ComparisonRequest, name_of
from lepaute.measure.comparison.entries import COMPLETE, FAILED, RAW, Lacking, MpirunBegun, MpirunEnded
from lepaute.measure.comparison.libraries import ALGORITHMS, UNKNOWN, ReadyLibrary
from lepaute.measure.comparison.numbers import TRIAL_CALLS, Batch, design_text, mpirun_seed, shuffled_batches
from lepaute.measure.experiment.workspace import Workspace
from lepaute.measure.machine_load import Sample, load_between, samples
from lepaute.measure.node_agent.system_files import SystemFiles
from lepaute.measure.nodes.channel import NodeRefused
from lepaute.measure.nodes.group import Nodes
from lepaute.measure.nodes.results import Result
from lepaute.measure.raw_files import header_of_raw, run_followed

_CACHES = "sys/devices/system/cpu/cpu0/cache"
_MOST_LEVELS = 10
_UNITS = {"K": 1 << 10, "M": 1 << 20}


def private_cache_bytes(files: SystemFiles) -> int:
    """Size of the last cache level that the first core shares with no other core (section 5.8 of "MPI Benchmarking
    Revisited"). Raises EnvironmentProblem where the machine does not tell.
    """
    threads = files.read_or("sys/devices/system/cpu/cpu0/topology/thread_siblings_list")
    sizes = {}
    for index in range(_MOST_LEVELS):
        folder = f"{_CACHES}/index{index}"
        size = re.fullmatch(r"([0-9]{1,9})([KM])", files.read_or(f"{folder}/size"))
        private = files.read_or(f"{folder}/shared_cpu_list") in (threads, "0")
        if size and private and files.read_or(f"{folder}/type") != "Instruction":
            sizes[int(files.read_or(f"{folder}/level", "0"))] = int(size[1]) * _UNITS[size[2]]
    if not sizes:
        raise EnvironmentProblem("--cold: this machine does not tell the size of its private caches (/sys)")
    return sizes[max(sizes)]


START_LIMIT_S = 120.0
_MOST_FAILURE = 300
_IGNORED = re.compile(r"UCX +WARN +unused env(?:ironment)? variables?: ([A-Z0-9_,]+)")
_MOST_HEAD_BYTES = 1 << 24


@dataclass(frozen=True, slots=True)
class Setting:
    """What is equal for all starts of a campaign.

    pus       : the hardware thread of each rank, None where ranks are not bound
    cold_bytes: memory that is overwritten before each call, 0 for warm caches
    """

    request: ComparisonRequest
    pus: tuple[int, ...] | None
    synchronisation: str
    cold_bytes: int

    @property
    def subject(self) -> tuple[str, ...]:
        request = self.request
        return "--datatype", request.datatype, "--op", request.op, "--root", str(request.root)


def start_of(library: ReadyLibrary, setting: Setting) -> Start:
    """What starts the library's ranks, bound as the setting says."""
    start = library.named.launcher.start(setting.request.ranks, cores=setting.pus, use_scheduler=False)
    return Start(start.argv, {**library.named.environment, **start.environment})


def check_start(node: Nodes, library: ReadyLibrary, setting: Setting) -> tuple[str, tuple[str, ...]]:
    """What MPI_Get_library_version says in a start that measures nothing, and the variables that UCX says it ignores.

    Raises InputError where the ranks do not see each other: mpirun is that of another library, EnvironmentProblem where
    the probe does not run.
    """
    base = f"{node.place}/start-{library.label}"
    case = Batch(Case(NOTHING, BLOCKING, 0), 1, 0)
    node.write(f"{base}/design.csv", design_text([case], "dissemination", 0))
    start = start_of(library, setting)
    words = [str(library.program), "--design", f"{base}/design.csv", "--out", f"{base}/raw", "--clock-method", "SKaMPI"]
    result = node.run(*start.argv, *words, environment=start.environment, timeout_s=START_LIMIT_S, check=False).only
    header = _header(node, f"{base}/raw.r0")
    where, ranks = f"{library.label}: {library.named.launcher.path}", setting.request.ranks
    if header.get("ranks") not in (None, str(ranks)):
        raise InputError(
            f"{where} starts {ranks} runs of {header['ranks']} rank(s) instead of one run of {ranks}: it does not "
            f"belong to the library of {library.named.library.mpicc}; nothing was measured"
        )
    if not result.ok or not header:
        raise EnvironmentProblem(f"{where} does not run the probe: {_failure(result, START_LIMIT_S)}")
    ignored = {name for names in _IGNORED.findall(result.stdout + result.stderr) for name in names.split(",")}
    return header.get("mpi", ""), tuple(sorted(ignored))


def _header(node: Nodes, path: str) -> Mapping[str, str]:
    try:
        content = next(iter(node.read(path, _MOST_HEAD_BYTES).values()), b"")
    except NodeRefused:
        return {}
    return header_of_raw(content.decode(errors="replace"))


class Mpiruns:
    def __init__(self, workspace: Workspace, node: Nodes, setting: Setting, node_pus: int) -> None:
        self._workspace, self._node = workspace, node
        self._setting, self._node_pus = setting, node_pus

    def make(
        self,
        library: ReadyLibrary,
        batches: Sequence[Batch],
        *,
        block: int,
        place: int,
        attempt: int,
        seed: int,
        limit_s: float,
        synchronisation: str | None = None,
    ) -> MpirunEnded:
        """Starts mpirun once; a failure, or a start that took longer than limit_s and was ended, is an outcome.

        block: -1 for a trial; synchronisation: another than the campaign's
        Raises NodeLost with the node. What the probe wrote until then is in the workspace whatever happens.
        """
        setting, number = self._setting, len(self._workspace.noted(MpirunBegun))
        begun = MpirunBegun(number, library.label, block, place, block < 0, attempt, seed, setting.request.ranks)
        base = f"{self._node.place}/{begun.stem}"
        compute_ns = round(1e9 * setting.request.compute_s)
        text = design_text(batches, synchronisation or setting.synchronisation, seed, compute_ns)
        self._node.write(f"{base}/design.csv", text)
        self._workspace.keep_file(f"designs/{begun.stem}.csv", text.encode())
        self._workspace.note(begun)
        kept = self._kept(begun)
        start = start_of(library, setting)
        before, started_s = self._sample(), time.time()
        result = run_followed(
            self._node,
            [*start.argv, *self._words(library, base, seed)],
            {f"{base}/{name}": path for name, path in kept.items()},
            environment=start.environment,
            timeout_s=limit_s,
            check=False,
        )
        load = load_between(before, self._sample(), self._node_pus)
        causes = load.disturbances()
        ended = MpirunEnded(
            mpirun=number,
            library=library.label,
            block=block,
            place=place,
            attempt=attempt,
            outcome=COMPLETE if result.ok else FAILED,
            failure="" if result.ok else _failure(result, limit_s),
            disturbed=bool(causes),
            causes=causes,
            started_s=started_s,
            wall_s=load.wall_s,
            load=asdict(load),
        )
        self._workspace.note(ended)
        return ended

    def _kept(self, begun: MpirunBegun) -> dict[str, Path]:
        """The files that the ranks write, and where they go; empty as long as nothing has come."""
        kept = {}
        for rank in range(begun.ranks):
            for kind in ("", ".clocks"):
                path = self._workspace.folder / RAW / f"{begun.stem}{kind}.r{rank}.csv"
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(b"")
                kept[f"raw{kind}.r{rank}"] = path
        return kept

    def _words(self, library: ReadyLibrary, base: str, seed: int) -> list[str]:
        setting = self._setting
        options = {
            "--design": f"{base}/design.csv",
            "--out": f"{base}/raw",
            "--seed": seed,
            "--clock": setting.request.clock,
            "--clock-method": setting.request.clock_method,
            "--warm-up": setting.request.warm_up,
            "--cold-bytes": setting.cold_bytes,
        }
        return [str(library.program), *setting.subject, *(str(word) for pair in options.items() for word in pair)]

    def _sample(self) -> Sample:
        """What this process uses counts as the campaign's own."""
        (sample,) = samples(self._node, self._node.names, time.process_time()).values()
        return sample


def _failure(result: Result, limit_s: float) -> str:
    if result.timed_out:
        return f"did not end within {limit_s:.0f} s and was ended"
    status = result.complaint().partition(":")[0]
    return f"{status}: {' '.join(complaint_of(result.stdout, result.stderr).split())}"[:_MOST_FAILURE]


_LIMIT_S = 120.0
_BEGIN, _END = "a64l", "l64a"
#: Of one rank; the others do the same. Successive calls of one function are one line.
_FILTER = """
file=$(ls -1 "$1".* 2>/dev/null | head -n 1)
[ -z "$file" ] || LC_ALL=C grep -oE "a64l|l64a|ompi_coll_[a-z0-9_]+" "$file" | uniq
rm -f "$1".*
"""
_FUNCTION = re.compile(r"ompi_coll_[a-z0-9]+_([a-z_]+?)_intra_([a-z0-9_]+)")
#: Functions that choose, and one that several algorithms share.
_NO_ALGORITHM = re.compile(r"do_this|dec_\w+|check_forced_init|generic")


def algorithms_of(node: Nodes, library: ReadyLibrary, setting: Setting, cases: Sequence[Case]) -> dict[Case, str]:
    """The algorithm of each case, UNKNOWN where the library does not tell."""
    visible = [case for case in cases if case.form == BLOCKING and case.operation in COLLECTIVES]
    family = library.named.library.family
    if family == OPEN_MPI and visible:
        return {**dict.fromkeys(cases, UNKNOWN), **_seen(node, library, setting, visible)}
    demanded = _demanded(library, os.environ) if family == MPICH else {}
    return {case: demanded.get(case.operation, UNKNOWN) if case in visible else UNKNOWN for case in cases}


def _seen(node: Nodes, library: ReadyLibrary, setting: Setting, cases: Sequence[Case]) -> dict[Case, str]:
    base = f"{node.place}/algorithms-{library.label}"
    rows = [f"{number},{case.operation},{case.size_bytes}" for number, case in enumerate(cases)]
    node.write(f"{base}/design.csv", "\n".join(["design_row,operation,size_bytes", *rows]) + "\n")
    start = start_of(library, setting)
    program = str(library.program.with_name(ALGORITHMS))
    variables = {"LD_BIND_NOT": "1", "LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": f"{base}/bindings"}
    words = [program, "--design", f"{base}/design.csv", *setting.subject]
    words = library.named.launcher.command([*start.argv, *words], variables)
    node.run(*words, environment=start.environment, timeout_s=_LIMIT_S, check=False)
    log = node.shell(_FILTER, f"{base}/bindings", timeout_s=_LIMIT_S, check=False).only.stdout
    return dict(zip(cases, parse_bindings(log.splitlines(), [case.operation for case in cases]), strict=True))


def parse_bindings(lines: Sequence[str], operations: Sequence[str]) -> list[str]:
    """The algorithm of each operation, in the order of the calls, from names of functions between marks.

    All are unknown where there are not as many marks as operations: a call failed, or the library uses them too.
    """
    algorithms = [UNKNOWN] * len(operations)
    if lines.count(_BEGIN) != len(operations):
        return algorithms
    number, inside = -1, False
    for line in lines:
        if line in (_BEGIN, _END):
            inside = line == _BEGIN
            number += inside
        elif inside and algorithms[number] == UNKNOWN:
            match = _FUNCTION.fullmatch(line)
            if match and match[1] == operations[number].lower() and not _NO_ALGORITHM.fullmatch(match[2]):
                algorithms[number] = match[2]
    return algorithms


def _demanded(library: ReadyLibrary, environ: Mapping[str, str]) -> dict[str, str]:
    variables = {**environ, **library.named.environment}
    names = {operation: f"CVAR_{operation.upper()}_INTRA_ALGORITHM" for operation in COLLECTIVES}
    return {
        operation: value
        for operation, name in names.items()
        for prefix in ("MPIR_", "MPICH_")
        if (value := variables.get(prefix + name, "auto")) != "auto"
    }


#: Numbers in the place of a block's: of trials, and of starts that try one operation alone.
TRIAL, ALONE = -1, -2
#: The least from which it can be seen by how much mpiruns differ.
TRIALS = 2
#: Ranks are brought together by a barrier that is the same for every library and needs no window.
SYNCHRONISATION = "dissemination"
#: Is always tried: how long word of a start takes to reach all ranks.
BROADCAST = Case("Bcast", BLOCKING, 8)
#: A trial may take half of the budget, and so long at least.
TRIAL_LIMIT_S, ALONE_LIMIT_S = 120.0, 60.0
_MOST_TRIALS = 3


class Trials:
    """TRIALS starts of each library in turn with TRIAL_CALLS calls of every case; one where calls are not derived.

    Where that fails, each operation is tried by itself: those that fail then are lacking, and the library is measured
    with the others.
    """

    def __init__(
        self,
        maker: Mpiruns,
        workspace: Workspace,
        libraries: Mapping[str, ReadyLibrary],
        request: ComparisonRequest,
        seed: int,
        warn: Callable[[str], None],
    ) -> None:
        self._maker, self._workspace, self._libraries = maker, workspace, libraries
        self._request, self._seed, self._warn = request, seed, warn

    @property
    def durations_s(self) -> dict[str, float]:
        """Of the last complete trial of each library."""
        return {each.library: each.wall_s for each in self._complete()}

    def _complete(self) -> list[MpirunEnded]:
        return [each for each in self._workspace.noted(MpirunEnded) if (each.block, each.outcome) == (TRIAL, COMPLETE)]

    def make(self, tell: Callable[[str], None]) -> None:
        """All that have not been made. Raises EnvironmentProblem where a library cannot be measured at all."""
        for made in range(1 if self._request.calls is not None else TRIALS):
            for place, label in enumerate(self._libraries):
                if sum(each.library == label for each in self._complete()) <= made:
                    tell(f"trying {label}")
                    self._make(label, place, tell)

    def _make(self, label: str, place: int, tell: Callable[[str], None]) -> None:
        limit_s = max(TRIAL_LIMIT_S, self._request.budget_s / 2)
        ended = self._try(label, TRIAL, place, self._cases(label), TRIAL_CALLS, limit_s)
        trials = 1
        while ended.outcome != COMPLETE:
            if trials == _MOST_TRIALS:
                raise EnvironmentProblem(f"{label}: cannot be measured: {ended.failure}")
            trials += 1
            self._find_lacking(label, place, tell)
            ended = self._try(label, TRIAL, place, self._cases(label), TRIAL_CALLS, limit_s)

    def _cases(self, label: str) -> list[Case]:
        lacking = {(each.operation, each.form) for each in self._workspace.noted(Lacking) if each.library == label}
        every = dict.fromkeys([*self._request.cases, BROADCAST])
        return [case for case in every if (case.operation, case.form) not in lacking]

    def _find_lacking(self, label: str, place: int, tell: Callable[[str], None]) -> None:
        """Raises EnvironmentProblem where no operation works."""
        operations = dict.fromkeys((case.operation, case.form) for case in self._cases(label))
        failed: dict[tuple[str, str], str] = {}
        for operation, form in operations:
            tell(f"trying {label}: {name_of(operation, form)}")
            mine = [case for case in self._cases(label) if (case.operation, case.form) == (operation, form)]
            ended = self._try(label, ALONE, place, mine, 1, ALONE_LIMIT_S)
            if ended.outcome != COMPLETE:
                failed[operation, form] = ended.failure
        if len(failed) == len(operations):
            raise EnvironmentProblem(f"{label}: cannot be measured: {next(iter(failed.values()))}")
        for (operation, form), why in failed.items():
            self._workspace.note(Lacking(label, operation, form, why))
            if any((case.operation, case.form) == (operation, form) for case in self._request.cases):
                self._warn(f"{label}: {name_of(operation, form)} is not measured with it: {why}")

    def _try(self, label: str, block: int, place: int, cases: list[Case], calls: int, limit_s: float) -> MpirunEnded:
        attempt = sum(each.library == label for each in self._workspace.noted(MpirunEnded))
        seed = mpirun_seed(self._seed, block, place, label, attempt)
        counts = dict.fromkeys(cases, calls)
        windows = dict.fromkeys([*cases, Case(NOTHING, BLOCKING, 0)], 0)
        limit_s = self._request.limit_s if self._request.limit_s is not None else limit_s
        return self._maker.make(
            self._libraries[label],
            shuffled_batches(counts, windows, seed, split=False),
            block=block,
            place=place,
            attempt=attempt,
            seed=seed,
            limit_s=limit_s,
            synchronisation=SYNCHRONISATION,
        )
