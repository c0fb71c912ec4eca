"""Differences of two points of a study, from runs of equal seeds."""

import numpy as np
import pytest

from lepaute.stats.intervals import prediction_interval
from lepaute.study.evaluation import Outcome, Point, Trial
from lepaute.study.whatif import difference

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
