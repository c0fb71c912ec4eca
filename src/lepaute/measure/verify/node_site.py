"""Real runs on nodes: the real HPL put there, its ranks started as an experiment starts them, every node watched."""

import contextlib
import itertools
import secrets
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import astuple, dataclass

from lepaute.errors import EnvironmentProblem, InputError, LepauteError
from lepaute.kit.mpi_launcher import MPIRUN_OF_NODES, launch_failed
from lepaute.kit.node_sets import fold_node_set
from lepaute.measure.calibration.machines import layouts_of
from lepaute.measure.experiment.ranks import CPUS, SCRIPT, cpus_text, rank_script, start_of_ranks, write_hosts
from lepaute.measure.kernel_set import blas_environment
from lepaute.measure.layout import Layout
from lepaute.measure.machine_load import Load, Sample, load_between, samples
from lepaute.measure.nodes.channel import Channel, NodeLost
from lepaute.measure.nodes.group import Nodes, NoRecord
from lepaute.measure.nodes.pool import Pool
from lepaute.measure.nodes.results import CommandFailed, check_programs_fit, check_started
from lepaute.measure.schedulers import RankLaunch, Request, scheduler
from lepaute.measure.sentinel import LIMIT_S as SENTINEL_LIMIT_S
from lepaute.measure.sentinel import Guard, NodeSentinel
from lepaute.measure.verify.real_run import (
    REPORTS,
    HplProgram,
    NodeLoad,
    RealRun,
    available_bytes,
    check_memory,
    hpl_input_files,
    parse_output,
)
from lepaute.simulate import Hpl
from lepaute.simulate.apps.hpl.parameters import check_sayable

_TRIAL_S = 300.0
_LOOK_S = 60.0
#: Starts of a launcher that fails by itself, before any rank has begun.
_MAX_STARTS = 4


@dataclass(frozen=True, slots=True)
class LentNodes:
    """Nodes of a scheduler, each with an agent on it.

    layouts: by node, of the cores that it lends
    launch : how ranks of MPI are started there; python: the interpreter there
    """

    nodes: Nodes
    channels: tuple[Channel, ...]
    layouts: Mapping[str, Layout]
    launch: RankLaunch
    python: str


@contextmanager
def lent_nodes(name: str, request: Request, python: str | None, tell: Callable[[str], None]) -> Iterator[LentNodes]:
    """The nodes that a scheduler gives, until the end of the block; ranks that run there are ended with it.

    When a node is lost, what runs on the others is ended at once: an MPI program does not go on without its ranks.
    """
    batch_system = scheduler(name)
    there = python or (sys.executable if batch_system.on_this_machine else "python3")
    with ExitStack() as stack:
        allocation = batch_system.acquire(request, tell)
        stack.callback(allocation.release)
        lent: list[Nodes] = []

        def end_the_run(_node: str, _why: str) -> None:
            def end() -> None:
                with contextlib.suppress(LepauteError):
                    lent[0].call("stop")

            # Not on this thread, which reads from the lost node: the answers of the others come on their own.
            threading.Thread(target=end, daemon=True).start()

        folder = f"lepaute-verify-{secrets.token_hex(4)}"
        pool = stack.enter_context(Pool(allocation.nodes, python=there, folder=folder, on_lost=end_the_run))
        lent.append(Nodes(pool.channels, NoRecord()))
        yield LentNodes(lent[0], pool.channels, layouts_of(lent[0]), batch_system.rank_launch(request), there)


