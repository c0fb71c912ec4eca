"""Differences and choices of a study that has priced its points hold what they promise, on machines made up here.

The logarithm of a time is a point's own mean, what its controls explain with slopes of its own, and a rest; a priced
trial tells the controls of its runs and of further draws, as the engine does. All seeds are fixed.
"""

from collections.abc import Sequence
from functools import cached_property
from math import exp

import numpy as np
import pytest
from scipy.stats import binom
from support_study import crossed

from lepaute.stats.control_variates import Controls
from lepaute.study.evaluation import Outcome, Point, Trial, by_point, trials_of
from lepaute.study.tune import halve
from lepaute.study.whatif import difference

RUNS, DRAWS, FIRST_DRAW = 12, 1000, 10**6
POINTS = [Point({"nb": nb}) for nb in (64, 128, 192, 256)]
ONE, OTHER = POINTS[:2]
#: How far the slopes of points are apart, and the standard deviations of the rest: common to all points, and a point's.
WORLDS = {"all explained but noise": (0.5, 0.0, 0.004), "half": (0.3, 0.01, 0.012), "nothing": (0.0, 0.02, 0.02)}
CONTROL_SD = np.array([0.05, 0.03])


class World:
    """One study: slopes and means of its points; a seed is a machine on a day."""

    def __init__(self, name: str, study: int) -> None:
        self.apart, self.common_sd, self.own_sd = WORLDS[name]
        generator = np.random.default_rng([study, len(name)])
        self.study = study
        self.slopes = 1.0 + self.apart * generator.standard_normal((len(POINTS), 2))
        self.means = generator.normal(0.0, 0.01, len(POINTS))
        self.explains = name != "nothing"

    def controls(self, seed: int) -> np.ndarray:
        return CONTROL_SD * np.random.default_rng([self.study, seed]).standard_normal(2)

    @cached_property
    def draws(self) -> tuple[tuple[float, ...], ...]:
        return tuple(tuple(self.controls(FIRST_DRAW + at)) for at in range(DRAWS))

    def log(self, trial: Trial) -> float:
        at = POINTS.index(trial.point)
        explained = self.slopes[at] @ self.controls(trial.seed) if self.explains else 0.0
        common = np.random.default_rng([self.study, trial.seed, 1]).standard_normal()
        own = np.random.default_rng([self.study, trial.seed, 2 + at, trial.repeat]).standard_normal()
        return float(self.means[at] + explained + self.common_sd * common + self.own_sd * own)

    def evaluate(self, trials: Sequence[Trial]) -> list[Outcome]:
        return [Outcome(trial, {"time_s": exp(self.log(trial))}) for trial in trials]

    def price(self, outcomes_of: "dict[Point, list[Outcome]]") -> dict[Point, Controls]:
        return {
            point: Controls(tuple(tuple(self.controls(one.trial.seed)) for one in each), self.draws)
            for point, each in outcomes_of.items()
            if len(each) >= 8
        }


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
def test_a_further_pair_is_inside_the_interval_of_a_difference_in_95_of_100_cases(name: str) -> None:
    studies, inside = 150, 0.0
    for study in range(studies):
        world = World(name, study)
        outcomes = world.evaluate([*trials_of([ONE], RUNS), *trials_of([OTHER], RUNS, repeat=1)])
        groups = by_point(outcomes)
        known = world.price(groups)
        found = difference(groups[ONE], groups[OTHER], controls=(known[ONE], known[OTHER]))
        further = [
            exp(world.log(Trial(OTHER, seed, 1)) - world.log(Trial(ONE, seed))) for seed in range(2_000_000, 2_000_040)
        ]
        inside += float(np.mean([found.low <= ratio <= found.high for ratio in further])) / studies
    # Coverages of single intervals vary by 6 %, each seen by 40 pairs (3.4 %): a standard error of 0.0056, of which
    # the bounds of 93 to 97 % that were decided on would be 3.6; 5 of them are missed less than once in 10^6.
    assert abs(inside - 0.95) <= 0.028


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
def test_the_best_of_priced_points_is_the_best_as_often_as_is_claimed(name: str) -> None:
    claimed, best, covered, counted = [], [], 0, 0
    for study in range(150):
        world = World(name, study)
        found = crossed(POINTS, world.evaluate, RUNS, price=world.price).ranking
        truth = {point: world.log(Trial(point, 3_000_000)) for point in POINTS}
        claimed.append(found.best.probability)
        best.append(min(truth, key=lambda point: truth[point]) == found.best.point)
        other = found.standings[1 + study % 3]  # one of each study: intervals of a study share the best
        covered += other.low <= exp(truth[other.point] - truth[found.best.point]) <= other.high
        counted += 1
    # A sum of Bernoulli variables of the probabilities that are claimed.
    spread = np.sqrt(np.sum([p * (1.0 - p) for p in claimed]))
    assert abs(np.sum(best) - np.sum(claimed)) < 4.9 * spread
    assert covered >= binom.ppf(1e-6, counted, 0.95)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
def test_intervals_hold_where_halving_gave_some_points_few_runs(name: str) -> None:
    covered = counted = 0
    for study in range(150):
        world = World(name, study)
        found = halve(POINTS, world.evaluate, 40, tolerance=0.0, price=world.price).ranking
        truth = {point: world.log(Trial(point, 3_000_000)) for point in POINTS}
        few = [one for one in found.standings[1:] if one.low is not None and one.runs < 4]
        if few and few[0].low is not None and few[0].high is not None:
            counted += 1
            covered += few[0].low <= exp(truth[few[0].point] - truth[found.best.point]) <= few[0].high
    assert counted > 75
    assert covered >= binom.ppf(1e-6, counted, 0.95)
