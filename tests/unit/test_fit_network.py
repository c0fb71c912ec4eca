import numpy as np
import pytest

from lepaute.measure.fit.messages.network import ProtocolLimits, fit_network, fit_segments
from lepaute.measure.fit.messages.segment import series

LIMIT = 4096
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


def test_the_eager_limit_is_found(network):
    segments = network.segments
    assert next(part.above_bytes for part in segments if part.protocol == "rendezvous") == LIMIT
    assert (segments[0].protocol, segments[0].above_bytes) == ("eager", 0)


def test_one_way_times_are_recovered_within_the_mean_of_the_noise(network):
    size = np.array([1.0, 100.0, 2080.0, 4000.0, 5000.0, 1e5, 1e6, 3e7])
    # Half-normal noise of 0.1 adds 8 % to the mean.
    assert network.one_way_s(size) / truth(size) == pytest.approx(np.full(len(size), 1.08), abs=0.05)


def test_overheads_and_bandwidth_are_recovered():
    network = fit_network(operations(noise=0.01))
    first, last = network.segments[0], network.segments[-1]
    assert first.isend[0] == pytest.approx(EAGER_SEND[0], rel=0.1)
    assert first.receive[0] == pytest.approx(EAGER_RECEIVE[0], rel=0.1)
    assert first.latency_s == pytest.approx(LATENCY_S, rel=0.3)
    assert last.bandwidth_Bps == pytest.approx(BANDWIDTH, rel=0.05)
    assert last.send == last.receive == (0.0, 0.0)
    assert last.isend[0] == pytest.approx(1.5e-7, rel=0.1)


@pytest.mark.slow
def test_no_segment_has_a_negative_cost():
    for seed in range(5):
        for part in fit_network(operations(seed=seed, noise=0.5)).segments:
            assert min(part.latency_s, *part.send, *part.isend, *part.receive, part.noise_relative_sd) >= 0
            assert part.bandwidth_Bps > 0


def test_exchanges_as_long_as_one_message_mean_no_sharing(network):
    assert not network.shared


def test_two_opposite_flows_take_the_measured_exchange_time():
    network = fit_network(operations(1.6))
    assert network.shared
    assert network.exchange_ratio == pytest.approx(1.6, rel=0.05)
    # Both flows through one link: 2 * size / bandwidth is the exchange's time, 8 % longer for the noise.
    assert 2e7 * 2 / network.shared_bandwidth_Bps == pytest.approx(1.6 * 1.08 * 2e7 / BANDWIDTH, rel=0.1)


def test_a_library_that_copies_all_sizes_has_no_rendezvous():
    everything = operations()
    sizes = everything["isend"].size_bytes
    everything["isend"] = series(sizes, 4e-7 + 1.2e-10 * sizes)
    assert {part.protocol for part in fit_network(everything).segments} == {"eager"}


def test_calls_that_move_nothing_cost_their_mean_and_never_less_than_nothing(network):
    assert network.iprobe_s == pytest.approx(2e-7)
    assert 0 <= network.wtime_s <= 1e-9
    assert network.test_s == 0.0  # not measured


def test_a_slow_mode_of_a_third_of_the_messages_is_part_of_the_mean_and_a_mode_of_the_noise():
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


def test_messages_that_waited_for_the_processor_a_thousand_times_too_long_do_not_make_the_mean():
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
