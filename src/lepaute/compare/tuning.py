"""From a tuning campaign to the file that makes a library run its best measured algorithms.

Each variant of the library (`measure.comparison.variants`) is compared with the library as it is, with the statistics
of a comparison (`verdicts`): one-sided p-values, corrected together for all rows and variants (Holm). Of the algorithms
that are better, the one with the least upper end of its interval is chosen.

Open MPI takes rules for its component coll_tuned (parameter coll_tuned_dynamic_rules_filename), in the format of 4.1
(ompi/mca/coll/tuned/coll_tuned_dynamic_file.c), which 5.0 reads as version 1: numbers in a fixed order, a # begins a
comment. A rule holds from its message size on, and from its number of ranks on. The first message size must be 0. What
counts as message size differs between operations (coll_tuned_decision_dynamic.c).

MPICH takes a selection (variable MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE), in the format of 4.0
(src/mpi/coll/src/csel.c): a tree of conditions whose leaves are algorithms; of the branches of a node the first whose
condition holds is taken. A file takes the place of the whole default tree, of which it is made by putting branches in
front. The format knows no comments, and a condition of unknown name ends the program. Bcast, Allreduce, Reduce and
Barrier have algorithms of MPICH's devices before this tree is asked; of the others those are here whose message size
all ranks see alike.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pandas

from lepaute.archive import mpi_campaign
from lepaute.compare.comparison import campaign_summaries
from lepaute.compare.verdicts import SIGNIFICANT, verdicts
from lepaute.errors import InputError
from lepaute.kit.mpi_launcher import MPICH, OPEN_MPI, TITLES
from lepaute.kit.mpi_library import default_tree, find_library
from lepaute.kit.text import counted, with_interval
from lepaute.stats.aligned_ranks import values_to_decide
from lepaute.stats.multiple_tests import holm
from lepaute.version import __version__

if TYPE_CHECKING:
    from lepaute.archive.mpi_campaign import CampaignFacts, LibraryFacts
    from lepaute.archive.reader import Archive

#: Mpiruns beyond the least ones: with these alone an algorithm must win against each mpirun of its block.
SPARE_MPIRUNS = 4
#: Variables that force an algorithm of an operation; values that force none.
_VARIABLES = (
    re.compile(r"OMPI_MCA_coll_tuned_([a-z_]+)_algorithm"),
    re.compile(r"MPIR_CVAR_([A-Z_]+)_INTRA_ALGORITHM"),
)
_NOT_FORCED = ("", "0", "ignore", "auto")
_USE_OPEN_MPI = "mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename {} ..."
_USE_MPICH = "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE={} mpirun ..."
#: A page of memory: MPICH reads the file where it is mapped, up to a byte 0 that must follow it.
_PAGE_BYTES = 4096

#: Versions whose reader is known to take the format.
OPENMPI_VERSIONS, MPICH_VERSIONS = ("4.1", "5.0"), ("4.0", "4.1", "4.2")
#: Operations that rules can be for: the number in the file (ompi/mca/coll/base/coll_base_functions.h, COLLTYPE), and
#: what Open MPI takes for the message size: the vector or block as the probe counts it, or the blocks of all ranks.
RULED: Mapping[str, tuple[int, Literal["same", "all blocks"]]] = {
    "Allgather": (0, "all blocks"),
    "Allgatherv": (1, "same"),
    "Allreduce": (2, "same"),
    "Alltoall": (3, "all blocks"),
    "Barrier": (6, "same"),
    "Bcast": (7, "same"),
    "Reduce": (11, "same"),
    "Reduce_scatter_block": (13, "all blocks"),
}
#: Operations whose algorithm rules could choose, and why they shall not.
_WITHOUT_RULES = {
    "Alltoallv": "Open MPI does not look at its size",
    "Exscan": "Open MPI 4.1 does not look at its count",
    "Scan": "Open MPI 4.1 does not look at its count",
    "Gather": "its ranks may see different sizes, and would run different algorithms",
    "Scatter": "its ranks may see different sizes, and would run different algorithms",
}


@dataclass(frozen=True, slots=True)
class _Selected:
    """An operation that a selection can be for.

    size         : what counts as message size, of one block or of the blocks of all ranks
    holds, fails : a condition without which the algorithms do not work, and its contrary; "" for none
    algorithms   : that work for it; those of powers_of_two only for so many ranks
    """

    size: Literal["avg_msg_size", "total_msg_size"]
    algorithms: tuple[str, ...]
    holds: str = ""
    fails: str = ""
    powers_of_two: tuple[str, ...] = ()


_GATHERED = _Selected("total_msg_size", ("brucks", "ring", "recursive_doubling"), powers_of_two=("recursive_doubling",))
SELECTED = {
    "Allgather": _GATHERED,
    "Allgatherv": _GATHERED,
    "Alltoall": _Selected(
        "avg_msg_size", ("brucks", "scattered", "pairwise"), "is_sendbuf_inplace=no", "is_sendbuf_inplace=yes"
    ),
    "Reduce_scatter_block": _Selected(
        "total_msg_size",
        ("recursive_halving", "pairwise", "recursive_doubling"),
        "is_commutative=yes",
        "is_commutative=no",
    ),
}


@dataclass(frozen=True, slots=True)
class Choice:
    """The algorithm for one operation and size, as the library names it; "" where none is shown to beat the default.

    default_s : median over mpiruns of the default
    ratio     : time of the algorithm over that of the default (Hodges-Lehmann), with its 95 % interval; 1 for the
    default p_holm    : that it is no better, corrected for all rows and algorithms; the least there is for the default
    """

    operation: str
    size_bytes: int
    algorithm: str
    default_s: float
    ratio: float
    low: float
    high: float
    p_holm: float

    def __str__(self) -> str:
        """Such as "Bcast of 8 bytes: algorithm 6 is faster than the default by 12 % (9 to 15 %)"."""
        what = f"{self.operation} of {self.size_bytes} bytes" if self.size_bytes else self.operation
        if not self.algorithm:
            return f"{what}: no algorithm is shown to be faster than the default"
        saved, low, high = (100 * (1 - value) for value in (self.ratio, self.high, self.low))
        saved_text = with_interval(saved, low, high, "%", "")
        return f"{what}: algorithm {self.algorithm} is faster than the default by {saved_text}"


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
    quiet = summaries[(summaries["library"] == default) & ~summaries["disturbed"]]
    mpiruns = int(quiet["mpirun"].nunique())
    made = counted(mpiruns, "undisturbed mpirun")
    few = f"{made} of each algorithm can show nothing in {tests} tests: {least} at least"
    if library.family == OPEN_MPI:
        check_openmpi(library.version)
        comments = [
            f"Written by lepaute {__version__} (lepaute compare --tune) from archive {campaign.id}",
            f"Open MPI {library.version}, {facts.ranks} ranks, {counted(mpiruns, 'mpirun')} of each algorithm",
            _USE_OPEN_MPI.format("FILE"),
            *(str(one) for one in chosen if one.algorithm),
        ]
        text, use = rules_text(chosen, facts.ranks, comments), _USE_OPEN_MPI
    else:
        text, use = _selection(chosen, facts.ranks, library), _USE_MPICH
    return Tuning(default, chosen, text, use, (few,) if mpiruns < least else ())


def forced_algorithms(facts: "CampaignFacts") -> tuple[str, dict[str, dict[str, str]]]:
    """The label of the library as it is, and for each of its variants the algorithms that it forces, by operation.

    Raises InputError where a campaign has no variants, or more than one library that they could be of.
    """
    forced = {
        library.label: {
            match[1].lower(): value
            for name, value in library.variables.items()
            for pattern in _VARIABLES
            if (match := pattern.fullmatch(name)) and value not in _NOT_FORCED
        }
        for library in facts.libraries
    }
    variants = {label: algorithms for label, algorithms in forced.items() if algorithms}
    defaults = [label for label, algorithms in forced.items() if not algorithms]
    if not variants or len(defaults) != 1:
        raise InputError(
            "the campaign does not hold one library as it is and with forced algorithms; measure them with "
            "lepaute compare LIBRARY --tune FILE"
        )
    return defaults[0], variants


def choices(summaries: pandas.DataFrame, default: str, variants: Mapping[str, Mapping[str, str]]) -> tuple[Choice, ...]:
    """One for each operation and size that the default was measured with and that a variant forces an algorithm for.

    summaries: as `mpirun_summaries` gives; variants: of each label the algorithms by operation, lower case
    """
    rows = [
        (one, variants[label][one.operation.lower()])
        for label in variants
        for one in verdicts(summaries, default, label)
        if one.form == "blocking" and one.operation.lower() in variants[label]
    ]
    corrected = holm([one.p_lower for one, _ in rows])
    chosen: dict[tuple[str, int], Choice] = {}
    for (one, algorithm), p_holm in zip(rows, corrected, strict=True):
        key = one.operation, one.size_bytes
        best = chosen.get(key)
        if p_holm <= SIGNIFICANT and one.ratio < 1:
            if best is None or not best.algorithm or one.high < best.high:
                chosen[key] = Choice(*key, algorithm, one.left_s, one.ratio, one.low, one.high, p_holm)
        elif best is None or (not best.algorithm and p_holm < best.p_holm):
            chosen[key] = Choice(*key, "", one.left_s, 1.0, 1.0, 1.0, p_holm)
    return tuple(chosen[key] for key in sorted(chosen))


def least_mpiruns(tests: int) -> int:
    """Mpiruns of each variant below which none of so many one-sided tests can show anything, whatever the times."""
    return values_to_decide(2 * SIGNIFICANT / max(1, tests))


def mpiruns_to_tune(tests: int) -> int:
    """How many mpiruns of each variant a campaign makes whose user does not say."""
    return least_mpiruns(tests) + SPARE_MPIRUNS


def _algorithms_by_size(choices: Sequence[Choice], operation: str, factor: int) -> list[tuple[int, str]]:
    """(message size from which on, algorithm) of one operation, increasing; the first from 0 on, "" for the default.

    factor: message size as the library counts it, over size_bytes
    An algorithm gets the sizes from the least to the greatest of neighbouring ones that it was chosen for; what lies
    between sizes with different choices, and beyond all, stays with the default.
    """
    subset = sorted((one for one in choices if one.operation == operation), key=lambda one: one.size_bytes)
    begins = [(0, "")]
    for number, one in enumerate(subset):
        following = subset[number + 1].algorithm if number + 1 < len(subset) else ""
        if one.algorithm != begins[-1][1]:
            begins.append((one.size_bytes * factor, one.algorithm))
        if one.algorithm and one.algorithm != following:
            begins.append((one.size_bytes * factor + 1, ""))
    # Of two from one size on, the later one counts.
    return sorted(dict(begins).items())


def check_openmpi(version: str, operations: Sequence[str] = ()) -> None:
    """Raises InputError for an Open MPI whose format is not known, and an operation that a file cannot have rules
    for."""
    if ".".join(version.split(".")[:2]) not in OPENMPI_VERSIONS:
        raise InputError(f"the rules of Open MPI {version} are not known; they are of {' and '.join(OPENMPI_VERSIONS)}")
    _check_ruled(operations)


def _check_ruled(operations: Sequence[str]) -> None:
    for operation in operations:
        if operation not in RULED:
            why = _WITHOUT_RULES.get(operation, "Open MPI has no rules for it")
            raise InputError(
                f"--tune: {operation}: {why}; choose among {', '.join(sorted(name.lower() for name in RULED))}"
            )


def rules_text(choices: Sequence[Choice], ranks: int, comments: Sequence[str] = ()) -> str:
    """The file for Open MPI: for so many ranks the chosen algorithms, for other numbers of ranks and other sizes the
    default. Raises InputError for an operation without rules.
    """
    _check_ruled([one.operation for one in choices])
    chosen = sorted({one.operation for one in choices if one.algorithm})
    lines = [*(f"# {line}" for line in comments), f"{len(chosen)} # operations with rules"]
    for name in chosen:
        number, size = RULED[name]
        rules = _algorithms_by_size(choices, name, ranks if size == "all blocks" else 1)
        lines += [
            f"{number} # {name}",
            "3 # numbers of ranks",
            "0 1 # ranks from 0, one message size",
            "0 0 0 0 # message size from 0: algorithm 0 (the default), topology 0, segments 0",
            f"{ranks} {len(rules)} # ranks, message sizes",
            *(f"{begin} {algorithm or 0} 0 0" for begin, algorithm in rules),
            f"{ranks + 1} 1",
            "0 0 0 0",
        ]
    return "\n".join(lines) + "\n"


def check_mpich(family: str, version: str) -> None:
    """Raises InputError for a library that is not an MPICH whose format is known."""
    if family != MPICH:
        raise InputError(f"--tune is for Open MPI and MPICH; this is {TITLES.get(family, family)}")
    if ".".join(version.split(".")[:2]) not in MPICH_VERSIONS:
        raise InputError(
            f"the selection files of MPICH {version} are not known; they are of {', '.join(MPICH_VERSIONS)}"
        )


def algorithms_of(operation: str, ranks: int) -> tuple[str, ...]:
    """The algorithms that a selection of MPICH may choose for so many ranks.

    Raises InputError for an operation without any.
    """
    if operation not in SELECTED:
        listed = ", ".join(name.lower() for name in SELECTED)
        raise InputError(f"--tune: a selection file of MPICH does not decide {operation}; choose among {listed}")
    known = SELECTED[operation]
    barred = () if ranks & (ranks - 1) == 0 else known.powers_of_two
    return tuple(name for name in known.algorithms if name not in barred)


def _selection(chosen: tuple[Choice, ...], ranks: int, library: "LibraryFacts") -> str:
    check_mpich(library.family, library.version)
    installed = find_library(library.mpicc)
    if installed.version != library.version:
        raise InputError(
            f"{library.mpicc} is MPICH {installed.version}, and MPICH {library.version} was measured: its file is made "
            "of the selection that the measured one holds"
        )
    return selection_text(chosen, ranks, default_tree(installed))


def selection_text(choices: Sequence[Choice], ranks: int, default: Mapping[str, Any]) -> str:
    """The file for MPICH: for so many ranks the chosen algorithms, else what the default tree says.

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
        operation = SELECTED[name]
        begins = _algorithms_by_size(choices, name, ranks if operation.size == "total_msg_size" else 1)
        branch: dict[str, Any] = {}
        for (_, algorithm), (end, _) in zip(begins, [*begins[1:], (0, "")], strict=True):
            condition = f"{operation.size}<{end}" if end else f"{operation.size}=any"
            branch[condition] = {f"algorithm=MPIR_{name}_intra_{algorithm}": {}} if algorithm else usual
        if operation.holds:
            branch = {operation.holds: branch, operation.fails: usual}
        by_ranks = {f"comm_size<{ranks}": usual, f"comm_size<={ranks}": branch, "comm_size=any": usual}
        tree[key] = {**default[key], "comm_type=intra": by_ranks}
    text = json.dumps(tree, indent=1) + "\n"
    return text if len(text.encode()) % _PAGE_BYTES else text + "\n"
