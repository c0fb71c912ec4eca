"""Between the dashed lines of a comparison's picture of correlations lie 95 % of those of independent calls."""

import numpy as np
import pytest
from scipy.stats import binom

from lepaute.measure.compare.single_calls import independent_band, rank_correlations

SERIES = 4000


@pytest.mark.parametrize(("calls", "lag"), [(20, 1), (20, 5), (50, 12), (200, 1), (200, 20)])
def test_correlations_of_independent_calls_lie_inside_the_band_as_often_as_it_says(calls: int, lag: int) -> None:
    """The band is of the normal law with the exact mean: in truth 94.0 to 96.5 % for 20 calls and more. A correct
    program misses these bounds with a chance below 10^-6, whatever is the truth between them."""
    rng = np.random.default_rng(20261127)
    low, high = independent_band(calls, lag)
    inside = sum(low <= rank_correlations(rng.exponential(size=calls), lag)[-1] <= high for _ in range(SERIES))
    assert binom.ppf(5e-7, SERIES, 0.940) <= inside <= binom.ppf(1 - 5e-7, SERIES, 0.965)
