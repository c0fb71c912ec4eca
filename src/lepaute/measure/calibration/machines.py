"""What the measured nodes are: cores, BLAS kernels that they shall run, whether they are alike; the probes there."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from lepaute.errors import EnvironmentProblem
from lepaute.kit.mpi_launcher import MPIRUN_OF_NODES
from lepaute.measure.archive.metadata import BlasFacts, MachineFacts
from lepaute.measure.kernel_set import (
    CORETYPE,
    KERNELS_LIMIT_S,
    KernelSet,
    Timing,
    choose_kernel_set,
    kernels_argv,
    timing_of,
)
from lepaute.measure.layout import MADE_UP, Layout, layout_of
from lepaute.measure.nodes.group import Nodes, for_each_machine
from lepaute.measure.nodes.results import check_architecture, check_started
from lepaute.measure.probes import DGEMM_PROGRAM, P2P_PROGRAM


@dataclass(frozen=True, slots=True)
class Measured:
    """A node that is measured.

    machine : equal for all names of one machine
    layout  : of the cores that the node lends; cpus: hardware threads that it lends; node_pus: all that it has
    """

    name: str
    machine: str
    layout: Layout
    cpus: tuple[int, ...]
    cpu_model: str
    node_pus: int
    memory_bytes: int
    mpi: str | None
    kernel_set: KernelSet

    @property
    def cores(self) -> tuple[int, ...]:
        """The numbers of the cores that are measured, which are all that the platform has."""
        return tuple(core.number for core in self.layout.cores)

    @property
    def facts(self) -> MachineFacts:
        """As the metadata of an archive have it."""
        kernels = self.kernel_set
        return MachineFacts(
            machine=self.machine,
            cores=self.cores,
            cpus=self.cpus,
            node_cores=len(self.cores),
            cpu_model=self.cpu_model,
            memory_bytes=self.memory_bytes,
            mpi=self.mpi,
            blas=BlasFacts("openblas", kernels.core_name, kernels.config, kernels.coretype_env, kernels.gflops),
            layout=self.layout.facts,
        )


def look_at(nodes: Nodes, python: str) -> list[Measured]:
    """All nodes, in their order. Raises EnvironmentProblem if one has not two cores or no OpenBLAS."""
    facts, layouts = nodes.call("facts"), layouts_of(nodes)
    chosen: dict[str, KernelSet] = {}

    def choose(node: Nodes, _stopping: Event) -> None:
        (channel,) = node.channels
        if (cores := len(layouts[channel.name].cores)) < 2:
            raise EnvironmentProblem(
                f"{channel.name}: calibration needs two cores and may use {cores}; "
                "widen the affinity (taskset) or use another machine"
            )
        about = facts[channel.name]
        environment = {CORETYPE: about["coretype"]} if about["coretype"] else {}
        try:
            chosen[channel.name] = choose_kernel_set(
                environment=environment, flags=frozenset(about["cpu_flags"]), timer=_timer(node, python)
            )
        except EnvironmentProblem as problem:
            raise EnvironmentProblem(f"{channel.name}: {problem}") from None

    for_each_machine(nodes, choose)
    settled = settle(chosen, lambda name, coretype: _timer(nodes[name], python)(coretype))
    return [
        Measured(
            name=channel.name,
            machine=channel.hello.boot,
            layout=layouts[channel.name],
            cpus=channel.hello.cpus,
            cpu_model=facts[channel.name]["cpu_model"],
            node_pus=facts[channel.name]["node_cores"],
            memory_bytes=facts[channel.name]["memory_bytes"],
            mpi=facts[channel.name]["mpi"],
            kernel_set=settled[channel.name],
        )
        for channel in nodes.channels
        if channel.name in settled
    ]


def layouts_of(nodes: Nodes) -> dict[str, Layout]:
    """How the cores of each node lie, those that it lends; as the variable MADE_UP says where it is set."""
    sources, made_up = nodes.call("layout"), os.environ.get(MADE_UP)
    return {
        channel.name: layout_of(sources[channel.name], channel.hello.cpus, made_up)
        for channel in nodes.channels
        if channel.name in sources
    }


def settle(
    chosen: Mapping[str, KernelSet], time_on: Callable[[str, str | None], Timing | None]
) -> dict[str, KernelSet]:
    """The same kernels on every node that can run them: timings on nodes that are alike may have chosen differently.

    chosen : by node, each for itself; what most of them have chosen is tried on the others
    time_on: times the kernels of a setting of OPENBLAS_CORETYPE on a node
    """
    count = Counter(kernels.core_name for kernels in chosen.values())
    result = dict(chosen)
    usual = next((kernels for kernels in chosen.values() if kernels.core_name == count.most_common(1)[0][0]), None)
    for name, kernels in chosen.items():
        if usual is None or kernels.core_name == usual.core_name:
            continue
        timing = time_on(name, usual.coretype_env)
        if timing is not None and timing.core_name == usual.core_name:
            warning = (
                f"the {kernels.core_name} kernels of OpenBLAS were faster here; "
                f"using {usual.core_name} as on the other nodes"
            )
            result[name] = KernelSet(
                timing.core_name, usual.coretype_env, timing.gflops, (warning,), timing.config, kernels.default
            )
    return result


def _timer(node: Nodes, python: str) -> Callable[[str | None], Timing | None]:
    def timer(coretype: str | None) -> Timing | None:
        result = node.run(*kernels_argv(python, coretype), timeout_s=KERNELS_LIMIT_S, check=False).only
        return timing_of(coretype, result.stdout) if result.ok else None

    return timer


def check_alike(measured: Sequence[Measured]) -> None:
    """Raises EnvironmentProblem if nodes differ: a platform's nodes are all of one kind."""
    first = measured[0]
    for other in measured[1:]:
        for what, mine, its in (
            ("processor", first.cpu_model, other.cpu_model),
            ("number of cores", len(first.cores), len(other.cores)),
            ("cores of each socket", _sizes(first), _sizes(other)),
            ("BLAS kernels", first.kernel_set.core_name, other.kernel_set.core_name),
        ):
            if mine != its:
                raise EnvironmentProblem(
                    f"{other.name} and {first.name} differ in their {what} ({its} and {mine}): the nodes of a platform "
                    "are all alike; calibrate each kind by itself"
                )


def _sizes(about: Measured) -> str:
    return " + ".join(str(len(socket)) for socket in about.layout.sockets)


_START_S = 60.0


def equip(nodes: Nodes, programs: Iterable[Path], *, built_there: bool) -> None:
    """Puts the probes into the folder of the experiment on each node, and sees that they start.

    built_there: the node is this machine, where what builds the probes has seen to all that they need

    Raises EnvironmentProblem, one line, where a node is of another architecture or lacks a library or mpirun.
    """
    for channel in nodes.channels:
        check_architecture(channel)
    for program in programs:
        nodes.put(program, program.name)
    if built_there:
        return
    trials = nodes.run(f"./{DGEMM_PROGRAM}", "--help", timeout_s=_START_S, check=False)
    check_started(trials)
    start = MPIRUN_OF_NODES.start(1, use_scheduler=False)
    words = (*start.argv, f"./{P2P_PROGRAM}", "--help")
    trials = nodes.run(*words, environment=start.environment, timeout_s=_START_S, check=False)
    check_started(trials)
