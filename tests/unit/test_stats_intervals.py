"""The prediction interval, exact cases."""

import math
import subprocess
import sys

import pytest

from lepaute.errors import InputError
from lepaute.stats.intervals import prediction_interval


def test_one_run_has_no_interval() -> None:
    assert prediction_interval([3.0]) == (None, None)


def test_few_runs_have_students_prediction_interval() -> None:
    # mean 2, sd 1, t(2, 0.975) = 4.302653, sqrt(1 + 1/3) = 1.154701: half width 4.968276
    low, high = prediction_interval([1.0, 2.0, 3.0])
    assert low == pytest.approx(2 - 4.968276, abs=1e-6)
    assert high == pytest.approx(2 + 4.968276, abs=1e-6)


def test_39_runs_are_still_few() -> None:
    low, high = prediction_interval([float(i) for i in range(39)])
    assert low is not None
    assert high is not None
    assert low < 0
    assert high > 38


def test_from_40_runs_on_the_quantiles_are_empirical() -> None:
    # positions 0.025 * 41 = 1.025 and 0.975 * 41 = 39.975 among 1 .. 40
    assert prediction_interval([float(i) for i in range(40, 0, -1)]) == pytest.approx((1.025, 39.975))


def test_equal_runs_have_an_interval_of_no_width() -> None:
    assert prediction_interval([7.0] * 10) == (7.0, 7.0)
    assert prediction_interval([7.0] * 100) == (7.0, 7.0)


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [math.inf]])
def test_values_that_have_no_interval_are_refused(values: list[float]) -> None:
    with pytest.raises(InputError, match="finite values"):
        prediction_interval(values)


def test_no_scientific_package_is_loaded_for_it() -> None:
    script = (
        "import sys; from lepaute.stats.intervals import prediction_interval as i; i([1.0, 2.0]);"
        "print([m for m in ('numpy', 'scipy') if m in sys.modules])"
    )
    finished = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=300)
    assert finished.stdout.strip() == "[]"
