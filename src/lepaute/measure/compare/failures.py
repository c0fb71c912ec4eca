"""What a library got wrong, which counts before any time: results that fail their check, operations that are missing or
end early; and networks that differ between the sides."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pandas

from lepaute.kit.text import counted
from lepaute.measure.archive import mpi_campaign
from lepaute.measure.archive.metadata import COMPLETE
from lepaute.measure.archive.reader import Archive
from lepaute.measure.comparison.cases import name_of, plain_operation
from lepaute.measure.comparison.entries import INTERRUPTED

Cause = Literal["wrong result", "missing", "ended early"]
#: What the probe says of a result (probe_collectives.c), and of a function that the library lacks (libraries.py).
_WRONG = re.compile(r"(\w+) of \d+ bytes on \d+ ranks gave a wrong result")
_LACKING = "the library has no "
#: Failures that an answer names.
_MAX_NAMED = 3
#: Variables that say what messages travel through; of FI_, UCX_, I_MPI_ and MV2_ there may be others, too.
_TRANSPORT = re.compile(
    r"(?:UCX|FI|I_MPI|MV2|MVP)_|OMPI_MCA_(?:pml|btl|mtl|osc)(?:_|$)|MPIR_CVAR_(?:CH4|NOLOCAL|OFI|UCX)"
)


@dataclass(frozen=True, slots=True)
class Failure:
    """library: its label; operation: as MPI calls it, empty if a whole campaign ended; text: a sentence"""

    library: str
    cause: Cause
    operation: str
    text: str


def campaign_failures(campaign: Archive, names: Mapping[str, str] | None = None) -> list[Failure]:
    """Failures of a campaign; names: in a comparison, of its libraries that are compared; None: all by their labels."""
    facts, runs = mpi_campaign.facts(campaign), mpi_campaign.mpiruns(campaign)
    names = dict(zip(facts.labels, facts.labels, strict=True)) if names is None else names
    result = []
    for library in facts.libraries:
        if (label := names.get(library.label)) is None:
            continue
        for operation, why in library.lacking.items():
            name, _, form = operation.rstrip(")").partition(" (")
            result.append(_lacking(label, name_of(name, form or "blocking"), why))
        starts = runs[runs["library"] == library.label]
        failed = starts[~starts["outcome"].isin([COMPLETE, INTERRUPTED]) & (starts["block"] >= 0)]
        whys = [str(why) for why in failed.get("failure", [""] * len(failed))]
        others = [why for why in whys if not _WRONG.search(why)]
        for name, count in Counter(match[1] for why in whys if (match := _WRONG.search(why))).items():
            text = f"{name} of {label} gives wrong results, in {count} of its mpiruns"
            result.append(Failure(label, "wrong result", name, text))
        if others:
            text = f"{len(others)} of {counted(len(starts), 'mpirun')} of {label} ended early"
            result.append(Failure(label, "ended early", "", ": ".join(filter(None, (text, others[0])))))
    if campaign.about.outcome != COMPLETE:
        result.append(Failure("", "ended early", "", f"the campaign of {campaign.path.name} ended early"))
    return result


def _lacking(label: str, operation: str, why: str) -> Failure:
    if _WRONG.search(why):
        return Failure(label, "wrong result", operation, f"{operation} of {label} gives wrong results")
    if _LACKING in why:
        return Failure(label, "missing", operation, f"{operation} is missing in {label}")
    return Failure(label, "ended early", operation, f"{operation} of {label} fails: {why}")


def missing_failures(table: pandas.DataFrame, first: str, second: str, known: Iterable[Failure] = ()) -> list[Failure]:
    """Operations that one side alone has in a table (library, operation, form), but those of known failures."""
    named = {(failure.library, failure.operation) for failure in known}
    rows = table[["library", "operation", "form"]].drop_duplicates().itertuples(index=False)
    there = {(str(row.library), name_of(str(row.operation), str(row.form))) for row in rows}
    sides = {label: {name for library, name in there if library == label} for label in (first, second)}
    return [
        Failure(label, "missing", name, f"{name} is missing in {label}")
        for label, other in ((first, second), (second, first))
        for name in sorted(sides[other] - sides[label])
        if (label, plain_operation(name)) not in named
    ]


def failures_text(failures: Sequence[Failure]) -> str:
    """In one line, wrong results first; empty if there is none."""
    causes: tuple[Cause, ...] = ("wrong result", "missing", "ended early")
    texts = [failure.text for failure in sorted(failures, key=lambda failure: causes.index(failure.cause))]
    more = [f"{len(texts) - _MAX_NAMED} more failures"] if len(texts) > _MAX_NAMED else []
    return "; ".join([*texts[:_MAX_NAMED], *more])


def failures_of(
    campaigns: Sequence[Archive], names: Sequence[Mapping[str, str]], chosen: tuple[str, str], calls: pandas.DataFrame
) -> tuple[Failure, ...]:
    """Failures of both sides; names: of each campaign's libraries in the comparison; calls: all, whether they count."""
    labels = [{label: name for label, name in failure.items() if name in chosen} for failure in names]
    known = [
        failure for one, kept in zip(campaigns, labels, strict=True) if kept for failure in campaign_failures(one, kept)
    ]
    return *known, *missing_failures(calls, *chosen, known)


def late_alone(calls: pandas.DataFrame, counting: pandas.DataFrame) -> list[str]:
    """Of what was measured, but started late in each call, so that none counts."""
    late, there = (
        set(zip(table["operation"], table["library"], strict=True))
        for table in (calls[calls["started_late"].astype(bool)], counting)
    )
    return [
        f"no call of {name} of {library} counts: all started late on some rank"
        for name, library in sorted(late - there)
    ]


def different_networks(
    campaigns: Sequence[mpi_campaign.CampaignFacts], names: Sequence[Mapping[str, str]], chosen: tuple[str, str]
) -> str:
    """Networks that join the ranks of each side, with variables that say so, where sides differ; else empty."""
    texts: dict[str, tuple[str, str]] = {}
    for facts, named in zip(campaigns, names, strict=True):
        for library in facts.libraries:
            if (name := named.get(library.label)) in chosen and name:
                variables = {key: value for key, value in library.settings.items() if _TRANSPORT.match(key)}
                network = mpi_campaign.network_of(facts, library.label)
                texts.setdefault(name, (network, mpi_campaign.settings_text(variables)))
    if len(set(texts.values())) < 2:
        return ""
    told = [f"{name}: {' with '.join(filter(None, text)) or 'unknown'}" for name, text in texts.items()]
    return f"the networks differ ({'; '.join(told)})"
