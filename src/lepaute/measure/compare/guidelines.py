"""Performance guidelines: what no MPI library should take longer for than for the same by other operations.

Each guideline says that an operation takes at most the time of one or more others that together do the same (or more),
on the same communicator. Where one is violated, the library could do the others instead and be faster. Sources: Träff,
Gropp & Thakur, "Self-consistent MPI performance guidelines", IEEE TPDS 21 (2010); Hunold & Träff, "PGMPI",
arXiv:1606.00215. Sizes are those of the probe: a block for one rank where each rank has its block, else the vector.

The test is Wilcoxon's, of signed ranks over mpiruns, corrected for all guidelines and sizes (Holm).
"""

from dataclasses import dataclass, replace
from math import exp, inf, nan
from typing import Literal

import numpy as np
import pandas

from lepaute.errors import InputError
from lepaute.measure.compare.summaries import MPIRUN
from lepaute.stats.aligned_ranks import aligned_rank_test, aligned_shift
from lepaute.stats.expanding import Floats
from lepaute.stats.multiple_tests import holm

SIGNIFICANT = 0.05

#: How the size of an operation of the right-hand side follows from that of the left-hand one: the same, a vector of the
#: blocks of all ranks, one of the blocks of a vector; or the same, once from each rank.
Sizing = Literal["same", "all blocks", "one block", "each root"]


@dataclass(frozen=True, slots=True)
class Guideline:
    """operation(n) <= the sum of the others, each at the size that makes them do the same."""

    operation: str
    others: tuple[tuple[str, Sizing], ...]

    def parts(self, size_bytes: int, ranks: int) -> list[tuple[str, float]]:
        """The other operations, each with its size where the left-hand side has this one."""
        scale = {"same": 1.0, "all blocks": float(ranks), "one block": 1 / ranks, "each root": 1.0}
        return [
            (name, size_bytes * scale[sizing])
            for name, sizing in self.others
            for _ in range(ranks if sizing == "each root" else 1)
        ]

    def __str__(self) -> str:
        names = [f"{name} from each rank" if sizing == "each root" else name for name, sizing in self.others]
        return f"{self.operation} <= {' + '.join(names)}"


def _rule(operation: str, *others: tuple[str, Sizing]) -> Guideline:
    return Guideline(operation, others)


GUIDELINES = (
    _rule("Allgather", ("Gather", "same"), ("Bcast", "all blocks")),
    _rule("Allgather", ("Alltoall", "same")),
    _rule("Allgather", ("Allreduce", "all blocks")),
    _rule("Allgather", ("Allgatherv", "same")),
    _rule("Allreduce", ("Reduce", "same"), ("Bcast", "same")),
    _rule("Allreduce", ("Reduce_scatter_block", "one block"), ("Allgather", "one block")),
    _rule("Alltoall", ("Alltoallv", "same")),
    _rule("Alltoall", ("Scatter", "each root")),
    _rule("Bcast", ("Scatter", "one block"), ("Allgather", "one block")),
    _rule("Exscan", ("Scan", "same")),
    _rule("Gather", ("Allgather", "same")),
    _rule("Gather", ("Reduce", "all blocks")),
    _rule("Gather", ("Gatherv", "same")),
    _rule("Reduce", ("Allreduce", "same")),
    _rule("Reduce", ("Reduce_scatter_block", "one block"), ("Gather", "one block")),
    _rule("Reduce_scatter_block", ("Reduce", "all blocks"), ("Scatter", "same")),
    _rule("Reduce_scatter_block", ("Allreduce", "all blocks")),
    _rule("Reduce_scatter_block", ("Reduce_scatter", "same")),
    _rule("Alltoallv", ("Alltoallw", "same")),
    _rule("Scan", ("Allreduce", "same"), ("Exscan", "same")),
    _rule("Scatter", ("Bcast", "all blocks")),
    _rule("Scatter", ("Scatterv", "same")),
)


#: What a campaign on guidelines measures, and the sizes of its blocks, bytes.
OPERATIONS = "allgather,allreduce,alltoall,barrier,bcast,gather,reduce,reduce_scatter_block,scatter"
BLOCKS_BYTES = (8, 512, 32768)


