"""Points of a large or mixed space, proposed one after the other by Optuna's tree-structured Parzen estimator."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, inf, isinf, log
from typing import TYPE_CHECKING, Any

from lepaute.errors import InputError
from lepaute.study.evaluation import Point, Value

if TYPE_CHECKING:
    import numpy as np

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
