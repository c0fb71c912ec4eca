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

#: The input file of the run that is certainly faster than the best one, but not comparable with it.
AHEAD = "HPL_not_comparable.dat"


def write_answer_files(
    folder: Path,
    study: "Study",
    configurations: "Configurations",
    answer: "Answer",
    outcomes: Sequence["Outcome"],
    caveats: Sequence[str] = (),
    command: str | None = None,
) -> list[str]:
    """Writes report.html, and where HPL was tuned HPL.dat and perhaps HPL_not_comparable.dat; returns their names.

    caveats : of the answer;  command : that was given, if any
    """
    from lepaute.kit.files import write_whole
    from lepaute.study.tune import Tuned, write_hpl_dat

    write_whole(folder / "report.html", page_of(study, answer, outcomes, caveats, command))
    names = ["report.html"]
    if isinstance(answer, Tuned):
        application = configurations.at(answer.best).application
        if application.name == "hpl":
            write_hpl_dat(folder / "HPL.dat", application)
            names.append("HPL.dat")
            ahead = answer.ranking.ahead
            (folder / AHEAD).unlink(missing_ok=True)  # of the simulation, where real runs have decided meanwhile
            if answer.real is None and ahead:
                write_hpl_dat(folder / AHEAD, configurations.at(ahead[0].point).application)
                names.append(AHEAD)
    return names


def page_of(
    study: "Study",
    answer: "Answer",
    outcomes: Sequence["Outcome"],
    caveats: Sequence[str] = (),
    command: str | None = None,
) -> str:
    """The page of an answer."""
    from lepaute.study import report_page
    from lepaute.study.pareto import Front
    from lepaute.study.sensitivity import Effects
    from lepaute.study.sensitivity_sobol import SobolIndices
    from lepaute.study.tune import Tuned
    from lepaute.study.whatif import WhatIfAnswer
    from lepaute.study.wording import question_in_words

    varied = {"application.name", *(factor.path for factor in study.factors.values())}
    varied |= {path for fields in study.scenarios.values() for path in fields}
    name = str(study.base.application["name"])
    known = study.base.application.items()
    fields = ", ".join(f"{field} {value}" for field, value in known if f"application.{field}" not in varied)
    base = f"{name} ({fields})" if fields else name
    asked = report_page.Asked(
        study.title or f"A study of {name} on {study.base.platform}",
        question_in_words(study),
        (*([command] if command else []), f"lepaute study {study.question} study.yaml"),
        f"{base} on {study.base.platform}; seeds from {study.seed}; lepaute {__version__}",
        tuple(caveats),
    )
    if isinstance(answer, WhatIfAnswer):
        return report_page.whatif_page(asked, answer, outcomes)
    if isinstance(answer, Tuned):
        return report_page.tuned_page(asked, answer, answer.real)
    if isinstance(answer, Effects):
        return report_page.effects_page(asked, answer, outcomes)
    if isinstance(answer, SobolIndices):
        return report_page.sobol_page(asked, answer, outcomes)
    assert isinstance(answer, Front)
    return report_page.front_page(asked, answer, outcomes)
