"""Where the rows of a comparison come from, the commands that measure them again, and what they were measured with:
reductions, roots, variables, algorithms.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lepaute.kit.node_sets import fold_node_set
from lepaute.measure.archive.documents import mapping, sequence
from lepaute.measure.archive.mpi_campaign import KIND, algorithm_key, settings_text
from lepaute.measure.comparison.cases import (
    OVERLAPPED,
    REDUCTIONS,
    ROOTED,
    name_of,
    plain_operation,
    unused_arguments,
    word_of,
)

if TYPE_CHECKING:
    from lepaute.measure.archive.mpi_campaign import CampaignFacts
    from lepaute.measure.archive.reader import Archive
    from lepaute.measure.compare.comparison import Comparison
    from lepaute.measure.compare.verdicts import Verdict

#: Defaults for archives that do not say it: what reductions reduced, the root, the work of overlapped operations.
_BEFORE = {
    "reductions": "MPI_SUM of MPI_DOUBLE where 8 divides the size, else MPI_BXOR of MPI_BYTE",
    "root": "rank 0",
    "overlap": "no work",
}
_UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Source:
    """A file: its name, and its id (SHA-256: of an archive, that of its manifest).

    kind       : KIND of a campaign, or the suite that printed an output
    argument   : that names it on the command line of a comparison
    command    : that measures the same again; empty if the file does not say
    derivation : how the numbers of calls and mpiruns came about, sentences
    compute_s  : work of overlapped operations, seconds
    """

    file: str
    id: str
    kind: str
    argument: str
    created: str = ""
    host: str = ""
    lepaute_version: str = ""
    command: str = ""
    factors: Mapping[str, str] = field(default_factory=dict)
    derivation: tuple[str, ...] = ()
    compute_s: float = 0.0

    @property
    def origin(self) -> str:
        """Where it comes from and what its id is, in words."""
        if self.kind == KIND:
            measured = f"Measured {self.created} on {self.host} with lepaute {self.lepaute_version}"
            return f"{measured}; SHA-256 of the manifest, which has that of every member"
        return f"Output of the {self.kind}; SHA-256 of the file"


def source(archive: "Archive", facts: "CampaignFacts") -> Source:
    """What an archive of a campaign says of itself."""
    return Source(
        file=archive.path.name,
        id=archive.id,
        kind=KIND,
        argument=archive.path.name,
        created=archive.about.created,
        host=archive.about.host,
        lepaute_version=archive.about.lepaute_version,
        command=_measuring_command(facts, archive.about.seed),
        factors=facts.factors,
        derivation=facts.derivation,
        compute_s=compute_s(facts),
    )


def compute_s(facts: "CampaignFacts") -> float:
    """Work of overlapped operations before they are waited for."""
    request = mapping(facts.more.get("asked")).get("compute_s")
    return float(request) if isinstance(request, int | float) else 0.0


def _measuring_command(facts: "CampaignFacts", seed: int | None) -> str:
    """The command line of a campaign, as a shell takes it."""
    request = mapping(facts.more.get("asked"))
    pairs = [_pair(one) for one in sequence(request.get("libraries"))]
    if not pairs:
        return ""
    libraries = [spec if label == spec else f"{label}={spec}" for label, spec in pairs]
    operations = [_pair(pair) for pair in sequence(request.get("operations"))]
    unused = unused_arguments(operation for operation, _ in operations) if operations else []
    words: list[str] = ["lepaute", "compare", *libraries]
    words += ["--ops", ",".join(filter(None, (word_of(*pair) for pair in operations)))] if operations else []
    if "sizes" not in unused:
        words += ["--sizes", ",".join(str(size) for size in sequence(request.get("sizes_bytes")))]
    words += ["--np", ",".join(map(str, facts.all_ranks))]
    if facts.nodes:
        words += ["--nodes", fold_node_set(facts.nodes)]
        words += ["--ranks-per-node", str(facts.slots[0])] if len(set(facts.slots)) == 1 else []
    if request.get("calls") is None or request.get("mpiruns") is None:
        words += ["--precision", f"{100 * facts.precision:g}%"]
    words += ["--budget", f"{facts.budget_s:g}s"]
    for name in ("calls", "mpiruns", "synchronisation", "clock", "clock_method", "warm_up", "datatype", "op", "root"):
        if request.get(name) is not None and name not in unused:
            words += [f"--{name.replace('_', '-')}", str(request[name])]
    for name, levels in facts.varied.items():
        words += ["--factor", f"{name}={','.join(levels)}"]
    words += ["--compute", f"{1e6 * compute_s(facts):g}us"] if compute_s(facts) else []
    words += ["--cold"] if request.get("cold") else []
    words += ["--seed", str(seed)] if seed is not None else []
    return shlex.join(words)


def _pair(value: object) -> tuple[str, str]:
    first, second = (str(one) for one in (*sequence(value), "", "")[:2])
    return first, second


def setting_lines(found: "Comparison") -> list[str]:
    """One line for what the rows depend on; outputs of other benchmarks do not say it."""
    factors = [archive.factors for archive in found.archives if archive.kind == KIND]
    operations = {plain_operation(row.operation) for row in found.verdicts}
    lines = []
    if factors and operations & set(REDUCTIONS):
        lines.append(f"reductions: {_joined([_level(levels, 'reductions') for levels in factors])}")
    roots = [_level(levels, "root") for levels in factors]
    if operations & set(ROOTED) and any(root != _BEFORE["root"] for root in roots):
        lines.append(f"root: {_joined(roots)}")
    return [*lines, *(f"{lib.label} with {settings_text(lib.settings)}" for lib in found.libraries if lib.settings)]


def algorithms(found: "Comparison", verdict: "Verdict") -> str:
    """Algorithms of both libraries for a row, "unknown" if that was not seen; empty if neither was."""
    key = f"{name_of(plain_operation(verdict.operation), verdict.form)} of {verdict.size_bytes} bytes"
    with_ranks = algorithm_key(key, found.ranks)
    ran = {lib.label: lib.algorithms.get(with_ranks, lib.algorithms.get(key, _UNKNOWN)) for lib in found.libraries}
    both = [ran.get(label, _UNKNOWN) for label in (found.left, found.right)]
    return "" if set(both) == {_UNKNOWN} else ", ".join(dict.fromkeys(both))


def different_settings(facts: Sequence["CampaignFacts"]) -> list[str]:
    """Warnings of campaigns whose rows of the same name are not of the same."""
    lines = []
    for verb, name, subjects in (
        ("reduce", "reductions", REDUCTIONS),
        ("have the root", "root", ROOTED),
        ("overlap with", "overlap", (OVERLAPPED,)),
    ):
        levels = [
            _level(about.factors, name)
            for about in facts
            if any({case.operation, case.form} & set(subjects) for case in about.cases)
        ]
        if len(set(levels)) > 1:
            both = " and ".join(dict.fromkeys(levels))
            lines.append(f"the campaigns {verb} {both}: such rows are not of the same operation")
    return lines


def _level(factors: Mapping[str, str], name: str) -> str:
    return factors.get(name, _BEFORE[name])


def _joined(levels: Sequence[str]) -> str:
    """One level where all are equal, else that of each archive."""
    return "; ".join(dict.fromkeys(levels))
