"""`lepaute compare --tune`: what is measured, the chosen algorithms on a terminal, and the file."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lepaute.archive import Archive
    from lepaute.measure.comparison.reductions import Reduction


def variants_to_measure(
    library: str, ops: str, sizes: str, ranks: int, seed: int, mpiruns: int | None, reduction: "Reduction | None" = None
) -> tuple[list[str], int]:
    """A library as it is and its variants, and how many mpiruns each takes where the user does not say.

    Raises InputError for a library or an operation that no file could be written for.
    """
    from lepaute.compare.tuning import algorithms_of, check_mpich, check_openmpi, mpiruns_to_tune
    from lepaute.kit.mpi_launcher import OPEN_MPI
    from lepaute.measure.comparison.cases import cases_of, operations_of, reduction_in, sizes_of
    from lepaute.measure.comparison.libraries import named_libraries
    from lepaute.measure.comparison.reductions import Reduction
    from lepaute.measure.comparison.variants import algorithm_variants, openmpi_algorithms

    reduction = reduction or Reduction()
    (named,) = named_libraries([library])
    chosen = operations_of(ops)
    cases = cases_of(chosen, sizes_of(sizes, seed, reduction_in(chosen, reduction)), ranks, reduction)
    operations = list(dict.fromkeys(case.operation for case in cases))
    if named.library.family == OPEN_MPI:
        check_openmpi(named.library.version, operations)
        algorithms = openmpi_algorithms(named)
    else:
        check_mpich(named.library.family, named.library.version)
        algorithms = {name.lower(): algorithms_of(name, ranks) for name in operations}
    variants = algorithm_variants(named, cases, algorithms)
    return list(variants.specs), mpiruns or mpiruns_to_tune(variants.tests)


def write_tuning(campaign: "Archive", path: Path) -> None:
    """Writes the file of a tuning campaign. Raises InputError where it is none."""
    from lepaute.compare.tuning import tuning_of
    from lepaute.kit.files import write_whole
    from lepaute.kit.text import counted

    tuning = tuning_of(campaign)
    for warning in tuning.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    for one in tuning.choices:
        print(one)
    write_whole(path, tuning.text.encode())
    print(f"{path}: other algorithms than the default for {counted(tuning.changed, 'row')} of {len(tuning.choices)}")
    print(tuning.use.format(path.absolute()))
