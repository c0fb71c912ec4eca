"""What is fitted to messages: what starts have in common, modes of noise, distances, receivers that compute."""

import numpy as np
import pandas
import pytest
from scipy import stats

from lepaute.measure.fit.messages import distances
from lepaute.measure.fit.messages.links import with_busy_receivers
from lepaute.measure.fit.messages.network import FittedNetwork, ProtocolLimits, one_way_s
from lepaute.measure.fit.messages.segment import FittedSegment, centred, lognormal_modes
from lepaute.measure.fit.numeric import Mode

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
    assert distances.start_errors([ping_pongs(np.random.default_rng(1), np.zeros(1), 0.1)], SEGMENTS) == (0.0, 0.0)
    assert distances.start_errors([], SEGMENTS) == (0.0, 0.0)


@pytest.mark.slow
def test_starts_that_do_not_differ_have_next_to_no_effect_of_their_own() -> None:
    rng = np.random.default_rng(2)
    found = [distances.start_errors([ping_pongs(rng, np.zeros(5), 0.3)], SEGMENTS)[0] for _ in range(200)]
    # The mean of 40 messages varies by 0.3 / sqrt(40) = 4.7 %: what is found must not be that.
    assert np.median(found) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [2, 5])
def test_a_further_start_is_held_as_often_as_promised(blocks: int) -> None:
    rng, n, held = np.random.default_rng(3), 600, 0
    for _ in range(n):
        *seen, further = 0.1 * rng.normal(size=blocks + 1)
        centred = np.array(seen) - np.mean(seen)  # the segments are fitted to these starts
        sd, _ = distances.start_errors([ping_pongs(rng, centred, 0.05)], SEGMENTS)
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
        sds = np.array(distances.start_errors([eager_and_large(rng, *(seen - centre[:, None]))], HALF))
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
        distances.start_errors([eager_and_large(rng, SD * rng.normal(size=STARTS), np.zeros(STARTS))], HALF)
        for _ in range(60)
    ]
    transfers, calls = np.median(found, axis=0)
    # Student's quantile for five starts, and the error of their mean, widen by 2.776 / 1.96 * sqrt(1.2) = 1.55
    assert transfers == pytest.approx(1.55 * SD, rel=0.25)  # the median of 60, each known to a third
    assert calls < 0.02


POINTS = 1000
SETS = 60
#: Modes well apart, four standard deviations of the wider one or more; factors on a duration.
TRUTHS = (
    (Mode(1.0, 0.0, 0.1),),
    (Mode(0.7, 0.0, 0.05), Mode(0.3, np.log(1.5), 0.05)),
    (Mode(0.6, 0.0, 0.05), Mode(0.3, np.log(1.6), 0.08), Mode(0.1, np.log(3.0), 0.1)),
)


def drawn(modes: tuple[Mode, ...], count: int, rng: np.random.Generator) -> np.ndarray:
    which = rng.choice(len(modes), count, p=[mode.weight for mode in modes])
    return np.array([modes[i].mean for i in which]) + np.array([modes[i].sd for i in which]) * rng.normal(size=count)


