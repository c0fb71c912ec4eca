"""Of what operations of the core a collective call consists, by the decision rules of an MPI library.

Sources: Open MPI, ompi/mca/coll/tuned/coll_tuned_decision_fixed.c (up to 4.0); MPICH as in Thakur, Rabenseifner &
Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 19(1), 2005, with the thresholds of its
defaults. Where the core lacks an algorithm, the one with the nearest messages stands for it: a ring for
Rabenseifner's allreduce and for exchanges of neighbours, Bruck for recursive doubling of an allgather (with a power of
two of ranks the same messages), binomial trees for pipelines and linear ones.
"""

from typing import NamedTuple

OPENMPI, MPICH = LIBRARIES = ("openmpi", "mpich")


class Part(NamedTuple):
    """One operation of the core: its bytes are those of a block where the operation moves blocks."""

    code: str
    size_bytes: float
    algorithm: str = "usual"


def parts_of(code: str, size_bytes: float, members: int, library: str) -> tuple[Part, ...]:
    """One or two operations.

    code : of the core, or reduce_scatter;  size_bytes : of the vector of a broadcast or a reduction, else of a block
    """
    if code == "barrier":
        return (Part(code, 0.0),)
    if code == "bcast" and library == MPICH and size_bytes >= 12288 and members >= 8:
        block = size_bytes / members
        doubles = size_bytes < 524288 and members & (members - 1) == 0
        return Part("scatter", block), Part("allgather", block, "bruck" if doubles else "usual")
    if code == "allreduce" and members > 2 and size_bytes >= (10000 if library == OPENMPI else 2049):
        return (Part(code, size_bytes, "ring"),)
    if code == "allgather" and size_bytes * members < (50000 if library == OPENMPI else 81920):
        return (Part(code, size_bytes, "bruck"),)
    short = size_bytes < 200 and members > 12 if library == OPENMPI else size_bytes <= 256 and members >= 8
    if code == "alltoall" and short:
        return (Part(code, size_bytes, "bruck"),)
    if code == "reduce_scatter":
        return Part("reduce", size_bytes), Part("scatter", size_bytes / members)
    return (Part(code, size_bytes),)


def library_of(recorded: object) -> str:
    """That of a recording's `mpi`: MPICH and its kin, else Open MPI."""
    name = str(recorded or "").casefold()
    return MPICH if "mpich" in name and "open mpi" not in name else OPENMPI
