"""Which algorithms of a library are shown to be better than its default, for which operations and sizes.

Each variant of the library (`measure.comparison.variants`) is compared with the library as it is, with the statistics
of a comparison (`verdicts`): one-sided p-values, corrected together for all rows and variants (Holm). Of the algorithms
that are better, the one with the least upper end of its interval is chosen.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lepaute.compare.verdicts import SIGNIFICANT, verdicts
from lepaute.errors import InputError
from lepaute.stats.aligned_ranks import values_to_decide
from lepaute.stats.multiple_tests import holm

if TYPE_CHECKING:
    import pandas

    from lepaute.archive.mpi_campaign import CampaignFacts

#: Mpiruns beyond the least ones: with these alone an algorithm must win against each mpirun of its block.
SPARE_MPIRUNS = 4
#: Variables that force an algorithm of an operation; values that force none.
_VARIABLES = (
    re.compile(r"OMPI_MCA_coll_tuned_([a-z_]+)_algorithm"),
    re.compile(r"MPIR_CVAR_([A-Z_]+)_INTRA_ALGORITHM"),
)
_NOT_FORCED = ("", "0", "ignore", "auto")


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


def choices(
    summaries: "pandas.DataFrame", default: str, variants: Mapping[str, Mapping[str, str]]
) -> tuple[Choice, ...]:
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


def algorithms_by_size(choices: Sequence[Choice], factor: int) -> list[tuple[int, str]]:
    """(message size from which on, algorithm) of one operation, increasing; the first from 0 on, "" for the default.

    choices: of one operation, in the order of sizes; factor: message size as the library counts it, over size_bytes
    An algorithm gets the sizes from the least to the greatest of neighbouring ones that it was chosen for; what lies
    between sizes with different choices, and beyond all, stays with the default.
    """
    begins = [(0, "")]
    for number, one in enumerate(choices):
        following = choices[number + 1].algorithm if number + 1 < len(choices) else ""
        if one.algorithm != begins[-1][1]:
            begins.append((one.size_bytes * factor, one.algorithm))
        if one.algorithm and one.algorithm != following:
            begins.append((one.size_bytes * factor + 1, ""))
    # Of two from one size on, the later one counts.
    return sorted(dict(begins).items())
