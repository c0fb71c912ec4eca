"""Student's t in plain Python, against SciPy and closed forms."""

import math

import pytest
from scipy import stats

from lepaute.stats.student import student_quantile

DEGREES = [3, 4.5, 9, 29, 39, 100, 1000, 1e5]
PROBABILITIES = [1e-10, 1e-6, 0.001, 0.025, 0.1, 0.4, 0.49999, 0.5, 0.6, 0.975, 0.9999]


@pytest.mark.parametrize("degrees", DEGREES)
@pytest.mark.parametrize("probability", PROBABILITIES)
def test_quantiles_agree_with_scipys_distribution(degrees: float, probability: float) -> None:
    # Not with its quantiles, which before SciPy 1.13 are off by up to 4e-9: the way to the exact one, as Newton's step.
    t = student_quantile(probability, degrees)
    assert abs(stats.t.cdf(t, degrees) - probability) / stats.t.pdf(t, degrees) <= max(1e-9 * abs(t), 1e-12)


@pytest.mark.parametrize("probability", PROBABILITIES)
def test_quantiles_of_one_and_two_degrees_are_those_of_the_closed_forms(probability: float) -> None:
    one = -1 / math.tan(math.pi * probability)
    two = (2 * probability - 1) / math.sqrt(2 * probability * (1 - probability))
    assert student_quantile(probability, 1) == pytest.approx(one, rel=1e-9, abs=1e-12)
    assert student_quantile(probability, 2) == pytest.approx(two, rel=1e-9, abs=1e-12)
