"""The posterior by Markov chain Monte Carlo agrees with the moments, on simulated hierarchies."""

import numpy as np
import pytest
from population.simulated import dahu_like, simulated

from lepaute.errors import FitError
from lepaute.measure.fit.population.generative import Generative, generative
from lepaute.measure.fit.population.posterior import Posterior, posterior

SLOW = 8


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    pytest.importorskip("numpyro", reason="the extra mcmc is not installed (pip install 'lepaute[mcmc]')")


@pytest.fixture(scope="module")
def both() -> tuple[Generative, Posterior]:
    """Moments and posterior of 32 nodes, of which 8 are 6 standard deviations slower."""
    data = simulated(dahu_like(), np.random.default_rng(11), slow_nodes=SLOW, slow_by_sd=6.0)
    fitted = generative(data)
    return fitted, posterior(data, fitted, seed=3)


@pytest.mark.long
def test_the_chains_have_mixed(both) -> None:
    assert both[1].r_hat < 1.02
    assert both[1].divergences == 0


@pytest.mark.long
def test_posterior_means_of_theta_are_the_moments(both) -> None:
    fitted, found = both
    assert len(fitted.groups) == 2
    for number, group in enumerate(fitted.groups):
        # both rest on the same data: they differ by far less than either's standard error
        assert np.all(np.abs(found.theta[:, number].mean(axis=0) - group.theta) < 0.5 * group.theta_sd)


@pytest.mark.long
def test_posterior_means_of_the_covariances_are_the_moments(both) -> None:
    fitted, found = both
    temporal = np.diag(found.covariance_temporal.mean(axis=0)) / np.diag(fitted.covariance_temporal)
    assert temporal == pytest.approx(1.0, abs=0.03)  # more than 1000 degrees of freedom
    for number, group in enumerate(fitted.groups):
        # the mean of a variance with n degrees of freedom lies above its mode by about (p + 2) / n: 48 and 16 CPUs
        ratio = np.diag(found.covariance_spatial[:, number].mean(axis=0)) / np.diag(group.covariance_spatial)
        assert np.all((ratio > 0.9) & (ratio < 1.0 + 10.0 / group.units))


@pytest.mark.long
def test_posterior_weights_are_those_of_the_groups(both) -> None:
    # Dirichlet(1, 1) and 24 of 32 nodes: (24 + 1) / (32 + 2)
    assert both[1].weight[:, 0].mean() == pytest.approx(25 / 34, abs=0.02)


@pytest.mark.long
def test_the_posterior_is_told_in_lines(both) -> None:
    lines = both[1].lines()
    assert lines[0].startswith("posterior from 1000 draws: largest R-hat 1.0")
    assert sum(line.startswith("group") for line in lines) == 2


def test_a_coefficient_that_never_varies_cannot_be_sampled() -> None:
    data = simulated(dahu_like(), np.random.default_rng(2), nodes=4, days=3)
    data.values[:, 0] = 7e-11
    with pytest.raises(FitError, match="sampling needs coefficients that all vary"):
        posterior(data, generative(data))
