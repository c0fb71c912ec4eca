"""Coefficients of simulated durations: intervals of their days hold the truth as often as they promise; so do tests."""

from math import lgamma

import numpy as np
import pandas
import pytest
from scipy import stats

from lepaute.watch.factors.dgemm import MODEL_FACTORS, PRODUCT_FACTORS, TERMS, coefficient_name, regression
from lepaute.watch.judging.judge import judge

#: Of a call: s per unit of the term; noise in proportion to the duration, as of a real dgemm.
TRUE = {"mnk": 7.3e-11, "mn": 1e-10, "mk": 2e-10, "nk": 4e-10, "1": 2.4e-6, "m": 1e-8, "n": 2e-8, "k": 1e-8}
NOISE, CORES = 0.03, 16
MACHINES, JOBS = 400, 16


def daily_coefficients() -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and those of the deviation, shape (machines, jobs, terms), of independent days."""
    rng = np.random.default_rng(20261123)
    m, n, k = np.floor(2048 ** rng.uniform(0.3, 1.0, (3, 80)))
    term = {"mnk": m * n * k, "mn": m * n, "mk": m * k, "nk": n * k, "1": 1.0 + 0 * m, "m": m, "n": n, "k": k}
    mean = sum(TRUE[name] * term[name] for name in TERMS)
    sizes = [np.tile(letter, CORES) for letter in (m, n, k)]
    found = np.empty((2, MACHINES, JOBS, len(TERMS)))
    for machine in range(MACHINES):
        for job in range(JOBS):
            duration = np.tile(mean, CORES) * (1 + NOISE * rng.normal(size=CORES * len(mean)))
            one = regression(*sizes, duration)
            found[:, machine, job] = [[part[name] for name in TERMS] for part in (one.mean, one.residual)]
    return found[0], found[1]


@pytest.fixture(scope="module")
def days() -> tuple[np.ndarray, np.ndarray]:
    return daily_coefficients()


def binomial(n: int, share: float) -> tuple[float, float]:
    low, high = stats.binom.ppf([1e-6, 1 - 1e-6], n, share)
    return float(low), float(high)


@pytest.mark.slow
@pytest.mark.long
def test_the_interval_of_the_mean_of_days_holds_each_coefficient_as_often_as_it_promises(days):
    mean = days[0].mean(axis=1)
    half = stats.t.ppf(0.975, JOBS - 1) * days[0].std(axis=1, ddof=1) / np.sqrt(JOBS)
    low, high = binomial(MACHINES, 0.95)
    for number, name in enumerate(TERMS):
        covered = int((np.abs(mean[:, number] - TRUE[name]) <= half[:, number]).sum())
        assert low <= covered <= high, name


@pytest.mark.slow
def test_the_fit_of_the_residuals_finds_how_much_calls_scatter(days: tuple[np.ndarray, np.ndarray]) -> None:
    # sd = NOISE * mean, so each of its coefficients is NOISE times that of the mean; the root of a sample variance
    # of 16 calls is 1.7 % too small in the mean: sqrt(2/15) Gamma(8) / Gamma(7.5)
    shrunk = np.sqrt(2 / 15) * np.exp(lgamma(8.0) - lgamma(7.5))
    mnk = days[1][:, :, 0].ravel()
    error = mnk.std(ddof=1) / np.sqrt(mnk.size)
    assert abs(mnk.mean() - shrunk * NOISE * TRUE["mnk"]) < 5 * error
    assert error < 0.01 * NOISE * TRUE["mnk"]


@pytest.mark.slow
@pytest.mark.parametrize("factors", [PRODUCT_FACTORS, MODEL_FACTORS], ids=["p = 3", "p = 8"])
def test_p_values_of_vectors_of_coefficients_are_uniform(days, factors):
    """Though eight coefficients of one fit are of very different sizes (1e-6 to 1e-11), and correlated."""
    values = days[0].reshape(-1)
    machine, job, term = (axis.ravel() for axis in np.indices(days[0].shape))
    table = pandas.DataFrame(
        {
            "cluster": "c", "node": machine.astype(str), "cpu": 0, "job": job.astype(str),
            "started_s": 1.6e9 + 86_400.0 * job, "stratum": "s", "value": values, "state": "done", "archive": "",
            "factor": np.array([coefficient_name(name) for name in TERMS])[term],
        }
    )  # fmt: skip
    tests = judge(table, factors=[factors], windows=(1,))
    last = tests[tests["started_s"] == tests["started_s"].max()]
    assert (last["missing"] == 0).all()
    assert len(last) == MACHINES
    for level in (0.01, 0.1, 0.5):
        low, high = binomial(MACHINES, level)
        assert low <= int((last["p_value"] < level).sum()) <= high, level