class NodeSite:
    """Some nodes, in the order in which ranks fill them."""

    def __init__(self, lent: LentNodes, program: HplProgram, ranks_per_node: int) -> None:
        """Puts the program there and sees that it runs on each node.

        Raises EnvironmentProblem, one line, where it does not.
        """
        self._lent, self._program, self._per_node = lent, program, ranks_per_node
        self._numbers = itertools.count()
        self._facts = lent.nodes.call("facts")
        self._sentinel: NodeSentinel | None = None
        check_programs_fit(lent.channels)
        lent.nodes.put(program.path, program.path.name)
        self._try()

    def check(self, hpl: Hpl) -> None:
        """Raises InputError if the nodes have too few cores or too little free memory."""
        check_sayable(hpl, "threads_per_rank")
        channels, threads = self._lent.channels, hpl.threads_per_rank
        if hpl.ranks > self._per_node * len(channels):
            raise InputError(
                f"grid {hpl.p}x{hpl.q} has {hpl.ranks} ranks; {len(channels)} nodes with {self._per_node} ranks each "
                "are too few. Choose a smaller --grid, or give more nodes."
            )
        for channel in channels:
            if self._per_node * threads > (cores := len(self._lent.layouts[channel.name].cores)):
                raise InputError(
                    f"{self._per_node} ranks of {threads} threads do not fit on {channel.name}, which lends {cores} "
                    "cores; give a smaller --ranks-per-node"
                )
        shown = self._used(hpl).run("cat", "/proc/meminfo", timeout_s=_LOOK_S)
        for position, name in enumerate(self._names(hpl)):
            if name not in shown:
                raise NodeLost(f"{name} is lost")
            share = min(self._per_node, hpl.ranks - position * self._per_node) / hpl.ranks
            check_memory(hpl, share, available_bytes(shown[name].stdout), f" on {name}")

    def run(self, hpl: Hpl, timeout_s: float) -> RealRun:
        """Runs HPL once, rank by rank in the order of the nodes, `ranks_per_node` on each.

        Raises NodeLost where a node is lost meanwhile, EnvironmentProblem if the program fails, prints no result, or
        takes longer than timeout_s; its ranks are ended then.
        """
        try:
            return self._made(hpl, timeout_s)
        except (CommandFailed, NodeLost) as problem:
            raise self._cause(problem, timeout_s) from problem

    def _made(self, hpl: Hpl, timeout_s: float) -> RealRun:
        used, names, first = self._used(hpl), self._names(hpl), self._lent.nodes[0]
        folder = f"{first.place}/run{next(self._numbers)}"
        environment = blas_environment(hpl.threads_per_rank, self._program.coretype)
        files = hpl_input_files(hpl, self._program)
        files[CPUS] = cpus_text(self._cpus(hpl))
        files[SCRIPT] = rank_script(folder, f"{first.place}/{self._program.path.name}", environment)
        for name, text in files.items():
            used.write(f"{folder}/{name}", text)
        write_hosts(first, names, self._per_node, self._lent.launch)
        words = ["sh", f"{folder}/{SCRIPT}"]
        start = start_of_ranks(words, names, self._per_node, hpl.ranks, self._lent.launch, (), first.place)
        for attempt in range(_MAX_STARTS):
            before = samples(used, names)
            try:
                result = first.run(*start.argv, environment=start.environment, timeout_s=timeout_s).only
                break
            except CommandFailed as failed:
                if attempt == _MAX_STARTS - 1 or not launch_failed(failed.result.stdout + failed.result.stderr):
                    raise
        loads = self._loads(hpl, used, names, before)
        time_s, ranks = parse_output(self._program, hpl, result.stdout, self._report(folder))
        return RealRun(time_s, ranks, sum_of([node.load for node in loads]), loads)

    def watch(self, guard: Guard) -> float:
        """Runs a sentinel on each machine, all at once; the mean over them."""
        try:
            self._sentinel = self._sentinel or NodeSentinel(self._lent.nodes, self._lent.layouts, guard)
            return self._sentinel.watch()
        except (CommandFailed, NodeLost) as problem:
            raise self._cause(problem, SENTINEL_LIMIT_S) from problem

    def _used(self, hpl: Hpl) -> Nodes:
        """The nodes that the ranks fill. Raises NodeLost where one of the nodes is lost."""
        for channel in self._lent.channels:
            if channel.lost is not None:
                raise NodeLost(f"{channel.name} is lost: {channel.lost}")
        return self._lent.nodes[: self._nodes_of(hpl)]

    def _nodes_of(self, hpl: Hpl) -> int:
        return -(-hpl.ranks // self._per_node)

    def _names(self, hpl: Hpl) -> tuple[str, ...]:
        """Names of the nodes that the ranks fill, the lost ones too: a group of nodes forgets those at any moment."""
        return tuple(channel.name for channel in self._lent.channels[: self._nodes_of(hpl)])

    def _cpus(self, hpl: Hpl) -> list[tuple[int, ...]]:
        """The hardware threads of each rank: those of its node, or of the cores that names of one machine share."""
        taken: Counter[str] = Counter()
        places = []
        for rank in range(hpl.ranks):
            channel = self._lent.channels[rank // self._per_node]
            layout, machine = self._lent.layouts[channel.name], channel.hello.boot
            cores = range(taken[machine], taken[machine] + hpl.threads_per_rank)
            places.append(layout.pus([core % len(layout.cores) for core in cores]))
            taken[machine] += hpl.threads_per_rank
        return places

    def _report(self, folder: str) -> str:
        """Output that HPL writes into a file, empty if there is none."""
        if self._program.is_driver:
            return ""
        words = ("cat", *(f"{folder}/{name}" for name in REPORTS))  # which fails where one is missing, and goes on
        return self._lent.nodes[0].run(*words, check=False, timeout_s=_LOOK_S).only.stdout

    def _loads(self, hpl: Hpl, used: Nodes, names: Sequence[str], before: dict[str, Sample]) -> tuple[NodeLoad, ...]:
        """Load of each node. Ranks that mpirun starts by ssh, or srun by its daemon, are no children of the agent, but
        each polls while it does not compute, so that a core for each of its threads counts as theirs."""
        after = samples(used, names)
        machine_of = {channel.name: channel.hello.boot for channel in self._lent.channels}
        ranks = Counter(machine_of[names[rank // self._per_node]] for rank in range(hpl.ranks))
        loads = []
        for name in names:
            load = load_between(before[name], after[name], int(self._facts[name]["node_cores"]))
            loads.append(NodeLoad(name, load.with_own(ranks[machine_of[name]] * hpl.threads_per_rank * load.wall_s)))
        return tuple(loads)

    def _cause(self, problem: CommandFailed | NodeLost, timeout_s: float) -> EnvironmentProblem:
        """Why a run failed, in one line. A launcher may notice a lost node before its connection is seen to end."""
        with contextlib.suppress(LepauteError):
            self._lent.nodes.call("load", _LOOK_S)
        lost = [channel for channel in self._lent.channels if channel.lost is not None]
        if lost:
            return NodeLost("; ".join(f"{channel.name} was lost in a real run: {channel.lost}" for channel in lost))
        if not isinstance(problem, CommandFailed):
            return problem
        where = fold_node_set(self._lent.nodes.names)
        if problem.result.timed_out:
            return EnvironmentProblem(f"the real HPL did not finish within {timeout_s:.0f} s on {where}")
        return EnvironmentProblem(f"the real HPL failed on {where}: {problem.result.complaint()}")

    def _try(self) -> None:
        """A tiny run on each node by itself, all at once: that the program, its libraries and mpirun are there."""
        nodes, program = self._lent.nodes, self._program
        files = hpl_input_files(Hpl(n=8, nb=4), program)
        files[CPUS] = cpus_text([self._lent.channels[0].hello.cpus[:1]])
        files[SCRIPT] = rank_script("trial", f"../{program.path.name}", blas_environment(1, program.coretype))
        for name, text in files.items():
            nodes.write(f"trial/{name}", text)
        start = MPIRUN_OF_NODES.start(1, use_scheduler=False)
        words = (*start.argv, "sh", f"trial/{SCRIPT}")
        for _ in range(_MAX_STARTS):
            trials = nodes.run(*words, environment=start.environment, timeout_s=_TRIAL_S, check=False)
            if not any(launch_failed(trial.stdout + trial.stderr) for trial in trials.values() if not trial.ok):
                break
        check_started(trials)


def sum_of(loads: Sequence[Load]) -> Load:
    """Load of several nodes together: their cores and CPU seconds added up, the longest time."""
    walls_s, *counts = zip(*map(astuple, loads), strict=True)
    return Load(max(walls_s), *map(sum, counts))
