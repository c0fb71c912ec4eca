"""Selection files for MPICH (variable MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE).

The format is that of MPICH 4.0 (src/mpi/coll/src/csel.c): a tree of conditions whose leaves are algorithms; of the
branches of a node the first whose condition holds is taken. A file takes the place of the whole default tree, of which
it is made by putting branches in front. The format knows no comments, and a condition of unknown name ends the program.

Bcast, Allreduce, Reduce and Barrier have algorithms of MPICH's devices before this tree is asked; of the others those
are here whose message size all ranks see alike.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from lepaute.compare.tuning import Choice, algorithms_by_size
from lepaute.errors import InputError
from lepaute.kit.mpi_launcher import MPICH, TITLES

#: A page of memory: MPICH reads the file where it is mapped, up to a byte 0 that must follow it.
_PAGE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class _Operation:
    """size: what counts as message size, of one block or of the blocks of all ranks

    holds, fails: a condition without which the algorithms do not work, and its contrary; "" for none
    algorithms: that work for it; those of powers_of_two only for so many ranks
    """

    size: Literal["avg_msg_size", "total_msg_size"]
    algorithms: tuple[str, ...]
    holds: str = ""
    fails: str = ""
    powers_of_two: tuple[str, ...] = ()


OPERATIONS = {
    "Allgather": _Operation(
        "total_msg_size", ("brucks", "ring", "recursive_doubling"), powers_of_two=("recursive_doubling",)
    ),
    "Allgatherv": _Operation(
        "total_msg_size", ("brucks", "ring", "recursive_doubling"), powers_of_two=("recursive_doubling",)
    ),
    "Alltoall": _Operation(
        "avg_msg_size", ("brucks", "scattered", "pairwise"), "is_sendbuf_inplace=no", "is_sendbuf_inplace=yes"
    ),
    "Reduce_scatter_block": _Operation(
        "total_msg_size",
        ("recursive_halving", "pairwise", "recursive_doubling"),
        "is_commutative=yes",
        "is_commutative=no",
    ),
}
#: Versions whose reader is known to take the format.
VERSIONS = ("4.0", "4.1", "4.2")


def check_library(family: str, version: str) -> None:
    """Raises InputError for a library that is no MPICH whose format is known."""
    if family != MPICH:
        raise InputError(f"--tune is for Open MPI and MPICH; this is {TITLES.get(family, family)}")
    if ".".join(version.split(".")[:2]) not in VERSIONS:
        raise InputError(f"the selection files of MPICH {version} are not known; they are of {', '.join(VERSIONS)}")


def algorithms_of(operation: str, ranks: int) -> tuple[str, ...]:
    """The algorithms that a file may choose for so many ranks. Raises InputError for an operation without any."""
    if operation not in OPERATIONS:
        listed = ", ".join(name.lower() for name in OPERATIONS)
        raise InputError(f"--tune: a selection file of MPICH does not decide {operation}; choose among {listed}")
    known = OPERATIONS[operation]
    barred = () if ranks & (ranks - 1) == 0 else known.powers_of_two
    return tuple(name for name in known.algorithms if name not in barred)


def selection_text(choices: Sequence[Choice], ranks: int, default: Mapping[str, Any]) -> str:
    """The file: for so many ranks the chosen algorithms, else what the default tree says.

    An algorithm gets the sizes from the least to the greatest of neighbouring ones that it was chosen for.
    Raises InputError for an operation that the default tree has not, or a file does not decide.
    """
    tree = dict(default)
    for name in sorted({one.operation for one in choices if one.algorithm}):
        algorithms_of(name, ranks)
        key = f"collective={name.lower()}"
        try:
            usual = default[key]["comm_type=intra"]
        except (KeyError, TypeError):
            raise InputError(f"this MPICH does not say how it chooses algorithms of {name}") from None
        mine = sorted((one for one in choices if one.operation == name), key=lambda one: one.size_bytes)
        branch = _by_size(name, mine, ranks, usual)
        operation = OPERATIONS[name]
        if operation.holds:
            branch = {operation.holds: branch, operation.fails: usual}
        by_ranks = {f"comm_size<{ranks}": usual, f"comm_size<={ranks}": branch, "comm_size=any": usual}
        tree[key] = {**default[key], "comm_type=intra": by_ranks}
    text = json.dumps(tree, indent=1) + "\n"
    return text if len(text.encode()) % _PAGE_BYTES else text + "\n"


def _by_size(name: str, choices: Sequence[Choice], ranks: int, usual: Mapping[str, Any]) -> dict[str, Any]:
    """Branches by message size; of equal neighbours one."""
    size = OPERATIONS[name].size
    factor = ranks if size == "total_msg_size" else 1
    begins = algorithms_by_size(choices, factor)
    branches: dict[str, Any] = {}
    for (_, algorithm), (end, _) in zip(begins, [*begins[1:], (0, "")], strict=True):
        condition = f"{size}<{end}" if end else f"{size}=any"
        branches[condition] = {f"algorithm=MPIR_{name}_intra_{algorithm}": {}} if algorithm else usual
    return branches
