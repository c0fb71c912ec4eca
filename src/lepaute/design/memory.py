"""Design of memory measurements: what a pass over a buffer depends on, all combinations in random order."""

from collections.abc import Sequence

from lepaute.design.generators import full_factorial
from lepaute.design.table import Design

#: From inside the first cache to well beyond the last: powers of two, 1 KiB to 64 MiB.
SIZES_BYTES = tuple(1 << power for power in range(10, 27))
STRIDES = (1, 2, 4, 8, 16)
ELEMENT_BYTES = (4, 8, 16)
UNROLLS = (1, 8)


def memory_design(
    seed: int,
    *,
    sizes_bytes: Sequence[int] = SIZES_BYTES,
    strides: Sequence[int] = STRIDES,
    element_bytes: Sequence[int] = ELEMENT_BYTES,
    unrolls: Sequence[int] = UNROLLS,
    allocations: int = 4,
    repetitions: int = 1,
) -> Design:
    """Passes over a buffer of `size_bytes`, an element of `element_bytes` in every `stride`, unrolled `unroll` times.

    allocations: how many buffers of each size, numbered in the column `allocation`: where a buffer lies in physical
                 memory changes what it costs, so that one allocation is one draw, however often it is measured
    repetitions: rows of each combination
    """
    factors = {
        "size_bytes": list(sizes_bytes),
        "stride": list(strides),
        "element_bytes": list(element_bytes),
        "unroll": list(unrolls),
        "allocation": list(range(allocations)),
    }
    return full_factorial(factors, replications=repetitions, seed=seed)
