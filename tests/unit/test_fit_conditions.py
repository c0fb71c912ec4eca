"""Messages under load, of several protocols and nodes: which measurements stand for them, and what is fitted."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas
import pytest

from lepaute.errors import FitError
from lepaute.measure.fit.messages.conditions import condition_effects
from lepaute.measure.fit.messages.links import FittedLinks, MessageTables, fitted_links, network_model, over_link
from lepaute.measure.fit.messages.network import ProtocolLimits, fit_network, fit_segments
from lepaute.measure.fit.messages.network import one_way_s as one_way_of
from lepaute.measure.fit.messages.segment import series

LIMIT = 4096
#: Of the time of a message on idle nodes.
SLOWER = {"idle": 1.0, "dgemm": 1.5, "iprobe": 1.2, "iprobe+dgemm": 2.0}
CHUNK_S = 1e-3
CLOCK_S = 1e-8


def one_way_s(size: np.ndarray) -> np.ndarray:
    return np.where(size <= LIMIT, 1e-6 + size / 5e9, 6e-6 + size / 8e9)


def noisy(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return values * (1 + 0.03 * np.abs(rng.normal(size=len(values)))) + CLOCK_S


def p2p(seed: int = 1) -> pandas.DataFrame:
    rng = np.random.default_rng(seed)
    parts = []
    for name, cost in (
        ("pingpong", lambda size: 2 * one_way_s(size)),
        ("isend", lambda size: np.where(size <= LIMIT, 2e-7 + size / 2e10, 1e-7)),
        ("recv", lambda size: np.where(size <= LIMIT, 3e-7 + size / 2e10, one_way_s(size))),
    ):
        size = np.floor(10 ** rng.uniform(0, 7, 400))
        parts.append(pandas.DataFrame({"operation": name, "size_bytes": size, "duration_s": noisy(cost(size), rng)}))
    table = pandas.concat(parts, ignore_index=True)
    return table.assign(clock_cost_s=CLOCK_S, link="local", disturbed=False, block=0)


def ring(conditions=tuple(SLOWER), seed: int = 2) -> pandas.DataFrame:
    """Exchanges whose polls hold a piece of dgemm, and the receives after them, which hold none."""
    rng = np.random.default_rng(seed)
    rows = []
    for condition in conditions:
        size = np.floor(10 ** rng.uniform(0, 7, 300))
        chunks = CHUNK_S * rng.uniform(0, 1, 300) if condition == "iprobe+dgemm" else 0.0
        exchange = noisy(2 * SLOWER[condition] * one_way_s(size) + chunks, rng)
        receive = noisy(SLOWER[condition] * np.where(size <= LIMIT, 3e-7 + size / 2e10, one_way_s(size)), rng)
        for call, duration in (("exchange", exchange), ("recv", receive)):
            rows.append(
                pandas.DataFrame({"condition": condition, "size_bytes": size, "call": call, "duration_s": duration})
            )
    table = pandas.concat(rows, ignore_index=True)
    return table.assign(
        operation="pingpong", role="first", found=0, clock_cost_s=CLOCK_S, link="local", disturbed=False
    )


def tables(conditions=tuple(SLOWER)) -> MessageTables:
    return MessageTables([p2p()], [], [ring(conditions)] if conditions else [])


@cache
def links(conditions=tuple(SLOWER), condition: str = "") -> FittedLinks:
    return fitted_links(tables(conditions), False, *([condition] if condition else []))


@pytest.mark.slow
@pytest.mark.parametrize("condition", SLOWER)
def test_the_network_under_a_condition_takes_the_time_that_was_measured_under_it(condition):
    network = links(condition=condition).inside
    size = np.array([20_000.0, 1e5, 1e6, 8e6])
    # Half-normal noise of 0.03 adds 2.4 % to the mean.
    assert network.one_way_s(size) / (SLOWER[condition] * one_way_s(size)) == pytest.approx(np.full(4, 1.024), abs=0.02)


def test_pieces_of_dgemm_between_two_polls_are_no_time_of_a_message():
    assert (links(condition="iprobe+dgemm").inside.one_way_s(np.array([10.0, 1000.0])) < 0.1 * CHUNK_S).all()


@pytest.mark.slow
def test_without_a_condition_the_ring_adds_busy_receivers_and_changes_nothing_else():
    with_ring, without = links().inside, links(()).inside
    assert without.busy is None
    assert replace(with_ring, busy=None, busy_sizes=None) == without


def test_a_busy_receiver_takes_a_message_as_long_as_mpi_recv_after_the_probe_an_eager_one_by_its_copy():
    network = links(("idle", "iprobe+dgemm")).inside
    assert network.busy is not None
    size = np.array([20_000.0, 1e5, 1e6, 8e6])
    expected = SLOWER["iprobe+dgemm"] * one_way_s(size) * 1.024  # half-normal noise of 0.03; no piece of dgemm
    assert one_way_of(network.busy, size) / expected == pytest.approx(np.ones(4), abs=0.02)
    """It has come while the receiver computed: only MPI_Recv, which copies it, is slower (twice as slow here)."""
    network = links(("iprobe+dgemm",)).inside
    assert network.busy is not None
    size = np.array([10.0, 1000.0, 4000.0])
    more_s = one_way_of(network.busy, size) - network.one_way_s(size)
    assert more_s == pytest.approx(3e-7 + size / 2e10, rel=0.1)


def test_the_platform_holds_busy_receivers_inside_nodes_and_between_them():
    fitted = links(("iprobe+dgemm",)).inside
    alone = network_model(fitted)
    assert alone.loopback.busy is None  # as between the nodes, which were not measured
    assert alone.loopback_busy == alone.remote.busy
    apart = network_model(fitted, replace(fitted, busy=fitted.busy[:1], busy_sizes=(1, 9)), 1e9)
    assert len(apart.loopback.busy.segments) == len(fitted.busy)
    assert apart.remote.busy.range_bytes == (1, 9)
    assert apart.remote.busy.segments[0].bandwidth_Bps == over_link(fitted.busy[:1], 1e9)[0].bandwidth_Bps


@pytest.mark.slow
def test_a_condition_that_was_not_measured_is_named_with_those_that_were():
    with pytest.raises(FitError, match=r"not measured under iprobe, only under idle, dgemm"):
        fitted_links(tables(("idle", "dgemm")), False, "iprobe")
    with pytest.raises(FitError, match=r"not measured under idle, nor under any other"):
        fitted_links(MessageTables([p2p()]), False, "idle")


def test_conditions_are_compared_with_idle_nodes_within_an_interval():
    effects = links().effects
    assert {effect.condition for effect in effects} == {"dgemm", "iprobe", "iprobe+dgemm"}
    for effect in effects:
        if effect.sizes[0] > 0:  # above the eager limit, by the receives
            assert effect.low < SLOWER[effect.condition] < effect.high
            assert effect.high - effect.low < 0.3
            assert f"times as long under {effect.condition} as idle" in effect.sentence()


def test_ratios_of_equal_messages_hold_one_in_their_interval():
    """In 200 pairs of series without a difference, one interval in twenty misses: 23 or more are a matter of 1e-5."""
    rng = np.random.default_rng(5)
    missed = 0
    for _ in range(200):
        pair = []
        for _ in range(2):
            size = np.floor(10 ** rng.uniform(4, 7, 100))
            pair.append(series(size, one_way_s(size) * np.exp(0.2 * rng.normal(size=100))))
        (effect,) = condition_effects("local", {"idle": pair[0], "dgemm": pair[1]}, 0.0)
        missed += not effect.low <= 1.0 <= effect.high
    assert missed < 23


def test_a_single_size_has_the_interval_of_its_repetitions():
    rng = np.random.default_rng(8)
    pair = [series(np.full(100, 1e6), factor * np.exp(0.1 * rng.normal(size=100))) for factor in (1.0, 2.7)]
    (effect,) = condition_effects("remote", {"idle": pair[0], "dgemm": pair[1]}, 0.0)
    assert effect.groups == 1
    assert 2.4 < effect.low < 2.7 < effect.high < 3.0


@pytest.mark.slow
def test_a_ring_with_too_few_messages_is_told_and_stops_only_who_asks_for_it():
    few = MessageTables([p2p()], [], [pandas.concat([ring(("idle",)).head(6), ring(("dgemm",))])])
    fitted = fitted_links(few, False)
    assert (fitted.inside, fitted.effects) == (links(()).inside, ())
    (note,) = fitted.notes
    assert note.startswith("What messages take under idle (local) is unknown: the ring has 6 messages")
    with pytest.raises(FitError, match="6 messages under idle"):
        fitted_links(few, False, "idle")


EAGER_SEND, EAGER_RECEIVE = (4e-7, 2e-10), (6e-7, 1.5e-10)
LATENCY_S, RENDEZVOUS_LATENCY_S, BANDWIDTH = 3e-7, 5e-6, 7e9


def truth(size: np.ndarray) -> np.ndarray:
    """One-way time."""
    eager = LATENCY_S + EAGER_SEND[0] + EAGER_RECEIVE[0] + (EAGER_SEND[1] + EAGER_RECEIVE[1] + 1 / 2e10) * size
    return np.where(size <= LIMIT, eager, RENDEZVOUS_LATENCY_S + size / BANDWIDTH)


def operations(exchange_ratio: float = 1.0, seed: int = 1, noise: float = 0.1):
    rng = np.random.default_rng(seed)

    def noisy(values: np.ndarray) -> np.ndarray:
        duration = values * (1 + noise * np.abs(rng.normal(size=len(values))))
        return np.where(rng.random(len(values)) < 0.02, duration * 50, duration)  # some are interrupted

    def size(count: int) -> np.ndarray:
        return np.floor(10 ** rng.uniform(0, 7.5, count))

    pingpong, isend, recv, exchange = size(600), size(600), size(600), size(300)
    posting = np.where(isend <= LIMIT, EAGER_SEND[0] + EAGER_SEND[1] * isend, 1.5e-7)
    taking = np.where(recv <= LIMIT, EAGER_RECEIVE[0] + EAGER_RECEIVE[1] * recv, truth(recv))
    return {
        "pingpong": series(pingpong, noisy(2 * truth(pingpong))),
        "isend": series(isend, noisy(posting)),
        "recv": series(recv, noisy(taking)),
        "exchange": series(exchange, noisy(exchange_ratio * truth(exchange))),
        "iprobe": series(np.zeros(100), np.full(100, 2e-7)),
        "wtime": series(np.zeros(100), np.full(100, -1e-9)),
    }


@pytest.fixture(scope="module")
def network():
    return fit_network(operations())


def test_eager_limit_one_way_times_and_costs_of_calls_are_recovered(network):
    segments = network.segments
    assert next(part.above_bytes for part in segments if part.protocol == "rendezvous") == LIMIT
    assert (segments[0].protocol, segments[0].above_bytes) == ("eager", 0)
    size = np.array([1.0, 100.0, 2080.0, 4000.0, 5000.0, 1e5, 1e6, 3e7])
    # Half-normal noise of 0.1 adds 8 % to the mean.
    assert network.one_way_s(size) / truth(size) == pytest.approx(np.full(len(size), 1.08), abs=0.05)
    assert network.iprobe_s == pytest.approx(2e-7)
    assert 0 <= network.wtime_s <= 1e-9
    assert network.test_s == 0.0  # not measured


def test_overheads_bandwidth_and_exchange_times_are_recovered_and_copies_of_all_sizes_have_no_rendezvous():
    network = fit_network(operations(noise=0.01))
    first, last = network.segments[0], network.segments[-1]
    assert first.isend[0] == pytest.approx(EAGER_SEND[0], rel=0.1)
    assert first.receive[0] == pytest.approx(EAGER_RECEIVE[0], rel=0.1)
    assert first.latency_s == pytest.approx(LATENCY_S, rel=0.3)
    assert last.bandwidth_Bps == pytest.approx(BANDWIDTH, rel=0.05)
    assert last.send == last.receive == (0.0, 0.0)
    assert last.isend[0] == pytest.approx(1.5e-7, rel=0.1)
    network = fit_network(operations(1.6))
    assert network.shared
    assert network.exchange_ratio == pytest.approx(1.6, rel=0.05)
    # Both flows through one link: 2 * size / bandwidth is the exchange's time, 8 % longer for the noise.
    assert 2e7 * 2 / network.shared_bandwidth_Bps == pytest.approx(1.6 * 1.08 * 2e7 / BANDWIDTH, rel=0.1)
    everything = operations()
    sizes = everything["isend"].size_bytes
    everything["isend"] = series(sizes, 4e-7 + 1.2e-10 * sizes)
    assert {part.protocol for part in fit_network(everything).segments} == {"eager"}


def test_a_slow_mode_of_a_third_of_the_messages_is_part_of_the_mean_and_those_a_thousand_times_too_long_not():
    rng = np.random.default_rng(4)
    made = operations(noise=0.02)
    size = np.floor(10 ** rng.uniform(0, 7.5, 1000))
    slow = np.where(rng.random(1000) < 1 / 3, 3.0, 1.0)
    made["pingpong"] = series(size, 2 * truth(size) * slow * (1 + 0.02 * np.abs(rng.normal(size=1000))))
    network = fit_network(made)
    at = np.array([100.0, 2000.0, 1e5, 1e7])
    assert network.one_way_s(at) / truth(at) == pytest.approx(np.full(4, 1.016 * 5 / 3), rel=0.1)
    modes = network.segments[-1].modes
    assert [mode.weight for mode in modes] == pytest.approx([2 / 3, 1 / 3], abs=0.08)
    assert modes[1].mean - modes[0].mean == pytest.approx(np.log(3.0), abs=0.05)
    rng = np.random.default_rng(5)
    made = operations(noise=0.02)
    size = np.floor(10 ** rng.uniform(0, 7.5, 60))
    made["pingpong"] = series(size, 2 * truth(size) + np.where(rng.random(60) < 0.3, 4e-3, 0.0))
    network = fit_network(made)
    small = np.array([1.0, 1000.0])
    assert (network.one_way_s(small) < 6 * truth(small)).all()
    for part in network.segments:
        assert all(mode.sd <= 1.0 for mode in part.modes)


def test_calls_that_change_at_a_size_cut_no_segment_without_messages():
    rng = np.random.default_rng(1)

    def drawn(count, low, seconds):
        sizes = np.round(10 ** rng.uniform(low, 5, count))
        return series(sizes, seconds(sizes) * (1 + 0.02 * np.abs(rng.normal(size=count))))

    calls = [drawn(300, 0, lambda x: np.where(x < 1000, 1e-7 + 1e-10 * x, 2e-6 + 1e-9 * x)) for _ in range(2)]
    messages = drawn(10, 3.5, lambda x: 1e-5 + 1e-8 * x)
    for part in fit_segments(messages, *calls, ProtocolLimits.of_eager(float("inf"))):
        assert part.bandwidth_Bps < 1e9
        assert part.latency_s > 0


def test_a_protocol_of_one_size_only_is_fitted_beside_the_others():
    rng = np.random.default_rng(0)
    sizes = np.tile([100.0, 1e6, 2e6], 40)
    operations = {
        name: series(sizes, factor * (1e-6 + sizes / 8e9) * (1 + 0.05 * np.abs(rng.normal(size=len(sizes)))))
        for name, factor in (("pingpong", 2.0), ("isend", 0.3), ("recv", 0.5))
    }
    segments = fit_network(operations, ProtocolLimits.of_eager(1000.0)).segments
    assert [part.protocol for part in segments] == ["eager", "rendezvous"]
    assert segments[1].bandwidth_Bps == pytest.approx(8e9, rel=0.1)
