"""validation/model_law.py on pairs made here: what it says of a mean holds, and a changed model misses its goals."""

import model_law
import numpy as np
import pandas
import pytest


def test_the_interval_of_a_mean_difference_of_pairs_holds_the_truth_as_often_as_it_says() -> None:
    draws = np.random.default_rng(59)
    held = 0
    for _ in range(400):
        mean, half = model_law.mean_percent(0.001 + 0.01 * draws.standard_normal(200))
        held += abs(mean - 0.1) <= half
    assert 365 <= held <= 393  # binomial, 400 of 95 %: 0.1 % beyond


@pytest.mark.parametrize(
    ("factor", "spread", "met"), [(1.0, 1.0, [True, True]), (1.004, 1.0, [False, True]), (1.0, 1.3, [True, False])]
)
def test_a_model_that_shifts_times_or_their_spread_misses_its_goal(
    factor: float, spread: float, met: list[bool]
) -> None:
    day, run = 0.02 * np.random.default_rng(59).standard_normal((2, 1000))
    pairs = pandas.DataFrame({"n": 20_000, "way": "rows, four", "before_s": 4.0 * np.exp(day + 0.1 * run)})
    pairs["after_s"] = factor * 4.0 * np.exp(spread * (day - 0.1 * run))
    assert [goal.met for goal in model_law.judged(pairs)] == met
