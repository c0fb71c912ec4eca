"""From the archive of a tuning campaign to the file that makes the library run the best measured algorithms."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lepaute.archive import mpi_campaign
from lepaute.compare import mpich_selection, openmpi_rules
from lepaute.compare.comparison import campaign_summaries
from lepaute.compare.tuning import Choice, choices, forced_algorithms, least_mpiruns
from lepaute.errors import InputError
from lepaute.kit.mpi_launcher import OPEN_MPI
from lepaute.kit.mpi_library import default_tree, find_library
from lepaute.kit.text import counted, three_digits
from lepaute.version import __version__

if TYPE_CHECKING:
    from lepaute.archive.mpi_campaign import LibraryFacts
    from lepaute.archive.reader import Archive

_USE_OPEN_MPI = "mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename {} ..."
_USE_MPICH = "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE={} mpirun ..."


@dataclass(frozen=True, slots=True)
class Tuning:
    """library: label of the library as it is; text: of the file; use: a command, {} being the path of the file

    warnings: what weakens the choices, sentences
    """

    library: str
    choices: tuple[Choice, ...]
    text: str
    use: str
    warnings: tuple[str, ...]

    @property
    def changed(self) -> int:
        """Operations and sizes that get another algorithm than the default."""
        return sum(bool(one.algorithm) for one in self.choices)


def tuning_of(campaign: "Archive") -> Tuning:
    """The choices of a campaign that has one library as it is and with forced algorithms.

    The file for MPICH takes the place of its whole selection, which is read from the installed library.
    Raises ArchiveError for another kind of archive, InputError for other libraries, a version whose files are not
    known, an operation that a file does not decide, or another MPICH than the measured one, EnvironmentProblem where it
    is missing.
    """
    facts = mpi_campaign.facts(campaign)
    default, variants = forced_algorithms(facts)
    library = next(one for one in facts.libraries if one.label == default)
    summaries = campaign_summaries(campaign)
    chosen = choices(summaries, default, variants)
    tests = sum(one.operation.lower() in forced for one in facts.cases for forced in variants.values())
    least = least_mpiruns(tests)
    mpiruns = int(summaries[summaries["library"] == default]["mpirun"].nunique())
    few = f"{counted(mpiruns, 'mpirun')} of each algorithm can show nothing in {tests} tests: {least} at least"
    if library.family == OPEN_MPI:
        openmpi_rules.check_version(library.version)
        comments = [
            f"Written by lepaute {__version__} (lepaute compare --tune) from archive {campaign.id}",
            f"Open MPI {library.version}, {facts.ranks} ranks, {counted(mpiruns, 'mpirun')} of each algorithm",
            _USE_OPEN_MPI.format("FILE"),
            *(choice_sentence(one) for one in chosen if one.algorithm),
        ]
        text, use = openmpi_rules.rules_text(chosen, facts.ranks, comments), _USE_OPEN_MPI
    else:
        text, use = _selection(chosen, facts.ranks, library), _USE_MPICH
    return Tuning(default, chosen, text, use, (few,) if mpiruns < least else ())


def _selection(chosen: tuple[Choice, ...], ranks: int, library: "LibraryFacts") -> str:
    mpich_selection.check_library(library.family, library.version)
    installed = find_library(library.mpicc)
    if installed.version != library.version:
        raise InputError(
            f"{library.mpicc} is MPICH {installed.version}, and MPICH {library.version} was measured: its file is made "
            "of the selection that the measured one holds"
        )
    return mpich_selection.selection_text(chosen, ranks, default_tree(installed))


def choice_sentence(choice: Choice) -> str:
    """Such as "Bcast of 8 bytes: algorithm 6 is faster than the default by 12 % [9, 15]"."""
    what = f"{choice.operation} of {choice.size_bytes} bytes" if choice.size_bytes else choice.operation
    if not choice.algorithm:
        return f"{what}: no algorithm is shown to be faster than the default"
    saved, low, high = (three_digits(100 * (1 - value)) for value in (choice.ratio, choice.high, choice.low))
    return f"{what}: algorithm {choice.algorithm} is faster than the default by {saved} % [{low}, {high}]"
