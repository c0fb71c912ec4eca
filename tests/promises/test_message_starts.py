"""What starts of mpirun have in common, in transfers and in calls: the standard deviations that are fitted hold a
further start in 95 %."""

import numpy as np
import pandas
import pytest
from scipy import stats

from lepaute.measure.fit.messages.distances import start_errors
from lepaute.measure.fit.messages.segment import FittedSegment

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
    assert start_errors([ping_pongs(np.random.default_rng(1), np.zeros(1), 0.1)], SEGMENTS) == (0.0, 0.0)
    assert start_errors([], SEGMENTS) == (0.0, 0.0)


@pytest.mark.slow
def test_starts_that_do_not_differ_have_next_to_no_effect_of_their_own() -> None:
    rng = np.random.default_rng(2)
    found = [start_errors([ping_pongs(rng, np.zeros(5), 0.3)], SEGMENTS)[0] for _ in range(200)]
    # The mean of 40 messages varies by 0.3 / sqrt(40) = 4.7 %: what is found must not be that.
    assert np.median(found) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [2, 5])
def test_a_further_start_is_held_as_often_as_promised(blocks: int) -> None:
    rng, n, held = np.random.default_rng(3), 600, 0
    for _ in range(n):
        *seen, further = 0.1 * rng.normal(size=blocks + 1)
        centred = np.array(seen) - np.mean(seen)  # the segments are fitted to these starts
        sd, _ = start_errors([ping_pongs(rng, centred, 0.05)], SEGMENTS)
        held += abs(further - np.mean(seen)) <= 1.96 * sd
    low, high = stats.binom.ppf([1e-6, 1 - 1e-6], n, 0.95)
    assert low <= held <= high


#: Of an eager message up to 64 KiB calls take half the time, of a rendezvous nothing.
HALF = (
    FittedSegment(0, "eager", 1e-6, 1e9, (4e-7, 4e-10), (4e-7, 4e-10), (6e-7, 6e-10), 0.0),
    FittedSegment(65536, "rendezvous", 1e-5, 1e9, FREE, (4e-7, 0.0), FREE, 0.0),
)
STARTS, SD = 5, 0.1


def eager_and_large(rng: np.random.Generator, transfers: np.ndarray, calls: np.ndarray) -> pandas.DataFrame:
    """Ping-pongs, sends and receives on the law of HALF, whose parts starts multiply by exp(effect); noise of 5 %."""
    tables = []
    for operation in ("pingpong", "isend", "recv"):
        block = np.repeat(np.arange(STARTS), 40)
        size = np.floor(10 ** rng.uniform(0, 7, len(block)))
        eager = size <= 65536
        call_s = {"isend": 4e-7 + np.where(eager, 4e-10, 0) * size, "recv": (1e-6 + 1e-9 * size) * 0.6}
        call_s["pingpong"] = 2 * np.where(eager, 1e-6 + 1e-9 * size, 0)
        transfer_s = {"pingpong": 2 * (np.where(eager, 1e-6, 1e-5) + 1e-9 * size), "isend": 0.0}
        transfer_s["recv"] = np.where(eager, 0, 1e-5 + 1e-9 * size)
        duration_s = call_s[operation] * np.exp(calls[block]) + transfer_s[operation] * np.exp(transfers[block])
        duration_s *= np.exp(0.05 * rng.normal(size=len(block)))
        host, peer = ("b", "a") if operation == "recv" else ("a", "b")  # the other rank times receives
        table = {"operation": operation, "size_bytes": size.astype(int), "duration_s": duration_s, "clock_cost_s": 0.0}
        tables.append(pandas.DataFrame({**table, "block": block, "host": host, "peer": peer}))
    return pandas.concat(tables, ignore_index=True)


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [0.0, 1.0])
def test_calls_transfers_and_whole_messages_of_a_further_start_are_held(correlation: float) -> None:
    rng, n, held = np.random.default_rng(4), 300, np.zeros(3, dtype=int)
    for _ in range(n):
        transfers, own = SD * rng.normal(size=(2, STARTS + 1))
        calls = correlation * transfers + np.sqrt(1 - correlation**2) * own
        further, seen = np.array([transfers[-1], calls[-1]]), np.array([transfers[:-1], calls[:-1]])
        centre = np.mean(seen, axis=1)  # the segments are fitted to these starts
        sds = np.array(start_errors([eager_and_large(rng, *(seen - centre[:, None]))], HALF))
        error = further - centre
        held += abs(np.array([*error, np.mean(error)])) <= 1.96 * np.array([*sds, np.mean(sds)])
    low, high = stats.binom.ppf([1e-6, 1 - 1e-6], n, 0.95)  # a correct program misses less than twice in 10^6
    assert low <= held[0] <= high  # transfers
    assert low <= held[1] <= high  # calls
    # One draw for both makes messages of half and half too wide where the effects are independent, and right where they
    # are one.
    assert low <= held[2] <= (n if correlation == 0.0 else high)


@pytest.mark.slow
def test_stable_calls_are_not_charged_with_the_errors_of_transfers_nor_transfers_with_less_than_theirs() -> None:
    rng = np.random.default_rng(5)
    found = [
        start_errors([eager_and_large(rng, SD * rng.normal(size=STARTS), np.zeros(STARTS))], HALF) for _ in range(60)
    ]
    transfers, calls = np.median(found, axis=0)
    # Student's quantile for five starts, and the error of their mean, widen by 2.776 / 1.96 * sqrt(1.2) = 1.55
    assert transfers == pytest.approx(1.55 * SD, rel=0.25)  # the median of 60, each known to a third
    assert calls < 0.02
