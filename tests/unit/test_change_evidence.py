"""What the core works out of a day of the evidence for changes, and what groups of machines share."""

import numpy as np
import pytest
from scipy.stats import t
from support.null_streams import autoregressive

from lepaute import _core
from lepaute.stats import change_evidence
from lepaute.stats.group_effects import found_groups, hidden_wander, medians, share_of


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 50, 500])
def test_a_factor_is_a_ratio_of_densities_over_its_mean(degrees: int) -> None:
    z, tail = np.array([-30.0, -1.0, 0.0, 0.3, 2.0, 9.5, np.nan]), min(degrees, 4)
    near = z.clip(-change_evidence.FURTHEST, change_evidence.FURTHEST)
    alternatives = (*change_evidence.UPWARDS, (0.0, 3.0))
    found = change_evidence.factors(z, np.full(len(z), degrees), alternatives)
    for column, (shift, width) in enumerate(alternatives):
        usual, changed = (t.pdf(change_evidence.HEAVY_SCALE * each, tail) for each in (near, (near - shift) / width))
        mean = change_evidence.means_of(alternatives)[min(degrees, 64) - 1, column]
        np.testing.assert_allclose(found[:-1, column], (changed / width / usual / mean)[:-1], rtol=1e-12)
    assert found[-1].tolist() == [1.0] * len(alternatives)  # nothing was tested


def test_factors_of_both_directions_are_of_a_deviation_that_is_reduced() -> None:
    z, reduced, degrees = np.array([1.5, -4.0]), np.array([0.5, 1.0]), np.array([7, 9])
    both = change_evidence.factors(z, degrees, change_evidence.UPWARDS, reduced)
    up, down = change_evidence.factors(z - reduced, degrees), change_evidence.factors(-z - reduced, degrees)
    np.testing.assert_allclose(both, np.concatenate([up, down], axis=1), rtol=1e-14)


def test_what_a_stream_learns_is_the_regression_on_all_values_and_what_was_known_before() -> None:
    rng, streams, days, memory = np.random.default_rng(5), 4, 30, 20.0
    squares, cross, expected = np.zeros((streams, 3, 3)), np.zeros((streams, 3)), np.ones((streams, 3))
    spread, scale, count = rng.uniform(0.1, 0.4, (streams, 2)), rng.uniform(1, 2, streams), np.full(streams, 9.0)
    sums = squares, cross, expected, spread, scale, count, 3.0
    x, y = rng.normal(size=(days, streams, 3)), rng.normal(size=(days, streams))
    for day in range(days):
        learns = np.arange(streams) != day % streams
        variance = _core.learn(*sums, learns, y[day], x[day], memory)
    for stream in range(streams):
        seen = [day for day in range(days) if day % streams != stream]
        weight = (1 - 1 / memory) ** np.arange(len(seen))[::-1]
        own = x[seen, stream]
        known = np.diag([1e-12, *(scale[stream] / spread[stream]) ** 2])
        gram = (own * weight[:, None]).T @ own + known
        moment = (own * weight[:, None]).T @ y[seen, stream] + [0, *np.diag(known)[1:]]
        np.testing.assert_allclose(expected[stream], np.linalg.solve(gram, moment), rtol=1e-9)
        posterior = scale[stream] ** 2 * np.diag(np.linalg.inv(gram))[1:]
        np.testing.assert_allclose(variance[stream], posterior, rtol=1e-9)


def test_a_deviation_is_from_what_the_regression_predicts_and_its_error_from_what_it_knows() -> None:
    rng, streams = np.random.default_rng(6), 3
    squares = np.stack([each @ each.T for each in rng.normal(size=(streams, 3, 5))])
    cross, expected = rng.normal(size=(streams, 3)), rng.normal(size=(streams, 3))
    spread, scale, rho = np.full((streams, 2), 0.2), np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.5, 0.6])
    value, last, known = rng.normal(size=streams), rng.normal(size=streams), np.array([True, True, False])
    shared, last_shared = rng.normal(size=(2, streams, 2))
    y, x, error, innovation = _core.innovations(
        squares,
        cross,
        expected,
        spread,
        scale,
        np.full(streams, 9.0),
        3.0,
        value,
        known,
        rho,
        last,
        shared,
        last_shared,
    )
    for i in range(streams):
        off, weight = (rho[i], 1.0) if known[i] else (0.0, np.sqrt(1 - rho[i] ** 2))
        regressors = weight * np.array([1 - off, *(shared[i] - off * last_shared[i])])
        np.testing.assert_allclose(x[i], regressors, rtol=1e-14)
        assert y[i] == pytest.approx(weight * (value[i] - off * last[i]))
        gram = squares[i] + np.diag([1e-12, *(scale[i] / spread[i]) ** 2])
        covariance = scale[i] ** 2 * np.linalg.inv(gram)
        assert error[i] == pytest.approx(1 + regressors @ covariance @ regressors / scale[i] ** 2)
        assert innovation[i] == pytest.approx(y[i] - regressors @ expected[i] if known[i] else 0.0)


