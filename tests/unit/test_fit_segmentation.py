"""What `lepaute.fit.segment` and `segment_jointly` promise about single cases."""

import numpy as np
import pytest

from lepaute.errors import FitError
from lepaute.measure.fit import segment, segment_jointly


def three_regimes(seed: int, noise: float = 0.03):
    rng = np.random.default_rng(seed)
    x = 10 ** rng.uniform(0, 6, 400)
    y = np.where(x < 1e3, 1e-6 + 1e-9 * x, np.where(x < 1e5, 5e-6 + 2e-10 * x, 6e-5 + 1e-10 * x))
    return x, y * (1 + noise * rng.normal(size=400))


@pytest.mark.parametrize("objective", ["ordinary", "weighted", "log"])
def test_a_line_without_noise_has_no_breakpoint_and_its_own_coefficients(objective):
    x = np.geomspace(1, 1e8, 120)
    fitted = segment(x, 2e-6 + 3e-10 * x, objective=objective)
    assert fitted.breakpoints == ()
    assert fitted.segments[0].intercept == pytest.approx(2e-6, rel=1e-6)
    assert fitted.segments[0].slope == pytest.approx(3e-10, rel=1e-9)


def test_predict_uses_the_segment_that_ends_at_its_breakpoint():
    x = np.arange(1.0, 21.0)
    y = np.where(x <= 10, 1.0, 100.0)
    line = segment(x, y, objective="ordinary", n_breakpoints=1)
    assert line.breakpoints == (10.0,)
    assert line.predict([10.0, 11.0]) == pytest.approx([1.0, 100.0])


def test_every_further_breakpoint_is_listed_with_what_it_gains():
    x, y = three_regimes(7)
    fitted = segment(x, y, most_breakpoints=6)
    assert [len(candidate.breakpoints) for candidate in fitted.candidates] == list(range(7))
    left = [candidate.residual for candidate in fitted.candidates]
    assert fitted.gains == pytest.approx([before / after for before, after in zip(left[:-1], left[1:], strict=True)])
    assert min(fitted.gains[:2]) > 5
    assert max(fitted.gains[2:]) < 1.2
    assert fitted.table().count("<- chosen") == 1


def test_given_breakpoints_are_taken_and_moved_to_the_size_below():
    x = np.arange(1.0, 41.0)
    y = np.where(x <= 20, 1 + x, 100 + 2 * x)
    fitted = segment(x, y, breakpoints=[20.7])
    assert fitted.breakpoints == (20.0,)
    assert [line.slope for line in fitted.segments] == pytest.approx([1, 2])


@pytest.mark.parametrize(
    ("places", "number", "message"),
    [([3.0, 2.0], None, "increase"), ([0.5], None, "segment 1 .* holds no point"), ("abc", None, ""), ([5], 1, ""),
     ([10.2, 10.6], None, "segment 2 .* holds no point"), ([float("nan")], None, "finite")],
)  # fmt: skip
def test_given_breakpoints_that_make_no_segments_or_contradict_their_number_are_refused(places, number, message):
    x = np.arange(1.0, 41.0)
    with pytest.raises(FitError, match=message):
        segment(x, x, breakpoints=places, n_breakpoints=number)


def test_pieces_without_slope_find_the_levels_of_a_staircase():
    rng = np.random.default_rng(9)
    x = np.geomspace(1e3, 1e8, 150)
    level = np.where(x < 32e3, 50.0, np.where(x < 1e6, 20.0, 8.0))
    fitted = segment(x, level * rng.lognormal(0, 0.03, 150), shape="constant")
    assert [line.intercept for line in fitted.segments] == pytest.approx([50, 20, 8], rel=0.02)
    assert all(line.slope == 0 for line in fitted.segments)
    assert fitted.breakpoints == (x[x < 32e3].max(), x[x < 1e6].max())


