"""One platform of several: a group of nodes for each, at one switch."""

import re
from collections.abc import Sequence
from typing import Any

from lepaute.errors import InputError
from lepaute.simulate.platform.components import resized
from lepaute.simulate.platform.kernel_model import KernelModel
from lepaute.simulate.platform.network_model import NodeLink
from lepaute.simulate.platform.nodes import Nodes, refuse_groups
from lepaute.simulate.platform.schema import Assumption, Platform
from lepaute.simulate.platform.topology import SWITCH

#: What a platform has once, for all of its nodes.
_ONCE = ("network", "days", "episodes", "wandering", "slow_state")
#: What is of one machine, and of no combination.
_OMITTED = ("blas", "sentinel", "population", "archive_id")
_OF_NODES = ("memory_bytes", "memory_bandwidth_Bps", "core_memory_bandwidth_Bps", "peak_flops_per_core", "cpu_model")


def combined(
    platforms: Sequence[Platform], name: str, counts: Sequence[int] | None = None
) -> tuple[Platform, list[str]]:
    """A platform called `name` with a group of nodes for each of `platforms`, and a sentence for each thing of these
    that it does not have.

    counts : of nodes of each; as many as it has unless given
    Network, days and states are those of the one with the widest links, the first of several.
    Raises InputError for fewer than two, counts that cannot be, and platforms with groups.
    """
    if len(platforms) < 2:
        raise InputError(f"{len(platforms)} platform is given; two or more are combined")
    if counts is not None and len(counts) != len(platforms):
        raise InputError(f"{len(counts)} numbers of nodes are given for {len(platforms)} platforms; give one for each")
    for platform in platforms:
        refuse_groups(platform, "groups within a group")
    counts = counts or [platform.nodes.count for platform in platforms]
    sized = [resized(platform, n, topology=False) for platform, n in zip(platforms, counts, strict=True)]
    usual = max(sized, key=lambda platform: platform.network.node_link.bandwidth_Bps)
    kernels: dict[tuple[str, int], tuple[Platform, KernelModel]] = {}
    for platform in sized:
        for model in platform.kernels:
            kernels.setdefault((model.kernel, model.threads), (platform, _for_all(model)))
    names = _names(platforms)
    content: dict[str, Any] = {
        "name": name,
        "description": f"{' and '.join(f'{p.nodes.count} nodes of {p.name}' for p in sized)}.",
        "nodes": _nodes(sized),
        "groups": [
            _group(platform, group, usual, [model for _, model in kernels.values()])
            for platform, group in zip(sized, names, strict=True)
        ],
        "kernels": [model for _, model in kernels.values()],
        "topology": SWITCH,
        "assumed": _assumed(sized, kernels) or None,
        **{field: getattr(usual, field) for field in _ONCE},
    }
    return Platform.model_validate(content), _notes(sized, usual)


def _nodes(platforms: Sequence[Platform]) -> Nodes:
    """What all have alike, and the most cores, CPUs and sockets, in numbers that divide each other."""
    nodes = [platform.nodes for platform in platforms]
    cores = max(described.cores for described in nodes)
    most_sockets = max(described.sockets or 1 for described in nodes)
    sockets = next(n for n in range(most_sockets, cores + 1) if cores % n == 0)
    cpus = max(described.cpus for described in nodes)
    if cpus > 1:
        cpus = next(n for n in range(cpus, cores + 1) if cores % n == 0 and n % sockets in (0, n))
        cpus = cpus if cpus % sockets == 0 else cores
    same = {
        field: values.pop()
        for field in _OF_NODES
        if len(values := {getattr(described, field) for described in nodes}) == 1
    }
    return Nodes(count=sum(n.count for n in nodes), first_number=1, cores=cores, cpus=cpus, sockets=sockets, **same)


def _group(platform: Platform, name: str, usual: Platform, common: Sequence[KernelModel]) -> dict[str, Any]:
    nodes, width = platform.nodes, platform.network.node_link.bandwidth_Bps
    special = [model for model in platform.kernels if model not in common]
    group: dict[str, Any] = {
        "name": name,
        "nodes": nodes.count,
        "first_number": nodes.first_number,
        "cores": nodes.cores,
        "cpus": nodes.cpus,
        "core_to_cpu": nodes.core_to_cpu,
        "sockets": nodes.sockets or 1,
        **{field: getattr(nodes, field) for field in _OF_NODES},
        "kernels": special or None,
        "power": platform.power,
    }
    if width < usual.network.node_link.bandwidth_Bps:
        group["link"] = {"bandwidth_Bps": width}
    return group


def _for_all(model: KernelModel) -> KernelModel:
    """`model` without coefficients of single CPUs: for nodes of other groups."""
    pieces = tuple(piece.model_copy(update={"per_cpu": None}) for piece in model.pieces)
    return model.model_copy(update={"pieces": pieces})


def _names(platforms: Sequence[Platform]) -> list[str]:
    """Names of groups, those of the platforms as far as a name may have their characters."""
    names: list[str] = []
    for place, platform in enumerate(platforms):
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", platform.name).strip("-._")[:50]
        name = name if re.match("[A-Za-z]", name) else f"group-{name}"
        name = name if name[-1].isalpha() else f"{name}-{chr(ord('a') + place % 26)}"
        if name in names:
            raise InputError(f"two of the platforms would be groups called {name}; give them other names")
        names.append(name)
    return names


def _assumed(
    platforms: Sequence[Platform], kernels: dict[tuple[str, int], tuple[Platform, KernelModel]]
) -> list[Assumption]:
    assumptions = []
    for platform in platforms:
        known_of = platform.assumed or ()
        assumptions += [
            assumption.model_copy(update={"what": f"{platform.name}: {assumption.what}"[:500]})
            for assumption in known_of
        ]
        known = {(model.kernel, model.threads) for model in platform.kernels}
        lacking = {key: of.name for key, (of, _) in kernels.items() if key not in known}
        for name in dict.fromkeys(lacking.values()):
            what = ", ".join(kernel for (kernel, _), of in lacking.items() if of == name)
            assumptions.append(Assumption(what=f"{platform.name}: {what}"[:500], source=f"as on nodes of {name}"))
    return assumptions


def _notes(platforms: Sequence[Platform], usual: Platform) -> list[str]:
    """A sentence for each thing that the combination has otherwise, or not."""
    notes = []
    for field in _ONCE:
        unlike = (p for p in platforms if getattr(p, field) != getattr(usual, field))
        if others := [platform.name for platform in unlike if not _only_width(platform, usual, field)]:
            notes.append(f"{field}: as of {usual.name}, also for nodes of {', '.join(others)}.")
    having = {field: [p.name for p in platforms if getattr(p, field) is not None] for field in _OMITTED}
    notes += [f"{field}: that of {', '.join(of)} is left out." for field, of in having.items() if of]
    if others := [platform.name for platform in platforms if not platform.topology.is_switch]:
        notes.append(f"topology: one switch joins all nodes, and not the topology of {', '.join(others)}.")
    return notes


def _only_width(platform: Platform, usual: Platform, field: str) -> bool:
    """Whether networks differ in nothing but the width of links, which the group says."""
    if field != "network":
        return False
    link: NodeLink = usual.network.node_link
    return platform.network.model_copy(update={"node_link": link}) == usual.network
