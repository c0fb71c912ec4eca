"""A start of mpirun: a fresh run of a library's probe, what it wrote, and what else the machine did meanwhile.

Trials: each library once with all that is asked for, before anything is compared; what a library lacks.

Collective algorithms: Open MPI's are exported functions called across shared objects, so that the dynamic linker's log
(LD_DEBUG=bindings, ld.so(8)) names those that really ran, whatever rules chose them (probes/probe_algorithms.c).
MPICH's is known only if an environment variable forces it; all others are unknown."""

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Protocol

from lepaute.errors import EnvironmentProblem, InputError, LibraryFailure
from lepaute.kit.mpi_launcher import MPICH, OPEN_MPI, launch_failed
from lepaute.measure.comparison.cases import BLOCKING, COLLECTIVES, NOTHING, Case, ComparisonRequest, name_of
from lepaute.measure.comparison.entries import COMPLETE, FAILED, RAW, Lacking, MpirunBegun, MpirunEnded
from lepaute.measure.comparison.libraries import ALGORITHMS, PROGRAM, UNKNOWN, ReadyLibrary
from lepaute.measure.comparison.numbers import TRIAL_CALLS, Batch, design_text, mpirun_seed, shuffled_batches
from lepaute.measure.comparison.places import Place, network_of
from lepaute.measure.experiment.workspace import Workspace
from lepaute.measure.nodes.channel import NodeRefused
from lepaute.measure.nodes.group import Nodes
from lepaute.measure.raw_files import header_of_raw, run_followed
from lepaute.measure.sentinel import NodeSentinel

_CACHES = "sys/devices/system/cpu/cpu0/cache"
_MAX_LEVELS = 10
_UNITS = {"K": 1 << 10, "M": 1 << 20}


class Readable(Protocol):
    """The system's files, of this machine or of a node."""

    def read_or(self, name: str, default: str = "") -> str: ...


def private_cache_bytes(files: Readable) -> int:
    """Size of the last cache level that the first core shares with no other core (section 5.8 of "MPI Benchmarking
    Revisited"). Raises EnvironmentProblem if the machine does not tell.
    """
    threads = files.read_or("sys/devices/system/cpu/cpu0/topology/thread_siblings_list")
    sizes = {}
    for index in range(_MAX_LEVELS):
        folder = f"{_CACHES}/index{index}"
        size = re.fullmatch(r"([0-9]{1,9})([KM])", files.read_or(f"{folder}/size"))
        private = files.read_or(f"{folder}/shared_cpu_list") in (threads, "0")
        if size and private and files.read_or(f"{folder}/type") != "Instruction":
            sizes[int(files.read_or(f"{folder}/level", "0"))] = int(size[1]) * _UNITS[size[2]]
    if not sizes:
        raise EnvironmentProblem("--cold: this machine does not tell the size of its private caches (/sys)")
    return sizes[max(sizes)]


START_LIMIT_S = 120.0
#: Starts of a launcher that fails by itself, before any rank has begun.
_MAX_STARTS = 4
#: A sentinel stands for the machine so long after its end.
_FRESH_S = 2.0
_IGNORED = re.compile(r"UCX +WARN +unused env(?:ironment)? variables?: ([A-Z0-9_,]+)")
_MAX_HEAD_BYTES = 1 << 24


@dataclass(frozen=True, slots=True)
class Setting:
    """Setting of all starts of a cell.

    pus       : the hardware thread of each rank, None if ranks are not bound
    cold_bytes: memory that is overwritten before each call, 0 for warm caches
    pages     : that message buffers lie on: default, small or huge
    levels    : of the campaign's factors
    """

    request: ComparisonRequest
    ranks: int
    pus: tuple[int, ...] | None
    synchronisation: str
    cold_bytes: int
    pages: str = "default"
    levels: Mapping[str, str] = field(default_factory=dict)

    @property
    def subject(self) -> tuple[str, ...]:
        request = self.request
        return "--datatype", request.datatype, "--op", request.op, "--root", str(request.root)


@dataclass(frozen=True, slots=True)
class Cell:
    """What is measured in turn with others: a library on a number of ranks, with a level of each factor.

    name: among the cells of the campaign: the label of the library where it has no other cell
    """

    name: str
    library: ReadyLibrary
    setting: Setting

    @property
    def label(self) -> str:
        return self.library.label


@dataclass(frozen=True, slots=True)
class Started:
    """Outcome of a start that measures nothing.

    text   : what MPI_Get_library_version says; ignored: variables that UCX says it ignores
    network: what joins its ranks, see `network_of`
    """

    text: str
    ignored: tuple[str, ...]
    network: str


