"""The question sensitivity of a study file: analysis of variance of levels, Sobol indices of ranges."""

from dataclasses import replace
from math import exp, floor, log, log1p, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

from lepaute.errors import InputError
from lepaute.study.evaluation import Evaluate, Value, by_point, trials_of
from lepaute.study.sensitivity import Effects, effects
from lepaute.study.sensitivity_sobol import FEWEST, Quantile, SobolIndices, simulations_of, sobol
from lepaute.study.trust import Judge

if TYPE_CHECKING:
    from lepaute.study.configuration import Configurations
    from lepaute.study.schema import Distribution, Factor, Study

#: Rows of the base sample where the study names no budget.
USUAL_ROWS = 256


def sensitivity(study: "Study", configurations: "Configurations", evaluate: Evaluate) -> Effects | SobolIndices:
    """What the factors do to the study's first response: of levels alone by analysis of variance of all combinations
    with the study's runs, otherwise by Sobol indices within its budget of simulations.

    Raises InputError where the budget is too small, or constraints stand beside ranges.
    """
    response = study.responses[0]
    if all(factor.levels is not None for factor in study.factors.values()):
        outcomes = evaluate(trials_of(configurations.points(), study.runs, study.seed))
        found = effects(outcomes, response)
        return replace(found, trusts=Judge(evaluate)(by_point(outcomes))) if study.runs > 1 else found
    if study.constraints:
        raise InputError("Sobol indices need factors that vary independently: constraints do not go with ranges")
    quantiles = {name: quantile_of(factor) for name, factor in study.factors.items()}
    if study.scenarios:
        quantiles["scenario"] = _of_levels(tuple(study.scenarios))
    return sobol(quantiles, evaluate, rows_of(study), response=response, seed=study.seed)


def rows_of(study: "Study") -> int:
    """The largest power of two that the budget suffices for."""
    if study.budget.simulations is None:
        return USUAL_ROWS
    factors = len(study.factors) + bool(study.scenarios)
    rows = study.budget.simulations // simulations_of(factors, 1)
    if rows < FEWEST:
        raise InputError(
            f"budget.simulations is {study.budget.simulations}; Sobol indices of {factors} factors take "
            f"{simulations_of(factors, FEWEST)} at least"
        )
    return 1 << (rows.bit_length() - 1)


def quantile_of(factor: "Factor") -> Quantile:
    """From a probability to a value of the factor."""
    if factor.levels is not None:
        return _of_levels(tuple(factor.levels))
    spread = factor.distribution
    of_values = _of_distribution(spread) if spread is not None else _of_range(*(factor.range or (0.0, 1.0)), factor.log)
    return (lambda u: round(float(of_values(u)))) if factor.integer else of_values  # type: ignore[arg-type]


def _of_levels(levels: tuple[Value, ...]) -> Quantile:
    return lambda u: levels[min(floor(u * len(levels)), len(levels) - 1)]


def _of_range(low: float, high: float, logarithm: bool) -> Quantile:
    if logarithm:
        return lambda u: exp(log(low) + u * (log(high) - log(low)))
    return lambda u: low + u * (high - low)


def _of_distribution(spread: "Distribution") -> Quantile:
    if spread.low is not None and spread.high is not None:
        return _of_range(spread.low, spread.high, spread.kind == "log-uniform")
    assert spread.mean is not None
    assert spread.sd is not None
    if spread.kind == "normal":
        return _of_normal(NormalDist(spread.mean, spread.sd))
    variance = log1p((spread.sd / spread.mean) ** 2)
    of_logarithm = _of_normal(NormalDist(log(spread.mean) - variance / 2.0, sqrt(variance)))
    return lambda u: exp(float(of_logarithm(u)))  # type: ignore[arg-type]


def _of_normal(distribution: NormalDist) -> Quantile:
    return lambda u: distribution.inv_cdf(min(max(u, 1e-9), 1.0 - 1e-9))
