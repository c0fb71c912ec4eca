"""`lepaute compare --tune`: the chosen algorithms on a terminal, and the file of rules."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lepaute.archive import Archive


def variants_to_measure(library: str, ops: str, sizes: str, seed: int, mpiruns: int | None) -> tuple[list[str], int]:
    """A library as it is and its variants, and how many mpiruns each takes where the user does not say."""
    from lepaute.compare.openmpi_rules import check_operations
    from lepaute.compare.tuning import mpiruns_to_tune
    from lepaute.measure.comparison.cases import operations_of, sizes_of
    from lepaute.measure.comparison.variants import algorithm_variants

    check_operations([name for name, _ in operations_of(ops)])
    variants = algorithm_variants(library, ops)
    return list(variants.specs), mpiruns or mpiruns_to_tune(variants.forced * len(sizes_of(sizes, seed)))


def write_tuning(campaign: "Archive", path: Path) -> None:
    """Writes the rules of a tuning campaign. Raises InputError where it is none."""
    from lepaute.compare.tuning_file import choice_sentence, tuning_of
    from lepaute.kit.files import write_whole
    from lepaute.kit.text import counted

    tuning = tuning_of(campaign)
    for warning in tuning.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    for one in tuning.choices:
        print(choice_sentence(one))
    write_whole(path, tuning.text.encode())
    print(f"{path}: other algorithms than the default for {counted(tuning.rules, 'row')} of {len(tuning.choices)}")
    print(f"mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename {path.absolute()} ...")
