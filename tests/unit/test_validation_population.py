"""What validation/generative.py compares, on data made here: levels, p by permutation, corrections."""

import numpy as np
import pytest
from population.levels import levels, some_nodes, synthetic
from population.simulated import dahu_like, simulated
from population.two_sample import combined, holm, p_values

from lepaute.measure.fit.population.generative import generative


def test_corrections_are_those_of_the_textbook() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])  # 3 x 0.01, 2 x 0.03, and no less than that
    assert combined([0.01, 0.02, 0.5]) == pytest.approx(0.04)
    assert combined([0.9]) == 1.0


def test_the_three_levels_add_up_to_the_data() -> None:
    data = simulated(dahu_like(), np.random.default_rng(1), nodes=4, days=5, missing=0.3)
    found = levels(data)
    whole = (
        found["between CPUs"][0][data.unit] + found["between days, common"][0][data.day] + found["between days, own"][0]
    )
    apart = data.values - whole  # the median of the CPUs, the same in each row
    assert np.ptp(apart, axis=0) == pytest.approx(0.0, abs=1e-18)


def test_synthetic_data_have_the_layout_of_the_observed() -> None:
    data = simulated(dahu_like(), np.random.default_rng(1), nodes=8, days=5, missing=0.3)
    drawn = synthetic(generative(data).population(), data, 3)
    assert np.array_equal(drawn.unit, data.unit)
    assert drawn.values.shape == data.values.shape
    assert not np.any(drawn.values == data.values)


def test_some_nodes_are_numbered_anew_and_keep_their_rows() -> None:
    data = simulated(dahu_like(), np.random.default_rng(1), nodes=5, days=3)
    part = some_nodes(data, np.array([4, 1]))
    assert (part.nodes, part.units, part.node_names) == (2, 4, ("node1", "node4"))
    assert np.array_equal(part.values, data.values[np.isin(data.node_of_unit[data.unit], [1, 4])])
    assert list(part.node_of_unit) == [0, 0, 1, 1]


def blocks(rng: np.random.Generator, shift: float) -> tuple[np.ndarray, np.ndarray]:
    """Twelve blocks of four values that share most of their variance."""
    shared = rng.normal(size=(12, 2)).repeat(4, axis=0)
    return shared + 0.3 * rng.normal(size=(48, 2)) + shift, np.arange(12).repeat(4)


def test_p_is_large_for_blocks_of_one_law_though_rows_are_dependent() -> None:
    rng = np.random.default_rng(5)
    small = sum(min(p_values(blocks(rng, 0.0), blocks(rng, 0.0), 1)) < 0.01 for _ in range(20))
    # three tests at 0.01 each: 0.6 expected; more than six of 20 once in a million
    assert small <= 6


def test_p_is_small_for_blocks_that_are_apart() -> None:
    rng = np.random.default_rng(5)
    assert max(p_values(blocks(rng, 0.0), blocks(rng, 3.0), 1)) <= 0.002
