"""What a first run under load says of code that waits for memory, and how slow that is on a full node."""

import math

import numpy as np
import pytest
from oracles.emulated import tiny

from lepaute.simulate.smpi.emulated_run import (
    MIN_INTERVALS,
    OwnTimes,
    Place,
    Slowdowns,
    memory_shares,
    slowdown_of,
    slowdowns_of,
)


def place(alone_s: float, slowdown: float, count: int = 20) -> Place:
    logs = count * math.log(alone_s), count * math.log(alone_s * slowdown)
    return Place(2 * count, count * alone_s * (1 + slowdown), (count, logs[0]), (count, logs[1]))


def times(places: dict[str, Place], contention: float = 2.0) -> OwnTimes:
    return OwnTimes(1.0, 1.0, 1e10, 1e10 / contention, places)


@pytest.mark.parametrize(
    ("share", "ranks", "ratio", "expected"),
    [
        (0.0, 48, 0.1, 1.0),  # nothing waits for memory
        (1.0, 48, 0.1, 4.8),  # all do, all the time: 48 x B1 / Bn
        (1.0, 4, 0.1, 1.0),  # four cores do not fill the memory
        (0.7, 1, 0.5, 1.0),  # nobody to share it with
    ],
)
def test_the_ends_are_exact(share: float, ranks: int, ratio: float, expected: float) -> None:
    assert slowdown_of(share, ranks, ratio) == pytest.approx(expected, rel=1e-9)


def test_two_ranks_that_wait_for_memory_half_of_the_time() -> None:
    """With q the chance that the other waits as well, memory takes 1 + q times as long on two ranks of ratio 1; then
    q = (1 + q) / (2 + q), so that q is 0.618..., and the whole 0.5 + 0.5 (1 + q)."""
    q = (math.sqrt(5.0) - 1.0) / 2.0
    assert slowdown_of(0.5, 2, 1.0) == pytest.approx(0.5 + 0.5 * (1.0 + q), rel=1e-9)


def test_ranks_never_take_more_bandwidth_than_there_is_by_more_than_chance() -> None:
    """A node at its limit: what all ranks move in the time that they take is the bandwidth of all cores."""
    share, ranks, ratio = 0.5, 64, 0.1
    used = ranks * share / slowdown_of(share, ranks, ratio)  # in units of the bandwidth of one core
    assert used <= 1.0 / ratio * 1.02


def test_the_slowdown_under_load_tells_the_share_of_each_place() -> None:
    found = memory_shares(times({"a": place(1e-3, 1.0), "b": place(1e-3, 1.5), "c": place(1e-3, 2.4)}), 2.0)
    assert found == pytest.approx({"a": 0.0, "b": 0.5, "c": 1.0})


def test_nothing_is_told_by_cores_that_do_not_slow_each_other_or_by_too_few_intervals() -> None:
    few = {"a": place(1e-3, 1.5, MIN_INTERVALS - 1)}
    assert slowdowns_of(times(few), 2, 2, tiny()) == Slowdowns()
    assert slowdowns_of(times({"a": place(1e-3, 1.5)}, contention=1.05), 2, 2, tiny()) == Slowdowns()
    assert slowdowns_of(OwnTimes(), 2, 2, tiny()) == Slowdowns()
    assert slowdowns_of(times(few), 2, 2, tiny(), given_share=1.0) == Slowdowns(2.0, {}, 1.0)


def test_a_platform_with_the_bandwidth_of_its_cores_decides_and_else_this_machine() -> None:
    seen = times({"a": place(1e-3, 2.0)})
    here = slowdowns_of(seen, 2, 48, tiny())
    assert here.by_place["a"] == pytest.approx(2.0)  # as with two busy cores here
    known = tiny(cores="cores: 48, memory_bandwidth_Bps: 1e11, core_memory_bandwidth_Bps: 2e10")
    # 48 cores of 20 GB/s on 100 GB/s, and one core of it is twice as fast as one here.
    assert slowdowns_of(seen, 2, 48, known).by_place["a"] == pytest.approx(0.5 * 48 * 2e10 / 1e11)


def test_the_share_is_found_within_a_tenth_from_noisy_intervals() -> None:
    """A place of 40 + 40 intervals whose durations vary by 5 %, with a stream that becomes 1.8 times slower."""
    rng, errors = np.random.default_rng(16), []
    for _ in range(400):
        share = rng.uniform(0.1, 0.9)
        alone = rng.normal(0.0, 0.05, 40)
        loaded = rng.normal(math.log(1.0 + 0.8 * share), 0.05, 40)
        noisy = Place(80, 1.0, (40, float(alone.sum())), (40, float(loaded.sum())))
        errors.append(memory_shares(times({"a": noisy}), 1.8)["a"] - share)
    # sd of the difference of means: 0.05 sqrt(2 / 40) = 0.0112; of the share at most 0.0112 x 1.72 / 0.8 = 0.024.
    assert np.mean(np.abs(errors) < 0.1) > 0.99
    assert abs(np.mean(errors)) < 0.005