def check_start(place: Place, cell: Cell) -> Started:
    """Raises InputError where mpirun is of another library: ranks see no others; EnvironmentProblem where none runs."""
    library, ranks, node = cell.library, cell.setting.ranks, place.nodes[0]
    base = f"{node.place}/start-{file_name(cell.name)}"
    place.write(ranks, f"{base}/design.csv", design_text([Batch(Case(NOTHING, BLOCKING, 0), 1, 0)], "dissemination", 0))
    words = [place.program(library, PROGRAM), "--design", f"{base}/design.csv", "--out", f"{base}/raw"]
    words += ["--clock-method", "SKaMPI", "--transports", f"{base}/shared", "--pages", cell.setting.pages]
    for _ in range(_MAX_STARTS):
        start = place.start(library, ranks, cell.setting.pus, words, base)
        result = node.run(*start.argv, environment=start.environment, timeout_s=START_LIMIT_S, check=False).only
        # Between nodes a start dies now and then of a reason that does not last (measure/experiment/ranks).
        if result.ok or result.timed_out or (place.is_here and not launch_failed(result.stdout + result.stderr)):
            break
    header = _header(node, f"{base}/raw.r0")
    where = f"{library.label}: {library.named.launcher.path}"
    if header.get("ranks") not in (None, str(ranks)):
        raise InputError(
            f"{where} starts {ranks} runs of {header['ranks']} rank(s) instead of one run of {ranks}: it does not "
            f"belong to the library of {library.named.library.mpicc}; nothing was measured"
        )
    if not result.ok or not header:
        raise EnvironmentProblem(f"{where} does not run the probe: {result.failure(START_LIMIT_S)}")
    ignored = {name for names in _IGNORED.findall(result.stdout + result.stderr) for name in names.split(",")}
    network = network_of(place.read(ranks, f"{base}/shared.r{{rank}}"), place.nodes_of(ranks), place.machines)
    return Started(header.get("mpi", ""), tuple(sorted(ignored)), network)


def file_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.+=-]", "-", name)


def _header(node: Nodes, path: str) -> Mapping[str, str]:
    try:
        content = next(iter(node.read(path, _MAX_HEAD_BYTES).values()), b"")
    except NodeRefused:
        return {}
    return header_of_raw(content.decode(errors="replace"))


class Watch:
    """The sentinels of a campaign: the one after an mpirun is that before the next one, where that follows at once."""

    def __init__(self, sentinel: NodeSentinel | None) -> None:
        """sentinel: None if none can be run: there are no seconds then"""
        self._sentinel, self._ended_s = sentinel, -inf
        self._last_s: tuple[float, ...] = ()

    def before(self) -> tuple[float, ...]:
        """Seconds of a call."""
        return self._last_s if time.monotonic() - self._ended_s <= _FRESH_S else self.after()

    def after(self) -> tuple[float, ...]:
        self._last_s = () if self._sentinel is None else (self._sentinel.watch(),)
        self._ended_s = time.monotonic()
        return self._last_s


