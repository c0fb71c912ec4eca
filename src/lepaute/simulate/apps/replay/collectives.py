"""Of what operations of the core a collective call consists, by the decision rules of an MPI library.

Sources: Open MPI 4.1, ompi/mca/coll/tuned/coll_tuned_decision_fixed.c; MPICH, Thakur, Rabenseifner & Gropp,
"Optimization of collective communication operations in MPICH", IJHPCA 19(1), 2005, with the thresholds of its defaults;
of operations that do not block, Open MPI 4.1, ompi/mca/coll/libnbc.

Where the core lacks an algorithm, one with the same or the nearest messages stands for it: Bruck's allgather for
recursive doubling, and for a reduce-scatter by halves; binomial trees for k-nomial, binary and linear ones; a ring for
exchanges of neighbours and a linear allgather; pairs for a linear alltoall; a binomial tree for chains.
"""

from bisect import bisect_right
from math import inf
from typing import NamedTuple

OPENMPI, MPICH = LIBRARIES = ("openmpi", "mpich")

#: Open MPI's allreduce: fewer members than -> bytes below which it is a reduction and a broadcast, and from which it is
#: Rabenseifner's; recursive doubling between them.
_ALLREDUCE = (
    *((16, 0, 8192), (32, 0, 4096), (64, 0, 128), (128, 0, 262144), (256, 131072, 262144), (512, 4096, 4096)),
    *((4096, 2048, 16384), (inf, 2048, 32768)),
)
#: Its alltoall: fewer members than -> bytes of a block below which it is Bruck's.
_ALLTOALL = ((16, 0), (64, 512), (512, 1024), (2048, 512), (4096, 1024), (inf, 2048))
#: Its broadcast: fewer members than -> bytes from which it scatters and gathers.
_BROADCAST = ((1024, inf), (2048, 524288), (inf, 262144))


class Part(NamedTuple):
    """One operation of the core; size_bytes is of the vector of a broadcast or a reduction, else of a block."""

    code: str
    size_bytes: float
    algorithm: str = "usual"


def parts_of(code: str, size_bytes: float, members: int, library: str, *, blocks: bool = True) -> tuple[Part, ...]:
    """One or two operations for one of the core, or for a reduce_scatter, whose bytes are those of the vector."""
    if not blocks and library == OPENMPI:
        if code == "reduce_scatter":
            return Part("reduce", size_bytes), Part("scatter", size_bytes / members)
        if code == "allreduce" and members > 2:
            return (Part(code, size_bytes, "binomial" if members < 4 or size_bytes < 65536 else "ring"),)
        return (Part(code, size_bytes),)
    return _blocking(code, size_bytes, members, library)


def _blocking(code: str, size_bytes: float, members: int, library: str) -> tuple[Part, ...]:
    block = size_bytes / members
    doubling = Part("allgather", block, "bruck")
    is_mpich = library == MPICH
    match code:
        case "bcast":
            least = (12288 if members >= 8 else inf) if is_mpich else _row(_BROADCAST, members)[1]
            if size_bytes >= least:
                by_ring = is_mpich and (size_bytes >= 524288 or members & (members - 1))
                return Part("scatter", block), Part("allgather", block) if by_ring else doubling
        case "allreduce" if members > 2:
            _, both, halves = (0, 0, 2049) if is_mpich else _row(_ALLREDUCE, members)
            if size_bytes >= halves:
                return (Part(code, size_bytes, "rabenseifner"),)
            if size_bytes < both:
                return (Part(code, size_bytes, "binomial"),)
        case "reduce" if is_mpich and size_bytes > 2048:
            return (Part(code, size_bytes, "rabenseifner"),)
        case "reduce_scatter":
            if size_bytes < (524288 if is_mpich else 262144):
                return (doubling,)
            return (Part("alltoall" if is_mpich else "allgather", block),)
        case "allgather" if size_bytes * members < (81920 if is_mpich else 50000):
            return (Part(code, size_bytes, "bruck"),)
        case "alltoall" if size_bytes < ((257 if members >= 8 else 0) if is_mpich else _row(_ALLTOALL, members)[1]):
            return (Part(code, size_bytes, "bruck"),)
        case "barrier":
            return (Part(code, 0.0),)
    return (Part(code, size_bytes),)


def _row(table: tuple[tuple[float, ...], ...], members: int) -> tuple[float, ...]:
    return table[bisect_right([row[0] for row in table], members)]


def library_of(recorded: object) -> str:
    """Library whose rules a recording's `mpi` follows: MPICH and its kin, else Open MPI."""
    name = str(recorded or "").casefold()
    return MPICH if "mpich" in name and "open mpi" not in name else OPENMPI
