"""One start of mpirun: a fresh run of a library's probe, what it wrote, and what else the machine did meanwhile."""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.command import complaint_of
from lepaute.kit.journal import drop_broken_end
from lepaute.kit.mpi_launcher import Start
from lepaute.measure.comparison.cases import BLOCKING, NOTHING, Case
from lepaute.measure.comparison.entries import COMPLETE, FAILED, MpirunBegun, MpirunEnded
from lepaute.measure.comparison.libraries import ReadyLibrary
from lepaute.measure.comparison.order import Batch, design_text
from lepaute.measure.comparison.reductions import Reduction
from lepaute.measure.comparison.tables import RAW
from lepaute.measure.experiment.workspace import Workspace
from lepaute.measure.machine_load import Load, Sample, load_between
from lepaute.measure.nodes.channel import NodeLost, NodeRefused
from lepaute.measure.nodes.group import Nodes
from lepaute.measure.nodes.results import Result
from lepaute.measure.probes import header_of_raw

#: Between looks at what a probe has written: each costs the measured machine a little.
FOLLOW_S = 2.0
START_LIMIT_S = 120.0
_MOST_FAILURE = 300
_IGNORED = re.compile(r"UCX +WARN +unused env(?:ironment)? variables?: ([A-Z0-9_,]+)")
_MOST_HEAD_BYTES = 1 << 24


@dataclass(frozen=True, slots=True)
class Setting:
    """What is equal for all starts of a campaign.

    ranks: in each; pus: the hardware thread of each rank, None where ranks are not bound
    cold_bytes: memory that is overwritten before each call, 0 for warm caches
    reduction: of reductions; root: of operations that have one; compute_ns: work of overlapped operations
    """

    ranks: int
    pus: tuple[int, ...] | None
    synchronisation: str
    clock: str
    clock_method: str
    warm_up: int
    cold_bytes: int
    reduction: Reduction
    root: int
    compute_ns: int

    @property
    def subject(self) -> tuple[str, ...]:
        """The options of the probes that say what is called."""
        return "--datatype", self.reduction.datatype, "--op", self.reduction.op, "--root", str(self.root)


def start_of(library: ReadyLibrary, setting: Setting) -> Start:
    """What starts the library's ranks, bound as the setting says."""
    start = library.named.launcher.start(setting.ranks, cores=setting.pus, use_scheduler=False)
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
    where = f"{library.label}: {library.named.launcher.path}"
    if header.get("ranks") not in (None, str(setting.ranks)):
        raise InputError(
            f"{where} starts {setting.ranks} runs of {header['ranks']} rank(s) instead of one run of {setting.ranks}: "
            f"it does not belong to the library of {library.named.library.mpicc}; nothing was measured"
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
    """Starts mpirun, and writes down in a workspace what comes of it."""

    def __init__(self, workspace: Workspace, node: Nodes, setting: Setting, node_pus: int) -> None:
        """node_pus: hardware threads of the machine"""
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
    ) -> tuple[MpirunBegun, MpirunEnded]:
        """Starts mpirun once; a failure, or a start that took longer than limit_s and was ended, is an outcome.

        block: -1 for a trial; synchronisation: another than the campaign's
        Raises NodeLost with the node. What the probe wrote until then is in the workspace whatever happens.
        """
        setting, number = self._setting, len(self._workspace.noted(MpirunBegun))
        begun = MpirunBegun(number, library.label, block, place, block < 0, attempt, seed, setting.ranks)
        base = f"{self._node.place}/{begun.stem}"
        text = design_text(batches, synchronisation or setting.synchronisation, seed, setting.compute_ns)
        self._node.write(f"{base}/design.csv", text)
        self._workspace.keep_file(f"designs/{begun.stem}.csv", text.encode())
        self._workspace.note(begun)
        kept = self._kept(begun)
        start = start_of(library, setting)
        before, started_s = self._sample(), time.time()
        try:
            result = self._node.run(
                *start.argv,
                *self._words(library, base, seed),
                environment=start.environment,
                timeout_s=limit_s,
                check=False,
                follow={f"{base}/{name}": _appending(path) for name, path in kept.items()},
                follow_period_s=FOLLOW_S,
            ).only
        finally:
            for path in kept.values():
                drop_broken_end(path)
        load = self._load(before)
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
        return begun, ended

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
            "--clock": setting.clock,
            "--clock-method": setting.clock_method,
            "--warm-up": setting.warm_up,
            "--cold-bytes": setting.cold_bytes,
        }
        return [str(library.program), *setting.subject, *(str(word) for pair in options.items() for word in pair)]

    def _sample(self) -> Sample:
        """What this process uses counts as the campaign's own."""
        counters = next(iter(self._node.call("load").values()), None)
        if counters is None:
            raise NodeLost(self._node.none_left())
        counters["own_s"] += time.process_time()
        return Sample(**counters)

    def _load(self, before: Sample) -> Load:
        return load_between(before, self._sample(), self._node_pus)


def _appending(path: Path) -> Any:
    def append(_node: str, _index: int, data: bytes) -> None:
        with path.open("ab") as file:
            file.write(data)

    return append


def _failure(result: Result, limit_s: float) -> str:
    """Why a start failed, in one line."""
    if result.timed_out:
        return f"did not end within {limit_s:.0f} s and was ended"
    status = result.complaint().partition(":")[0]
    return f"{status}: {' '.join(complaint_of(result.stdout, result.stderr).split())}"[:_MOST_FAILURE]
