"""Design of messages in a ring of ranks that compute and poll meanwhile: operation, size and condition, interleaved."""

from collections.abc import Sequence

import numpy as np

from lepaute.design.columns import RING_CONDITIONS, RING_OPERATIONS
from lepaute.design.provenance import header_of
from lepaute.design.sizes import shuffled, stratified_log_uniform
from lepaute.design.table import Design
from lepaute.errors import DesignError

COLUMNS = ("operation", "condition", "size_bytes", "first", "m", "n", "k")
MEBIBYTE = 1024 * 1024
#: Columns of a panel: HPL looks for messages between products with this n and k.
PANEL = 128
#: Rows of the products: 0.02 to 1 ms on a core of today, so that few to many fall into a large message.
PRODUCT_ROWS = (16, 512)


def ring_design(
    seed: int,
    *,
    ranks: int,
    sizes: int = 16,
    size_range_bytes: tuple[int, int] = (1, 64 * MEBIBYTE),
    conditions: tuple[str, ...] = RING_CONDITIONS,
) -> Design:
    """Each operation with `sizes` message sizes, each of these in every condition, all rows in random order.

    ranks           : in the ring; the one that begins a ping-pong is drawn for every row
    size_range_bytes: smallest and largest message; one size in each stratum of the logarithm, the largest
                      itself in the last
    The conditions share their sizes and products, so that they differ in nothing else. Rows without dgemm have
    m = n = k = 0, those of a shift have first = 0.
    Raises DesignError for fewer than two ranks, no size, or an unknown condition.
    """
    if ranks < 2 or sizes < 1:
        raise DesignError(f"a ring of {ranks} ranks with {sizes} sizes; give at least 2 ranks and 1 size")
    unknown = [condition for condition in conditions if condition not in RING_CONDITIONS]
    if unknown or not conditions:
        raise DesignError(
            f"unknown condition {unknown[0][:60] if unknown else ''}; known: {', '.join(RING_CONDITIONS)}"
        )
    rng = np.random.default_rng(seed)
    low, high = size_range_bytes
    rows: list[tuple[str | int, ...]] = []
    for operation in RING_OPERATIONS:
        # A stratum may span a factor of ten: without the largest size itself a model would end well below it.
        messages = [*(round(size) for size in stratified_log_uniform(rng, sizes, low, high)[:-1]), high]
        # Large products shall not go with large messages: the order of one of the two is drawn.
        heights = [round(height) for height in stratified_log_uniform(rng, sizes, *PRODUCT_ROWS)]
        for message, height in zip(messages, shuffled(rng, heights), strict=True):
            for condition in conditions:
                first = int(rng.integers(ranks)) if operation == "pingpong" else 0
                product = (height, PANEL, PANEL) if "dgemm" in condition else (0, 0, 0)
                rows.append((operation, condition, message, first, *product))
    header = header_of("ring", seed, ranks=ranks, size_range_bytes=size_range_bytes, bit_generator="PCG64")
    return Design(header, COLUMNS, tuple(shuffled(rng, rows)))


def flow_design(seed: int, *, ranks: int, sizes: Sequence[int], replications: int) -> Design:
    """Shifts of the ring on idle nodes, each size as often, in random order.

    Where the ring goes from one node to another and back, half as many messages as ranks move at once each way.

    Raises DesignError for fewer than two ranks or no size.
    """
    if ranks < 2 or not sizes or replications < 1:
        raise DesignError(f"{ranks} ranks with {len(sizes)} sizes; give at least 2 ranks and 1 size")
    rng = np.random.default_rng(seed)
    rows = [("shift", "idle", size, 0, 0, 0, 0) for size in sizes for _ in range(replications)]
    header = header_of("flows", seed, ranks=ranks, sizes=list(sizes), bit_generator="PCG64")
    return Design(header, COLUMNS, tuple(shuffled(rng, rows)))
