"""The heteroscedastic fit against independent implementations, dependence of calls, and threads that change nothing."""

import dataclasses
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import threadpoolctl
from oracles import polynomial_by_likelihood
from support_fit import kernel_rows, write_calibration
from support_limits import ran

from lepaute.errors import FitError
from lepaute.measure.fit.fitted_models import models
from lepaute.measure.fit.kernels.kernel_fit import fit_kernel
from lepaute.measure.fit.kernels.polynomial import design_matrix, fit_polynomial
from lepaute.measure.fit.numeric import one_blas_thread, sandwich
from lepaute.measure.fit.observations.calls import Calls
from lepaute.measure.fit.variability.dependence import DependenceReport, report_of

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


COUNT = 8000


def report(z: np.ndarray, *, previous: float = 0.0, wandering_relative_sd: float = 0.0) -> DependenceReport:
    """Of calls of a tenth of a microsecond an element, residuals 5 % times z; four processes, one after another.

    previous : relative increase for each doubling of the size of the call before
    """
    n = np.floor(10 ** np.random.default_rng(7).uniform(2, 4, COUNT))
    before = np.log2(np.roll(n, 1)) - np.mean(np.log2(n))
    duration = (1e-7 * n) * (1 + 0.05 * z) * (1 + previous * before)
    block = np.arange(COUNT) * 4 // COUNT
    calls = Calls(
        "daxpy", 0 * n, n, 0 * n, duration * (1 + 0.1 * block), 0 * block, block, 0 * block,
        np.ones(COUNT, dtype=bool), np.zeros(COUNT, dtype=bool), ("hpl_steps_1x1",),
    )  # fmt: skip
    level = np.array([1.0, 1.1, 1.2, 1.3])[block]  # what the processes have in common
    kernel = fit_kernel(dataclasses.replace(calls, duration_s=calls.duration_s / level))
    return report_of(calls, kernel, np.arange(COUNT), block, wandering_relative_sd)


def normal(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=COUNT)


def test_independent_calls_have_no_autocorrelation_and_sums_as_wide_as_they_should_be() -> None:
    found = report(normal(1))
    # five standard errors of a correlation, and of the root of a chi-square of 160 batches
    assert max(abs(found.lag_1), abs(found.lag_10)) < 5 / COUNT**0.5
    assert (found.batch, found.width) == (50, pytest.approx(1.0, abs=5 / (2 * 160) ** 0.5))
    assert not found.is_limit
    assert abs(found.previous_percent) < 5 * found.previous_error


def test_planted_autocorrelation_is_measured_and_called_a_limit() -> None:
    z, fresh = np.zeros(COUNT), normal(3)
    z[0] = fresh[0]
    for i in range(1, COUNT):
        z[i] = 0.8 * z[i - 1] + np.sqrt(1 - 0.8**2) * fresh[i]
    found = report(z)
    assert found.lag_1 == pytest.approx(0.8, abs=0.05)
    assert found.lag_10 == pytest.approx(0.8**10, abs=0.08)
    # Sums of 50: variance 1 + 2 sum (1 - k/50) 0.8^k = 8.2 for calls of one size. The products of two different calls
    # count by (E sd)^2 / E sd^2 = 0.426 for sizes that are uniform in the logarithm over two decades.
    assert found.width == pytest.approx((1 + 0.426 * 7.2) ** 0.5, rel=0.15)
    assert found.is_limit
    assert "a limit of the model" in found.sentence


def test_wandering_of_the_platform_is_no_limit_the_call_before_is_measured_and_a_process_no_dependence() -> None:
    shared = np.repeat(normal(5)[: COUNT // 100], 100)
    found = report(0.6 * normal(4) + 0.8 * shared, wandering_relative_sd=0.05 * 0.8)
    assert found.width == pytest.approx((1 + 0.426 * 49 * 0.64) ** 0.5, rel=0.2)
    assert not found.is_limit
    assert "covers it" in found.sentence
    found = report(normal(6), previous=0.02)
    assert found.previous_percent == pytest.approx(2.0, abs=5 * found.previous_error)
    assert found.previous_error < 0.2
    assert "the mix of sizes matters" in found.sentence
    # `report` makes the last process 1.3 times as slow as the first one
    assert abs(report(normal(8)).lag_100) < 5 / COUNT**0.5


#: Long sums, which two threads split in the middle.
SUMS = """
import numpy as np
from lepaute.measure.fit.numeric import one_blas_thread
a = np.random.default_rng(1).normal(size=(200_000, 10))
x, y = a[:24_000, 0].copy(), a[:24_000, 1].copy()
with one_blas_thread():
    print((x @ y).hex(), (a.T @ a[:, 0]).tobytes().hex(), np.linalg.qr(a)[1].tobytes().hex())
"""
DIGEST = """
import sys
from lepaute.measure.archive import Archive
from lepaute.measure.fit import platform_and_models
print(platform_and_models(Archive.open(sys.argv[1]), "x")[0].sha256)
"""


def with_threads(threads: int, code: str, *words: str) -> str:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    return ran([sys.executable, "-c", code, *words], env=environment, check=True).stdout


def test_long_sums_are_the_same_to_the_last_digit_with_one_thread_and_with_two() -> None:
    assert with_threads(1, SUMS) == with_threads(2, SUMS)


@pytest.mark.slow
@pytest.mark.long
def test_the_digest_of_a_platform_is_the_same_with_one_thread_and_with_two(tmp_path: Path) -> None:
    archive = str(write_calibration(tmp_path / "c.zip", kernel_rows(calls=1500)))
    assert with_threads(1, DIGEST, archive) == with_threads(2, DIGEST, archive)


def threads_of(user_api: str) -> set[int]:
    return {pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == user_api}


def test_fits_have_one_thread_and_whoever_calls_them_has_as_many_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[set[int]] = []

    def stop(_archives: Any) -> None:
        seen.append(threads_of("blas"))
        raise FitError("seen")

    monkeypatch.setattr(sys.modules["lepaute.measure.fit.fitted_models"], "calibrations", stop)
    with one_blas_thread():  # loads what is to be told
        pass
    with threadpoolctl.threadpool_limits(limits=2, user_api="blas"):
        with pytest.raises(FitError, match="seen"):
            models([])
        assert seen == [{1}]
        assert threads_of("blas") == {2}