def test_repeated_sizes_count_by_their_number():
    x = np.array([1.0, 2, 3, 4, 4, 4, 4])
    y = np.array([1.0, 2, 3, 8, 8, 8, 8])
    spread = np.array([1.0, 2, 3, 4, 5, 6, 7])
    weighted = segment(x, y, objective="ordinary", n_breakpoints=0).segments[0]
    slope, intercept = np.polyfit(x, y, 1)
    assert (weighted.intercept, weighted.slope) == pytest.approx((intercept, slope))
    assert weighted.n_points == 7
    assert segment(spread, y, objective="ordinary", n_breakpoints=0).segments[0].n_points == 7


def test_a_minimum_length_of_segments_is_kept():
    x, y = three_regimes(10)
    fitted = segment(x, y, n_breakpoints=8, least_points=30)
    bounds = [-np.inf, *fitted.breakpoints, np.inf]
    counts = [np.sum((x > low) & (x <= high)) for low, high in zip(bounds[:-1], bounds[1:], strict=True)]
    assert min(counts) >= 30


def test_beyond_500_sizes_the_logarithm_still_finds_the_very_size():
    rng = np.random.default_rng(11)
    x = np.unique(10 ** rng.uniform(0, 7, 3000))
    y = np.where(x < 1e4, 1e-6 + 1e-9 * x, 3e-5 + 2e-10 * x) * rng.lognormal(0, 0.02, len(x))
    assert segment(x, y).breakpoints == (x[x < 1e4].max(),)


def test_series_that_share_breakpoints_find_together_what_one_alone_does_not_see():
    rng = np.random.default_rng(12)
    series = []
    for jump, noise in ((3.0, 0.01), (1.05, 0.05)):
        x = np.unique(np.round(10 ** rng.uniform(0, 7, 150)))
        y = np.where(x <= 65536, 1e-6 + 1e-9 * x, jump * (1e-6 + 1e-9 * x)) * rng.lognormal(0, noise, len(x))
        series.append((x, y))
    assert segment(*series[1]).breakpoints == ()
    together = segment_jointly(series)
    assert len(together.breakpoints) == 1
    below = max(float(x[x <= 65536].max()) for x, _ in series)
    assert below <= together.breakpoints[0] <= min(float(x[x > 65536].min()) for x, _ in series)
    assert [len(one.segments) for one in together.series] == [2, 2]
    assert together.gains[0] > together.gains[1]


def test_more_breakpoints_than_the_points_allow_is_an_error_that_says_so():
    with pytest.raises(FitError, match="do not allow 5 breakpoints"):
        segment([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6], n_breakpoints=5)
    with pytest.raises(FitError, match="do not allow 9 common breakpoints"):
        segment_jointly([three_regimes(1), ([1, 2, 3], [1, 2, 3])], n_breakpoints=9)


@pytest.mark.parametrize(
    ("x", "y", "options", "message"),
    [
        ([], [], {}, "at least 3"),
        ([1, 2], [1, 2], {}, "at least 3"),
        ([1, 2, 3], [1, 2], {}, "same length"),
        ([1, 2, 3], [1, 2, float("nan")], {}, "finite"),
        ([1, 2, float("inf")], [1, 2, 3], {}, "finite"),
        ([1, 2, 3], [1, 0, 2], {}, "y > 0"),
        ([1, 2, 3], [1, -1, 2], {}, "y > 0"),
        ([-1, 2, 3], [1, 1, 2], {}, "x >= 0"),
        ([0, 2, 3], [1, 1, 2], {"objective": "weighted"}, "x > 0"),
        ([7, 7, 7], [1, 1, 2], {}, "more than one size"),
        (["a", "b", "c"], [1, 1, 2], {}, "vectors of numbers"),
        ([1, 2, 3], [1, 1, 2], {"objective": "relative"}, "ordinary, weighted or log"),
        ([1, 2, 3], [1, 1, 2], {"shape": "parabola"}, "line or constant"),
        ([1, 2, 3], [1, 1, 2], {"n_breakpoints": -1}, "at least 0"),
        ([1, 2, 3], [1, 1, 2], {"least_points": 0}, "least_points is 0"),
    ],
)
def test_unusable_points_and_options_are_refused(x, y, options, message):
    with pytest.raises(FitError, match=message):
        segment(x, y, **options)


