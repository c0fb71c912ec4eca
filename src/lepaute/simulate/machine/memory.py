"""Whether the data of an application fit into the memory of the nodes."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lepaute.errors import InputError
from lepaute.kit.text import quantity

if TYPE_CHECKING:
    from lepaute.simulate.application import Application
    from lepaute.simulate.platform.schema import Platform


def check_memory(application: "Application", platform: "Platform", cores: Sequence[int]) -> None:
    """Raises InputError if the data of the ranks on these cores are larger than the memory of a node."""
    data_bytes = application.memory_bytes
    if data_bytes is None:
        return
    first, ranks_on = 0, Counter(core // platform.nodes.cores for core in cores)
    for part in platform.parts:
        most_ranks = max(ranks_on[first + node] for node in range(part.nodes.count))
        first += part.nodes.count
        needed_bytes, known = data_bytes / application.ranks * most_ranks, part.nodes.memory_bytes
        if known is not None and needed_bytes > known:
            raise InputError(
                f"the data of {application.problem.words} need {quantity(needed_bytes / 1e9, 'GB')} on the node with "
                f"most ranks ({most_ranks}), and a node of {platform.name} has {quantity(known / 1e9, 'GB')}; take "
                "a smaller problem, more nodes, or --set nodes.memory_bytes=null to leave memory out"
            )
