"""One attempt at a planned run: a fresh process of a probe, what it wrote, what else the machine did; repetitions."""

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from lepaute.errors import EnvironmentProblem
from lepaute.kit.command import complaint_of
from lepaute.kit.mpi_launcher import launcher_of_nodes
from lepaute.measure.calibration.entries import AttemptEntry, Key, RawFile, order_of
from lepaute.measure.calibration.machines import Measured
from lepaute.measure.experiment.options import Options
from lepaute.measure.experiment.ranks import start_of_ranks, write_hosts
from lepaute.measure.experiment.workspace import Workspace
from lepaute.measure.layout import ALL
from lepaute.measure.machine_load import MAX_REPETITIONS, Load, Sample, load_between, samples
from lepaute.measure.node_agent.main import boot_id
from lepaute.measure.nodes.group import Nodes
from lepaute.measure.nodes.results import CommandFailed
from lepaute.measure.plan import FLOWS, P2P, RING, SEMANTICS, SERIAL, PlannedRun
from lepaute.measure.probes import probe_words
from lepaute.measure.raw_files import header_of_raw, run_followed
from lepaute.measure.sentinel import OPERAND_BYTES, SENTINEL, call_seconds, calls_of, gap_s, sentinel_design

#: A probe takes a few seconds; one that takes this long hangs. Larger messages than these take their time.
PROBE_LIMIT_S = 180.0
USUAL_MESSAGE_BYTES = 64 << 20
#: Probes of messages: their files say which link, and which node is at the other end.
_OF_LINKS = (P2P, RING, FLOWS, SEMANTICS)


@dataclass(frozen=True, slots=True)
class Site:
    """Where a run takes place: a node, or for messages between two, the node of rank 0 and its peer."""

    nodes: tuple[Nodes, ...]
    measured: tuple[Measured, ...]
    distance: str | None = None

    @property
    def name(self) -> str:
        return self.measured[0].name

    def place_of(self, rank: int, ranks: int) -> int:
        """Position of the node that a rank is on: as many of `ranks` ranks on each, one node after the other."""
        return rank * len(self.measured) // ranks

    def cores_on(self, run: PlannedRun, place: int) -> tuple[int, ...]:
        """The cores of a run that are on the node at that position."""
        each = len(run.cores) // len(self.measured)
        return run.cores[place * each : (place + 1) * each]

    def pus(self, run: PlannedRun) -> tuple[int, ...]:
        return tuple(pu for at, about in enumerate(self.measured) for pu in about.layout.pus(self.cores_on(run, at)))


