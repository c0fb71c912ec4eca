"""A library once as it is and once with each algorithm that it can be made to run: the libraries of a tuning campaign.

Open MPI's component `tuned` has a parameter for each operation that names its algorithms (ompi_info(1)). Variant k runs
algorithm k of every operation that has so many, so that few variants show all algorithms of all operations.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.mpi_launcher import OPEN_MPI, TITLES
from lepaute.measure.comparison.cases import BLOCKING, operations_of
from lepaute.measure.comparison.libraries import named_libraries, said_by_tool

_PARAMETERS = ("ompi_info", "--param", "coll", "tuned", "--level", "9", "--parsable")
_ALGORITHM = re.compile(r"^mca:coll:tuned:param:coll_tuned_([a-z_]+)_algorithm:enumerator:value:(\d+):", re.MULTILINE)
_SWITCH = "OMPI_MCA_coll_tuned_use_dynamic_rules=1"


@dataclass(frozen=True, slots=True)
class Variants:
    """specs: the library as it is and its variants, as `measure_libraries` takes them

    forced: how many pairs of a variant and an operation have an algorithm to compare with the default
    """

    specs: tuple[str, ...]
    forced: int


def algorithm_variants(spec: str, ops: str) -> Variants:
    """The library with each algorithm of these operations.

    spec: as `named_libraries` reads it; ops: as `operations_of` does
    Raises InputError where an operation has no choice of algorithms that a file of rules could hold, or where the
    library is none of Open MPI, EnvironmentProblem where it does not tell its algorithms.
    """
    (named,) = named_libraries([spec])
    if named.library.family != OPEN_MPI:
        raise InputError(
            f"{spec}: --tune needs Open MPI, whose rules name algorithms; this is {TITLES[named.library.family]}"
        )
    numbers: dict[str, list[int]] = {}
    for operation, number in _ALGORITHM.findall(said_by_tool(named.library, *_PARAMETERS)):
        # 0 leaves the choice to the library.
        numbers.setdefault(operation, []).extend([int(number)] if int(number) else [])
    if not numbers:
        raise EnvironmentProblem(f"{spec}: ompi_info beside {named.library.mpicc} names no algorithms of coll_tuned")
    wanted = operations_of(ops)
    for operation, form in wanted:
        if form != BLOCKING or not numbers.get(operation.lower()):
            known = ", ".join(sorted(numbers))
            raise InputError(
                f"--tune: Open MPI has no choice of algorithms for {operation} ({form}); it has for {known}"
            )
    variants = _variants(named.label, named.spec, [name for name, _ in wanted], numbers)
    forced = sum(len(numbers[name.lower()]) for name, _ in wanted)
    return Variants((f"{named.label}={named.spec}", *variants), forced)


def _variants(label: str, spec: str, operations: Sequence[str], numbers: dict[str, list[int]]) -> list[str]:
    variants = []
    for number in sorted({number for name in operations for number in numbers[name.lower()]}):
        names = [name.lower() for name in operations if number in numbers[name.lower()]]
        settings = [f"OMPI_MCA_coll_tuned_{name}_algorithm={number}" for name in names]
        variants.append(",".join([f"{label}.{number}={spec}", _SWITCH, *settings]))
    return variants
