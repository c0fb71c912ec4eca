"""A campaign of clocks on this machine or on nodes: mpirun of the probe, block after block, into an archive."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import pandas

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.builds import built_once, digests
from lepaute.kit.json_values import from_json, to_json
from lepaute.kit.mpi_launcher import TITLES, Start, binding_works, launch_failed
from lepaute.kit.mpi_library import check_program, find_library
from lepaute.kit.text import counted, exact_seconds
from lepaute.measure.calibration.machines import layouts_of
from lepaute.measure.clocks import request as clock_request
from lepaute.measure.comparison.libraries import NamedLibrary, named_libraries
from lepaute.measure.experiment.entries import Content, Entry
from lepaute.measure.experiment.life import Campaign, Progress, campaign_options, check_begun_with, silent
from lepaute.measure.experiment.options import Options
from lepaute.measure.experiment.ranks import start_of_ranks, write_hosts
from lepaute.measure.experiment.workspace import Workspace
from lepaute.measure.machine_load import disturbance_warnings, load_between, samples
from lepaute.measure.nodes.results import Result, check_programs_fit
from lepaute.measure.raw_files import header_of_raw, read_raw, run_followed, whole_lines
from lepaute.measure.schedulers import Request
from lepaute.measure.toolchain import C_FLAGS, probe_source
from lepaute.version import __version__

PROGRAM = "probe-clocks"
SOURCES = (
    *("probe_clocks.c", "clock_sync.c", "clock_exchange.c", "clock_model.c", "clock_offset.c", "clock_source.c"),
    *("probe_common.c", "probe_mpi.c"),
)
#: A start is ended after this long beyond its last moment: a hang.
_LIMIT_BASE_S, _LIMIT_FACTOR = 300.0, 10.0
_MAX_ATTEMPTS, _MAX_STARTS = 3, 4


@dataclass(frozen=True, slots=True)
class BlockBegun(Entry):
    """A start of mpirun, journalled before it happens; its raw file is raw/mpirunNNNN.csv."""

    JOURNAL: ClassVar[str] = "mpiruns_begun"
    mpirun: int
    block: int
    order: tuple[str, ...]
    seed: int

    @property
    def stem(self) -> str:
        return f"mpirun{self.mpirun:04d}"


@dataclass(frozen=True, slots=True)
class BlockEnded(Entry):
    """How it ended: failure is empty if it is complete; disturbed, causes: other programs used the machines."""

    JOURNAL: ClassVar[str] = "mpiruns"
    mpirun: int
    block: int
    failure: str
    disturbed: bool
    causes: tuple[str, ...]
    started_s: float
    wall_s: float
    load: tuple[dict[str, Any], ...]


def tables(workspace: Workspace) -> "Iterator[tuple[str, pandas.DataFrame]]":
    """The tables `synchronisations`, of complete mpiruns, and `mpiruns`, if there are any."""
    begun = workspace.noted(BlockBegun)
    if not begun:
        return
    ended = {each.mpirun: each for each in workspace.noted(BlockEnded)}
    complete = [each for each in begun if each.mpirun in ended and not ended[each.mpirun].failure]
    parts = [(each.mpirun, read_raw(workspace.folder / "raw" / f"{each.stem}.csv")[0]) for each in complete]
    yield "synchronisations", clock_request.table_of(parts)
    rows = []
    for each in begun:
        row = {"mpirun": each.mpirun, "block": each.block, "order": ",".join(each.order), "seed": each.seed}
        end = ended.get(each.mpirun)
        row |= {"failure": "interrupted" if end is None else end.failure}
        row |= {"disturbed": end is not None and end.disturbed, "causes": "" if end is None else "; ".join(end.causes)}
        row |= {name: float("nan") if end is None else getattr(end, name) for name in ("started_s", "wall_s")}
        rows.append(row)
    yield "mpiruns", pandas.DataFrame(rows)


def warnings(workspace: Workspace) -> list[str]:
    complete = [[each.causes] for each in workspace.noted(BlockEnded) if not each.failure]
    return disturbance_warnings(complete, "mpiruns", "mpiruns.json")


#: What the archive of a campaign holds.
CONTENT = Content(clock_request.KIND, ("mpiruns",), tables, warnings)


class Clocks(Campaign):
    """Blocks until the budget is spent, or as many as were asked for."""

    archive_content: ClassVar[Content] = CONTENT

    def __init__(
        self,
        options: Options,
        library: NamedLibrary,
        program: Path,
        request: clock_request.ClockRequest,
        slots: int | Mapping[str, int] | None,
        tell: Progress,
    ) -> None:
        """slots: ranks of each node, or of all alike; None: as few of each as it takes"""
        super().__init__(options, tell)
        self._library, self._program, self._request, self._slots = library, program, request, slots

    def _more_metadata(self) -> dict[str, Any]:
        return {clock_request.KIND: to_json(clock_request.ClockFacts(asked=self._request))}

    def prepare_machine(self) -> None:
        """Also puts the probe there; what cannot be measured is refused here, and leaves nothing behind."""
        self.tell("looking at the machine", 0.0)
        super().prepare_machine()
        begun = from_json(clock_request.ClockFacts, self.workspace.state.more.get(clock_request.KIND), lenient=True)
        check_begun_with("measurement", begun.asked, self._request)
        channels = self.nodes.channels
        layouts = layouts_of(self.nodes)
        here, asked = self.options.on_this_machine, self._request.ranks
        each = -(-asked // len(channels)) if self._slots is None and asked else self._slots or 1
        self._per_node = [each if isinstance(each, int) else each[channel.name] for channel in channels]
        self._ranks = (asked or 2) if here else asked or sum(self._per_node)
        if self._ranks < 2:
            raise InputError("one rank has no other clock to be brought together with; give --np 2, or more nodes")
        if not here and self._ranks > sum(self._per_node):
            raise InputError(f"--np is {self._ranks}; the nodes have {sum(self._per_node)} slots: give them more ranks")
        # Several names may be of one machine.
        cores = sum({each.hello.boot: len(layouts[each.name].cores) for each in channels}.values())
        shares_cores = self._ranks > cores
        self._pus = None
        if here:
            if not shares_cores and binding_works(self._library.launcher):
                self._pus = layouts[channels[0].name].pus(range(self._ranks))
        else:
            check_programs_fit(channels)
            self.nodes.put(self._program, self._program.name)
        if shares_cores:
            self.warn(
                f"{self._ranks} ranks share {counted(cores, 'core')}: synchronisations and looks at the errors wait "
                "for the system's scheduler"
            )
        known = self.nodes.call("facts")
        self._node_pus = {name: int(about["node_cores"]) for name, about in known.items()}
        # How many nodes the ranks fill
        before = [sum(self._per_node[:number]) for number in range(len(self._per_node))]
        self._facts = clock_request.ClockFacts(
            asked=self._request,
            ranks=self._ranks,
            nodes=self.nodes.names[: sum(filled < self._ranks for filled in before)],
            library=f"{TITLES[self._library.library.family]} {self._library.library.version}".strip(),
            launcher=str(self._library.launcher),
            shares_cores=shares_cores,
        )
        self.workspace.state.more[clock_request.KIND] = to_json(self._facts)
        self.workspace.save()

    def run(self) -> None:
        while not self._is_over():
            self._block(len(self._complete))
        made = len(self._complete)
        if made < clock_request.MPIRUNS_FOR_PAIRS and self._request.mpiruns is None:
            self.warn(
                f"the budget of {exact_seconds(self._request.budget_s)} held {counted(made, 'mpirun')}; "
                f"{clock_request.MIN_MPIRUNS} give intervals, "
                f"{clock_request.MPIRUNS_FOR_PAIRS} tell six methods apart"
            )

    @property
    def _complete(self) -> list[BlockEnded]:
        return [each for each in self.workspace.noted(BlockEnded) if not each.failure]

    def _is_over(self) -> bool:
        made, asked = self._complete, self._request.mpiruns
        if asked is not None or not made:
            return len(made) >= (asked or 1)
        longest_s = max(each.wall_s for each in made)
        spent_s = sum(each.wall_s for each in self.workspace.noted(BlockEnded))
        return len(made) >= clock_request.MAX_MPIRUNS or spent_s + longest_s > self._request.budget_s

    def _block(self, block: int) -> None:
        """One complete mpirun. Raises EnvironmentProblem if one after the other fails."""
        for attempt in range(_MAX_ATTEMPTS):
            ended = self._start(block)
            if not ended.failure:
                return
            self.warn(f"mpirun {ended.mpirun} failed and is kept: {ended.failure}")
            if attempt == _MAX_ATTEMPTS - 1:
                raise EnvironmentProblem(f"one mpirun after the other failed, the last one: {ended.failure}")

    def _start(self, block: int) -> BlockEnded:
        number = len(self.workspace.noted(BlockBegun))
        order, seed = self._request.order(block, self.seed), self.seed * 1000003 % 2**31 + number
        begun = BlockBegun(number, block, tuple(order), seed)
        made, request = self._complete, self._request
        spent_s = sum(each.wall_s for each in made)
        share = block / request.mpiruns if request.mpiruns else min(1.0, spent_s / request.budget_s)
        self.tell(f"mpirun {block + 1}" + (f" of {request.mpiruns}" if request.mpiruns else ""), 0.98 * share)
        self.workspace.keep_file(f"designs/{begun.stem}.csv", clock_request.design_text(order).encode())
        self.workspace.note(begun)
        raw = self.workspace.folder / "raw" / f"{begun.stem}.csv"
        raw.parent.mkdir(exist_ok=True)
        first, names = self.nodes[0], self.nodes.names
        # The folder of the first node, where rank 0 writes.
        there = f"{first.place}/{begun.stem}.csv"
        start = self._command([*self._request.words(order, there, seed)])
        limit_s = _LIMIT_BASE_S + _LIMIT_FACTOR * self._request.after_s[-1] + self._ranks
        for _ in range(_MAX_STARTS):
            raw.write_bytes(b"")
            before, started_s = samples(self.nodes, names, time.process_time()), time.time()
            result = run_followed(
                first, start.argv, {there: raw}, environment=start.environment, timeout_s=limit_s, check=False
            )
            if result.ok or not launch_failed(result.stdout + result.stderr):
                break
        after = samples(self.nodes, names, time.process_time())
        loads = [load_between(before[name], after[name], self._node_pus[name]) for name in names]
        if not self.options.on_this_machine:
            # Ranks that ssh or srun has started are no children of the agent; at most they have polled all the time.
            ranks = self._ranks_of_machines()
            busy_s = [load.own_cpu_s + load.others_cpu_s for load in loads]
            loads = [
                load.with_own(min(all_s, ranks[name] * load.wall_s))
                for name, load, all_s in zip(names, loads, busy_s, strict=True)
            ]
        where = ("",) if self.options.on_this_machine else tuple(f" on {name}" for name in names)
        causes = tuple(cause + place for load, place in zip(loads, where, strict=True) for cause in load.disturbances())
        ended = BlockEnded(
            mpirun=number,
            block=block,
            failure=_failure(result, whole_lines(raw), self._ranks, limit_s),
            disturbed=bool(causes),
            causes=causes,
            started_s=started_s,
            wall_s=max(load.wall_s for load in loads),
            load=tuple(asdict(load) for load in loads),
        )
        self.workspace.note(ended)
        return ended

    def _ranks_of_machines(self) -> dict[str, int]:
        """By node, how many ranks its machine has: several names may be of one."""
        left, ranks = self._ranks, Counter[str]()
        for channel, slots in zip(self.nodes.channels, self._per_node, strict=True):
            ranks[channel.hello.boot] += min(slots, left)
            left -= min(slots, left)
        return {channel.name: ranks[channel.hello.boot] for channel in self.nodes.channels}

    def _command(self, words: list[str]) -> Start:
        launcher, library = self._library.launcher, self._library
        if self.options.on_this_machine:
            start = launcher.start(self._ranks, cores=self._pus, use_scheduler=False)
            return Start((*start.argv, str(self._program), *words), {**library.environment, **start.environment})
        first, launch = self.nodes[0], self.options.rank_launch()
        write_hosts(first, self.nodes.names, self._per_node, launch, launcher)
        argv = [f"{first.place}/{self._program.name}", *words]
        return start_of_ranks(
            argv, self.nodes.names, self._per_node, self._ranks, launch, (), str(first.place), launcher
        )


def _failure(result: Result, raw: str, ranks: int, limit_s: float) -> str:
    """Why an mpirun does not count, in a line; empty if it does. Raises InputError for mpirun of another library."""
    if not result.ok:
        return result.failure(limit_s)
    header = header_of_raw(raw)
    if header.get("ranks", str(ranks)) != str(ranks):
        raise InputError(
            f"mpirun started runs of {header['ranks']} rank(s) instead of one of {ranks}: it does not belong to the "
            "library that the probe was built with"
        )
    return "" if raw.strip() else "the probe wrote nothing"


def _built_probe(library: NamedLibrary, tell: Progress) -> Path:
    """probe-clocks of a library, compiled unless it is there. Raises EnvironmentProblem if that does not work."""
    sources = [probe_source() / name for name in SOURCES]

    def build(folder: Path) -> None:
        tell("compiling the probe", 0.0)
        words = [*C_FLAGS, f'-DLEPAUTE_VERSION="{__version__}"', *map(str, sources), "-lm", "-o", str(folder / PROGRAM)]
        library.library.compile(words, what=f"building {PROGRAM} for {library.label}")

    inputs = [*digests([*sources, *sorted(probe_source().glob("*.h")), library.library.mpicc])]
    program = built_once(PROGRAM, [*inputs, library.library.identity, __version__, *C_FLAGS], PROGRAM, build) / PROGRAM
    check_program(library.launcher, program)
    return program


def measure_clocks(
    out_archive: str | Path,
    asked: clock_request.ClockRequest,
    *,
    library: str | None = None,
    slots: int | Mapping[str, int] | None = None,
    seed: int = 1,
    progress: Progress | None = None,
    scheduler: str = "local",
    request: Request | None = None,
    python: str | None = None,
    resume: bool = False,
) -> Path:
    """Measures the methods on this machine, or on the nodes of a request, and writes the archive; returns its path.

    library: as `lepaute compare` names one; that of the mpicc on PATH unless given
    slots  : ranks of each node (all alike, or by name), unless given as few as it takes; here as many as asked
    resume : go on with a campaign of that archive that did not end
    Raises InputError for what makes no sense, EnvironmentProblem if something is missing or mpirun fails again and
    again, KeyboardInterrupt; what was measured until then is in NAME.partial.zip, and a note says so.
    """
    options, tell = campaign_options(out_archive, seed, scheduler, request, python), progress or silent
    if library is None:
        found = find_library()
        library = f"{found.family or 'mpi'}={found.mpicc}"
    (named,) = named_libraries([library])
    return Clocks(options, named, _built_probe(named, tell), asked, slots, tell).to_the_end(resume=resume)
