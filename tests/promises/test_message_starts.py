"""What starts of mpirun have in common: the standard deviation that is fitted holds a further start in 95 %."""

import numpy as np
import pandas
import pytest
from scipy import stats

from lepaute.fit.messages.distances import start_relative_sd
from lepaute.fit.messages.segment import FittedSegment

FREE = (0.0, 0.0)
SEGMENTS = (FittedSegment(0, "rendezvous", 1e-6, 1e9, FREE, FREE, FREE, 0.0),)


def ping_pongs(rng: np.random.Generator, effects: np.ndarray, noise: float, count: int = 40) -> pandas.DataFrame:
    """One start an effect, on the law of SEGMENTS."""
    block = np.repeat(np.arange(len(effects)), count)
    size = np.floor(10 ** rng.uniform(0, 7, len(block)))
    duration_s = 2 * (1e-6 + size * 1e-9) * np.exp(effects[block] + noise * rng.normal(size=len(block)))
    table = {"operation": "pingpong", "size_bytes": size.astype(int), "duration_s": duration_s, "clock_cost_s": 0.0}
    return pandas.DataFrame({**table, "block": block})


def test_one_start_says_nothing_of_others() -> None:
    assert start_relative_sd([ping_pongs(np.random.default_rng(1), np.zeros(1), 0.1)], SEGMENTS) == 0.0
    assert start_relative_sd([], SEGMENTS) == 0.0


@pytest.mark.slow
def test_starts_that_do_not_differ_have_next_to_no_effect_of_their_own() -> None:
    rng = np.random.default_rng(2)
    found = [start_relative_sd([ping_pongs(rng, np.zeros(5), 0.3)], SEGMENTS) for _ in range(200)]
    # The mean of 40 messages varies by 0.3 / sqrt(40) = 4.7 %: what is found must not be that.
    assert np.median(found) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [2, 5])
def test_a_further_start_is_held_as_often_as_promised(blocks: int) -> None:
    rng, n, held = np.random.default_rng(3), 600, 0
    for _ in range(n):
        *seen, further = 0.1 * rng.normal(size=blocks + 1)
        centred = np.array(seen) - np.mean(seen)  # the segments are fitted to these starts
        sd = start_relative_sd([ping_pongs(rng, centred, 0.05)], SEGMENTS)
        held += abs(further - np.mean(seen)) <= 1.96 * sd
    low, high = stats.binom.ppf([1e-6, 1 - 1e-6], n, 0.95)
    assert low <= held <= high
