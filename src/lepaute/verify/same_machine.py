"""Is the platform one of the machine that the real runs are made on?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lepaute.errors import InputError

if TYPE_CHECKING:
    from lepaute.platform import Platform

REMEDY = "calibrate this machine, or give --other-machine to compare all the same"


@dataclass(frozen=True, slots=True)
class SeenNode:
    """What a node is; blas_core: OpenBLAS' name for the kernels that run there, None where that was not looked at."""

    name: str
    cpu_model: str
    cores: int
    blas_core: str | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """different: what differs, one phrase each; unknown: what the platform does not say."""

    different: tuple[str, ...]
    unknown: tuple[str, ...]


def compare_machines(platform: "Platform", seen: Sequence[SeenNode]) -> Comparison:
    """What the platform says of its nodes against what these are; of nodes that differ alike, the first is named."""
    nodes, blas = platform.nodes, platform.blas
    told: tuple[tuple[str, str | int | None, list[str | int | None]], ...] = (
        ("processor", nodes.cpu_model, [node.cpu_model for node in seen]),
        ("cores", nodes.cores, [node.cores for node in seen]),
        ("BLAS kernels", None if blas is None else blas.core, [node.blas_core for node in seen]),
    )
    different, unknown = [], []
    for what, of_platform, of_nodes in told:
        if of_platform is None:
            unknown.append(what)
            continue
        other = next((i for i, value in enumerate(of_nodes) if value not in (None, of_platform)), None)
        if other is not None:
            different.append(f"{what}: {of_platform}, on {seen[other].name} {of_nodes[other]}")
    if len(seen) > nodes.count:
        different.append(f"nodes: {nodes.count}, here {len(seen)}")
    return Comparison(tuple(different), tuple(unknown))


def check_same_machine(platform: "Platform", seen: Sequence[SeenNode], *, other_machine: bool) -> list[str]:
    """What is to be told of the platform: what it does not say, or with `other_machine` what differs; one line each.

    Raises InputError where something differs, unless `other_machine`.
    """
    found = compare_machines(platform, seen)
    if found.different and not other_machine:
        raise InputError(f"{platform.name} is the platform of another machine ({'; '.join(found.different)}); {REMEDY}")
    lines = [f"the platform is of another machine: {difference}" for difference in found.different]
    if found.unknown:
        lines.append(
            f"the platform does not say its {' and '.join(found.unknown)}: whether it is of this machine was only "
            "checked by the rest"
        )
    return lines
