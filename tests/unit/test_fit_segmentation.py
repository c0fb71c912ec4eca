import numpy as np
import pytest

from lepaute.errors import FitError
from lepaute.fit import segment


def three_regimes(seed: int, noise: float = 0.03):
    rng = np.random.default_rng(seed)
    x = 10 ** rng.uniform(0, 6, 400)
    y = np.where(x < 1e3, 1e-6 + 1e-9 * x, np.where(x < 1e5, 5e-6 + 2e-10 * x, 6e-5 + 1e-10 * x))
    return x, y * (1 + noise * rng.normal(size=400))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_planted_breakpoints_are_found_between_their_neighbours(seed):
    x, y = three_regimes(seed)
    found = segment(x, y).breakpoints
    ordered = np.sort(x)
    assert len(found) == 2
    for cut, truth in zip(found, (1e3, 1e5), strict=True):
        at = np.searchsorted(ordered, truth)
        assert ordered[at - 2] <= cut <= ordered[at + 1]


def test_slopes_and_intercepts_of_the_segments_are_those_planted():
    x, y = three_regimes(4, noise=0.005)
    lines = segment(x, y).segments
    assert [line.slope for line in lines] == pytest.approx([1e-9, 2e-10, 1e-10], rel=0.03)
    assert lines[0].intercept == pytest.approx(1e-6, rel=0.01)
    assert sum(line.n_points for line in lines) == len(x)


def test_a_single_line_has_no_breakpoint():
    rng = np.random.default_rng(3)
    x = rng.uniform(1, 100, 200)
    assert segment(x, (2 + 3 * x) * rng.lognormal(0, 0.05, 200)).breakpoints == ()


def test_predict_uses_the_segment_that_ends_at_its_breakpoint():
    x = np.arange(1.0, 21.0)
    y = np.where(x <= 10, 1.0, 100.0)
    line = segment(x, y, objective="ordinary", n_breakpoints=1)
    assert line.breakpoints == (10.0,)
    assert line.predict([10.0, 11.0]) == pytest.approx([1.0, 100.0])


def test_more_breakpoints_than_the_points_allow_is_an_error_that_says_so():
    with pytest.raises(FitError, match="do not allow 5 breakpoints"):
        segment([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6], n_breakpoints=5)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([1, 2], [1, 2], "at least 3"),
        ([1, 2, 3], [1, 2], "same length"),
        ([1, 2, 3], [1, 2, float("nan")], "finite"),
        ([1, 2, 3], [1, 0, 2], "y > 0"),
    ],
)
def test_unusable_points_are_refused(x, y, message):
    with pytest.raises(FitError, match=message):
        segment(x, y)
