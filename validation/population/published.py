"""The published hyperparameters, and the published synthetic nodes drawn from them."""

from typing import Any

import numpy
import pandas
from support.goals import markdown

from lepaute.measure.fit.population.generative import Generative
from lepaute.simulate.machine.population import drawn_day, drawn_nodes, drawn_scales
from lepaute.simulate.platform.population import Group, Population
from population.levels import Level
from population.two_sample import p_values

COLUMNS = {"mnk": "mnk", "1": "intercept", "sd:mnk": "mnk_residual"}


def spread_table(fits: dict[str, Generative], published: dict[str, Any]) -> str:
    """Relative standard deviations in per cent, and correlations, ours beside the published ones."""
    order = [published["parameters"].index(COLUMNS[term]) for term in COLUMNS]
    theta = numpy.array(published["mean"])[order]
    rows = [_row("published, whole nodes, March 2020", "all", theta, published["covariance_spatial"],
                 published["covariance_temporal"], order)]  # fmt: skip
    for name, fit in fits.items():
        for number, group in enumerate(fit.groups):
            own = fit.days.individual if group.covariance_temporal is None else group.covariance_temporal
            total = own + (0.0 if fit.days.common is None else fit.days.common)
            rows.append(_row(f"ours, CPUs, {name}", f"{number} ({group.nodes} nodes)", group.theta,
                             group.covariance_spatial, total, [0, 1, 2]))  # fmt: skip
    header = (
        "model",
        "group",
        "between CPUs or nodes: sd of alpha, beta, gamma, %",
        "correlations",
        "between days: sd, %",
        "correlations",
    )
    return markdown(header, rows)


def _row(name: str, group: str, theta: numpy.ndarray, spatial: Any, temporal: Any, order: list[int]) -> tuple[str, ...]:
    cells = [name, group]
    for matrix in (spatial, temporal):
        covariance = numpy.array(matrix)[numpy.ix_(order, order)]
        sd = numpy.sqrt(numpy.diag(covariance))
        correlation = covariance / numpy.outer(sd, sd)
        cells.append(", ".join(f"{value:.2f}" for value in 100.0 * sd / theta))
        cells.append(", ".join(f"{correlation[i, j]:+.2f}" for i, j in ((0, 1), (0, 2), (1, 2))))
    return tuple(cells)


def variances(nodes: pandas.DataFrame, published: dict[str, Any]) -> str:
    """Variance of alpha in each published cluster, over that of the hyperparameters."""
    at = published["parameters"].index("mnk")
    variance = published["covariance_spatial"][at][at] + published["covariance_temporal"][at][at]
    return ", ".join(f"{value / variance:.2f}" for value in nodes.groupby("platform_id")["mnk"].var())


def node_tests(nodes: pandas.DataFrame, published: dict[str, Any]) -> list[tuple[str, ...]]:
    """Of the published synthetic nodes: variances over those of a model, and p against draws of ours from it, for one
    draw of Sigma_S and for one of Sigma_S + Sigma_T."""
    parameters = published["parameters"]
    population = Population(
        terms=tuple(COLUMNS),
        groups=(
            Group(
                weight=1.0,
                mean=_vector(published["mean"], parameters),
                covariance_spatial=_matrix(published["covariance_spatial"], parameters),
            ),
        ),
        covariance_temporal=_matrix(published["covariance_temporal"], parameters),
    )
    values = nodes[list(COLUMNS.values())].to_numpy(dtype=float)
    groups, centres = drawn_nodes(population, len(values), 1, 1)
    days = numpy.array(drawn_day(population, groups, drawn_scales(population, groups, len(values), 1, 1), 1))
    spatial, temporal = (
        numpy.diag(numpy.array(rows))
        for rows in (population.groups[0].covariance_spatial, population.covariance_temporal)
    )
    block = numpy.arange(len(values))
    rows = []
    for name, drawn, variance in (
        ("Sigma_S", numpy.array(centres), spatial),
        ("Sigma_S + Sigma_T", numpy.array(centres) + days, spatial + temporal),
    ):
        found: list[float] = p_values(_level(values, block), _level(drawn, block), 1)
        ratio = numpy.var(values, axis=0, ddof=1) / variance
        rows.append((name, ", ".join(f"{value:.3f}" for value in ratio), *(f"{p:.3f}" for p in found)))
    return rows


def _level(values: numpy.ndarray, block: numpy.ndarray) -> Level:
    return values, block


def _vector(values: list[float], parameters: list[str]) -> tuple[float, ...]:
    return tuple(values[parameters.index(column)] for column in COLUMNS.values())


def _matrix(rows: list[list[float]], parameters: list[str]) -> tuple[tuple[float, ...], ...]:
    return tuple(_vector(rows[parameters.index(column)], parameters) for column in COLUMNS.values())
