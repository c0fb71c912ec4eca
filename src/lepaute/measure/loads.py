"""How many cores of a node compute at once while a probe runs, and which. Pure; no I/O."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lepaute.measure.layout import Layout

if TYPE_CHECKING:
    import numpy as np

#: One process alone; one on each socket; as many as half of the cores of each socket; all that the node has room for.
ONE, ONE_A_SOCKET, HALF, ALL = "one", "one-a-socket", "half", "all"
#: With fewer cores on a socket, half of them is one or nearly all.
FEWEST_TO_HALVE = 4

#: The cores of each process.
Places = tuple[tuple[int, ...], ...]


def places(layout: Layout, threads: int) -> Places:
    """Where processes of that many threads fit: consecutive cores of a socket, of the node where a socket has too few.

    In the order of the cores; the last cores stay idle where they are too few for another process.
    """
    sockets: Sequence[Sequence[int]] = layout.sockets
    if all(len(socket) < threads for socket in sockets):
        sockets = [[core.number for core in layout.cores]]
    return tuple(
        tuple(socket[first : first + threads])
        for socket in sockets
        for first in range(0, len(socket) - threads + 1, threads)
    )


def loads(layout: Layout, threads: int = 1) -> tuple[str, ...]:
    """The loads to measure, from the least to the most.

    Between one process and all of them only with one thread each: memory and clock depend on the cores that compute.
    """
    if len(places(layout, threads)) == 1:
        return (ALL,)
    if threads > 1:
        return (ONE, ALL)
    sockets = layout.sockets
    between = [ONE_A_SOCKET] if 1 < len(sockets) < len(layout.cores) else []
    if any(len(socket) >= FEWEST_TO_HALVE for socket in sockets):
        between.append(HALF)
    return (ONE, *between, ALL)


def active(layout: Layout, load: str, threads: int, block: int, rng: "np.random.Generator") -> Places:
    """The processes of a load in a block, in the order of their cores; which ones is drawn where it is not all.

    With load `one` consecutive blocks take different places, as long as there are any that had no turn.
    rng: one of the calibration's, the same state in each block for `one`
    """
    every = places(layout, threads)
    if load == ALL:
        return every
    if load == ONE:
        return (every[int(rng.permutation(len(every))[block % len(every)])],)
    chosen: list[int] = []
    for socket in layout.sockets:
        count = 1 if load == ONE_A_SOCKET else max(len(socket) // 2, 1)
        chosen += sorted(int(core) for core in rng.choice(socket, count, replace=False))
    return tuple((core,) for core in chosen)
