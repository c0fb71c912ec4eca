"""The posterior of the generative model by Markov chain Monte Carlo (NUTS of NumPyro, the extra `mcmc`).

Model: that of Cornebize's thesis, section 4.2.2, with independent days (equations 4.4 and 4.5) and, where the moments
found groups, a mixture over nodes with weights from a Dirichlet distribution. The coefficients of single CPUs are
integrated out, which is exact for Gaussians: the mean of cpu p over n_p days is N(theta, Sigma_S + Sigma_T / n_p), and
the scatter of its days is Wishart with n_p - 1 degrees of freedom. Sampled are theta, Sigma_S, Sigma_T and the weights.

Priors, in units of the standard deviation of all rows: theta ~ N(moments, 10^2), standard deviations half-normal(2),
correlations LKJ(1), weights Dirichlet(1).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lepaute.errors import FitError
from lepaute.kit.extras import need
from lepaute.kit.text import significant, with_interval
from lepaute.measure.fit.numeric import Floats, Integers
from lepaute.measure.fit.population.coefficients import Coefficients
from lepaute.measure.fit.population.generative import Generative
from lepaute.stats.covariances import unit_means

WARMUP, DRAWS, CHAINS = 500, 500, 2
#: Above, chains have not mixed (Vehtari et al., Bayesian Analysis 16, 2021).
LARGEST_R_HAT = 1.01


@dataclass(frozen=True, slots=True)
class Posterior:
    """Draws, all first dimension (draws,), in the units of the coefficients.

    theta (draws, groups, p), covariance_spatial (draws, groups, p, p), covariance_temporal (draws, p, p),
    weight (draws, groups);  r_hat : the largest of all sampled numbers;  divergences : of all draws
    """

    terms: tuple[str, ...]
    theta: Floats
    covariance_spatial: Floats
    covariance_temporal: Floats
    weight: Floats
    r_hat: float
    divergences: int

    def to_dict(self) -> dict[str, Any]:
        """Mean of each group and term with its interval, in seconds; whether the sampling can be trusted."""
        low, high = np.quantile(self.theta, [0.025, 0.975], axis=0)
        mean = self.theta.mean(axis=0)
        groups = [
            {
                term: {"mean_s": float(mean[group, at]), "interval_s": [float(low[group, at]), float(high[group, at])]}
                for at, term in enumerate(self.terms)
            }
            for group in range(self.theta.shape[1])
        ]
        return {"groups": groups, "draws": len(self.theta), "r_hat": self.r_hat, "divergences": self.divergences}

    def lines(self) -> list[str]:
        """Posterior means with 95 % intervals as text, and whether the sampling can be trusted."""
        lines = [f"posterior from {len(self.theta)} draws: largest R-hat {self.r_hat:.3f}"]
        if self.r_hat > LARGEST_R_HAT or self.divergences:
            lines[0] += f", {self.divergences} divergences: NOT to be trusted"
        for group in range(self.theta.shape[1]):
            weight = f" (weight {self.weight[:, group].mean():.3f})" if self.theta.shape[1] > 1 else ""
            lines.append(f"group {group}{weight}")
            for at, term in enumerate(self.terms):
                low, high = np.quantile(self.theta[:, group, at], [0.025, 0.975])
                spatial = np.sqrt(self.covariance_spatial[:, group, at, at])
                temporal = np.sqrt(self.covariance_temporal[:, at, at])
                lines.append(
                    f"  {term:<7} {with_interval(self.theta[:, group, at].mean(), low, high)}; sd between CPUs "
                    f"{significant(spatial.mean(), 2)}, between days {significant(temporal.mean(), 2)}"
                )
        return lines


def posterior(
    data: Coefficients, fitted: Generative, *, seed: int = 1, warmup: int = WARMUP, draws: int = DRAWS
) -> Posterior:
    """Samples the posterior, with as many groups as `fitted` has; chains begin at the moments.

    Raises MissingExtra without NumPyro, FitError if a coefficient does not vary or no cpu has two days.
    """
    jax, numpyro = _libraries()
    scale = np.std(data.values, axis=0)
    if np.any(scale <= 1e-12 * np.max(np.abs(data.values), axis=0)) or fitted.days.degrees_of_freedom < 1:
        raise FitError(f"{data.source}: sampling needs coefficients that all vary, and CPUs seen on several days")
    centre = data.values.mean(axis=0)
    start = _start(fitted, centre, scale)
    model = _model(jax, numpyro, _statistics(data, (data.values - centre) / scale), start)
    kernel = numpyro.infer.NUTS(model, init_strategy=numpyro.infer.init_to_value(values=start), target_accept_prob=0.9)
    sampler = numpyro.infer.MCMC(
        kernel, num_warmup=warmup, num_samples=draws, num_chains=CHAINS, chain_method="vectorized", progress_bar=False
    )
    sampler.run(jax.random.PRNGKey(seed % 2**32))
    grouped = {name: np.asarray(value) for name, value in sampler.get_samples(group_by_chain=True).items()}
    sites = numpyro.diagnostics.summary({name: grouped[name] for name in ("theta", "sd_spatial", "sd_temporal")})
    flat = {name: value.reshape(-1, *value.shape[2:]).astype(np.float64) for name, value in grouped.items()}
    unit = np.outer(scale, scale)
    return Posterior(
        data.terms,
        flat["theta"] * scale + centre,
        _covariance(flat["sd_spatial"], flat["corr_spatial"]) * unit,
        _covariance(flat["sd_temporal"], flat["corr_temporal"]) * unit,
        flat["weight"],
        max(float(np.max(site["r_hat"])) for site in sites.values()),
        int(np.sum(np.asarray(sampler.get_extra_fields()["diverging"]))),
    )


def _libraries() -> tuple[Any, Any]:
    need("mcmc", "sampling the posterior")
    import jax
    import numpyro
    import numpyro.diagnostics
    import numpyro.infer

    settings: Any = jax.config
    settings.update("jax_platforms", "cpu")
    # Nearly all of the time goes into compiling; the sampling itself takes about a second.
    settings.update("jax_disable_most_optimizations", True)
    numpyro.enable_x64()
    return jax, numpyro


@dataclass(frozen=True, slots=True)
class _Statistics:
    """All that the likelihood needs: the means of CPUs, their numbers of days, and the scatter of days around them."""

    means: Floats
    days: Floats
    scatter: Floats
    freedom: float
    node: Integers
    nodes: int


def _statistics(data: Coefficients, y: Floats) -> _Statistics:
    means = unit_means(data.unit, y)
    deviations = y - means[data.unit]
    days = np.bincount(data.unit).astype(np.float64)
    freedom = float(len(y) - data.units)
    return _Statistics(means, days, deviations.T @ deviations, freedom, data.node_of_unit, data.nodes)


def _start(fitted: Generative, centre: Floats, scale: Floats) -> dict[str, Floats]:
    """The moments in scaled units, away from the edge of what is possible."""
    size = len(scale)
    theta = np.array([(group.theta - centre) / scale for group in fitted.groups])
    spatial = np.array([np.sqrt(np.diag(group.covariance_spatial)) / scale for group in fitted.groups])
    identity = np.eye(size)
    return {
        "theta": theta,
        "sd_spatial": np.maximum(spatial, 0.05),
        "sd_temporal": np.maximum(np.sqrt(np.diag(fitted.covariance_temporal)) / scale, 0.05),
        "corr_spatial": np.repeat(identity[None], len(theta), axis=0),
        "corr_temporal": identity,
        "weight": np.array([group.weight for group in fitted.groups]),
    }


def _model(jax: Any, numpyro: Any, seen: _Statistics, start: dict[str, Floats]) -> Any:
    distributions, np_ = numpyro.distributions, jax.numpy
    groups, size = start["theta"].shape
    days, means = np_.asarray(seen.days), np_.asarray(seen.means)

    def model() -> None:
        theta = numpyro.sample("theta", distributions.Normal(start["theta"], 10.0).to_event(2))
        half = distributions.HalfNormal(2.0)
        sd_spatial = numpyro.sample("sd_spatial", half.expand([groups, size]).to_event(2))
        sd_temporal = numpyro.sample("sd_temporal", half.expand([size]).to_event(1))
        lkj = distributions.LKJCholesky(size, 1.0)
        spatial = sd_spatial[..., None] * numpyro.sample("corr_spatial", lkj.expand([groups]).to_event(1))
        temporal = sd_temporal[..., None] * numpyro.sample("corr_temporal", lkj)
        weight = numpyro.sample("weight", distributions.Dirichlet(np_.ones(groups)))
        sigma_s = spatial @ np_.swapaxes(spatial, -1, -2)
        sigma_t = temporal @ temporal.T
        # scatter of the days: the Wishart density, without what does not depend on Sigma_T
        whitened = jax.scipy.linalg.solve_triangular(temporal, seen.scatter, lower=True)
        trace = np_.trace(jax.scipy.linalg.solve_triangular(temporal, whitened.T, lower=True))
        log_determinant = 2.0 * np_.sum(np_.log(np_.diag(temporal)))
        numpyro.factor("days", -0.5 * (seen.freedom * log_determinant + trace))
        covariance = sigma_s[None] + sigma_t[None, None] / days[:, None, None, None]  # (CPUs, groups, p, p)
        density = distributions.MultivariateNormal(theta[None], covariance_matrix=covariance).log_prob(means[:, None])
        of_node = jax.ops.segment_sum(density, seen.node, seen.nodes) + np_.log(weight)
        numpyro.factor("cpus", np_.sum(jax.scipy.special.logsumexp(of_node, axis=1)))

    return model


def _covariance(sd: Floats, factor: Floats) -> Floats:
    scaled = sd[..., None] * factor
    product: Floats = scaled @ np.swapaxes(scaled, -1, -2)
    return product
