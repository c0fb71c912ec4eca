"""From the archive of a tuning campaign to the file that makes Open MPI run the best measured algorithms."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lepaute.archive import mpi_campaign
from lepaute.compare.comparison import campaign_summaries
from lepaute.compare.openmpi_rules import check_operations, check_version, rules_text
from lepaute.compare.tuning import Choice, choices, forced_algorithms, least_mpiruns
from lepaute.errors import InputError
from lepaute.kit.text import counted, three_digits
from lepaute.version import __version__

if TYPE_CHECKING:
    from lepaute.archive.reader import Archive


@dataclass(frozen=True, slots=True)
class Tuning:
    """library: label of the library as it is; text: of the file; warnings: what weakens the choices, sentences."""

    library: str
    choices: tuple[Choice, ...]
    text: str
    warnings: tuple[str, ...]

    @property
    def rules(self) -> int:
        """Operations and sizes that get another algorithm than the default."""
        return sum(one.algorithm > 0 for one in self.choices)


def tuning_of(campaign: "Archive") -> Tuning:
    """The choices of a campaign that has one library as it is and with forced algorithms.

    Raises ArchiveError for another kind of archive, InputError for other libraries, a version of Open MPI whose rules
    are not known, or an operation that rules cannot be written for.
    """
    facts = mpi_campaign.facts(campaign)
    default, variants = forced_algorithms(facts)
    library = next(one for one in facts.libraries if one.label == default)
    if library.family != "openmpi":
        raise InputError(f"{default} is no Open MPI; rules can be written for Open MPI alone")
    check_version(library.version)
    check_operations([one.operation for one in facts.cases])
    summaries = campaign_summaries(campaign)
    chosen = choices(summaries, default, variants)
    tests = sum(one.operation.lower() in forced for one in facts.cases for forced in variants.values())
    least = least_mpiruns(tests)
    mpiruns = int(summaries[summaries["library"] == default]["mpirun"].nunique())
    warnings = (
        (f"{counted(mpiruns, 'mpirun')} of each algorithm can show nothing in {tests} tests: {least} at least",)
        if mpiruns < least
        else ()
    )
    comments = [
        f"Written by lepaute {__version__} (lepaute compare --tune) from archive {campaign.id}",
        f"Open MPI {library.version}, {facts.ranks} ranks, {counted(mpiruns, 'mpirun')} of each algorithm",
        "mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename FILE",
        *(f"{choice_sentence(one)}" for one in chosen if one.algorithm),
    ]
    return Tuning(default, chosen, rules_text(chosen, facts.ranks, comments), warnings)


def choice_sentence(choice: Choice) -> str:
    """Such as "Bcast of 8 bytes: algorithm 6 is faster than the default by 12 % [9, 15]"."""
    what = f"{choice.operation} of {choice.size_bytes} bytes" if choice.size_bytes else choice.operation
    if not choice.algorithm:
        return f"{what}: no algorithm is shown to be faster than the default"
    saved, low, high = (three_digits(100 * (1 - value)) for value in (choice.ratio, choice.high, choice.low))
    return f"{what}: algorithm {choice.algorithm} is faster than the default by {saved} % [{low}, {high}]"
