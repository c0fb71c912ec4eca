"""A library once as it is and once with each algorithm that it can be made to run: the libraries of a tuning campaign.

Open MPI's component `tuned` has a parameter for each operation that names its algorithms (ompi_info(1)), MPICH a
variable for each operation (mpivars(1)). Variant k runs algorithm k of every operation that has so many, so that few
variants show all algorithms of all operations.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.mpi_launcher import MPICH, OPEN_MPI, TITLES
from lepaute.measure.comparison.cases import BLOCKING, Case
from lepaute.measure.comparison.libraries import NamedLibrary, said_by_tool

_PARAMETERS = ("ompi_info", "--param", "coll", "tuned", "--level", "9", "--parsable")
_ALGORITHM = re.compile(r"^mca:coll:tuned:param:coll_tuned_([a-z_]+)_algorithm:enumerator:value:(\d+):", re.MULTILINE)
#: Without this Open MPI ignores the others.
_SWITCH = "OMPI_MCA_coll_tuned_use_dynamic_rules=1"
_VARIABLES = {OPEN_MPI: "OMPI_MCA_coll_tuned_{}_algorithm", MPICH: "MPIR_CVAR_{}_INTRA_ALGORITHM"}


@dataclass(frozen=True, slots=True)
class Variants:
    """specs: the library as it is and its variants, as `measure_libraries` takes them

    tests: how many comparisons of an algorithm with the default there are
    """

    specs: tuple[str, ...]
    tests: int


def openmpi_algorithms(named: NamedLibrary) -> dict[str, tuple[str, ...]]:
    """Numbers of the algorithms of each operation, in lower case. Raises EnvironmentProblem where it tells none."""
    numbers: dict[str, list[str]] = {}
    for operation, number in _ALGORITHM.findall(said_by_tool(named.library, *_PARAMETERS)):
        # 0 leaves the choice to the library.
        numbers.setdefault(operation, []).extend([number] if int(number) else [])
    if not numbers:
        raise EnvironmentProblem(
            f"{named.label}: ompi_info beside {named.library.mpicc} names no algorithms of coll_tuned"
        )
    return {operation: tuple(found) for operation, found in numbers.items()}


def algorithm_variants(named: NamedLibrary, cases: Sequence[Case], algorithms: Mapping[str, Sequence[str]]) -> Variants:
    """The library with each of these algorithms of the operations of the cases.

    algorithms: by operation, lower case
    Raises InputError for another library than Open MPI and MPICH, a nonblocking operation, and one without algorithms.
    """
    if named.library.family not in _VARIABLES:
        raise InputError(f"--tune is for Open MPI and MPICH; {named.label} is {TITLES[named.library.family]}")
    for case in cases:
        if case.form != BLOCKING or not algorithms.get(case.operation.lower()):
            raise InputError(f"--tune: {named.label} has no choice of algorithms for {case.operation} ({case.form})")
    operations = list(dict.fromkeys(case.operation.lower() for case in cases))
    variable, switch = _VARIABLES[named.library.family], [_SWITCH] if named.library.family == OPEN_MPI else []
    specs = [f"{named.label}={named.spec}"]
    for number in range(max(len(algorithms[name]) for name in operations)):
        settings = [
            f"{variable.format(name if named.library.family == OPEN_MPI else name.upper())}={algorithms[name][number]}"
            for name in operations
            if number < len(algorithms[name])
        ]
        specs.append(",".join([f"{named.label}.{number + 1}={named.spec}", *switch, *settings]))
    return Variants(tuple(specs), sum(len(algorithms[case.operation.lower()]) for case in cases))
