"""Design of MPI point-to-point operations: message sizes 10^U, kinds interleaved."""

from collections.abc import Mapping

import numpy as np

from lepaute.design.columns import P2P_SIZED, P2P_UNSIZED
from lepaute.design.provenance import header_of
from lepaute.design.sizes import log_uniform_bytes, shuffled
from lepaute.design.table import Design
from lepaute.errors import DesignError

MEBIBYTE = 1024 * 1024

#: A strided message is 128 columns of doubles: the panels of an application, not its single numbers.
STRIDED_UNIT_BYTES = 1024
STRIDED_RANGE_BYTES = (1024, 16 * MEBIBYTE)
#: Whether a message is seen does not depend on its size beyond the protocol; large ones would only take time.
SEEN_MOST_BYTES = MEBIBYTE
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


def p2p_design(
    seed: int,
    *,
    counts: Mapping[str, int] = DEFAULT_COUNTS,
    size_range_bytes: tuple[int, int] = (1, 64 * MEBIBYTE),
) -> Design:
    """Fully shuffled operations.

    counts          : operation to number of rows; iprobe, test and wtime have no size and get 0
    size_range_bytes: smallest and largest message; sizes are 10^U with U uniform
    Raises DesignError for an operation that no probe knows.
    """
    rng = np.random.default_rng(seed)
    rows: list[tuple[str, int]] = []
    for operation, count in counts.items():
        if operation == "strided":
            low, high = STRIDED_RANGE_BYTES
            sizes = log_uniform_bytes(rng, count, low, min(high, max(low, size_range_bytes[1])))
            rows.extend((operation, size // STRIDED_UNIT_BYTES * STRIDED_UNIT_BYTES) for size in sizes)
        elif operation == "seen":
            most = min(SEEN_MOST_BYTES, size_range_bytes[1])
            rows.extend((operation, size) for size in log_uniform_bytes(rng, count, 1, most))
        elif operation in P2P_SIZED:
            rows.extend((operation, size) for size in log_uniform_bytes(rng, count, *size_range_bytes))
        elif operation in P2P_UNSIZED:
            rows.extend((operation, 0) for _ in range(count))
        else:
            known = ", ".join(P2P_SIZED + P2P_UNSIZED)
            raise DesignError(f"unknown point-to-point operation {operation}; known are {known}")
    header = header_of("p2p", seed, size_range_bytes=size_range_bytes, bit_generator="PCG64")
    return Design(header, ("operation", "size_bytes"), tuple(shuffled(rng, rows)))
