"""Files of rules for Open MPI's component coll_tuned (parameter coll_tuned_dynamic_rules_filename).

The format is that of Open MPI 4.1 (ompi/mca/coll/tuned/coll_tuned_dynamic_file.c), which 5.0 reads as version 1:
numbers in a fixed order, a # begins a comment. A rule holds from its message size on, and from its number of ranks on.
The first message size must be 0. What counts as message size differs between operations
(coll_tuned_decision_dynamic.c).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lepaute.compare.tuning import Choice, algorithms_by_size
from lepaute.errors import InputError

#: What Open MPI takes for the message size: the vector or block as the probe counts it, or the blocks of all ranks.
Size = Literal["same", "all blocks"]


@dataclass(frozen=True, slots=True)
class _Operation:
    """number: in the file (ompi/mca/coll/base/coll_base_functions.h, COLLTYPE)."""

    number: int
    size: Size


OPERATIONS = {
    "Allgather": _Operation(0, "all blocks"),
    "Allgatherv": _Operation(1, "same"),
    "Allreduce": _Operation(2, "same"),
    "Alltoall": _Operation(3, "all blocks"),
    "Barrier": _Operation(6, "same"),
    "Bcast": _Operation(7, "same"),
    "Reduce": _Operation(11, "same"),
    "Reduce_scatter_block": _Operation(13, "all blocks"),
}
#: Operations whose algorithm rules could choose, and why they shall not.
WITHOUT_RULES = {
    "Alltoallv": "Open MPI does not look at its size",
    "Exscan": "Open MPI 4.1 does not look at its count",
    "Scan": "Open MPI 4.1 does not look at its count",
    "Gather": "its ranks may see different sizes, and would run different algorithms",
    "Scatter": "its ranks may see different sizes, and would run different algorithms",
}
#: Versions whose reader is known to take the format.
VERSIONS = ("4.1", "5.0")


def check_operations(operations: Sequence[str]) -> None:
    """Raises InputError for an operation that a file cannot have rules for."""
    for operation in operations:
        if operation not in OPERATIONS:
            why = WITHOUT_RULES.get(operation, "Open MPI has no rules for it")
            raise InputError(
                f"--tune: {operation}: {why}; choose among {', '.join(sorted(name.lower() for name in OPERATIONS))}"
            )


def check_version(version: str) -> None:
    """Raises InputError for an Open MPI whose format is not known."""
    if ".".join(version.split(".")[:2]) not in VERSIONS:
        raise InputError(f"the rules of Open MPI {version} are not known; they are of {' and '.join(VERSIONS)}")


def rules_text(choices: Sequence[Choice], ranks: int, comments: Sequence[str] = ()) -> str:
    """The file: for so many ranks the chosen algorithms, for other numbers of ranks and other sizes the default.

    Which sizes get an algorithm: `algorithms_by_size`.
    Raises InputError for an operation without rules.
    """
    check_operations([one.operation for one in choices])
    chosen = sorted({one.operation for one in choices if one.algorithm})
    lines = [*(f"# {line}" for line in comments), f"{len(chosen)} # operations with rules"]
    for name in chosen:
        operation = OPERATIONS[name]
        factor = ranks if operation.size == "all blocks" else 1
        mine = sorted((one for one in choices if one.operation == name), key=lambda one: one.size_bytes)
        rules = algorithms_by_size(mine, factor)
        lines += [
            f"{operation.number} # {name}",
            "3 # numbers of ranks",
            "0 1 # ranks from 0, one message size",
            "0 0 0 0 # message size from 0: algorithm 0 (the default), topology 0, segments 0",
            f"{ranks} {len(rules)} # ranks, message sizes",
            *(f"{size} {algorithm or 0} 0 0" for size, algorithm in rules),
            f"{ranks + 1} 1",
            "0 0 0 0",
        ]
    return "\n".join(lines) + "\n"
