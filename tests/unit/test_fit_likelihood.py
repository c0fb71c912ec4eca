"""The heteroscedastic fit against independent implementations: direct likelihood, NumPy, statsmodels."""

import numpy as np
import pytest
from oracles import polynomial_by_likelihood

from lepaute.measure.fit.kernels.polynomial import design_matrix, fit_polynomial
from lepaute.measure.fit.numeric import sandwich

TERMS = ("mnk", "mn", "mk", "nk", "1")
#: Of mn negative, as published fits have it; evaluated durations are positive everywhere.
MEAN = np.array([3e-11, -4e-11, 1e-9, 2e-9, 3e-6])
SD = np.array([6e-13, 0.0, 5e-11, 5e-11, 2e-7])


def calls(seed: int, count: int = 4000) -> tuple[list[np.ndarray], np.ndarray]:
    """Sizes from 10 to 1000 and durations with normal noise, for which the twin is the best there is."""
    rng = np.random.default_rng(seed)
    sizes = [np.floor(10 ** rng.uniform(1, 3, count)) for _ in range(3)]
    columns = design_matrix(TERMS, *sizes)
    return sizes, columns @ MEAN + (columns @ SD) * rng.normal(size=count)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_coefficients_are_those_of_the_greatest_likelihood(seed: int) -> None:
    sizes, y = calls(seed)
    x = design_matrix(TERMS, *sizes)
    ours = fit_polynomial(TERMS, *sizes, y, relative_floor=0.0, growth=1.0)
    mean, sd = polynomial_by_likelihood.fit(x, y, MEAN, np.maximum(SD, 1e-14))
    error = np.sqrt(np.diag(polynomial_by_likelihood.covariance(x, sd)))
    # The weights of the two differ a little, since theirs come from squares and ours from absolute residuals.
    assert np.all(np.abs(ours.mean - mean) < 0.5 * error), (ours.mean - mean) / error
    assert np.all(np.abs(ours.mean - MEAN) < 5 * error)
    middle = np.quantile(x @ SD, [0.1, 0.9])
    inside = (x @ SD > middle[0]) & (x @ SD < middle[1])
    assert ours.deviation(*sizes)[inside] == pytest.approx((x @ sd)[inside], rel=0.15)


def test_the_covariance_is_that_of_the_likelihood_where_the_weights_are_right() -> None:
    sizes, y = calls(11, 20_000)
    x = design_matrix(TERMS, *sizes)
    ours = fit_polynomial(TERMS, *sizes, y, relative_floor=0.0, growth=1.0)
    theirs = polynomial_by_likelihood.covariance(x, SD)
    assert np.sqrt(np.diag(ours.covariance)) == pytest.approx(np.sqrt(np.diag(theirs)), rel=0.1)
    ours_correlation, correlation = (c / np.sqrt(np.outer(np.diag(c), np.diag(c))) for c in (ours.covariance, theirs))
    assert np.max(np.abs(ours_correlation - correlation)) < 0.1


def test_a_negative_coefficient_comes_back_and_no_evaluated_duration_is_negative() -> None:
    sizes, y = calls(21, 20_000)
    fit = fit_polynomial(TERMS, *sizes, y)
    assert fit.mean[fit.terms.index("mn")] < 0
    assert np.min(fit.predict(*(np.zeros(3) for _ in range(3)))) >= 0.0
    far = fit_polynomial(("mn", "1"), *(s[:50] for s in sizes), 1e-9 * sizes[0][:50] * sizes[1][:50] - 1e-12)
    assert np.min(far.predict(np.ones(1), np.ones(1), np.ones(1))) >= 0.0


def test_a_constant_relative_spread_makes_the_fit_ordinary_least_squares_of_relative_errors() -> None:
    rng = np.random.default_rng(5)
    sizes = [np.floor(10 ** rng.uniform(1, 3, 2000)) for _ in range(3)]
    x = design_matrix(("mnk", "1"), *sizes)
    mean = x @ np.array([3e-11, 1e-6])
    y = mean * (1 + 1e-4 * rng.normal(size=2000))
    # The floor of 2 % is all of the weight: 1 / mean^2.
    expected = np.linalg.lstsq(x / mean[:, None], y / mean, rcond=None)[0]
    assert fit_polynomial(("mnk", "1"), *sizes, y, growth=1.0).mean == pytest.approx(expected, rel=1e-6)


def test_the_sandwich_is_the_hc3_of_statsmodels() -> None:
    api = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(6)
    x = np.column_stack([rng.uniform(0, 1, 300), rng.uniform(0, 1, 300), np.ones(300)])
    weight = rng.uniform(0.1, 2, 300)
    y = x @ np.array([1.0, 2.0, 3.0]) + rng.normal(size=300) * x[:, 0]
    theirs = api.WLS(y, x, weights=weight).fit(cov_type="HC3")
    ours = sandwich(x, y - x @ theirs.params, weight, np.ones(3, dtype=bool))
    assert ours == pytest.approx(theirs.cov_params(), rel=1e-6)
