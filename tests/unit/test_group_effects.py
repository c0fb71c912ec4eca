"""What groups of machines share: medians of others, shares, groups that are found, wanders that are not."""

import numpy as np
import pytest
from support.null_streams import autoregressive

from lepaute.stats.group_effects import found_groups, hidden_wander, medians, share_of

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
