"""The density that a picture draws is that of its interval: what it has between the ends, as decided in
docs/design/decisions/reports.md. Seeds are fixed, so nothing here fails by chance."""

import math

import numpy as np
import pytest
from scipy.integrate import trapezoid

from lepaute.stats.control_variates import Controls
from lepaute.stats.intervals import prediction_interval
from lepaute.stats.predictive import predictive_density

DRAWS = 300


def shares(runs: int, kind: str, worlds: int, common_sd: float = 0.0) -> list[float]:
    """Of each world what the density has inside of the interval."""
    generator, found = np.random.default_rng(20261127), []
    for _ in range(worlds):
        effect = {
            "none": np.zeros(runs + DRAWS),
            "normal": 0.05 * generator.standard_normal(runs + DRAWS),
            "t": 0.04 * generator.standard_t(4, runs + DRAWS),
        }[kind]
        values = np.exp(2.0 + effect[:runs] + 0.02 * generator.standard_normal(runs)).tolist()
        controls = None
        if kind != "none":
            rows = [(float(each),) for each in effect]
            controls = Controls(tuple(rows[:runs]), tuple(rows[runs:]))
        low, high = prediction_interval(values, common_sd, controls).ends
        at = np.linspace(low, high, 401)
        found.append(float(trapezoid(predictive_density(values, at, common_sd, controls), at)))
    return found


@pytest.mark.parametrize("runs", [2, 5, 12])
def test_without_controls_the_density_is_that_of_students_interval(runs: int) -> None:
    found = shares(runs, "none", 50)
    assert all(abs(share - 0.95) < 0.012 for share in found)  # what the grid and the interpolation cost
    assert np.mean(found) == pytest.approx(0.95, abs=0.01)


@pytest.mark.long
@pytest.mark.parametrize("runs", [12, 60])
@pytest.mark.parametrize("kind", ["normal", "t"])
def test_with_controls_it_has_nearly_as_much_between_the_ends(runs: int, kind: str) -> None:
    found = shares(runs, kind, 200)
    assert all(0.93 <= share <= 0.99 for share in found), (min(found), max(found))


def test_a_common_error_widens_density_and_interval_alike() -> None:
    found = shares(12, "none", 20, common_sd=0.03)
    assert all(0.93 <= share <= 0.99 for share in found), (min(found), max(found))


def test_all_of_it_is_one() -> None:
    values = [9.0, 10.0, 10.5, 11.0, 12.0]
    at = np.exp(np.linspace(math.log(1.0), math.log(100.0), 4001))
    assert trapezoid(predictive_density(values, at), at) == pytest.approx(1.0, abs=0.01)