class Mpiruns:
    def __init__(self, workspace: Workspace, place: Place, watch: Watch, prepare: Callable[[Cell], None]) -> None:
        """prepare: sets the machines to the levels of a cell"""
        self._workspace, self._place, self._watch, self._prepare = workspace, place, watch, prepare

    def make(
        self,
        cell: Cell,
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

        block: -1 for a trial; place: in the order of the block; synchronisation: instead of the campaign's
        Raises NodeLost if a node is lost. What the probe wrote on the first node until then is in the workspace.
        """
        setting, number, first = cell.setting, len(self._workspace.noted(MpirunBegun)), self._place.nodes[0]
        ranks, library = setting.ranks, cell.library
        begun = MpirunBegun(
            number, library.label, block, place, block < 0, attempt, seed, ranks, cell.name, dict(setting.levels)
        )
        base = f"{first.place}/{begun.stem}"
        compute_ns = round(1e9 * setting.request.compute_s)
        text = design_text(batches, synchronisation or setting.synchronisation, seed, compute_ns)
        self._place.write(ranks, f"{base}/design.csv", text)
        self._workspace.keep_file(f"designs/{begun.stem}.csv", text.encode())
        self._workspace.note(begun)
        self._prepare(cell)
        kept = self._kept(begun, base)
        words = self._words(cell, base, seed)
        mine = {
            there: here
            for rank, node in enumerate(self._place.nodes_of(ranks))
            if node == 0
            for there, here in kept[rank].items()
        }
        sentinels_s = self._watch.before()
        for again in range(_MAX_STARTS):
            start = self._place.start(library, ranks, setting.pus, words, base)
            before, started_s = self._place.samples(ranks), time.time()
            result = run_followed(
                first, start.argv, mine, environment=start.environment, timeout_s=limit_s, check=False
            )
            failed = not result.ok and launch_failed(result.stdout + result.stderr)
            if self._place.is_here or not failed or again == _MAX_STARTS - 1:
                break
        loads = self._place.loads(ranks, before)
        sentinels_s += self._watch.after()
        self._place.fetch(ranks, kept)
        causes = self._place.causes(loads)
        ended = MpirunEnded(
            mpirun=number,
            library=library.label,
            block=block,
            place=place,
            attempt=attempt,
            outcome=COMPLETE if result.ok else FAILED,
            failure="" if result.ok else result.failure(limit_s),
            disturbed=bool(causes),
            causes=causes,
            started_s=started_s,
            wall_s=max(load.wall_s for load in loads.values()),
            load=self._place.written(loads),
            cell=cell.name,
            sentinels_s=sentinels_s,
        )
        self._workspace.note(ended)
        return ended

    def _kept(self, begun: MpirunBegun, base: str) -> dict[int, dict[str, Path]]:
        """The files that each rank writes, and where they go; empty as long as nothing has come."""
        kept: dict[int, dict[str, Path]] = {}
        for rank in range(begun.ranks):
            for kind in ("", ".clocks"):
                path = self._workspace.folder / RAW / f"{begun.stem}{kind}.r{rank}.csv"
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(b"")
                kept.setdefault(rank, {})[f"{base}/raw{kind}.r{rank}"] = path
        return kept

    def _words(self, cell: Cell, base: str, seed: int) -> list[str]:
        setting = cell.setting
        options = {
            "--design": f"{base}/design.csv",
            "--out": f"{base}/raw",
            "--seed": seed,
            "--clock": setting.request.clock,
            "--clock-method": setting.request.clock_method,
            "--warm-up": setting.request.warm_up,
            "--cold-bytes": setting.cold_bytes,
            "--pages": setting.pages,
        }
        program = self._place.program(cell.library, PROGRAM)
        return [program, *setting.subject, *(str(word) for pair in options.items() for word in pair)]


#: Numbers in the place of a block's: of trials, and of starts that try one operation alone.
TRIAL, ALONE = -1, -2
#: The least from which it can be seen by how much mpiruns differ.
TRIALS = 2
#: Ranks are brought together by a barrier that is the same for every library and needs no window.
SYNCHRONISATION = "dissemination"
#: Is always tried: how long word of a start takes to reach all ranks.
BROADCAST = Case("Bcast", BLOCKING, 8)
#: A trial may take half of the budget, and so long at least.
TRIAL_LIMIT_S, SINGLE_OPERATION_TIMEOUT_S = 120.0, 60.0
_MAX_TRIALS = 3


class Trials:
    """TRIALS starts of each cell in turn with TRIAL_CALLS calls of every case; one where calls are not derived.

    Where that fails, each operation is tried by itself; the library is measured without those that fail then.
    """

    def __init__(
        self,
        maker: Mpiruns,
        workspace: Workspace,
        cells: Mapping[str, Cell],
        request: ComparisonRequest,
        seed: int,
        warn: Callable[[str], None],
    ) -> None:
        self._maker, self._workspace, self._cells = maker, workspace, cells
        self._request, self._seed, self._warn = request, seed, warn

    @property
    def durations_s(self) -> dict[str, float]:
        """Durations of the last complete trial of each cell."""
        return {each.cell: each.wall_s for each in self._complete()}

    def _complete(self) -> list[MpirunEnded]:
        return [each for each in self._workspace.noted(MpirunEnded) if (each.block, each.outcome) == (TRIAL, COMPLETE)]

    def make(self, tell: Callable[[str], None]) -> None:
        """All that have not been made. Raises LibraryFailure where a library cannot be measured at all."""
        for made in range(1 if self._request.calls is not None else TRIALS):
            for place, name in enumerate(self._cells):
                if sum(each.cell == name for each in self._complete()) <= made:
                    tell(f"trying {name}")
                    limit_s = max(TRIAL_LIMIT_S, self._request.budget_s / 2)
                    ended = self._try(name, TRIAL, place, self._cases(name), TRIAL_CALLS, limit_s)
                    trials = 1
                    while ended.outcome != COMPLETE:
                        if trials == _MAX_TRIALS:
                            raise LibraryFailure(f"{name}: cannot be measured: {ended.failure}")
                        trials += 1
                        self._find_lacking(name, place, tell)
                        ended = self._try(name, TRIAL, place, self._cases(name), TRIAL_CALLS, limit_s)

    def _cases(self, name: str) -> list[Case]:
        lacking = {(each.operation, each.form) for each in self._workspace.noted(Lacking) if each.library == name}
        every = dict.fromkeys([*self._request.cases, BROADCAST])
        return [case for case in every if (case.operation, case.form) not in lacking]

    def _find_lacking(self, name: str, place: int, tell: Callable[[str], None]) -> None:
        """Raises LibraryFailure where no operation works."""
        operations = dict.fromkeys((case.operation, case.form) for case in self._cases(name))
        failed: dict[tuple[str, str], str] = {}
        for operation, form in operations:
            tell(f"trying {name}: {name_of(operation, form)}")
            mine = [case for case in self._cases(name) if (case.operation, case.form) == (operation, form)]
            ended = self._try(name, ALONE, place, mine, 1, SINGLE_OPERATION_TIMEOUT_S)
            if ended.outcome != COMPLETE:
                failed[operation, form] = ended.failure
        if len(failed) == len(operations):
            raise LibraryFailure(f"{name}: cannot be measured: {next(iter(failed.values()))}")
        for (operation, form), why in failed.items():
            self._workspace.note(Lacking(name, operation, form, why))
            if any((case.operation, case.form) == (operation, form) for case in self._request.cases):
                self._warn(f"{name}: {name_of(operation, form)} is not measured with it: {why}")

    def _try(self, name: str, block: int, place: int, cases: list[Case], calls: int, limit_s: float) -> MpirunEnded:
        attempt = sum(each.cell == name for each in self._workspace.noted(MpirunEnded))
        seed = mpirun_seed(self._seed, block, place, name, attempt)
        windows = dict.fromkeys([*cases, Case(NOTHING, BLOCKING, 0)], 0)
        limit_s = self._request.limit_s if self._request.limit_s is not None else limit_s
        return self._maker.make(
            self._cells[name],
            shuffled_batches(dict.fromkeys(cases, calls), windows, seed, split=False),
            block=block,
            place=place,
            attempt=attempt,
            seed=seed,
            limit_s=limit_s,
            synchronisation=SYNCHRONISATION,
        )


_LIMIT_S = 120.0
_BEGIN, _END = "a64l", "l64a"
#: Output of one rank; the others do the same. Successive calls of one function are one line.
_FILTER = """
file=$(ls -1 "$1".* 2>/dev/null | head -n 1)
[ -z "$file" ] || LC_ALL=C grep -oE "a64l|l64a|ompi_coll_[a-z0-9_]+" "$file" | uniq
rm -f "$1".*
"""
_FUNCTION = re.compile(r"ompi_coll_[a-z0-9]+_([a-z_]+?)_intra_([a-z0-9_]+)")
#: Functions that choose, and one that several algorithms share.
_NO_ALGORITHM = re.compile(r"do_this|dec_\w+|check_forced_init|generic")


def algorithms_of(place: Place, cell: Cell, cases: Sequence[Case]) -> dict[Case, str]:
    """The algorithm of each case, UNKNOWN where the library does not tell."""
    visible = [case for case in cases if case.form == BLOCKING and case.operation in COLLECTIVES]
    family = cell.library.named.library.family
    if family == OPEN_MPI and visible:
        return {**dict.fromkeys(cases, UNKNOWN), **_seen(place, cell, visible)}
    demanded = _demanded(cell.library, os.environ) if family == MPICH else {}
    return {case: demanded.get(case.operation, UNKNOWN) if case in visible else UNKNOWN for case in cases}


def _seen(place: Place, cell: Cell, cases: Sequence[Case]) -> dict[Case, str]:
    library, setting, node = cell.library, cell.setting, place.nodes[0]
    base = f"{node.place}/algorithms-{file_name(cell.name)}"
    rows = [f"{number},{case.operation},{case.size_bytes}" for number, case in enumerate(cases)]
    place.write(setting.ranks, f"{base}/design.csv", "\n".join(["design_row,operation,size_bytes", *rows]) + "\n")
    variables = {"LD_BIND_NOT": "1", "LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": f"{base}/bindings"}
    words = [place.program(library, ALGORITHMS), "--design", f"{base}/design.csv", *setting.subject]
    # A script that binds a rank would write into the log, too.
    start = place.start(library, setting.ranks, setting.pus if place.is_here else None, words, base, variables)
    node.run(*start.argv, environment=start.environment, timeout_s=_LIMIT_S, check=False)
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
