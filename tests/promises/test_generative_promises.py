"""Statistical promises of the generative model: rates over many simulated hierarchies, bounds from the binomial."""

import numpy as np
import pytest
from population.simulated import Truth, dahu_like, simulated
from scipy import stats

from lepaute.fit.population.generative import generative

REPETITIONS = 120
TRUTH: Truth = dahu_like()


def few_nodes(rng: np.random.Generator, common_share: float):
    """Ten nodes of two CPUs on eight days, a tenth of the rows missing: little data, so that errors show."""
    return simulated(TRUTH, rng, nodes=10, days=8, common_share=common_share)


@pytest.fixture(scope="module", params=[0.0, 0.5], ids=["independent days", "days half in common"])
def fits(request: pytest.FixtureRequest):
    rng = np.random.default_rng(20261121)
    return [generative(few_nodes(rng, request.param), most_groups=1) for _ in range(REPETITIONS)]


def hits(fits, narrower: float) -> np.ndarray:
    bounds = [(fit.groups[0].theta, *fit.groups[0].interval()) for fit in fits]
    return np.sum([np.abs(TRUTH.theta - theta) <= narrower * (high - low) / 2 for theta, low, high in bounds], axis=0)


def test_intervals_of_theta_hold_it_at_95_percent(fits) -> None:
    low, high = stats.binom.ppf([1e-6, 1 - 1e-6], REPETITIONS, 0.95)
    assert np.all((hits(fits, 1.0) >= low) & (hits(fits, 1.0) <= high))


def test_the_promise_can_fail_when_intervals_are_halved(fits) -> None:
    assert np.all(hits(fits, 0.5) < stats.binom.ppf(1e-6, REPETITIONS, 0.95))


def test_sigma_s_and_sigma_t_are_unbiased(fits) -> None:
    # the projection onto covariances may only add a little where a variance is small: alpha, whose days are quiet
    for found, truth in (
        ([np.diag(fit.groups[0].covariance_spatial) for fit in fits], TRUTH.covariance_spatial),
        ([np.diag(fit.days.total) for fit in fits], TRUTH.covariance_temporal),
    ):
        ratio = np.array(found) / np.diag(truth)
        error = ratio.std(axis=0, ddof=1) / np.sqrt(REPETITIONS)
        assert np.all(np.abs(ratio.mean(axis=0) - 1.0) < 5 * error)


def test_sigma_s_would_be_too_large_if_the_days_were_not_taken_off(fits) -> None:
    gammas = [fit.groups[0].covariance_spatial[2, 2] + fit.days.individual[2, 2] / 7.2 for fit in fits]
    ratio = np.array(gammas) / TRUTH.covariance_spatial[2, 2]  # 7.2 days of 12 %: 20 % of a variance of 10 %
    assert ratio.mean() - 1.0 > 2 * ratio.std(ddof=1) / np.sqrt(REPETITIONS)


@pytest.mark.parametrize(("slow_nodes", "least"), [(0, 0.9), (4, 0.9)])
def test_groups_of_nodes_are_found_where_they_are_and_not_where_they_are_not(slow_nodes: int, least: float) -> None:
    rng = np.random.default_rng(7)
    count = 25
    right = 0
    for _ in range(count):
        found = generative(simulated(TRUTH, rng, slow_nodes=slow_nodes, slow_by_sd=5.0)).group_of_node
        right += np.array_equal(found, (np.arange(32) < slow_nodes).astype(int))
    assert right >= stats.binom.ppf(1e-6, count, least)