def test_a_small_effect_of_the_first_days_does_not_make_responses_differ() -> None:
    rng, streams = np.random.default_rng(7), 64
    state, group = change_evidence.ChangeEvidence.start(streams), np.zeros(streams, np.int64)
    for effect in (0.0, 0.002, -0.06, -0.1):
        state.update(100 + rng.normal(size=streams), group, np.full((streams, 2), [effect / 2, effect / 2]))
    np.testing.assert_allclose(state.spread, change_evidence.RESPONSE_SPREAD, rtol=0.1)


def test_a_shift_that_is_known_teaches_no_correlation_and_another_hardly_any() -> None:
    values = np.random.default_rng(8).normal(size=40) + 8.0 * (np.arange(40) >= 30)
    learned = []
    for is_known in (True, False):
        state = change_evidence.ChangeEvidence.start(1)
        for day, value in enumerate(values):
            if is_known and day == 30:
                state.forget_neighbours(np.array([True]))
            state.update(np.array([value]))
        learned.append(float(state.rho()[0]))
    assert learned[0] < 0.5, "the noise is independent"
    assert learned[0] < learned[1] < 0.6


MACHINES, RACKS, DAYS = 32, 4, 120
RACK = np.repeat(np.arange(RACKS), MACHINES // RACKS)
NODE = np.arange(MACHINES) // 2
NONE = np.zeros(MACHINES, np.bool_)


def deviations(seed: int, wander: float) -> np.ndarray:
    """From what all share: white noise of one standard deviation, and an AR(1) of 0.9 of each rack."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(MACHINES, DAYS)) + wander * autoregressive(rng.normal(size=(RACKS, DAYS)), 0.9)[RACK]
    x -= np.median(x, axis=0)
    return (x - x.mean(axis=1, keepdims=True)).T


def test_medians_of_others_are_those_of_numpy_without_the_stream_itself() -> None:
    rng = np.random.default_rng(1)
    for group in (np.array([0, 0, 0, 0, -1, 1, 1, 1, 2]), np.array([1, 0, 1, 0, 1, 0, -1, -1, 1])):
        for _ in range(50):
            x = np.where(rng.uniform(size=9) < 0.3, np.nan, rng.integers(0, 4, 9).astype(float))
            whole, others = medians(x, group)
            for stream in range(9):
                of_group = np.flatnonzero((group == group[stream]) & (group >= 0))
                rest = x[[each for each in of_group if each != stream]]
                rest = rest[np.isfinite(rest)]
                expected = np.median(rest) if len(rest) >= 2 else np.nan
                np.testing.assert_equal(others[stream], expected)
            for number in range(int(group.max()) + 1):
                inside = x[(group == number) & np.isfinite(x)]
                np.testing.assert_equal(whole[number], np.median(inside) if len(inside) >= 3 else np.nan)


def test_a_share_is_that_of_the_racks_wander_and_exactly_none_without_one() -> None:
    # others' medians of 7 have a variance of about pi / 14, the wander less what 120 days and the fleet take of it
    assert 0.6 < share_of(deviations(2, 1.0), RACK) < 0.9
    assert [share_of(deviations(seed, 0.0), RACK) for seed in range(20)] == [0.0] * 20


@pytest.mark.parametrize("seed", range(4))
def test_racks_are_found_and_none_where_there_is_none(seed: int) -> None:
    group, share = found_groups(deviations(seed, 1.0), NODE, NONE)
    together = (group[:, None] == group) & (group[:, None] >= 0)
    same = RACK[:, None] == RACK
    assert share > 0.4
    assert together[same].mean() > 0.8
    assert together[~same].mean() < 0.1
    group, share = found_groups(deviations(seed, 0.0), NODE, NONE)
    assert share == 0.0
    assert (group == -1).all()


def test_a_machine_that_broke_is_not_taken_off_itself_nor_off_its_neighbours() -> None:
    x = np.zeros(8)
    x[3] = 100.0
    whole, others = medians(x, np.array([0, 0, 0, 0, 1, 1, 1, 1]))
    assert others.tolist() == [0.0] * 8
    assert whole.tolist() == [0.0, 0.0]


def test_a_wander_that_neighbours_do_not_show_is_seen_and_a_correlation_that_they_show_is_none() -> None:
    rng = np.random.default_rng(5)
    own = autoregressive(rng.normal(size=(64, 120)), 0.9).T
    white = rng.normal(size=(120, 64))
    assert 0.2 < hidden_wander(white + own, np.full(64, 0.15)) < 0.8  # half of the variance
    assert hidden_wander(white, np.full(64, 0.1)) == 0.0
    assert hidden_wander(autoregressive(rng.normal(size=(64, 120)), 0.6).T, np.full(64, 0.62)) == 0.0
