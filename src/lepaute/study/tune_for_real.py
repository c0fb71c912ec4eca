"""From a study that was tuned by simulation to one that real runs have corrected: which cases, and what is written."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lepaute.errors import InputError
from lepaute.study.evaluation import Outcome, Point
from lepaute.study.running import StudyRun, opened_study
from lepaute.study.tune import Tuned
from lepaute.study.tune_real import correct

if TYPE_CHECKING:
    from lepaute.platform import Platform
    from lepaute.simulate import Hpl
    from lepaute.study.configuration import Configurations

MOST_REAL_RUNS = 1000


def check_for_real(file: "str | Path", runs: int) -> "tuple[Configurations, Platform, list[Hpl]]":
    """The configurations of a study whose points can be run for real on one machine, its platform, all its cases.

    Raises InputError where the application is not HPL, or where points differ in more than its parameters.
    """
    from lepaute.simulate import Hpl

    if not 1 <= runs <= MOST_REAL_RUNS:
        raise InputError(f"--real-runs is {runs}; it is a number from 1 to {MOST_REAL_RUNS}")
    study, configurations = opened_study(file)
    paths = [factor.path for factor in study.factors.values()]
    hypothetical = [path for path in paths if not path.startswith("application.")]
    hypothetical += [path for each in study.scenarios.values() for path in each if not path.startswith("application.")]
    hypothetical += sorted({"set", "nodes", "mapping"} & study.base.model_fields_set)
    if hypothetical:
        raise InputError(f"{file}: --real-runs run on the machine as it is, and the study changes {hypothetical[0]}")
    if any(factor.levels is None for factor in study.factors.values()):
        raise InputError(f"{file}: --real-runs choose among levels; give each factor levels in the place of a range")
    if study.responses[0] not in ("time_s", "rate_gflops"):
        raise InputError(f"{file}: --real-runs measure time_s, and the study tunes {study.responses[0]}")
    cases: list[Hpl] = []
    platform = None
    for point in configurations.points():
        configuration = configurations.at(point)
        if not isinstance(configuration.application, Hpl):
            raise InputError(f"{file}: --real-runs are of HPL, and the application is {configuration.application.name}")
        if cases and configuration.application.n != cases[0].n:
            raise InputError(f"{file}: --real-runs compare times of one N, and the study has several")
        cases.append(configuration.application)
        platform = configuration.conditions.platform
    if platform is None:
        raise InputError(f"{file}: no combination of levels is allowed by the constraints")
    return configurations, platform, cases


def candidates_of(run: StudyRun) -> list[Point]:
    """The points of a study that was tuned which real runs choose among."""
    assert isinstance(run.answer, Tuned)
    return run.answer.candidates()


def corrected(
    run: StudyRun, simulated: Sequence[Outcome], real: Callable[[Point], float], runs: int, seed: int
) -> StudyRun:
    """The study with the answer that at most so many real runs give; simulated, real : as `correct` takes them."""
    assert isinstance(run.answer, Tuned)
    found = correct(simulated, real, runs, seed=seed, trusts=run.answer.trusts)
    return replace(run, answer=replace(run.answer, real=found))


def write_corrected(run: StudyRun, configurations: "Configurations", real_runs: str, command: str) -> None:
    """Writes answer.json, report.html, HPL.dat and real_runs.csv, whose text is given, into the folder of the study."""
    from lepaute.kit.files import write_whole
    from lepaute.study.answer_files import write_answer_files

    assert run.folder is not None
    write_whole(run.folder / "real_runs.csv", real_runs)
    write_whole(run.folder / "answer.json", json.dumps(run.to_dict(), indent=2) + "\n")
    write_answer_files(run.folder, run.study, configurations, run.answer, run.outcomes, run.caveats, command)
