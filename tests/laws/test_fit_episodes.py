"""The component of noise that successive calls share."""

import numpy as np

from lepaute.fit.variability.episodes import EPISODE_S, relative_sd_of


def test_the_deviation_of_an_episode_is_found_from_steps_longer_and_shorter_than_one() -> None:
    # A step of T seconds is the mean of T / EPISODE_S episodes where it is longer than one. 2000 steps know a standard
    # deviation to 1 / sqrt(4000) = 1.6 %; the bound is five times that.
    rng = np.random.default_rng(20261121)
    duration_s = rng.uniform(0.02, 1.0, 2000)
    share = np.minimum(1.0, EPISODE_S / duration_s)
    ratio = 1.0 + 0.03 * np.sqrt(share) * rng.normal(size=2000)
    assert abs(relative_sd_of(ratio, share) / 0.03 - 1.0) < 0.08


def test_steps_that_all_take_what_their_model_says_have_no_episodes() -> None:
    assert relative_sd_of(np.ones(10), np.ones(10)) == 0.0


def test_the_scatter_of_single_calls_is_no_episode() -> None:
    rng = np.random.default_rng(20261122)
    share, calls = np.full(2000, 0.5), np.full(2000, 0.02**2)
    noise = 0.02 * rng.normal(size=2000)  # of the calls: a simulation draws it again
    assert relative_sd_of(1.0 + noise, share) > 0.02
    assert relative_sd_of(1.0 + noise, share, calls) < 0.008  # chance leaves (2 / 2000)^(1/4) = 18 % of 0.028
    ratio = 1.0 + noise + 0.03 * np.sqrt(share) * rng.normal(size=2000)
    assert abs(relative_sd_of(ratio, share, calls) / 0.03 - 1.0) < 0.12  # 5 / sqrt(4000), times total over own variance
