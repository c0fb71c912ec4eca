"""The question tune of a study file: which point of its space."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import exp, inf, isinf, log, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from lepaute.errors import InputError
from lepaute.kit.later import later
from lepaute.simulate.prediction.sweep import remedy_of
from lepaute.study.checking import USUAL_BUDGET, most_tuned
from lepaute.study.evaluation import SCENARIO, Evaluate, Point, Value
from lepaute.study.schema import Factor
from lepaute.study.trust import Pricing
from lepaute.study.tune import TOLERANCE, Tuned, explore, halve

if TYPE_CHECKING:
    import optuna

    from lepaute.study.configuration import Configurations
    from lepaute.study.schema import Study
else:
    optuna = later("optuna")

#: Proposals that were there before are asked again so often, then drawn at random so often.
MAX_REPEATED, MAX_RANDOM = 20, 500
#: Points at random before the estimator has something to learn from.
START = 10
#: With more combinations than this, a space of levels is explored like one with ranges.
MAX_HALVED = 4000
#: So many of the best points decide which calibration is advised.
MAX_POINTS_CONSIDERED = 200


class Proposals:
    """What `tune.explore` asks for points: no point twice, none that is not allowed; the same for equal seeds.

    Raises InputError for a factor with a distribution without bounds.
    """

    def __init__(
        self, space: Mapping[str, Factor], seed: int = 1, allows: Callable[[Point], bool] = lambda _: True
    ) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._space, self._allows = dict(space), allows
        self._distributions = {name: _distribution(name, factor) for name, factor in space.items()}
        self._generator = np.random.default_rng(seed)
        self._study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed % 2**32, n_startup_trials=START))
        self._open: dict[Point, optuna.trial.Trial] = {}
        self._proposed: set[Point] = set()

    def __call__(self, seen: Sequence[tuple[Point, float]]) -> Point | None:
        """Another point; None if none is found that is new and allowed."""
        for point, score in seen:
            if point in self._open:
                self._tell(self._open.pop(point), score)
        known = self._proposed | {point for point, _ in seen}
        for _ in range(MAX_REPEATED):
            trial = self._study.ask(self._distributions)
            point = self._point(trial.params)
            if point not in known and self._allows(point):
                self._open[point] = trial
                self._proposed.add(point)
                return point
            self._tell(trial, inf)
        for _ in range(MAX_RANDOM):
            point = self._point({name: self._drawn(distribution) for name, distribution in self._distributions.items()})
            if point not in known and self._allows(point):
                self._proposed.add(point)
                return point
        return None

    def _point(self, values: Mapping[str, Any]) -> Point:
        levels = {name: factor.levels for name, factor in self._space.items()}
        return Point({name: value if (of := levels[name]) is None else of[value] for name, value in values.items()})

    def _drawn(self, distribution: "optuna.distributions.BaseDistribution") -> Value:
        """A value at random."""
        if isinstance(distribution, optuna.distributions.CategoricalDistribution):
            return int(self._generator.integers(len(distribution.choices)))
        if isinstance(distribution, optuna.distributions.IntDistribution):
            return int(self._generator.integers(distribution.low, distribution.high, endpoint=True))
        assert isinstance(distribution, optuna.distributions.FloatDistribution)
        if distribution.log:
            return exp(self._generator.uniform(log(distribution.low), log(distribution.high)))
        return float(self._generator.uniform(distribution.low, distribution.high))

    def _tell(self, trial: "optuna.trial.Trial", score: float) -> None:
        if isinf(score):
            self._study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            self._study.tell(trial, score)


def _distribution(name: str, factor: Factor) -> "optuna.distributions.BaseDistribution":
    """Levels are places in their list: Optuna stores plain values only, and null is none."""
    if factor.levels is not None:
        return optuna.distributions.CategoricalDistribution(list(range(len(factor.levels))))
    if factor.bounds is None:
        raise InputError(f"factors.{name} has a distribution without bounds; give a range or levels to tune over")
    low, high = factor.bounds
    is_log = factor.log or (factor.distribution is not None and factor.distribution.kind == "log-uniform")
    if factor.integer:
        return optuna.distributions.IntDistribution(round(low), round(high), log=is_log)
    return optuna.distributions.FloatDistribution(low, high, log=is_log)


def tune(
    study: "Study",
    configurations: "Configurations",
    evaluate: Evaluate,
    is_over: Callable[[float], bool] = lambda _: False,
) -> Tuned:
    """The likely best by the study's first response, within its budget of simulations: unless it has one, as many
    runs of each combination of levels as it names, or two. Raises InputError if no point can be.

    is_over : as of `halve`
    """
    budget = study.budget
    how: dict[str, Any] = {
        "response": study.responses[0], "seed": study.seed, "is_over": is_over,
        "tolerance": TOLERANCE if budget.precision is None else 0.01 * budget.precision,
        "price": Pricing(configurations, evaluate),
    }  # fmt: skip
    crossed = prod(len(levels) for levels in study.levels.values())
    if all(factor.levels is not None for factor in study.factors.values()) and crossed <= MAX_HALVED:
        points = configurations.points()
        tuned = halve(points, evaluate, most_tuned(study, len(points)), **how)
    else:
        space = dict(study.factors)
        if study.scenarios:
            space[SCENARIO] = Factor.model_construct(levels=tuple(study.scenarios))
        proposals = Proposals(space, study.seed, configurations.allows)
        tuned = explore(proposals, evaluate, budget.simulations or USUAL_BUDGET, **how)
    standings = tuned.ranking.standings[:MAX_POINTS_CONSIDERED]
    made = [configurations.at(standing.point) for standing in standings]
    cases = [(at.application, at.conditions) for at in made]
    doubtful = [case for case, standing in zip(cases, standings, strict=True) if standing.flagged]
    return replace(tuned, remedy=remedy_of(cases, doubtful)) if doubtful else tuned
