"""Coefficients of CPUs and days from a hierarchy that is known: what fits of the generative model are tried on."""

from dataclasses import dataclass

import numpy as np

from lepaute.measure.fit.numeric import Floats
from lepaute.measure.fit.population.coefficients import TERMS, Coefficients


@dataclass(frozen=True, slots=True)
class Truth:
    """theta, shape (3,), Sigma_S and Sigma_T, shape (3, 3); days of CPUs are independent."""

    theta: Floats
    covariance_spatial: Floats
    covariance_temporal: Floats


def dahu_like() -> Truth:
    """Round numbers near those of Dahu: relative sd between CPUs 2, 5, 10 %, between days 0.7, 5, 12 %, correlations
    0.3."""
    theta = np.array([7.0e-11, 2.5e-6, 2.5e-12])
    correlation = np.full((3, 3), 0.3) + 0.7 * np.eye(3)
    spatial, temporal = theta * [0.02, 0.05, 0.10], theta * [0.007, 0.05, 0.12]
    return Truth(theta, np.outer(spatial, spatial) * correlation, np.outer(temporal, temporal) * correlation)


def simulated(
    truth: Truth,
    rng: np.random.Generator,
    *,
    nodes: int = 32,
    cpus: int = 2,
    days: int = 22,
    missing: float = 0.1,
    slow_nodes: int = 0,
    slow_by_sd: float = 0.0,
    common_share: float = 0.0,
    log_scale: Floats | None = None,
) -> Coefficients:
    """Calibrations of each cpu on each day but for a share `missing`, from `truth`.

    slow_nodes : the first nodes, whose alpha is larger by slow_by_sd standard deviations of Sigma_S
    common_share : of Sigma_T that all CPUs of a day share
    log_scale : logarithms of the factors of the own part of each cpu's days, shape (nodes * cpus, 3); 0 unless given
    """
    node_of_unit = np.repeat(np.arange(nodes), cpus)
    centre = truth.theta + _drawn(rng, truth.covariance_spatial, len(node_of_unit))
    centre[node_of_unit < slow_nodes, 0] += slow_by_sd * np.sqrt(truth.covariance_spatial[0, 0])
    unit = np.repeat(np.arange(len(node_of_unit)), days)
    day = np.tile(np.arange(days), len(node_of_unit))
    own = _drawn(rng, (1.0 - common_share) * truth.covariance_temporal, len(unit))
    values = centre[unit] + (own if log_scale is None else own * np.exp(log_scale)[unit])
    if common_share > 0.0:
        values += _drawn(rng, common_share * truth.covariance_temporal, days)[day]
    kept = (rng.uniform(size=len(unit)) >= missing) | (day == 0)
    names = tuple(f"node{number}" for number in range(nodes))
    return Coefficients(TERMS, unit[kept], day[kept], values[kept], node_of_unit, names, "a simulated hierarchy")


def _drawn(rng: np.random.Generator, covariance: Floats, count: int) -> Floats:
    """Normal vectors of that covariance, shape (count, 3)."""
    drawn: Floats = rng.normal(size=(count, len(covariance))) @ np.linalg.cholesky(covariance).T
    return drawn
