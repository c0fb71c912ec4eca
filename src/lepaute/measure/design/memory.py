"""Design of memory measurements: what a pass over a buffer depends on, all combinations in random order."""

import math
from collections.abc import Sequence

from lepaute.errors import DesignError
from lepaute.measure.design.generators import full_factorial
from lepaute.measure.design.table import Design

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
    fresh: bool = False,
    batch_bytes: Sequence[int] | None = None,
    replications: int = 1,
    blocks: int | None = None,
) -> Design:
    """Passes over a buffer of `size_bytes`, an element of `element_bytes` in every `stride`, unrolled `unroll` times.

    allocations: how many buffers of each size, numbered in the column `allocation`: where a buffer lies in physical
                 memory changes what it costs, so that one allocation is one draw, however often it is measured
    fresh      : also the allocation -1: memory got for one measurement and given back after it
    batch_bytes: levels of how much is read, in as many passes as that takes, by one measurement; None: no such column,
                 the probe reads 1 MiB
    replications: rows of each combination (in each block); blocks: see `lepaute.measure.design.blocks`
    """
    factors = {
        "size_bytes": list(sizes_bytes),
        "stride": list(strides),
        "element_bytes": list(element_bytes),
        "unroll": list(unrolls),
        "allocation": [*([-1] if fresh else []), *range(allocations)],
        **({} if batch_bytes is None else {"batch_bytes": list(batch_bytes)}),
    }
    return full_factorial(factors, replications=replications, blocks=blocks, seed=seed)


def hierarchy_sizes(least_bytes: int, most_bytes: int, per_octave: int = 4) -> tuple[int, ...]:
    """Sizes at equal ratios, `per_octave` to each doubling, in whole cache lines of 64 bytes, each once."""
    if not 64 <= least_bytes < most_bytes or per_octave < 1:
        raise DesignError(
            f"sizes from {least_bytes} to {most_bytes} bytes, {per_octave} a doubling, do not exist; 64 <= least < most"
        )
    steps = int(math.log2(most_bytes / least_bytes) * per_octave + 1e-9)
    return tuple(sorted({round(least_bytes * 2 ** (step / per_octave) / 64) * 64 for step in range(steps + 1)}))
