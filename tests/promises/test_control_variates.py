"""Intervals whose runs have controls hold what they promise, and no longer depend on the luck of a few draws.

All draws are of fixed seeds: these are figures of this code, not of chance.
"""

import sys
import warnings
from dataclasses import dataclass, replace
from statistics import fmean, pstdev
from typing import Self

import numpy as np
import pytest

from lepaute import Hpl, Prediction, PredictionWarning, predict
from lepaute.stats.control_variates import Controls
from lepaute.stats.intervals import expected, prediction_interval

RUNS, DRAWS = 12, 1000
#: What the controls explain, b times each, and the standard deviation of the rest.
WORLDS = {"nearly all": ([1.0, 0.5], 0.1), "half": ([0.7, 0.0], 0.7), "nothing": ([0.0, 0.0], 1.0)}
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


@dataclass(frozen=True)
class Luck:
    """Predictions of few runs, each with seeds of its own, and one of 300 runs with others.

    scatter : standard deviation of the half-widths, and of the means, over their mean;  plain : by Student alone
    """

    few: list[Prediction]
    many: Prediction

    @classmethod
    def of(cls, hpl: Hpl, sets: int) -> Self:
        seeds = [1 + RUNS * number for number in range(sets)]
        few = [predict(hpl, "dahu", runs=RUNS, seed=seed, fidelity="full") for seed in seeds]
        return cls(few, predict(hpl, "dahu", runs=300, seed=1_000_000, fidelity="full"))

    @property
    def plain(self) -> Self:
        return replace(self, few=[replace(each, controls=None) for each in self.few])

    @property
    def widths(self) -> list[float]:
        return [each.time_s.half_width_percent or 0.0 for each in self.few]

    @property
    def scatter(self) -> tuple[float, float]:
        means = [each.time_s.mean for each in self.few]
        return pstdev(self.widths) / fmean(self.widths), pstdev(means) / fmean(means)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(("nb", "grid"), [(128, (4, 4)), (256, (4, 4)), (128, (2, 8))])
def test_twelve_runs_tell_the_half_width_of_three_hundred(nb: int, grid: tuple[int, int]) -> None:
    luck = Luck.of(Hpl(n=12_000, nb=nb, p=grid[0], q=grid[1]), sets=12)
    assert luck.scatter[0] < 0.2  # by Student's interval of the runs alone: 0.2 to 0.3
    assert fmean(luck.widths) == pytest.approx(luck.many.time_s.half_width_percent, rel=0.1)
    times_s = np.array([run.time_s for run in luck.many.run_list])
    inside = [float(np.mean((each.time_s.low <= times_s) & (times_s <= each.time_s.high))) for each in luck.few]
    assert 0.92 <= fmean(inside) <= 0.98


def main(sets: int) -> None:
    """The table of docs/concepts/intervals.md."""
    warnings.simplefilter("ignore", PredictionWarning)  # of what is extrapolated, in each prediction
    print("problem | scatter with, without | half-width of 12 runs, of 300 | scatter of the mean with, without")
    for n, nb, p, q in ((20_000, 128, 8, 4), (20_000, 256, 8, 4), (20_000, 128, 2, 16), (12_000, 128, 16, 16)):
        luck = Luck.of(Hpl(n=n, nb=nb, p=p, q=q), sets)
        (width, mean), (plain_width, plain_mean) = luck.scatter, luck.plain.scatter
        of_many = luck.many.time_s.half_width_percent
        print(
            f"N = {n}, NB = {nb}, {p} x {q} | {100 * width:.0f} %, {100 * plain_width:.0f} % | "
            f"{fmean(luck.widths):.1f} %, {of_many:.1f} % | {100 * mean:.2f} %, {100 * plain_mean:.2f} %",
            flush=True,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 12)
