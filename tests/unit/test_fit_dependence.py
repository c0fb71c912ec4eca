"""Dependence of successive calls: what was planted is measured, and what was not is not."""

import dataclasses

import numpy as np
import pytest

from lepaute.measure.fit.kernels.kernel_fit import fit_kernel
from lepaute.measure.fit.observations.calls import Calls
from lepaute.measure.fit.variability.dependence import DependenceReport, report_of

COUNT = 8000


def report(z: np.ndarray, *, previous: float = 0.0, wandering_relative_sd: float = 0.0) -> DependenceReport:
    """Of calls of a tenth of a microsecond an element, residuals 5 % times z; four processes, one after another.

    previous : relative increase for each doubling of the size of the call before
    """
    rng = np.random.default_rng(7)
    n = np.floor(10 ** rng.uniform(2, 4, COUNT))
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


def test_what_the_platform_has_as_wandering_is_not_called_a_limit() -> None:
    shared = np.repeat(normal(5)[: COUNT // 100], 100)
    found = report(0.6 * normal(4) + 0.8 * shared, wandering_relative_sd=0.05 * 0.8)
    assert found.width == pytest.approx((1 + 0.426 * 49 * 0.64) ** 0.5, rel=0.2)
    assert not found.is_limit
    assert "covers it" in found.sentence


def test_the_effect_of_the_call_before_is_measured() -> None:
    found = report(normal(6), previous=0.02)
    assert found.previous_percent == pytest.approx(2.0, abs=5 * found.previous_error)
    assert found.previous_error < 0.2
    assert "the mix of sizes matters" in found.sentence


def test_what_a_whole_process_has_in_common_is_no_dependence_of_its_calls() -> None:
    # `report` makes the last process 1.3 times as slow as the first one
    assert abs(report(normal(8)).lag_100) < 5 / COUNT**0.5
