"""Design of MPI collective operations: operation, message size and number of ranks, kinds interleaved."""

from collections.abc import Sequence

from lepaute.design.arrange import mix
from lepaute.design.generators import full_factorial
from lepaute.design.table import Design
from lepaute.errors import DesignError

SIZED = ("bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall")
UNSIZED = ("barrier",)
#: Powers of four, 1 byte to 16 MiB: the size is what a rank sends to each other rank.
SIZES_BYTES = tuple(4**power for power in range(13))


def collective_design(
    seed: int,
    *,
    operations: Sequence[str] = SIZED + UNSIZED,
    sizes_bytes: Sequence[int] = SIZES_BYTES,
    ranks: Sequence[int] = (2,),
    repetitions: int = 20,
) -> Design:
    """Every operation with every size on every number of ranks, `repetitions` times, in random order.

    A barrier has no size: the cell is empty. Raises DesignError for an operation that is none of MPI's here.
    """
    unknown = [operation for operation in operations if operation not in SIZED + UNSIZED]
    if unknown:
        raise DesignError(f"unknown collective operation {unknown[0][:60]}; known are {', '.join(SIZED + UNSIZED)}")
    parts = []
    sized = [operation for operation in operations if operation in SIZED]
    unsized = [operation for operation in operations if operation in UNSIZED]
    if sized:
        factors = {"operation": sized, "size_bytes": list(sizes_bytes), "ranks": list(ranks)}
        parts.append(full_factorial(factors, replications=repetitions, seed=seed))
    if unsized:
        factors = {"operation": unsized, "ranks": list(ranks)}
        parts.append(full_factorial(factors, replications=repetitions, seed=seed))
    return mix(*parts, seed=seed)
