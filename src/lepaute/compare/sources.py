"""Where the measurements of a comparison come from, and the commands that make them again."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lepaute.archive.documents import mapping, sequence
from lepaute.archive.mpi_campaign import KIND
from lepaute.measure.comparison.cases import word_of

if TYPE_CHECKING:
    from lepaute.archive.mpi_campaign import CampaignFacts
    from lepaute.archive.reader import Archive


@dataclass(frozen=True, slots=True)
class Source:
    """A file: its name, and its id (SHA-256: of an archive, that of its manifest).

    kind       : KIND of a campaign, or the suite that printed an output
    argument   : that names it on the command line of a comparison
    command    : that measures the same again; empty where the file does not say
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
        command=measuring_command(facts, archive.about.seed),
        factors=facts.factors,
        derivation=facts.derivation,
        compute_s=compute_s(facts),
    )


def compute_s(facts: "CampaignFacts") -> float:
    """Work of overlapped operations before they are waited for."""
    asked = mapping(facts.more.get("asked")).get("compute_s")
    return float(asked) if isinstance(asked, int | float) else 0.0


def measuring_command(facts: "CampaignFacts", seed: int | None) -> str:
    """The command line of a campaign, as a shell takes it."""
    asked = mapping(facts.more.get("asked"))
    libraries = [_library(sequence(one)) for one in sequence(asked.get("libraries"))]
    if not libraries:
        return ""
    operations = list(filter(None, (_operation(sequence(one)) for one in sequence(asked.get("operations")))))
    words: list[str] = ["lepaute", "compare", *libraries]
    words += ["--ops", ",".join(operations)] if operations else []
    words += ["--sizes", ",".join(str(size) for size in sequence(asked.get("sizes_bytes")))]
    words += ["--np", str(asked.get("ranks", facts.ranks))]
    words += ["--precision", f"{100 * facts.precision:g}%", "--budget", f"{facts.budget_s:g}s"]
    for name in ("calls", "mpiruns", "synchronisation", "clock", "clock_method", "warm_up", "datatype", "op", "root"):
        if asked.get(name) is not None:
            words += [f"--{name.replace('_', '-')}", str(asked[name])]
    words += ["--compute", f"{1e6 * compute_s(facts):g}us"] if compute_s(facts) else []
    words += ["--cold"] if asked.get("cold") else []
    words += ["--seed", str(seed)] if seed is not None else []
    return shlex.join(words)


def _library(pair: Sequence[object]) -> str:
    """LABEL=SPEC, or the specification alone where it is its own label."""
    label, spec = (str(one) for one in (*pair, "", "")[:2])
    return spec if label == spec else f"{label}={spec}"


def _operation(pair: Sequence[object]) -> str:
    name, form = (str(one) for one in (*pair, "", "")[:2])
    return word_of(name, form)
