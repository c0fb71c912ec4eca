"""Statistical promises of the fits: rates over many draws, bounds from the binomial, seeds fixed."""

import numpy as np
import pytest
from scipy import stats

from lepaute.measure.fit.kernels.polynomial import design_matrix, fit_polynomial

TERMS = ("mnk", "mn", "mk", "nk", "1")
MEAN = np.array([2.5e-11, 1.0e-9, 3.0e-10, 4.0e-10, 1.0e-6])
SD = np.array([5.0e-13, 2.0e-11, 0.0, 0.0, 1.0e-7])


def half_normal(rng: np.random.Generator, count: int) -> np.ndarray:
    """Mean zero, variance one."""
    return (np.abs(rng.normal(size=count)) - np.sqrt(2 / np.pi)) / np.sqrt(1 - 2 / np.pi)


def sizes(rng: np.random.Generator, count: int) -> list[np.ndarray]:
    return [10 ** rng.uniform(1.0, 3.5, count) for _ in range(3)]


def drawn(rng: np.random.Generator, count: int) -> tuple[list[np.ndarray], np.ndarray]:
    mnk = sizes(rng, count)
    x = design_matrix(TERMS, *mnk)
    return mnk, x @ MEAN + (x @ SD) * half_normal(rng, count)


@pytest.fixture(scope="module")
def repetitions() -> list[tuple[np.ndarray, np.ndarray]]:
    """(error of the coefficients, their standard errors) of 200 fits to 600 calls each."""
    rng = np.random.default_rng(20261121)
    results = []
    for _ in range(200):
        mnk, duration_s = drawn(rng, 600)
        fit = fit_polynomial(TERMS, *mnk, duration_s)
        assert fit.terms == TERMS
        results.append((fit.mean - MEAN, np.sqrt(np.diag(fit.covariance))))
    return results


def test_each_coefficient_lies_in_its_95_percent_interval_at_that_rate(repetitions):
    hits = np.array([np.abs(error) <= 1.959964 * sd for error, sd in repetitions]).sum(axis=0)
    # 200 repetitions at 0.95: all but two in a million such experiments count between these.
    low, high = stats.binom.ppf([1e-6, 1 - 1e-6], len(repetitions), 0.95)
    assert np.all((hits >= low) & (hits <= high)), dict(zip(TERMS, hits, strict=True))


def test_coefficients_are_unbiased(repetitions):
    errors = np.array([error for error, _ in repetitions])
    standard_error = errors.std(axis=0, ddof=1) / np.sqrt(len(errors))
    assert np.all(np.abs(errors.mean(axis=0)) < 5 * standard_error)


def test_standard_deviation_is_recovered_within_ten_percent_from_many_calls():
    rng = np.random.default_rng(5)
    mnk, duration_s = drawn(rng, 20_000)
    fit = fit_polynomial(TERMS, *mnk, duration_s)
    ratio = fit.deviation(*mnk) / (design_matrix(TERMS, *mnk) @ SD)
    assert 0.9 < np.median(ratio) < 1.1
    assert np.quantile(np.abs(ratio - 1), 0.9) < 0.2


@pytest.mark.parametrize("factor", [10.0, 100.0])
def test_rare_interrupted_calls_leave_the_shape_and_enter_the_sum(factor):
    rng = np.random.default_rng(11)
    mnk, duration_s = drawn(rng, 20_000)
    interrupted = rng.random(len(duration_s)) < 2e-3
    duration_s = np.where(interrupted, factor * duration_s, duration_s)
    fit = fit_polynomial(TERMS, *mnk, duration_s)
    # The sum is the measured one; the coefficients keep their proportions, each grown alike.
    assert fit.predict(*mnk).sum() == pytest.approx(duration_s.sum(), rel=0.01)
    proportions = fit.mean / fit.growth / MEAN
    assert np.all(np.abs(proportions - 1) < 0.03), proportions
    assert fit.growth - 1 == pytest.approx((duration_s.sum() / (design_matrix(TERMS, *mnk) @ MEAN).sum()) - 1, abs=0.01)
