"""The question tune of a study file: which point of its space."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, inf, isinf, log
from typing import TYPE_CHECKING, Any

from lepaute.errors import InputError
from lepaute.simulate.prediction.sweep import remedy_of
from lepaute.study.evaluation import Evaluate, Point, Value
from lepaute.study.tune import TOLERANCE, Tuned, explore, halve

if TYPE_CHECKING:
    import numpy as np

    from lepaute.simulate.prediction.sweep import Case
    from lepaute.study.configuration import Configurations
    from lepaute.study.schema import Factor, Study

#: Proposals that were there before are asked again so often, then drawn at random so often.
MOST_REPEATED, MOST_RANDOM = 20, 500
#: Points at random before the estimator has something to learn from.
START = 10


@dataclass(frozen=True, slots=True)
class Dimension:
    """A factor: either levels, or a range; log: uniform on the logarithm; integer: whole numbers only."""

    levels: tuple[Value, ...] | None = None
    low: float = 0.0
    high: float = 1.0
    log: bool = False
    integer: bool = False

    def __post_init__(self) -> None:
        if self.levels is not None and not self.levels:
            raise InputError("a factor has no levels; give one at least")
        if self.levels is None and not (self.low <= self.high and (not self.log or self.low > 0.0)):
            raise InputError(
                f"a range goes from {self.low:g} to {self.high:g}; low is below high, and above 0 with log"
            )

    def draw(self, generator: "np.random.Generator") -> Value:
        """A value at random."""
        if self.levels is not None:
            return self.levels[int(generator.integers(len(self.levels)))]
        if self.integer:
            return int(generator.integers(round(self.low), round(self.high), endpoint=True))
        if self.log:
            return exp(generator.uniform(log(self.low), log(self.high)))
        return float(generator.uniform(self.low, self.high))


class Proposals:
    """What `tune.explore` asks for points: no point twice, none that is not allowed; the same for equal seeds."""

    def __init__(
        self, space: Mapping[str, Dimension], seed: int = 1, allows: Callable[[Point], bool] = lambda _: True
    ) -> None:
        import numpy as np
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        if not space:
            raise InputError("a space has one factor at least")
        self._space, self._allows = dict(space), allows
        self._generator = np.random.default_rng(seed)
        # Levels go in as places in their list: Optuna stores plain values only, and null is none.
        sampler = optuna.samplers.TPESampler(seed=seed % 2**32, n_startup_trials=START)
        self._study = optuna.create_study(sampler=sampler)
        self._open: dict[Point, Any] = {}
        self._told: set[Point] = set()
        self._proposed: set[Point] = set()

    def __call__(self, seen: Sequence[tuple[Point, float]]) -> Point | None:
        """Another point; None where none is found that is new and allowed."""
        for point, score in seen:
            if point in self._open and point not in self._told:
                self._tell(self._open.pop(point), score)
                self._told.add(point)
        known = self._proposed | {point for point, _ in seen}
        for _ in range(MOST_REPEATED):
            trial = self._study.ask()
            point = Point({name: self._suggested(trial, name) for name in self._space})
            if point not in known and self._allows(point):
                self._open[point] = trial
                self._proposed.add(point)
                return point
            self._tell(trial, inf)
        for _ in range(MOST_RANDOM):
            point = Point({name: dimension.draw(self._generator) for name, dimension in self._space.items()})
            if point not in known and self._allows(point):
                self._proposed.add(point)
                return point
        return None

    def _suggested(self, trial: Any, name: str) -> Value:
        dimension = self._space[name]
        if dimension.levels is not None:
            found: int = trial.suggest_categorical(name, list(range(len(dimension.levels))))
            return dimension.levels[found]
        if dimension.integer:
            whole: int = trial.suggest_int(name, round(dimension.low), round(dimension.high), log=dimension.log)
            return whole
        value: float = trial.suggest_float(name, dimension.low, dimension.high, log=dimension.log)
        return value

    def _tell(self, trial: Any, score: float) -> None:
        import optuna

        if isinf(score):
            self._study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            self._study.tell(trial, score)


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
