"""What an answer becomes in the folder of a study, besides its JSON: a page, and the input file of the best run."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lepaute.version import __version__

if TYPE_CHECKING:
    from lepaute.study.configuration import Configurations
    from lepaute.study.evaluation import Outcome
    from lepaute.study.questions import Answer
    from lepaute.study.schema import Study
    from lepaute.study.whatif import WhatIfAnswer


def write_answer_files(
    folder: Path, study: "Study", configurations: "Configurations", answer: "Answer", outcomes: Sequence["Outcome"]
) -> list[str]:
    """Writes report.html, and HPL.dat where HPL was tuned; returns their names."""
    from lepaute.kit.files import write_whole
    from lepaute.study.tune import Tuned, write_hpl_dat

    write_whole(folder / "report.html", page_of(study, answer, outcomes))
    names = ["report.html"]
    if isinstance(answer, Tuned):
        application = configurations.at(answer.best).application
        if application.name == "hpl":
            write_hpl_dat(folder / "HPL.dat", application)
            names.append("HPL.dat")
    return names


def page_of(study: "Study", answer: "Answer", outcomes: Sequence["Outcome"]) -> str:
    """The page of an answer."""
    from lepaute.study import report_page
    from lepaute.study.pareto import Front
    from lepaute.study.sensitivity import Effects
    from lepaute.study.sensitivity_sobol import SobolIndices
    from lepaute.study.tune import Tuned
    from lepaute.study.whatif import WhatIfAnswer

    asked = report_page.Asked(
        study.title,
        study.question,
        f"lepaute study {study.question} study.yaml",
        f"{study.base.application['name']} on {study.base.platform}; run i uses seed {study.seed} + i; "
        f"lepaute {__version__}",
    )
    if isinstance(answer, WhatIfAnswer):
        return whatif_page(asked, answer, outcomes)
    if isinstance(answer, Tuned):
        return report_page.tuned_page(asked, answer)
    if isinstance(answer, Effects):
        return report_page.effects_page(asked, answer, outcomes)
    if isinstance(answer, SobolIndices):
        return report_page.sobol_page(asked, answer, outcomes)
    assert isinstance(answer, Front)
    return report_page.front_page(asked, answer, outcomes)


def whatif_page(asked: "object", answer: "WhatIfAnswer", outcomes: Sequence["Outcome"]) -> str:
    """Of scenarios in pairs."""
    from lepaute.report.tables import records_table
    from lepaute.study import report_page

    assert isinstance(asked, report_page.Asked)
    rows = [
        {
            **each.setting,
            answer.factor: each.other.level,
            **{f"{name} of the base": value for name, value in each.reference.means.items()},
            **each.other.means,
            "against the base": "; ".join(f"{name}: {one.text}" for name, one in each.differences.items())
            or (each.other.refusal or each.reference.refusal),
        }
        for each in answer.comparisons
    ]
    noise = "the same noise on both sides" if answer.same_noise else "noise of its own on each side"
    sure = [
        f"{answer.runs} pairs of runs of equal seeds for each comparison, with {noise}",
        f"{answer.told_apart} of {len(answer.comparisons)} comparisons are told apart",
    ]
    if apart := sum(not each.shared for each in answer.comparisons):
        sure.append(f"{apart} compare machines whose models have no errors in common: their intervals are wider")
    tables = [records_table("Comparisons", rows)]
    doubtful = answer.told_apart < len(answer.comparisons) / 2
    return report_page.page(
        asked, answer.sentence.removesuffix("."), doubtful, sure, report_page.outside(outcomes), [], tables
    )
