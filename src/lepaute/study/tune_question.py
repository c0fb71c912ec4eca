"""The question tune of a study file: which point of its space."""

from dataclasses import replace
from typing import TYPE_CHECKING

from lepaute.errors import InputError
from lepaute.simulate.sweep import remedy_of
from lepaute.study.evaluation import Evaluate, Point
from lepaute.study.tune import TOLERANCE, Tuned, explore, halve
from lepaute.study.tune_space import Dimension, Proposals

if TYPE_CHECKING:
    from lepaute.simulate.sweep import Case
    from lepaute.study.configuration import Configurations
    from lepaute.study.schema import Factor, Study

#: Simulations of a space with ranges where the study names no budget.
USUAL_BUDGET = 200
#: With more combinations than this, a space of levels is explored like one with ranges.
MOST_HALVED = 4000
#: The first so many points decide which calibration is advised.
MOST_LOOKED_AT = 200


def tune(study: "Study", configurations: "Configurations", evaluate: Evaluate) -> Tuned:
    """The likely best by the study's first response, within its budget of simulations: twice as many as there are
    combinations of levels unless it names one. Raises InputError where no point can be."""
    found = _tuned(study, configurations, evaluate)
    standings = found.ranking.standings[:MOST_LOOKED_AT]
    cases = {one.point: _case(configurations, one.point) for one in standings}
    apart = [cases[one.point] for one in standings if one.flagged]
    return replace(found, remedy=remedy_of(list(cases.values()), apart)) if apart else found


def _case(configurations: "Configurations", point: Point) -> "Case":
    configuration = configurations.at(point)
    return configuration.application, configuration.conditions


def _tuned(study: "Study", configurations: "Configurations", evaluate: Evaluate) -> Tuned:
    response, asked = study.responses[0], study.budget.simulations
    tolerance = TOLERANCE if study.budget.precision is None else 0.01 * study.budget.precision
    crossed = 1
    for levels in study.levels.values():
        crossed *= len(levels)
    if all(factor.levels is not None for factor in study.factors.values()) and crossed <= MOST_HALVED:
        points = configurations.points()
        budget = asked or 2 * len(points)
        return halve(points, evaluate, budget, response=response, seed=study.seed, tolerance=tolerance)
    proposals = Proposals(space_of(study), study.seed, configurations.allows)
    budget = asked or USUAL_BUDGET
    return explore(proposals, evaluate, budget, response=response, seed=study.seed, tolerance=tolerance)


def space_of(study: "Study") -> dict[str, Dimension]:
    """The factors as dimensions; raises InputError for a distribution without bounds."""
    found = {name: _dimension(factor, name) for name, factor in study.factors.items()}
    if study.scenarios:
        found["scenario"] = Dimension(levels=tuple(study.scenarios))
    return found


def _dimension(factor: "Factor", name: str) -> Dimension:
    if factor.levels is not None:
        return Dimension(levels=tuple(factor.levels))
    if factor.bounds is None:
        raise InputError(f"factors.{name} has a distribution without bounds; give a range or levels to tune over")
    low, high = factor.bounds
    log = factor.log or (factor.distribution is not None and factor.distribution.kind == "log-uniform")
    return Dimension(low=low, high=high, log=log, integer=factor.integer)
