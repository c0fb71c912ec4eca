"""Student's t in plain Python, against closed forms, printed tables and SciPy."""

import math

import pytest
from scipy import stats

from lepaute.errors import InputError
from lepaute.stats.student import student_quantile

DEGREES = [1, 2, 3, 4.5, 9, 29, 39, 100, 1000, 1e5]
PROBABILITIES = [1e-10, 1e-6, 0.001, 0.025, 0.1, 0.4, 0.49999, 0.6, 0.975, 0.9999]


@pytest.mark.parametrize(
    ("degrees", "expected"), [(1, 12.7062), (2, 4.30265), (4, 2.77645), (9, 2.26216), (30, 2.04227), (120, 1.97993)]
)
def test_quantiles_are_those_of_printed_tables(degrees: int, expected: float) -> None:
    assert student_quantile(0.975, degrees) == pytest.approx(expected, rel=3e-6)


@pytest.mark.parametrize("degrees", DEGREES)
@pytest.mark.parametrize("probability", PROBABILITIES)
def test_quantiles_agree_with_scipy(degrees: float, probability: float) -> None:
    t = float(stats.t.ppf(probability, degrees))
    assert student_quantile(probability, degrees) == pytest.approx(t, rel=1e-9)


@pytest.mark.parametrize("t", [-1e3, -3.0, -0.1, 0.0, 0.5, 40.0])
def test_closed_forms_of_one_and_two_degrees_of_freedom(t: float) -> None:
    assert student_quantile(0.5 + math.atan(t) / math.pi, 1) == pytest.approx(t, rel=1e-9, abs=1e-12)
    assert student_quantile(0.5 + t / (2 * math.sqrt(2 + t * t)), 2) == pytest.approx(t, rel=1e-8, abs=1e-12)


def test_the_distribution_is_symmetric() -> None:
    assert student_quantile(0.025, 7) == -student_quantile(0.975, 7)
    assert student_quantile(0.5, 7) == 0


@pytest.mark.parametrize(("probability", "degrees"), [(0, 5), (1, 5), (1.5, 5), (math.nan, 5), (0.5, 0), (0.5, -1)])
def test_what_is_not_a_probability_or_a_number_of_degrees_is_refused(probability: float, degrees: float) -> None:
    with pytest.raises(InputError):
        student_quantile(probability, degrees)