@pytest.mark.parametrize("objective", ["log", "ordinary", "weighted"])
@pytest.mark.parametrize("n", [3, 4, 6, 8, 20])
def test_few_points_are_not_cut_into_pairs_that_a_line_meets_exactly(objective, n):
    rng = np.random.default_rng(n)
    x = np.arange(1.0, n + 1.0)
    noise = 0.02 * rng.normal(size=n) * (10.0 if objective == "ordinary" else x)
    assert segment(x, x + noise, objective=objective).breakpoints == ()


def test_seven_sizes_prove_no_breakpoint_and_say_how_many_do():
    x = 2.0 ** np.arange(7)
    fitted = segment(x, np.where(x > 4, 5e-6, 1e-6) * (1 + 0.01 * np.sin(x)))
    assert fitted.breakpoints == ()
    assert fitted.notes == ("7 distinct sizes cannot prove a breakpoint: measure 8 at least",)


def test_a_breakpoint_that_the_sizes_are_too_few_for_is_named():
    # The residual falls by three quarters: among 200 sizes that would be a breakpoint, among nine it may be chance.
    rng = np.random.default_rng(3)
    x = 2.0 ** np.arange(9)
    notes = []
    for _ in range(200):
        y = np.where(x > 16, 1.25e-6, 1e-6) * rng.lognormal(0, 0.05, 9)
        notes += segment(x, y).notes
    assert any("a first breakpoint, near 16, would divide the residual by" in note for note in notes)
    assert any("which 9 sizes do not prove: measure more sizes around it" in note for note in notes)


def test_a_piece_that_no_further_size_checks_is_named():
    x, y = 2.0 ** np.arange(23), np.ones(23)
    y[11:13], y[13:] = 3.0, 9.0
    fitted = segment(x, y * (1 + 0.001 * np.cos(x)), n_breakpoints=2)
    assert fitted.breakpoints == (1024.0, 4096.0)
    assert fitted.notes == (
        "the piece up to 4096 rests on 2 distinct sizes, which a line meets whatever they are: "
        "measure more sizes there",
    )


def correlated(seed: int, *, shuffled: bool) -> tuple[np.ndarray, np.ndarray]:
    """200 sizes with one jump, measured one after the other by a machine whose speed lasts."""
    rng = np.random.default_rng(seed)
    x = np.sort(np.floor(10 ** rng.uniform(1, 6, 200)))
    x = rng.permutation(x) if shuffled else x
    speed = rng.normal(size=200)
    for i in range(1, 200):
        speed[i] = 0.8 * speed[i - 1] + 0.6 * speed[i]
    return x, (1e-6 + 1e-9 * x + 5e-6 * (x > 2e4)) * np.exp(0.03 * speed)


def test_sizes_that_were_measured_in_their_order_on_a_machine_that_wanders_are_named():
    # A correlation of 0.8 is eight to ten standard errors from 0 with 200 points.
    for seed in range(5):
        assert any(
            "measure the sizes in random order" in note for note in segment(*correlated(seed, shuffled=False)).notes
        )
        assert not any("random order" in note for note in segment(*correlated(seed, shuffled=True)).notes)


def test_no_coefficient_of_the_logarithmic_objective_is_negative():
    x = np.geomspace(1, 1e6, 60)
    falling = segment(x, 1e-3 / np.log(x + 2), n_breakpoints=2)
    assert all(line.intercept >= 0 and line.slope >= 0 for line in falling.segments)


def test_jointly_one_series_is_cut_as_alone():
    x, y = three_regimes(13)
    assert segment_jointly([(x, y)]).breakpoints == segment(x, y).breakpoints