class Attempts:
    """Makes attempts at planned runs, and notes them in the journal."""

    def __init__(self, workspace: Workspace, options: Options) -> None:
        self._workspace = workspace
        self._options = options
        self._here = boot_id()

    def make(self, run: PlannedRun, number: int, site: Site) -> None:
        """Runs a probe once. Raises EnvironmentProblem when it fails or ran other kernels, NodeLost with its node.

        What the probe wrote until then is in the workspace whatever happens.
        """
        node, peer = site.nodes[0], site.nodes[1] if len(site.nodes) > 1 else None
        stem = f"{run.name}-{run.block}-{number}"
        base = node.channels[0].folder if node.channels else ""
        design, raw = f"{base}/{stem}/design.csv", f"{base}/{stem}/raw.csv"
        text = run.design.to_csv()
        for each in site.nodes:
            each.write(design, text)
        self._workspace.keep_file(f"designs/{site.name}/block{run.block}_{run.name}.csv", text.encode())
        ranks = [f".r{rank}" for rank in range(run.ranks)]
        kept = [self._kept(run, number, site, rank, suffix) for rank, suffix in enumerate(ranks)]
        argv, environment = self._command(run, site, base, design, raw)
        mine = [path for rank, path in enumerate(kept) if site.place_of(rank, len(ranks)) == 0]
        limit_s = limit_of(run)
        before, started = self._take_samples(site), time.time()
        try:
            files = {f"{raw}{ranks[rank]}": path for rank, path in enumerate(mine)}
            result = run_followed(node, argv, files, environment=environment, timeout_s=limit_s)
        except CommandFailed as problem:
            raise EnvironmentProblem(f"{problem.result.node}: probe {run.name} {_cause(problem, limit_s)}") from problem
        loads = self._loads(site, before, len(ranks))
        if peer is not None:
            for suffix, path in zip(ranks[len(mine) :], kept[len(mine) :], strict=True):
                path.write_bytes(next(iter(peer.read(f"{raw}{suffix}").values()), b""))
        load = max(loads, key=lambda load: len(load.disturbances()))
        causes = [cause for load in loads for cause in load.disturbances()]
        for rank, path in enumerate(kept):
            _check_kernels(path, run, site.measured[site.place_of(rank, len(ranks))])
        self._workspace.note(
            AttemptEntry(
                node=site.name,
                peer=site.measured[1].name if peer is not None else None,
                block=run.block,
                name=run.name,
                attempt=number,
                probe=run.probe,
                run_cores=run.cores,
                load=run.load,
                threads=run.threads,
                seed=run.seed,
                start=result.start,
                start_s=before[0].monotonic_s,
                started_s=started,
                wall_s=load.wall_s,
                disturbed=bool(causes),
                causes=tuple(causes),
                more=asdict(load),
            )
        )

    def _command(
        self, run: PlannedRun, site: Site, base: str, design: str, raw: str
    ) -> tuple[Sequence[str], Mapping[str, str]]:
        """Command of the first node, and the variables to add."""
        coretype = site.measured[0].kernel_set.coretype_env
        words, environment = probe_words(run, site.pus(run), base, design, raw, coretype, len(site.nodes))
        if run.probe in SERIAL:
            return words, environment
        if len(site.nodes) == 1:
            start = launcher_of_nodes(site.measured[0].mpi).start(run.ranks, use_scheduler=False)
            return (*start.argv, *words), {**start.environment, **environment}
        names = [about.name for about in site.measured]
        each = run.ranks // len(site.nodes)
        launch = self._options.rank_launch()
        write_hosts(site.nodes[0], names, each, launch)
        # srun passes variables to all ranks, mpirun only to those of its own node.
        passed = [] if launch.launcher == "srun" else [word for name in environment for word in ("-x", name)]
        start = start_of_ranks(words, names, each, None, launch, passed, base)
        return start.argv, {**start.environment, **environment}

    def _kept(self, run: PlannedRun, number: int, site: Site, rank: int, suffix: str) -> Path:
        """Where the raw file of a rank goes; that it belongs to this run is written down first."""
        place = site.place_of(rank, run.ranks)
        about = site.measured[place]
        host, others = about.name, [each.name for each in site.measured if each != about]
        again = f".attempt{number}" if number else ""
        member = f"raw/{host}/block{run.block}/{run.name}{again}{suffix}.csv"
        core, active = run.cores[rank * run.threads], site.cores_on(run, place)
        inside = about.layout.distance(*run.cores) if run.probe == P2P and not others else ""
        has_link = run.probe in _OF_LINKS
        self._workspace.note(
            RawFile(
                member,
                site.name,
                host,
                run.name,
                run.block,
                run.probe,
                number,
                core,
                active_cores=len(active),
                active_socket_cores=about.layout.active_beside(core, active),
                threads=run.threads,
                distance=(site.distance or "") if others else inside,
                round=int(run.name.split("_")[0].removeprefix(SEMANTICS)) if run.probe == SEMANTICS else None,
                link=("remote" if others else "local") if has_link else None,
                peer=(others[0] if others else host) if has_link else None,
            )
        )
        path = self._workspace.folder / member
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
        return path

    def _take_samples(self, site: Site) -> list[Sample]:
        """Load of each machine of the site; what the controller uses on a shared machine counts as the run's own."""
        return [
            samples(node, [about.name], time.process_time() if about.machine == self._here else 0.0)[about.name]
            for node, about in self._machines(site)
        ]

    def _loads(self, site: Site, before: Sequence[Sample], ranks: int) -> list[Load]:
        loads = []
        for (_, about), first, last in zip(self._machines(site), before, self._take_samples(site), strict=True):
            load = load_between(first, last, about.node_pus)
            if len(site.nodes) > 1:
                # mpirun starts its ranks by ssh: they are no children of the agent, but each polls all the time.
                names = sum(each.machine == about.machine for each in site.measured)
                load = load.with_own(names * ranks // len(site.measured) * load.wall_s)
            loads.append(load)
        return loads

    def _machines(self, site: Site) -> list[tuple[Nodes, Measured]]:
        """The nodes of the site, one name of each machine."""
        first: dict[str, tuple[Nodes, Measured]] = {}
        for node, about in zip(site.nodes, site.measured, strict=True):
            first.setdefault(about.machine, (node, about))
        return list(first.values())


def limit_of(run: PlannedRun) -> float:
    """Seconds after which a probe hangs: in proportion to the largest message, which most of the bytes are in."""
    sizes = run.design.column("size_bytes") if "size_bytes" in run.design.columns else []
    most = max((size for size in sizes if isinstance(size, int)), default=0)
    return PROBE_LIMIT_S * max(1.0, most / USUAL_MESSAGE_BYTES)


def _cause(problem: CommandFailed, limit_s: float) -> str:
    result = problem.result
    if result.timed_out:
        return f"did not end within {limit_s:.0f} s and was stopped; is another program using the cores?"
    return f"failed ({result.complaint().partition(':')[0]}): {complaint_of(result.stdout, result.stderr)}"


def _check_kernels(path: Path, run: PlannedRun, about: Measured) -> None:
    with path.open(errors="replace") as file:
        lines = [line for _, line in zip(range(100), file, strict=False)]
    if all(line.startswith("#") for line in lines):
        raise EnvironmentProblem(f"{about.name}: probe {run.name} wrote no rows; see lepaute doctor")
    core = header_of_raw("".join(lines)).get("blas_core", "none")
    if core not in ("none", about.kernel_set.core_name):
        raise EnvironmentProblem(
            f"{about.name}: probe {run.name} ran the {core} kernels of OpenBLAS instead of "
            f"{about.kernel_set.core_name}: two copies of OpenBLAS are installed? See lepaute doctor"
        )


def next_repetition(
    attempts: Sequence[AttemptEntry], slow: Collection[Key], block: int, most_s: float
) -> AttemptEntry | None:
    """The last attempt of the run that is to be repeated next; None when no repetition is due or allowed.

    attempts: all of one node so far;  slow: keys of those that met a slow machine. Due are, up to `block`, runs without
    an attempt that other load left undisturbed, and once those that met a slow machine: repeating them until they look
    good would select. Those with the fewest attempts come first, in the order in which they ran.
    most_s  : all repetitions last no longer together; one that would, if it took as long as the last, is passed over
    """
    spent_s = sum(attempt.wall_s for attempt in attempts if attempt.attempt > 0)
    last = {(attempt.block, attempt.name): attempt for attempt in attempts}
    counts = Counter((attempt.block, attempt.name) for attempt in attempts)
    due = [
        attempt
        for run, attempt in last.items()
        if attempt.block <= block
        and ((attempt.disturbed and attempt.attempt < MAX_REPETITIONS) or (attempt.key in slow and counts[run] == 1))
        and spent_s + attempt.wall_s <= most_s
    ]
    return min(due, key=lambda attempt: attempt.attempt, default=None)


class Sentinels:
    """Runs them on all cores of a node, as often as a small share of the time allows."""

    def __init__(self, maker: Attempts, workspace: Workspace, seed: int) -> None:
        self._maker = maker
        self._seed = seed
        #: By node: the number of the next one, when it is due, when the last one ended.
        self._next: dict[str, int] = {}
        self._due_s: dict[str, float] = {}
        for entry in workspace.noted(RawFile):
            if entry.probe == SENTINEL:
                self._next[entry.node] = max(self._next.get(entry.node, 0), order_of(entry.name) + 1)

    def watch(self, site: Site, block: int) -> None:
        """Runs one where it is due. Raises what an attempt raises."""
        if time.monotonic() < self._due_s.get(site.name, float("-inf")):
            return
        begun_s = time.monotonic()
        about = site.measured[0]
        order = self._next.get(site.name, 0)
        self._next[site.name] = order + 1
        run = PlannedRun(
            block=block,
            name=f"{SENTINEL}{order}",
            probe=SENTINEL,
            cores=about.cores,
            seed=(self._seed + order) % 2**31,
            design=sentinel_design(calls_of(call_seconds(about.kernel_set.gflops))),
            load=ALL,
            most_bytes=OPERAND_BYTES,
        )
        self._maker.make(run, 0, site)
        ended_s = time.monotonic()
        self._due_s[site.name] = ended_s + gap_s(ended_s - begun_s)
