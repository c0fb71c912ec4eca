"""Laws of the generative model: the order of rows, the units, the names of nodes do not matter."""

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from population.simulated import dahu_like, simulated

from lepaute.measure.fit.population.coefficients import TERMS, Coefficients, coefficients_of_table
from lepaute.measure.fit.population.generative import Generative, generative
from lepaute.simulate.machine.population import drawn_day, drawn_nodes, drawn_scales, scaled
from lepaute.simulate.platform.population import Population
from lepaute.stats.cholesky import lower_factor

few = settings(max_examples=8)
ALIKE = [[1.0, 1.0]] * 3


def hierarchy(seed: int, slow: bool) -> Coefficients:
    """Eight nodes, with or without two slow ones, on up to six days."""
    rng = np.random.default_rng(seed)
    return simulated(
        dahu_like(), rng, nodes=8, days=6, missing=0.2, slow_nodes=2 * slow, slow_by_sd=8.0, common_share=0.3
    )


def frame(data: Coefficients) -> pandas.DataFrame:
    keys = {"node": data.node_of_unit[data.unit], "cpu": data.unit % 2, "day": data.day}
    return pandas.DataFrame(keys | dict(zip(TERMS, data.values.T, strict=True)))


def parts(fitted: Generative) -> list[np.ndarray]:
    common = fitted.days.common
    spatial = [group.covariance_spatial for group in fitted.groups]
    temporal = [fitted.days.individual, fitted.days.individual if common is None else common]
    return [*(group.theta for group in fitted.groups), *spatial, *temporal]


@pytest.mark.slow
@few
@given(st.integers(0, 2**32 - 1), st.booleans(), st.tuples(*[st.floats(1e-6, 1e6)] * 3))
def test_groups_depend_neither_on_the_order_of_rows_nor_on_units_nor_on_names_of_nodes(seed, slow, units):
    table = frame(hierarchy(seed, slow))
    in_units = table.assign(**{t: table[t] * u for t, u in zip(TERMS, units, strict=True)})
    backwards = table.assign(node=7 - table["node"])
    one, shuffled, other, renamed = (
        generative(coefficients_of_table(given))
        for given in (table, table.sample(frac=1.0, random_state=seed), in_units, backwards)
    )
    assert all(np.array_equal(a, b) for a, b in zip(parts(one), parts(shuffled), strict=True))
    back = renamed.group_of_node[::-1]
    same = [(a == b) for a in one.group_of_node for b in one.group_of_node]
    assert [(a == b) for a in back for b in back] == same
    scale = np.array(units)
    assert np.array_equal(one.group_of_node, other.group_of_node)
    for a, b in zip(parts(one), parts(other), strict=True):
        factor = scale if a.ndim == 1 else np.outer(scale, scale)
        size = np.sqrt(np.abs(np.outer(np.diag(a), np.diag(a)))) if a.ndim == 2 else np.abs(a)
        assert np.all(np.abs(b / factor - a) <= 1e-6 * size + 1e-300)


@few
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_what_is_fitted_is_a_population_that_can_be_drawn_from(seed: int, slow: bool) -> None:
    population = generative(hierarchy(seed, slow)).population()
    assert sum(group.weight for group in population.groups) == pytest.approx(1.0)
    groups, centres = drawn_nodes(population, 5, 2, seed)
    assert np.all(np.isfinite(centres))
    assert np.all(np.isfinite(drawn_day(population, groups, drawn_scales(population, groups, 5, 2, seed), seed)))


@few
@given(st.integers(0, 2**32 - 1), st.floats(0.0, 4.0), st.floats(0.0, 4.0))
def test_factors_multiply_what_is_drawn(seed: int, spatial: float, temporal: float) -> None:
    population = Population.model_validate(
        {
            "terms": ["mnk", "1"],
            "groups": [{"weight": 1.0, "mean": [1.0, 2.0], "covariance_spatial": [[4.0, 1.0], [1.0, 9.0]]}],
            "covariance_temporal": [[1.0, 0.5], [0.5, 1.0]],
        }
    )
    changed = scaled(population, spatial, temporal)
    (_, centres), (_, moved) = (drawn_nodes(one, 3, 1, seed) for one in (population, changed))
    middle = np.array([1.0, 2.0])
    assert np.array(moved) - middle == pytest.approx(spatial * (np.array(centres) - middle), abs=1e-9)
    days, longer = (drawn_day(one, None, ALIKE, seed) for one in (population, changed))
    assert np.array(longer) == pytest.approx(temporal * np.array(days), abs=1e-9)


@given(st.integers(1, 5), st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_a_factor_times_its_transpose_is_the_covariance_whatever_the_rank(size: int, seed: int, rank: int) -> None:
    columns = np.random.default_rng(seed).normal(size=(size, min(rank, size)))
    covariance = columns @ columns.T
    lower = np.array(lower_factor(covariance.tolist()))
    assert lower @ lower.T == pytest.approx(covariance, abs=1e-4 * float(np.max(np.abs(covariance))))
    assert np.all(np.triu(lower, 1) == 0.0)
