"""The question capacity of a study file: which machine, of the parts of a catalogue."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lepaute.errors import InputError
from lepaute.study.capacity import Machine, answered, load_catalogue, machines, with_machines
from lepaute.study.evaluation import Evaluate, by_point, trials_of
from lepaute.study.trust import Judge

if TYPE_CHECKING:
    from lepaute.study.configuration import Configurations
    from lepaute.study.pareto import Front
    from lepaute.study.schema import Study


def machines_of(study: "Study", folder: Path | None = None) -> list[Machine]:
    """The machines within the budget, the cheapest first; folder : of the study file.

    Raises InputError for a catalogue that cannot be, or a budget that allows no machine.
    """
    asked = study.capacity
    if asked is None:
        raise InputError("the study has no section capacity; give a catalogue of parts, and numbers of nodes")
    catalogue = load_catalogue((folder or Path()) / asked.catalogue)
    return machines(catalogue, asked.nodes, price=asked.price, watts=asked.watts)


def study_of_machines(study: "Study", folder: Path | None = None) -> "Study":
    """The study whose scenarios are the machines."""
    return with_machines(study, machines_of(study, folder))


def capacity(study: "Study", configurations: "Configurations", evaluate: Evaluate) -> "Front":
    """The machines on the Pareto front of time, cost and energy; `study` has them as its scenarios."""
    outcomes = evaluate(trials_of(configurations.points(), study.runs, study.seed))
    found = answered(outcomes, machines_of(study, configurations.folder), seed=study.seed)
    groups, judge = by_point(outcomes), Judge(evaluate)
    chosen = {one.point: groups[one.point] for one in found.members}
    return replace(found, trusts=judge(chosen) if study.runs > 1 else {})
