"""Links by the distance of their ends, on made-up messages: what is said to differ, and how wide a link is."""

import numpy as np
import pandas
import pytest
from scipy import stats

from lepaute.measure.fit.messages.distances import BETWEEN, distance_effects, flow_curve, longer_way, uplink_Bps
from lepaute.measure.fit.messages.segment import FittedSegment

LATENCY_S, RATE_BPS, START_SD = 2e-6, 10e9, 0.02
SEGMENTS = (FittedSegment(0, "rendezvous", LATENCY_S, RATE_BPS, (0.0, 0.0), (0.0, 0.0), (0.0, 0.0), 0.0),)


def messages(rng: np.random.Generator, extra_s: float = 0.0, starts: int = 5, each: int = 40) -> pandas.DataFrame:
    """Ping-pongs of `starts` starts of either class; those across take `extra_s` longer one way."""
    frames = []
    for distance, more_s in (("same-switch", 0.0), ("across", extra_s)):
        for block in range(starts):
            size = np.floor(10 ** rng.uniform(0, 7.5, each))
            way_s = (LATENCY_S + more_s + size / RATE_BPS) * np.exp(START_SD * rng.normal())
            frame = pandas.DataFrame({"size_bytes": size, "duration_s": 2 * way_s * (1 + 0.02 * rng.normal(size=each))})
            frames.append(frame.assign(block=block, distance=distance))
    columns = {"operation": "pingpong", "clock_cost_s": 0.0, "attempt": 0, "host": "a", "peer": "b"}
    return pandas.concat(frames, ignore_index=True).assign(**columns)


@pytest.mark.slow
@pytest.mark.long
def test_alike_classes_are_said_to_differ_as_seldom_as_promised_and_a_longer_way_is_covered() -> None:
    # 5 % for small and large messages together; the interval of either alone holds 97.5 %.
    rng = np.random.default_rng(20261122)
    repeats = 150
    extra_s = 0.5e-6
    alarms, covered, seen = 0, 0, 0
    for _ in range(repeats):
        (alike,) = distance_effects([messages(rng)], SEGMENTS, BETWEEN)
        alarms += alike.matters
        (longer,) = distance_effects([messages(rng, extra_s)], SEGMENTS, BETWEEN)
        covered += longer.latency_s.low <= extra_s <= longer.latency_s.high
        seen += longer_way([longer]) is not None
    assert alarms <= stats.binom.ppf(1 - 1e-5, repeats, 0.05)
    assert covered >= stats.binom.ppf(1e-5, repeats, 0.95)
    assert seen == repeats  # a quarter of the latency, ten times the error


def flows(rng: np.random.Generator, link_Bps: dict[str, float], lone_Bps: float = 4e9) -> pandas.DataFrame:
    """Exchanges of 1 to 8 flows on two nodes; by distance, the flows share the link."""
    rows = []
    for distance, width in link_Bps.items():
        for block in range(5):
            for count in (1, 2, 4, 8):
                for number, size in enumerate(rng.permutation([1 << 20, 4 << 20, 16 << 20] * 3)):
                    seconds = 3e-5 + size / min(lone_Bps, width / count)
                    for host, peer in (("a", "b"), ("b", "a")):
                        for rank in range(count):
                            late_s = 5e-6 * rng.random()
                            took_s = (seconds - late_s) * (1 + 0.02 * abs(rng.normal()))
                            rows.append(
                                {
                                    "host": host, "peer": peer, "block": block, "ranks": 2 * count, "rank": rank,
                                    "design_row": number, "size_bytes": int(size), "start_s": 100.0 * number + late_s,
                                    "duration_s": took_s, "distance": distance,
                                }
                            )  # fmt: skip
    columns = {"call": "exchange", "link": "remote", "attempt": 0, "clock_cost_s": 0.0}
    return pandas.DataFrame(rows).assign(**columns)


@pytest.mark.slow
def test_the_width_of_a_link_comes_back_from_several_flows_and_one_flow_keeps_its_own() -> None:
    rng = np.random.default_rng(7)
    curve = flow_curve([flows(rng, {"same-switch": 12e9})])
    reached = [min(4e9 * count, 12e9) for count in (1, 2, 4, 8)]
    # The slowest of the flows of either node ends the exchange: up to 3 % later than the mean of noise says.
    assert list(curve.reached_Bps.values()) == [pytest.approx(rate, rel=0.06) for rate in reached]
    assert curve.best[1] == pytest.approx(12e9, rel=0.06)


@pytest.mark.slow
def test_a_narrower_way_between_switches_is_seen_and_an_equal_one_is_not() -> None:
    rng = np.random.default_rng(8)
    assert uplink_Bps([flows(rng, {"same-switch": 12e9, "across": 12e9})]) is None
    assert uplink_Bps([flows(rng, {"same-switch": 12e9, "across": 9e9})]) == pytest.approx(9e9, rel=0.06)
