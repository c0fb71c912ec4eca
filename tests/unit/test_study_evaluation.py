"""Points, trials, outcomes and differences: what the questions of a study are written against."""

import pickle

import numpy as np
import pytest

from lepaute.errors import InputError
from lepaute.stats.intervals import prediction_interval
from lepaute.study.evaluation import Once, Outcome, Point, Trial, by_point, trials_of
from lepaute.study.whatif import difference


def test_a_point_does_not_depend_on_the_order_of_its_factors() -> None:
    one, other = Point({"nb": 128, "p": 16}), Point({"p": 16, "nb": 128})
    assert one == other
    assert hash(one) == hash(other)
    assert one.to_json() == '{"nb":128,"p":16}'
    assert Point.from_json(one.to_json()) == one
    assert pickle.loads(pickle.dumps(one)) == one


def test_all_points_have_the_same_seeds() -> None:
    points = [Point({"nb": nb}) for nb in (64, 128)]
    trials = trials_of(points, 3, seed=7)
    assert [trial.seed for trial in trials] == [7, 8, 9, 7, 8, 9]
    assert trials_of(points, 2, seed=7, first=3)[0].seed == 10  # further runs of the same study
    assert list(by_point(Outcome(trial) for trial in trials)) == points


def test_an_unknown_response_says_which_are_known_and_a_refused_trial_says_why() -> None:
    trial = Trial(Point({"nb": 128}), 1)
    with pytest.raises(InputError, match="'energy_j' at nb=128: known are time_s"):
        Outcome(trial, {"time_s": 1.0})["energy_j"]
    with pytest.raises(InputError, match="too many ranks"):
        Outcome(trial, refusal="too many ranks")["time_s"]


def test_no_trial_is_evaluated_twice() -> None:
    seen: list[Trial] = []

    def evaluate(trials: list[Trial]) -> list[Outcome]:
        seen.extend(trials)
        return [Outcome(trial, {"time_s": 1.0}) for trial in trials]

    once = Once(evaluate)  # type: ignore[arg-type]
    trials = trials_of([Point({"nb": 64})], 2)
    assert len(once([*trials, *trials])) == 4
    once(trials)
    assert seen == trials
    assert once.asked == 2


ONE, OTHER = Point({"nb": 128, "grid": "8x8"}), Point({"nb": 256, "grid": "8x8"})


def runs(point: Point, times: "list[float] | np.ndarray", repeat: int = 0, response: str = "time_s") -> list[Outcome]:
    return [Outcome(Trial(point, seed, repeat), {response: float(value)}) for seed, value in enumerate(times)]


def test_the_interval_is_that_of_the_ratios_of_runs_with_equal_seeds() -> None:
    one, other = [10.0, 11.0, 12.0], [11.0, 12.3, 13.1]
    found = difference(runs(ONE, one), runs(OTHER, other, 1)[::-1])
    assert (found.low, found.high) == pytest.approx(
        prediction_interval([b / a for a, b in zip(one, other, strict=True)]).ends
    )
    assert found.ratio == pytest.approx(np.exp(np.mean(np.log(other) - np.log(one))))
    assert found.is_told_apart
    assert found.shared_variance > 0.9