@pytest.mark.slow
@pytest.mark.long
def test_modes_that_stand_apart_are_found_in_number_place_and_share():
    rng = np.random.default_rng(20260611)
    right = np.zeros(len(TRUTHS))
    for number, truth in enumerate(TRUTHS):
        for _ in range(SETS // len(TRUTHS)):
            found = lognormal_modes(drawn(truth, POINTS, rng))
            if len(found) != len(truth):
                continue
            right[number] += 1
            for seen, true in zip(found, centred(truth), strict=True):
                own = true.weight * POINTS
                # Five standard errors of a share, a mean and a standard deviation, and what little modes overlap.
                assert abs(seen.weight - true.weight) < 5 * np.sqrt(true.weight * (1 - true.weight) / POINTS) + 0.005
                assert abs(seen.mean - true.mean) < 0.03 + 5 * true.sd / np.sqrt(own)
                assert abs(seen.sd - true.sd) < 5 * true.sd / np.sqrt(2 * own) + 0.01
    # A number of modes too many is found in 1 data set of 50 at most: of 20, fewer than 17 right are a matter of 1e-5.
    least = stats.binom.ppf(1e-5, SETS // len(TRUTHS), 0.98)
    assert (right >= least).all(), right


def test_noise_without_modes_of_its_own_still_has_its_mean_and_spread():
    """The tail of a half-normal is no mixture of normals, and takes two or three of them; what is drawn from them has
    the mean and, nearly, the quantiles of what was measured."""
    rng = np.random.default_rng(7)
    factor = 1.0 + 0.2 * np.abs(rng.normal(size=4000))
    modes = lognormal_modes(np.log(factor))
    again = np.exp(drawn(modes, 100_000, rng))
    assert abs(np.mean(again) - 1.0) < 5 * np.std(again) / np.sqrt(100_000)
    expected = np.quantile(factor / np.mean(factor), [0.05, 0.5, 0.95, 0.99])
    assert np.allclose(np.quantile(again, [0.05, 0.5, 0.95, 0.99]), expected, rtol=0.02)


LIMIT = 4096
NOTHING = (0.0, 0.0)
IDLE = FittedNetwork(
    (
        FittedSegment(0, "eager", 1e-6, 1e10, (2e-7, 5e-11), (2e-7, 5e-11), (3e-7, 1e-10), 0.0),
        FittedSegment(LIMIT, "rendezvous", 6e-6, 8e9, NOTHING, (1e-7, 0.0), NOTHING, 0.0),
    ),
    None, False, 8e9, 1.0, 0.0, 0.0, 0.0, limits=ProtocolLimits.of_eager(LIMIT),
)  # fmt: skip
SIZES = np.array([3e4, 1e6, 2e7])
#: Messages that a ring of a full calibration takes under each condition: 12 sizes in 5 blocks, there and back.
MESSAGES = 120


def made_up_ring(slower: float, rng: np.random.Generator) -> pandas.DataFrame:
    """Receives that take `slower` times as long as idle ones on average, with log-normal noise of 20 %."""
    size = np.floor(10 ** rng.uniform(0, np.log10(64 << 20), MESSAGES))
    takes_s = np.where(size <= LIMIT, 3e-7 + 1e-10 * size, 6e-6 + size / 8e9)
    noise = np.exp(rng.normal(-0.02, 0.2, MESSAGES))
    return pandas.DataFrame({"size_bytes": size, "duration_s": slower * takes_s * noise}).assign(
        operation="pingpong", role="second", call="recv", found=0, condition="iprobe+dgemm", clock_cost_s=0.0
    )


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("slower", [1.0, 20.0])
def test_a_made_up_difference_is_recovered(slower):
    """40 rings. The log of a fitted time scatters by 0.2 / sqrt(some 30 messages) and, at the ends, twice that."""
    rng = np.random.default_rng(20261122)
    logs = []
    for _ in range(40):
        fitted = with_busy_receivers(IDLE, [made_up_ring(slower, rng)])
        assert fitted.busy is not None
        logs.append(np.log(one_way_s(fitted.busy, SIZES) / (slower * IDLE.one_way_s(SIZES))))
    errors = np.array(logs)
    # The mean of 40 is known to 1.3 %. At the lower end a segment is up to 3 % too fast: weights are local medians.
    assert np.abs(errors.mean(axis=0)).max() < 0.05
    # Three standard deviations of 0.08 hold 99.7 %: of 120 errors two are beyond, at most.
    beyond = int(np.sum(np.abs(errors) > 0.24))
    assert beyond <= stats.binom.ppf(1 - 1e-6, errors.size, 0.003)


LATENCY_S, RATE_BPS, START_SD = 2e-6, 10e9, 0.02
ONE_LINE = (FittedSegment(0, "rendezvous", LATENCY_S, RATE_BPS, (0.0, 0.0), (0.0, 0.0), (0.0, 0.0), 0.0),)


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
        (alike,) = distances.distance_effects([messages(rng)], ONE_LINE, distances.BETWEEN)
        alarms += alike.matters
        (longer,) = distances.distance_effects([messages(rng, extra_s)], ONE_LINE, distances.BETWEEN)
        covered += longer.latency_s.low <= extra_s <= longer.latency_s.high
        seen += distances.longer_way([longer]) is not None
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
    curve = distances.flow_curve([flows(rng, {"same-switch": 12e9})])
    reached = [min(4e9 * count, 12e9) for count in (1, 2, 4, 8)]
    # The slowest of the flows of either node ends the exchange: up to 3 % later than the mean of noise says.
    assert list(curve.reached_Bps.values()) == [pytest.approx(rate, rel=0.06) for rate in reached]
    assert curve.best[1] == pytest.approx(12e9, rel=0.06)


@pytest.mark.slow
def test_a_narrower_way_between_switches_is_seen_and_an_equal_one_is_not() -> None:
    rng = np.random.default_rng(8)
    assert distances.uplink_Bps([flows(rng, {"same-switch": 12e9, "across": 12e9})]) is None
    assert distances.uplink_Bps([flows(rng, {"same-switch": 12e9, "across": 9e9})]) == pytest.approx(9e9, rel=0.06)
