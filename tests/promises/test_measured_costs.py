"""The promise of measured costs: 95 % around the mean cover the true one, whatever computing times look like."""

from collections.abc import Callable
from math import log, sqrt
from typing import Any

import numpy as np
import pytest
from scipy import stats

from lepaute.errors import InputError
from lepaute.simulate.apps.own.measured import told_by

REPEATS = 400
Times = Callable[[np.random.Generator], list[np.ndarray]]


def alike(ranks: int, calls: int, sd: float = 0.05) -> Times:
    return lambda rng: [1.0 + sd * rng.normal(size=calls) for _ in range(ranks)]


def ranks_differ(ranks: int, calls: int) -> Times:
    return lambda rng: [(1.0 + 0.1 * rng.normal()) * times for times in alike(ranks, calls)(rng)]


def outliers(ranks: int, calls: int) -> Times:
    """3 % of the calls take five times as long."""
    return lambda rng: [np.where(rng.random(calls) < 0.03, 5.0, 1.0) * times for times in alike(ranks, calls)(rng)]


def drift(ranks: int, calls: int, by_rank: float = 0.0) -> Times:
    """All ranks are slow and fast together, by 5 %, with a correlation of 0.9 from one call to the next."""

    def drawn(rng: np.random.Generator) -> list[np.ndarray]:
        common = np.empty(calls)
        common[0] = rng.normal()
        for i in range(1, calls):
            common[i] = 0.9 * common[i - 1] + sqrt(1.0 - 0.81) * rng.normal()
        times = alike(ranks, calls, 0.02)(rng)
        return [(1.0 + 0.05 * common) * (1.0 + by_rank * rng.normal()) * values for values in times]

    return drawn


def cold(ranks: int, calls: int) -> Times:
    """The first call of each rank takes twenty times as long."""
    return lambda rng: [np.concatenate(([20.0], times[1:])) for times in alike(ranks, calls)(rng)]


def skewed(ranks: int, calls: int) -> Times:
    return lambda rng: [rng.lognormal(-0.125, 0.5, calls) for _ in range(ranks)]


#: Times, their true mean, and the coverage that is promised.
CASES: dict[str, tuple[Times, float, float]] = {
    "4 ranks, 50 calls": (alike(4, 50), 1.0, 0.93),
    "2 ranks, 2 calls": (alike(2, 2), 1.0, 0.93),
    "4 ranks, 1 call": (alike(4, 1), 1.0, 0.93),
    "1 rank, 3 calls": (alike(1, 3), 1.0, 0.93),
    "1 rank, 20 calls": (alike(1, 20), 1.0, 0.93),
    "2 ranks that differ": (ranks_differ(2, 50), 1.0, 0.90),
    "4 ranks that differ": (ranks_differ(4, 50), 1.0, 0.93),
    "outliers of 4 ranks, 50 calls": (outliers(4, 50), 1.12, 0.93),
    "outliers of 2 ranks, 30 calls": (outliers(2, 30), 1.12, 0.80),  # in one run of six there is none
    "a drift over 50 calls": (drift(4, 50), 1.0, 0.90),
    "a drift of one rank, 100 calls": (drift(1, 100), 1.0, 0.90),
    "a drift, and ranks that differ": (drift(4, 100, 0.05), 1.0, 0.93),
    "a first call that is cold": (cold(4, 20), 1.0, 0.93),
    "skewed times, 2 ranks, 6 calls": (skewed(2, 6), 1.0, 0.90),
}


@pytest.mark.parametrize("name", CASES)
def test_the_stated_error_covers_the_true_mean(name: str) -> None:
    times, mean, promised = CASES[name]
    hits = 0
    for seed in range(REPEATS):
        try:
            found = told_by(times(np.random.default_rng(seed)), "x")
        except InputError:  # refused: too uncertain to be told
            hits += 1
        else:
            hits += abs(log(mean / found.mean_s)) <= 1.96 * found.error
    assert hits >= stats.binom.ppf(1e-3, REPEATS, promised)


def test_the_error_shrinks_with_more_ranks_and_the_noise_does_not() -> None:
    def median(ranks: int, calls: int, what: str) -> float:
        rng = np.random.default_rng(1)
        return float(np.median([getattr(told_by(alike(ranks, calls)(rng), "x"), what) for _ in range(50)]))

    assert median(16, 200, "error") < 0.25 * median(4, 20, "error")
    assert median(4, 20, "noise") == pytest.approx(0.05, rel=0.1)
    assert median(16, 200, "noise") == pytest.approx(0.05, rel=0.1)


@pytest.mark.parametrize("times", [[[1.0]], [[0.0, 0.0]], [[1.0, 5.0], [3.0, 0.1]]])
def test_what_tells_no_cost_is_refused(times: list[list[float]]) -> None:
    arrays: list[Any] = [np.array(values) for values in times]
    with pytest.raises(InputError, match=r"run.parquet: \d measurements? of computing"):
        told_by(arrays, "run.parquet")
