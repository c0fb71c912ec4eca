"""What the rows of a comparison were measured with: what reductions reduced, roots, variables, algorithms."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lepaute.archive.mpi_campaign import KIND, settings_text
from lepaute.measure.comparison.cases import OVERLAPPED, REDUCTIONS, ROOTED, name_of

if TYPE_CHECKING:
    from lepaute.archive.mpi_campaign import CampaignFacts
    from lepaute.compare.comparison import Comparison
    from lepaute.compare.verdicts import Verdict

#: Of archives that do not say what reductions reduced.
_REDUCED_BEFORE = "MPI_SUM of MPI_DOUBLE where 8 divides the size, else MPI_BXOR of MPI_BYTE"
_ROOT_BEFORE = "rank 0"
_UNKNOWN = "unknown"


def setting_lines(found: "Comparison") -> list[str]:
    """One line for what the rows depend on; outputs of other benchmarks do not say it."""
    factors = [one.factors for one in found.archives if one.kind == KIND]
    operations = {one.operation for one in found.verdicts}
    lines = []
    if factors and operations & set(REDUCTIONS):
        lines.append(f"reductions: {_joined([_reduced(one) for one in factors])}")
    roots = [_root(one) for one in factors]
    if operations & set(ROOTED) and any(root != _ROOT_BEFORE for root in roots):
        lines.append(f"root: {_joined(roots)}")
    return [*lines, *(f"{one.label} with {settings_text(one.settings)}" for one in found.libraries if one.settings)]


def algorithms(found: "Comparison", verdict: "Verdict") -> str:
    """What the left and the right library ran for a row, "unknown" where that was not seen; empty where neither was."""
    key = f"{name_of(verdict.operation, verdict.form)} of {verdict.size_bytes} bytes"
    ran = {one.label: one.algorithms.get(key, _UNKNOWN) for one in found.libraries}
    both = [ran.get(label, _UNKNOWN) for label in (found.left, found.right)]
    return "" if set(both) == {_UNKNOWN} else ", ".join(dict.fromkeys(both))


def different_settings(facts: Sequence["CampaignFacts"]) -> list[str]:
    """Warnings of two campaigns whose rows of the same name are not of the same."""
    lines = []
    for name, of, subjects in (
        ("reduce", _reduced, REDUCTIONS),
        ("have the root", _root, ROOTED),
        ("overlap with", _overlap, (OVERLAPPED,)),
    ):
        levels = [
            of(one.factors) for one in facts if any({case.operation, case.form} & set(subjects) for case in one.cases)
        ]
        if len(set(levels)) > 1:
            lines.append(f"the campaigns {name} {levels[0]} and {levels[1]}: such rows are not of the same operation")
    return lines


def _reduced(factors: Mapping[str, str]) -> str:
    return factors.get("reductions", _REDUCED_BEFORE)


def _root(factors: Mapping[str, str]) -> str:
    return factors.get("root", _ROOT_BEFORE)


def _overlap(factors: Mapping[str, str]) -> str:
    return factors.get("overlap", "no work")


def _joined(levels: Sequence[str]) -> str:
    """One level where all are equal, else that of each archive."""
    return "; ".join(dict.fromkeys(levels))