def sizes_for(ranks: int) -> str:
    """As --sizes takes them: blocks, and vectors of the blocks of all ranks."""
    return ",".join(str(size) for size in sorted({size * part for size in BLOCKS_BYTES for part in (1, ranks)}))


@dataclass(frozen=True, slots=True)
class Violation:
    """A guideline at a size, with what its other side would save.

    guideline : in words, such as "Allreduce <= Reduce + Bcast" or "Bcast(1024) <= Bcast(2048)"
    ratio     : time of the operation over that of the other side, with its 95 % interval
    excess_s  : what the operation takes more, seconds (median over mpiruns); below 0 if the guideline holds
    """

    library: str
    guideline: str
    operation: str
    size_bytes: int
    mpiruns: int
    ratio: float
    low: float
    high: float
    excess_s: float
    p_value: float
    p_holm: float

    @property
    def is_violated(self) -> bool:
        return self.p_holm <= SIGNIFICANT

    @property
    def mock_up(self) -> str:
        """The implementation in its place."""
        return self.guideline.partition(" <= ")[2]


def check_guidelines(summaries: pandas.DataFrame, library: str, ranks: int) -> tuple[Violation, ...]:
    """Tests every guideline that was measured; the violated ones first, those that cost most before others.

    summaries : as `mpirun_summaries` gives; blocking operations count
    ranks     : of the communicator, which relates the sizes of blocks and vectors
    Raises InputError if the library was not measured.
    """
    measured = summaries[(summaries["library"] == library) & (summaries["form"] == "blocking")]
    if measured.empty:
        raise InputError(f"there are no blocking operations of {library}; guidelines are checked with these")
    table = measured.pivot_table(index=list(MPIRUN), columns=["operation", "size_bytes"], values="median_s")
    times = {
        (str(key[0]), float(key[1])): table[key].to_numpy(dtype=np.float64) for key in table.columns.to_flat_index()
    }
    pairs = []
    for rule in GUIDELINES:
        for (operation, size), seen in times.items():
            parts = rule.parts(int(size), ranks)
            if operation == rule.operation and size > 0 and all(part in times for part in parts):
                pairs.append((str(rule), operation, int(size), seen, np.sum([times[part] for part in parts], axis=0)))
    smallest = min((size for name, size in times if name == "Allreduce" and size > 0), default=0.0)
    if smallest and ("Barrier", 0.0) in times:
        pairs.append(("Barrier <= Allreduce", "Barrier", 0, times["Barrier", 0.0], times["Allreduce", smallest]))
    tested = [*pairs, *_monotonic(times)]
    results = [_tested(library, *one) for one in tested]
    corrected = holm([result.p_value for result in results])
    done = [replace(result, p_holm=p) for result, p in zip(results, corrected, strict=True)]
    return tuple(sorted(done, key=lambda one: (not one.is_violated, -one.excess_s)))


Times = dict[tuple[str, float], Floats]
Pair = tuple[str, str, int, Floats, Floats]


def _monotonic(times: Times) -> list[Pair]:
    """An operation takes no longer than the same with the next larger size."""
    pairs = []
    for operation in sorted({name for name, _ in times}):
        sizes = sorted(int(size) for name, size in times if name == operation)
        for size, larger in zip(sizes[:-1], sizes[1:], strict=True):
            words = f"{operation}({size}) <= {operation}({larger})"
            pairs.append((words, operation, size, times[operation, size], times[operation, larger]))
    return pairs


def _tested(library: str, words: str, operation: str, size_bytes: int, left: Floats, right: Floats) -> Violation:
    known = np.isfinite(left) & np.isfinite(right) & (left > 0) & (right > 0)
    left, right = left[known], right[known]
    count = len(left)
    if count == 0:
        return Violation(library, words, operation, size_bytes, 0, nan, 0.0, inf, nan, 1.0, 1.0)
    # Blocks of two, one value of either side: signed ranks.
    values, blocks = np.log(np.concatenate([right, left])), np.tile(np.arange(count), 2)
    second = np.repeat([False, True], count)
    test = aligned_rank_test(values, second, blocks)
    shift = aligned_shift(values, second, blocks)
    excess = float(np.median(left - right))
    ratio = exp(shift.estimate), exp(shift.low), inf if shift.high > 700 else exp(shift.high)
    return Violation(library, words, operation, size_bytes, count, *ratio, excess, test.higher, 1.0)
