"""Student's t in plain Python, against SciPy."""

import math

import pytest
from scipy import stats

from lepaute.errors import InputError
from lepaute.stats.student import student_quantile

DEGREES = [1, 2, 3, 4.5, 9, 29, 39, 100, 1000, 1e5]
PROBABILITIES = [1e-10, 1e-6, 0.001, 0.025, 0.1, 0.4, 0.49999, 0.5, 0.6, 0.975, 0.9999]


@pytest.mark.parametrize("degrees", DEGREES)
@pytest.mark.parametrize("probability", PROBABILITIES)
def test_quantiles_agree_with_scipy(degrees: float, probability: float) -> None:
    t = float(stats.t.ppf(probability, degrees))
    assert student_quantile(probability, degrees) == pytest.approx(t, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("probability", "degrees"), [(0, 5), (1, 5), (1.5, 5), (math.nan, 5), (0.5, 0), (0.5, -1)])
def test_what_is_not_a_probability_or_a_number_of_degrees_is_refused(probability: float, degrees: float) -> None:
    with pytest.raises(InputError):
        student_quantile(probability, degrees)
