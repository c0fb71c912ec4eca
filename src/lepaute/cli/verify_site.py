"""Where `lepaute verify` makes its real runs: this machine or nodes, looked at and compared with the platform."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from lepaute.cli.terminal import note, warn
from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.node_sets import fold_node_set
from lepaute.measure.kernel_set import (
    CORETYPE,
    KERNELS_LIMIT_S,
    choose_kernel_set,
    kernels_argv,
    time_kernels,
    timing_of,
)
from lepaute.measure.node_agent.facts import cpu_model
from lepaute.measure.schedulers import Request, default_scheduler, scheduler
from lepaute.measure.toolchain import find_toolchain
from lepaute.measure.verify.machine import SeenNode, check_same_machine, guard_of

if TYPE_CHECKING:
    from lepaute.measure.sentinel import Guard
    from lepaute.measure.verify.node_site import LentNodes
    from lepaute.measure.verify.real_run import Command, HplProgram, Site
    from lepaute.simulate import Mapping
    from lepaute.simulate.platform import Platform
    from lepaute.simulate.platform.schema import Blas

AProgram = TypeVar("AProgram", bound="HplProgram | Command")


@dataclass(frozen=True, slots=True)
class Where:
    """As the command line says it."""

    scheduler: str
    request: Request
    python: str | None
    ranks_per_node: int | None
    other_machine: bool

    @property
    def is_here(self) -> bool:
        return scheduler(self.scheduler).on_this_machine

    def on(self, nodes: tuple[str, ...]) -> "Where":
        """The same, on nodes that are known by now: what was calibrated is verified."""
        if self.is_here:
            return self
        return replace(self, request=replace(self.request, nodes=fold_node_set(nodes), count=None))


def where_of(
    name: str | None, request: Request, python: str | None, ranks_per_node: int | None, *, other_machine: bool
) -> Where:
    """Raises InputError for options that only nodes have, given for this machine."""
    name = default_scheduler(request.nodes) if name is None else name
    where = Where(name, request, python, ranks_per_node, other_machine)
    scheduler(where.scheduler).known_nodes(request)  # refuses what it does not support
    if where.is_here and ranks_per_node is not None:
        raise InputError("--ranks-per-node applies to nodes; give --nodes or --scheduler as well")
    return where


def refuse_other_machine(platform: "Platform", where: Where) -> None:
    """Before anything is built: raises InputError as `opened_site`, of this machine and all but its BLAS."""
    if where.is_here:
        check_same_machine(platform, [this_node(None)], other_machine=where.other_machine)


def sentinel_guard(machine: "Platform", coretype: str | None, *, other_machine: bool) -> "Guard | None":
    """How the platform's sentinel is run again, built first where it is not; None where it has none, or one of another
    machine, with which there is nothing to compare."""
    from lepaute.measure.probes import DGEMM_PROGRAM, build_programs

    if machine.sentinel is None or other_machine:
        return None
    return guard_of(machine, build_programs([DGEMM_PROGRAM], note, find_toolchain()) / DGEMM_PROGRAM, coretype)


@contextmanager
def opened_site(
    where: Where,
    platform: "Platform",
    program: AProgram,
    threads: int,
    calibrated_coretype: str | None,
    *,
    calibrated: bool,
    resumed: Path | None = None,
) -> "Iterator[tuple[Site, AProgram, Mapping | None]]":
    """The place of the real runs, the program with its kernels, and the mapping of ranks where it is not the default.

    calibrated: the platform has just been measured there, with `calibrated_coretype`: nothing is compared
    resumed: folder of the campaign that goes on: with its kernels where the platform does not say which, since the
        fastest, chosen anew, may be others when they are about equally fast
    Raises InputError where the platform is of another machine, unless --other-machine.
    """
    from lepaute.measure.verify.real_run import HplProgram
    from lepaute.measure.verify.seal import sealed_coretype

    def with_kernels(chosen: str | None, detected_nodes: "list[SeenNode]") -> AProgram:
        """The program with its kernels, once the nodes are found to be those of the platform."""
        warn(check_same_machine(platform, detected_nodes, other_machine=where.other_machine))
        if resumed is not None and platform.blas is None:
            chosen = sealed_coretype(resumed)
        return replace(program, coretype=chosen)

    if calibrated:
        program = replace(program, coretype=calibrated_coretype)
    if where.is_here:
        if not calibrated:
            of_hpl = isinstance(program, HplProgram)  # a command may have no BLAS
            kernels = kernels_here(platform.blas) if of_hpl or platform.blas is not None else (None, None)
            program = with_kernels(kernels[0], [this_node(kernels[1])])
        yield program, program, None
        return

    from lepaute.measure.verify.node_site import NodeSite, lent_nodes

    with lent_nodes(where.scheduler, where.request, where.python, note) as lent:
        if not calibrated:
            program = with_kernels(*_look_at_nodes(lent, platform.blas))
        per_node = where.ranks_per_node or max(1, platform.nodes.cores // threads)
        mapping = None if where.ranks_per_node is None else spread(platform, len(lent.channels), per_node, threads)
        assert isinstance(program, HplProgram)
        yield NodeSite(lent, program, per_node), program, mapping


def spread(platform: "Platform", nodes: int, per_node: int, threads: int) -> "Mapping":
    """As many ranks on each node in turn, on its first cores. Raises InputError where they do not fit on a node."""
    from lepaute.simulate.machine.mapping import Mapping, Slot

    if per_node * threads > platform.nodes.cores:
        raise InputError(
            f"--ranks-per-node is {per_node}, with {threads} threads each; a node of {platform.name} has "
            f"{platform.nodes.cores} cores"
        )
    slots = tuple(Slot(node, place * threads) for node in range(nodes) for place in range(per_node))
    return Mapping(slots=slots, source="--ranks-per-node")


def this_node(blas_core: str | None) -> "SeenNode":
    from lepaute.measure.layout import layout_here

    return SeenNode("this machine", cpu_model(), len(layout_here().cores), blas_core)


def kernels_here(blas: "Blas | None") -> tuple[str | None, str | None]:
    """The OPENBLAS_CORETYPE that the platform was measured with, and OpenBLAS' name of the kernels that run with it.

    What a calibration here would choose now, where the platform does not say; EnvironmentProblem if OpenBLAS fails.
    """
    if blas is None:
        kernels = choose_kernel_set()
        warn(kernels.warnings)
        return kernels.coretype_env, kernels.core_name
    # Where the platform wants none, the user's own stays in force, for the real HPL as well.
    setting = blas.coretype_env or os.environ.get(CORETYPE) or None
    seen = time_kernels(setting)
    if seen is None:
        raise EnvironmentProblem(f"OpenBLAS cannot be loaded or run here{_with(setting)}; see lepaute doctor")
    return blas.coretype_env, seen.core_name


def _look_at_nodes(lent: "LentNodes", blas: "Blas | None") -> "tuple[str | None, list[SeenNode]]":
    """The OPENBLAS_CORETYPE as `kernels_here`, and what each node is.

    Raises EnvironmentProblem where a node has no OpenBLAS that runs with it.
    """
    nodes = lent.nodes
    facts = nodes.call("facts")
    if blas is None:
        from lepaute.measure.calibration.machines import look_at

        measured = look_at(nodes, lent.python)
        return measured[0].kernel_set.coretype_env, [
            SeenNode(about.name, about.cpu_model, len(about.cores), about.kernel_set.core_name) for about in measured
        ]
    setting = blas.coretype_env or facts[nodes.names[0]]["coretype"] or None
    trials = nodes.run(*kernels_argv(lent.python, setting), timeout_s=KERNELS_LIMIT_S, check=False)
    seen = []
    for name, trial in trials.items():
        timing = timing_of(setting, trial.stdout) if trial.ok else None
        if timing is None:
            raise EnvironmentProblem(
                f"{name}: OpenBLAS cannot be loaded or run{_with(setting)}; install it: apt-get install libopenblas0"
            )
        seen.append(SeenNode(name, facts[name]["cpu_model"], len(lent.layouts[name].cores), timing.core_name))
    return blas.coretype_env, seen


def _with(setting: str | None) -> str:
    return f" with {CORETYPE}={setting}" if setting else ""
