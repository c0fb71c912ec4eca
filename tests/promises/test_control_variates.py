"""Intervals whose runs have controls hold what they promise, and no longer depend on the luck of a few draws.

All draws are of fixed seeds: these are figures of this code, not of chance.
"""

from statistics import fmean, pstdev

import numpy as np
import pytest

from lepaute import Hpl, load_platform, predict
from lepaute.stats.control_variates import Controls
from lepaute.stats.intervals import expected, prediction_interval

RUNS, DRAWS = 12, 1000
#: What the controls explain, b times each, and the standard deviation of the rest.
WORLDS = {
    "nearly all": ([1.0, 0.5], 0.1),
    "half": ([0.7, 0.0], 0.7),
    "nothing": ([0.0, 0.0], 1.0),
}
TAILS = {"normal": 0, "three degrees of freedom": 3}


def rows(values: "np.ndarray") -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(map(float, row)) for row in values)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("tails", TAILS)
@pytest.mark.parametrize("world", WORLDS)
def test_a_further_run_is_inside_in_95_of_100_cases(world: str, tails: str) -> None:
    slopes, rest = WORLDS[world]
    generator, sd, inside = np.random.default_rng(35), 0.05, []

    def drawn(count: int) -> "tuple[np.ndarray, np.ndarray]":
        shape = (count, len(slopes))
        normal = generator.standard_normal(shape)
        of_tails = generator.standard_t(TAILS[tails], shape) / 3**0.5 if TAILS[tails] else normal
        controls = sd * of_tails
        return controls, controls @ np.array(slopes) + sd * rest * generator.standard_normal(count)

    for _ in range(400):
        controls, logs = drawn(RUNS)
        known = Controls(rows(controls), rows(drawn(DRAWS)[0]))
        low, high = prediction_interval([float(x) for x in np.exp(logs)], controls=known)
        further = np.exp(drawn(200)[1])
        inside.append(float(np.mean((low <= further) & (further <= high))))
    # 400 samples of coverages whose standard deviation is below 0.06: a standard error of 0.003.
    assert fmean(inside) == pytest.approx(0.95, abs=0.02)


def test_a_mean_is_that_of_the_draws_and_not_of_the_luck_of_the_runs() -> None:
    generator = np.random.default_rng(7)
    errors, plain = [], []
    for _ in range(50):
        controls, draws = 0.2 * generator.standard_normal((RUNS, 1)), 0.2 * generator.standard_normal((DRAWS, 1))
        times = [float(x) for x in np.exp(controls[:, 0] - 0.02 + 0.01 * generator.standard_normal(RUNS))]
        errors.append(expected(times, Controls(rows(controls), rows(draws))) - 1.0)
        plain.append(expected(times) - 1.0)
    assert pstdev(errors) < 0.25 * pstdev(plain)
    assert abs(fmean(errors)) < 0.005


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(("nb", "grid"), [(128, (4, 4)), (256, (4, 4)), (128, (2, 8))])
def test_twelve_runs_tell_the_half_width_of_three_hundred(nb: int, grid: tuple[int, int]) -> None:
    dahu, hpl = load_platform("dahu"), Hpl(n=12_000, nb=nb, p=grid[0], q=grid[1])
    many = predict(hpl, dahu, runs=300, seed=1_000_000)
    few = [predict(hpl, dahu, runs=RUNS, seed=1 + RUNS * number) for number in range(12)]
    widths = [each.time_s.half_width_percent for each in few]
    assert pstdev(widths) < 0.2 * fmean(widths)  # by Student's interval of the runs alone: 0.2 to 0.3
    assert fmean(widths) == pytest.approx(many.time_s.half_width_percent, rel=0.1)
    times_s = np.array([run.time_s for run in many.run_list])
    inside = [float(np.mean((each.time_s.low <= times_s) & (times_s <= each.time_s.high))) for each in few]
    assert 0.92 <= fmean(inside) <= 0.98
