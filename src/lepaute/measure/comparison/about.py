"""The facts of a campaign for its archive, from what its journals hold so far."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from lepaute.archive.mpi_campaign import CampaignFacts, CaseFacts, LibraryFacts
from lepaute.measure.comparison.asked import Asked
from lepaute.measure.comparison.cases import REDUCTIONS
from lepaute.measure.comparison.entries import (
    COMPLETE,
    AlgorithmSeen,
    CaseNumbers,
    FirstStage,
    Lacking,
    MpirunEnded,
    MpirunsChosen,
)
from lepaute.measure.comparison.factors import factors_of
from lepaute.measure.comparison.mpirun import Setting
from lepaute.measure.comparison.order import batches_of
from lepaute.measure.comparison.planning import measurable
from lepaute.measure.experiment.workspace import Workspace


def facts_of(
    workspace: Workspace,
    asked: Asked,
    libraries: Sequence[LibraryFacts],
    setting: Setting,
    environment: Path,
    cores: int,
    seed: int,
) -> CampaignFacts:
    """What is known now.

    libraries: as far as they are known by themselves
    environment: the folder with what the node is and runs; cores: that the ranks may use
    """
    chosen, stage = workspace.noted(MpirunsChosen), workspace.noted(FirstStage)
    complete = [each for each in workspace.noted(MpirunEnded) if each.block >= 0 and each.outcome == COMPLETE]
    made = {(each.library, each.block, each.place) for each in complete}
    mpiruns = min((sum(label == each.label for label, _, _ in made) for each in libraries), default=0)
    libraries = tuple(_completed(workspace, library) for library in libraries)
    labels = [library.label for library in libraries]
    return CampaignFacts(
        ranks=asked.ranks,
        oversubscribed=asked.ranks > cores,
        libraries=libraries,
        cases=_case_facts(workspace, asked, labels, chosen[0].needed if chosen else {}),
        precision=asked.precision,
        budget_s=asked.budget_s,
        blocks=len({block for _, block, _ in made}),
        mpiruns=mpiruns,
        planned_s=stage[0].planned_s if stage else 0.0,
        spent_s=sum(each.wall_s for each in workspace.noted(MpirunEnded)),
        capped=bool(chosen and chosen[0].capped),
        factors=factors_of(asked, setting, libraries, environment, cores, mpiruns, seed),
        derivation=(*(stage[0].derivation if stage else ()), *(chosen[0].derivation if chosen else ())),
        primary=tuple((each.operation, each.form, each.size_bytes) for each in asked.primary_cases),
        more={"asked": asked.to_json()},
    )


def _completed(workspace: Workspace, library: LibraryFacts) -> LibraryFacts:
    """With what it lacks, and with its algorithms."""
    lacking = {
        f"{each.operation} ({each.form})": each.why
        for each in workspace.noted(Lacking)
        if each.library == library.label
    }
    algorithms = {
        str(each.case): each.algorithm for each in workspace.noted(AlgorithmSeen) if each.library == library.label
    }
    return replace(library, lacking=lacking, algorithms=algorithms)


def _case_facts(
    workspace: Workspace, asked: Asked, labels: Sequence[str], needed: Mapping[str, float | None]
) -> tuple[CaseFacts, ...]:
    numbers = {entry.case: entry for entry in workspace.noted(CaseNumbers)}
    facts = []
    for case in measurable(workspace, asked, labels):
        if (entry := numbers.get(case)) is None:
            continue
        counts = [count for label in labels if (count := needed.get(f"{label}: {case}")) is not None]
        facts.append(
            CaseFacts(
                operation=case.operation,
                form=case.form,
                size_bytes=case.size_bytes,
                calls=entry.calls,
                batches=batches_of(entry.calls),
                window_s=1e-9 * entry.window_ns,
                mpiruns=max(counts, default=None),
                reduction=str(asked.reduction) if case.operation in REDUCTIONS else "",
            )
        )
    return tuple(facts)
