"""What the core is told of groups of nodes that differ: how their cores are laid out, kernels, speed of other code."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from math import fsum
from typing import TYPE_CHECKING

from lepaute import _core
from lepaute.kit.later import later
from lepaute.simulate.platform.kernel_model import models_of

if TYPE_CHECKING:
    from lepaute.simulate.platform.kernel_model import KernelModel
    from lepaute.simulate.platform.schema import Platform
    from lepaute.simulate.platform.simgrid import zones
else:
    zones = later("lepaute.simulate.platform.simgrid.zones")  # not on the way of most predictions


def kernels_of_groups(
    platform: "Platform",
    names: Sequence[str],
    threads: int,
    core_kernel: "Callable[[str, KernelModel, Platform], _core.MachineKernel]",
) -> list[_core.MachineKernel]:
    """Kernels of these names: those of the first group, or of all nodes, and those of others that differ from them."""
    first: dict[str, KernelModel] = {}
    kernels = []
    for number, (part, group) in enumerate(zip(platform.parts, platform.groups or (None,), strict=True)):
        special = [(model.kernel, model.threads) for model in (group and group.kernels) or ()]
        models = models_of(part.kernels, names, threads)
        for name, model in models.items():
            if number == 0 or model != first[name]:
                kernels.append(core_kernel(name, model, platform))
                kernels[-1].group = number
                kernels[-1].own_errors = number > 0 and (model.kernel, model.threads) in special
        first = first or models
    return kernels


def tell_groups(machine: _core.Machine, platform: "Platform", threads: int) -> None:
    """Adds the groups of `platform` to its machine, unless all nodes are laid out alike and as fast."""
    nodes, slowness = platform.nodes, slownesses(platform)
    laid_out = [(p.nodes.cores, p.nodes.cpus, p.nodes.core_to_cpu, p.nodes.sockets or 1) for p in platform.parts]
    usual = (nodes.cores, nodes.cpus, nodes.core_to_cpu, nodes.sockets or 1)
    if set(laid_out) == {usual} and set(slowness) == {1.0} and not any(kernel.group for kernel in machine.kernels):
        return
    groups = []
    for part, (cores, cpus, core_to_cpu, sockets), slow in zip(platform.parts, laid_out, slowness, strict=True):
        group = _core.NodeGroup()
        group.nodes, group.cores, group.cpus, group.sockets = part.nodes.count, cores, cpus, sockets
        group.cpu_is_core_modulo = core_to_cpu == "modulo"
        group.slowness = slow
        groups.append(group)
    machine.groups = groups
    if len({cores for cores, *_ in laid_out}) > 1:
        machine.network.ranks_on_full_nodes = [
            part.nodes.cores / threads for part in platform.parts for _ in range(part.nodes.count)
        ]


def slownesses(platform: "Platform") -> list[float]:
    """Of each group: seconds of code that no kernel models, over those on a node as fast as the mean of all nodes.

    As emulations have it: speeds are rates of dgemm, or what `speed` says where there is none.
    """
    speeds, first, means = zones.node_speeds_flops(platform), 0, []
    for part in platform.parts:
        of_group = speeds[first : first + part.nodes.count]
        means.append(of_group[0] if len(set(of_group)) == 1 else fsum(of_group) / len(of_group))
        first += part.nodes.count
    mean = fsum(speeds) / len(speeds)
    return [1.0] * len(means) if len(set(means)) == 1 else [mean / speed for speed in means]


def group_computing_s(
    platform: "Platform", cores: Sequence[int], of_ranks_s: Sequence[float], computing_s: float
) -> tuple[float, ...]:
    """Of the computing of all ranks, in seconds, that on each group; cores, of_ranks_s : of each rank.

    Of a sampled run, ranks are known by the windows, and `computing_s`, their sum, for all of it.
    """
    sums, ends, end = [0.0] * len(platform.parts), [], 0
    for part in platform.parts:
        end += part.nodes.count
        ends.append(end)
    for core, seconds in zip(cores, of_ranks_s, strict=True):
        sums[bisect_right(ends, core // platform.nodes.cores)] += seconds
    total = fsum(sums)
    return tuple(part_s * computing_s / total if total else 0.0 for part_s in sums)
