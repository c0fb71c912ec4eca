"""Which core of the machine each rank sits on."""

from typing import TYPE_CHECKING

from lepaute.errors import InputError

if TYPE_CHECKING:
    from lepaute.platform.schema import Platform


def sequential(platform: "Platform", ranks: int, threads: int = 1) -> list[int]:
    """Global core (node index * cores + core) of each rank, filling one node after the other.

    Raises InputError when the machine has fewer cores than ranks * threads needs.
    """
    nodes = platform.nodes
    per_node = nodes.cores // threads
    if ranks > per_node * nodes.count:
        raise InputError(
            f"{ranks} ranks of {threads} threads do not fit on platform {platform.name}, which has "
            f"{nodes.count} x {nodes.cores} cores; take a smaller grid or another platform"
        )
    return [(rank // per_node) * nodes.cores + (rank % per_node) * threads for rank in range(ranks)]
