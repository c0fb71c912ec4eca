"""Designs of MPI messages: point to point, in a ring of ranks that compute, collective; tests of send completion."""

from collections.abc import Mapping, Sequence

import numpy as np

from lepaute.errors import DesignError
from lepaute.measure.design.columns import P2P_SIZED, P2P_UNSIZED, RING_CONDITIONS, RING_OPERATIONS
from lepaute.measure.design.generators import full_factorial, mix
from lepaute.measure.design.sizes import log_uniform_bytes, shuffled, stratified_log_uniform
from lepaute.measure.design.table import Design, probe_design

MEBIBYTE = 1024 * 1024

#: A strided message is 128 columns of doubles: the panels of an application, not its single numbers.
STRIDED_UNIT_BYTES = 1024
STRIDED_RANGE_BYTES = (1024, 16 * MEBIBYTE)
#: Whether a message is seen does not depend on its size beyond the protocol; large ones would only take time.
MAX_SEEN_BYTES = MEBIBYTE
#: How often each operation is measured in one block of a calibration.
DEFAULT_COUNTS: Mapping[str, int] = {
    "pingpong": 120,
    "recv": 120,
    "isend": 120,
    "exchange": 60,
    "strided": 60,
    "seen": 30,
    "iprobe": 100,
    "test": 100,
    "wtime": 100,
}
RING_COLUMNS = ("operation", "condition", "size_bytes", "first", "m", "n", "k")
#: Columns of a panel: HPL looks for messages between products with this n and k.
PANEL = 128
#: Rows of the products: 0.02 to 1 ms on a core of today, so that few to many fall into a large message.
PRODUCT_ROWS = (16, 512)
#: Collective operations with and without a size of message.
SIZED = ("bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall")
UNSIZED = ("barrier",)
#: Powers of four, 1 byte to 16 MiB: the size is what a rank sends to each other rank.
SIZES_BYTES = tuple(4**power for power in range(13))


def p2p_design(
    seed: int, *, counts: Mapping[str, int] = DEFAULT_COUNTS, size_range_bytes: tuple[int, int] = (1, 64 * MEBIBYTE)
) -> Design:
    """Fully shuffled operations.

    counts          : operation to number of rows; iprobe, test and wtime have no size and get 0
    size_range_bytes: smallest and largest message; sizes are 10^U with U uniform
    Raises DesignError for an operation that no probe knows.
    """
    rng = np.random.default_rng(seed)
    least, most = size_range_bytes
    rows: list[tuple[str, int]] = []
    for operation, count in counts.items():
        if operation == "strided":
            low, high = STRIDED_RANGE_BYTES
            sizes = log_uniform_bytes(rng, count, low, min(high, max(low, most)))
            sizes = [size // STRIDED_UNIT_BYTES * STRIDED_UNIT_BYTES for size in sizes]
        elif operation == "seen":
            sizes = log_uniform_bytes(rng, count, 1, min(MAX_SEEN_BYTES, most))
        elif operation in P2P_SIZED:
            sizes = log_uniform_bytes(rng, count, least, most)
        elif operation in P2P_UNSIZED:
            sizes = [0] * count
        else:
            known = ", ".join(P2P_SIZED + P2P_UNSIZED)
            raise DesignError(f"unknown point-to-point operation {operation}; known are {known}")
        rows.extend((operation, size) for size in sizes)
    table = shuffled(rng, rows)
    return probe_design("p2p", seed, ("operation", "size_bytes"), table, size_range_bytes=size_range_bytes)


def ring_design(
    seed: int, *, ranks: int, sizes: int = 16, size_range_bytes: tuple[int, int] = (1, 64 * MEBIBYTE)
) -> Design:
    """Each operation with `sizes` message sizes, each of these in every condition, all rows in random order.

    ranks           : in the ring; the one that begins a ping-pong is drawn for every row
    size_range_bytes: smallest and largest message; one size in each stratum of the logarithm, the largest
                      itself in the last
    The conditions share their sizes and products, so that they differ in nothing else. Rows without dgemm have
    m = n = k = 0, those of a shift have first = 0.
    Raises DesignError for fewer than two ranks or no size.
    """
    if ranks < 2 or sizes < 1:
        raise DesignError(f"a ring of {ranks} ranks with {sizes} sizes; give at least 2 ranks and 1 size")
    rng = np.random.default_rng(seed)
    low, high = size_range_bytes
    rows: list[tuple[str | int, ...]] = []
    for operation in RING_OPERATIONS:
        # A stratum may span a factor of ten: without the largest size itself a model would end well below it.
        messages = [*(round(size) for size in stratified_log_uniform(rng, sizes, low, high)[:-1]), high]
        # Large products shall not go with large messages: the order of one of the two is drawn.
        heights = [round(height) for height in stratified_log_uniform(rng, sizes, *PRODUCT_ROWS)]
        for message, height in zip(messages, shuffled(rng, heights), strict=True):
            for condition in RING_CONDITIONS:
                first = int(rng.integers(ranks)) if operation == "pingpong" else 0
                product = (height, PANEL, PANEL) if "dgemm" in condition else (0, 0, 0)
                rows.append((operation, condition, message, first, *product))
    return probe_design("ring", seed, RING_COLUMNS, shuffled(rng, rows), ranks=ranks, size_range_bytes=size_range_bytes)


def flow_design(seed: int, *, ranks: int, sizes: Sequence[int], replications: int) -> Design:
    """Shifts of the ring on idle nodes, each size as often, in random order.

    Where the ring goes from one node to another and back, half as many messages as ranks move at once each way.
    Raises DesignError for fewer than two ranks or no size.
    """
    if ranks < 2 or not sizes or replications < 1:
        raise DesignError(f"{ranks} ranks with {len(sizes)} sizes; give at least 2 ranks and 1 size")
    rows = [("shift", "idle", size, 0, 0, 0, 0) for size in sizes for _ in range(replications)]
    table = shuffled(np.random.default_rng(seed), rows)
    return probe_design("flows", seed, RING_COLUMNS, table, ranks=ranks, sizes=list(sizes))


def semantics_design(seed: int, tests: Sequence[tuple[str, int, int, int]]) -> Design:
    """Tests of the send-completion semantics of MPI_Send and MPI_Isend: one round of a search, in random order.

    tests: name, size_bytes, backlog, patience_ms; one given several times is repeated
    """
    rows = shuffled(np.random.default_rng(seed), list(tests))
    return probe_design("semantics", seed, ("test", "size_bytes", "backlog", "patience_ms"), rows)


def collective_design(
    seed: int,
    *,
    operations: Sequence[str] = SIZED + UNSIZED,
    sizes_bytes: Sequence[int] = SIZES_BYTES,
    ranks: Sequence[int] = (2,),
    replications: int = 20,
) -> Design:
    """Every operation with every size on every number of ranks, `replications` times, in random order.

    A barrier has no size: the cell is empty. Raises DesignError for an operation that is none of MPI's here.
    """
    unknown = [operation for operation in operations if operation not in SIZED + UNSIZED]
    if unknown:
        raise DesignError(f"unknown collective operation {unknown[0][:60]}; known are {', '.join(SIZED + UNSIZED)}")
    parts = []
    for known, size in ((SIZED, {"size_bytes": list(sizes_bytes)}), (UNSIZED, {})):
        chosen = [operation for operation in operations if operation in known]
        if chosen:
            factors = {"operation": chosen, **size, "ranks": list(ranks)}
            parts.append(full_factorial(factors, replications=replications, seed=seed))
    return mix(*parts, seed=seed)
