"""What the measured nodes are: facts, cores, the BLAS kernels that they shall run; and whether they are alike."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lepaute.errors import EnvironmentProblem
from lepaute.measure.calibration.together import each_machine
from lepaute.measure.kernel_set import CORETYPE, KERNELS_LIMIT_S, KernelSet, Timing, choose_kernel_set, kernels_argv, timing_of
from lepaute.measure.nodes.group import Nodes


@dataclass(frozen=True, slots=True)
class Measured:
    """A node that is measured.

    cores  : the two that the probes run on
    machine: equal for all names of one machine
    """

    name: str
    machine: str
    cores: tuple[int, int]
    cpu_model: str
    node_cores: int
    memory_bytes: int
    mpi: str | None
    kernel_set: KernelSet

    def to_dict(self) -> dict[str, Any]:
        """As the metadata of an archive has it."""
        kernels = self.kernel_set
        return {
            "machine": self.machine,
            "cores": list(self.cores),
            "node_cores": self.node_cores,
            "cpu_model": self.cpu_model,
            "memory_bytes": self.memory_bytes,
            "mpi": self.mpi,
            "blas": {
                "library": "openblas",
                "core": kernels.core_name,
                "config": kernels.config,
                "coretype_env": kernels.coretype_env,
                "dgemm_gflops": kernels.gflops,
            },
        }


def look_at(nodes: Nodes, python: str) -> list[Measured]:
    """All nodes, in their order. Raises EnvironmentProblem where one has not two cores or no OpenBLAS."""
    facts = nodes.call("facts")
    found: dict[str, Measured] = {}

    def look(node: Nodes) -> None:
        (channel,) = node.channels
        about, cpus = facts[channel.name], channel.hello["cpus"]
        if len(cpus) < 2:
            raise EnvironmentProblem(
                f"{channel.name}: calibration needs two cores and may use {len(cpus)}; "
                "widen the affinity (taskset) or use another machine"
            )
        found[channel.name] = Measured(
            name=channel.name,
            machine=channel.hello["boot"],
            cores=(cpus[0], cpus[1]),
            cpu_model=about["cpu_model"],
            node_cores=about["node_cores"],
            memory_bytes=about["memory_bytes"],
            mpi=about["mpi"],
            kernel_set=_kernel_set(node, python, about),
        )

    each_machine(nodes, look)
    return [found[name] for name in nodes.names if name in found]


def _kernel_set(node: Nodes, python: str, about: dict[str, Any]) -> KernelSet:
    def timer(coretype: str | None) -> Timing | None:
        result = node.run(*kernels_argv(python, coretype), timeout_s=KERNELS_LIMIT_S, check=False).only
        return timing_of(coretype, result.stdout) if result.ok else None

    try:
        wanted = {CORETYPE: about["coretype"]} if about["coretype"] else {}
        return choose_kernel_set(environment=wanted, flags=frozenset(about["cpu_flags"]), timer=timer)
    except EnvironmentProblem as problem:
        raise EnvironmentProblem(f"{node.names[0]}: {problem}") from None


def check_alike(measured: Sequence[Measured]) -> None:
    """Raises EnvironmentProblem where nodes differ: a platform's nodes are all of one kind."""
    first = measured[0]
    for other in measured[1:]:
        for what, mine, its in (
            ("processor", first.cpu_model, other.cpu_model),
            ("number of cores", first.node_cores, other.node_cores),
            ("BLAS kernels", first.kernel_set.core_name, other.kernel_set.core_name),
        ):
            if mine != its:
                raise EnvironmentProblem(
                    f"{other.name} and {first.name} differ in their {what} ({its} and {mine}): the nodes of a platform "
                    "are all alike; calibrate each kind by itself"
                )
