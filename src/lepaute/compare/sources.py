"""Where the measurements of a comparison come from, and the commands that make them again."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lepaute.archive.documents import mapping, sequence

if TYPE_CHECKING:
    from lepaute.archive.mpi_campaign import CampaignFacts
    from lepaute.archive.reader import Archive


@dataclass(frozen=True, slots=True)
class Source:
    """An archive: name of the file, its id (SHA-256 of its manifest), when and where it was measured.

    command    : that measures the same again; empty where the archive does not say
    derivation : how the numbers of calls and mpiruns came about, sentences
    """

    file: str
    id: str
    created: str
    host: str
    lepaute_version: str
    command: str
    factors: Mapping[str, str]
    derivation: tuple[str, ...]


def source(archive: "Archive", facts: "CampaignFacts") -> Source:
    """What an archive of a campaign says of itself."""
    return Source(
        archive.path.name,
        archive.id,
        archive.about.created,
        archive.about.host,
        archive.about.lepaute_version,
        measuring_command(facts, archive.about.seed),
        facts.factors,
        facts.derivation,
    )


def measuring_command(facts: "CampaignFacts", seed: int | None) -> str:
    """The command line of a campaign, as a shell takes it."""
    asked = mapping(facts.more.get("asked"))
    libraries = [_library(sequence(one)) for one in sequence(asked.get("libraries"))]
    if not libraries:
        return ""
    operations = [_operation(sequence(one)) for one in sequence(asked.get("operations"))]
    words: list[str] = ["lepaute", "compare", *libraries]
    words += ["--ops", ",".join(operations)] if operations else []
    words += ["--sizes", ",".join(str(size) for size in sequence(asked.get("sizes_bytes")))]
    words += ["--np", str(asked.get("ranks", facts.ranks))]
    words += ["--precision", f"{100 * facts.precision:g}%", "--budget", f"{facts.budget_s:g}s"]
    for name in ("calls", "mpiruns", "synchronisation", "clock", "clock_method", "warm_up"):
        if asked.get(name) is not None:
            words += [f"--{name.replace('_', '-')}", str(asked[name])]
    words += ["--cold"] if asked.get("cold") else []
    words += ["--seed", str(seed)] if seed is not None else []
    return shlex.join(words)


def _library(pair: Sequence[object]) -> str:
    """LABEL=SPEC, or the specification alone where it is its own label."""
    label, spec = (str(one) for one in (*pair, "", "")[:2])
    return spec if label == spec else f"{label}={spec}"


def _operation(pair: Sequence[object]) -> str:
    name, form = (str(one) for one in (*pair, "", "")[:2])
    return f"{'i' if form == 'nonblocking' else ''}{name.lower()}"
