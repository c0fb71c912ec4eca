"""Statistical promises of the fits, also of a kernel that was called a few times."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from lepaute.measure.fit.kernels.polynomial import ProcessEffects, design_matrix, fit_polynomial
from lepaute.measure.fit.kernels.selection import select
from lepaute.measure.fit.observations.calls import Calls

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


def test_coefficients_are_unbiased_and_in_their_95_percent_intervals_at_that_rate(repetitions):
    hits = np.array([np.abs(error) <= 1.959964 * sd for error, sd in repetitions]).sum(axis=0)
    # 200 repetitions at 0.95: all but two in a million such experiments count between these.
    low, high = stats.binom.ppf([1e-6, 1 - 1e-6], len(repetitions), 0.95)
    assert np.all((hits >= low) & (hits <= high)), dict(zip(TERMS, hits, strict=True))
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


REPETITIONS = 400
#: Seconds per element, and of a call.
MEAN_OF_FEW = {"mn": 4e-9, "1": 5e-7}
#: What launches and blocks differ by, which all kernels of a calibration together tell.
EFFECTS = ProcessEffects(of_block=0.02, of_launch=0.02, block_degrees_of_freedom=4)


def called(rng: np.random.Generator, count: int) -> Calls:
    """Copies of NB rows and log-uniform columns, by two ranks of one launch; noise of 5 %."""
    m, n = rng.choice([64.0, 128.0, 256.0], count), np.floor(10 ** rng.uniform(1.5, 3.2, count))
    cpu = np.arange(count) % 2
    effect = 0.02 * rng.normal() + 0.02 * rng.normal() + 0.01 * rng.normal(size=2)[cpu]
    half_normal = (np.abs(rng.normal(size=count)) - np.sqrt(2 / np.pi)) / np.sqrt(1 - 2 / np.pi)
    duration_s = (MEAN_OF_FEW["mn"] * m * n + MEAN_OF_FEW["1"]) * np.exp(effect) * (1 + 0.05 * half_normal)
    zeros, no = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=bool)
    inside = ("hpl_steps_options",)
    return Calls("dlaswp06N", m, n, 0.0 * m, duration_s, cpu, zeros, zeros, ~no, no, inside, launch=zeros)


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, 12, 26, 38])
def test_the_interval_of_an_applications_time_holds_with_few_calls(count: int) -> None:
    rng = np.random.default_rng(20261122)
    m, n = np.full(200, 128.0), np.linspace(100, 3000, 200)
    hits, errors = 0, []
    for _ in range(REPETITIONS):
        kernel, _ = select(called(rng, count), {})
        fit = dataclasses.replace(kernel.pieces[0].pooled, effects=EFFECTS)
        asked = design_matrix(fit.terms, m, n, 0 * m).sum(axis=0)
        truth = MEAN_OF_FEW["mn"] * float(m @ n) + MEAN_OF_FEW["1"] * len(m)
        error = float(asked @ fit.mean) - truth
        hits += abs(error) <= 1.959964 * float(np.sqrt(asked @ fit.covariance @ asked))
        errors.append(error / truth)
    assert hits >= stats.binom.ppf(1e-4, REPETITIONS, 0.95), hits
    assert np.std(errors) < 0.1  # a wild model would be off by more
