"""From messages to a platform: limits of the protocols, noise of several modes, switches."""

import numpy as np
import pandas
import pytest

from lepaute.errors import FitError
from lepaute.measure.fit.messages.distances import SwitchTree
from lepaute.measure.fit.messages.links import FittedLinks, MessageTables, fitted_links, network_model
from lepaute.measure.fit.messages.network import ProtocolLimits, fit_network, limits_by_tests
from lepaute.measure.fit.messages.segment import centred, lognormal_modes, of_one_message, series
from lepaute.measure.fit.numeric import Mode
from lepaute.simulate import Hpl, Layers, Mapping, predict
from lepaute.simulate.machine.mapping import Slot
from lepaute.simulate.platform import load_platform

EAGER, DETACHED = 1024, 65536


def one_way_s(size: np.ndarray) -> np.ndarray:
    return np.where(size <= EAGER, 1e-6 + size / 2e9, np.where(size <= DETACHED, 3e-6 + size / 4e9, 2e-5 + size / 8e9))


def operations(seed: int = 1) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed)
    made = {}
    for name, cost in (
        ("pingpong", lambda size: 2 * one_way_s(size)),
        ("isend", lambda size: np.where(size <= EAGER, 2e-7 + size / 2e10, 4e-7)),
        ("recv", lambda size: np.where(size <= EAGER, 3e-7 + size / 2e10, one_way_s(size))),
    ):
        size = np.floor(10 ** rng.uniform(0, 7, 400))
        made[name] = (size, cost(size) * (1 + 0.02 * np.abs(rng.normal(size=400))))
    return made


def test_messages_between_the_two_limits_are_detached_and_cost_their_posting_and_the_transfer():
    limits = ProtocolLimits(EAGER, DETACHED)
    network = fit_network({name: series(*pair) for name, pair in operations().items()}, limits)
    first = {part.protocol: part for part in reversed(network.segments)}
    assert {name: part.above_bytes for name, part in first.items()} == {
        "eager": 0,
        "detached": EAGER,
        "rendezvous": DETACHED,
    }
    assert (first["detached"].send, first["detached"].receive) == (first["detached"].isend, (0.0, 0.0))
    assert first["rendezvous"].send == first["rendezvous"].receive == (0.0, 0.0)
    size = np.array([2000.0, 10_000.0, 60_000.0])
    assert network.one_way_s(size) / one_way_s(size) == pytest.approx(np.full(3, 1.016), abs=0.015)
    assert [part.protocol for part in network_model(network).remote.segments] == [
        part.protocol for part in network.segments
    ]


def answers(limit: int, test: str, yes: str, no: str) -> list[dict[str, object]]:
    """What rank 0 saw in a search that ends at `limit`, three times each, and rank 1 beside it."""
    rows = []
    for size in (1, 512, limit - 1, limit, limit + 1, 4 * limit, 1_000_000):
        for rank in (0, 0, 0, 1):
            outcome = yes if size <= limit else no
            rows.append({"test": test, "size_bytes": size, "backlog": 0, "outcome": outcome, "rank": rank})
    return rows


def semantics() -> pandas.DataFrame:
    rows = answers(DETACHED, "deadlock", "returned", "blocked") + answers(EAGER, "corruption", "copied", "changed")
    return pandas.DataFrame(rows).assign(patience_ms=100, link="local", disturbed=False)


def test_tests_of_what_sends_promise_give_the_limits_and_messages_sent_before_do_not_count():
    backlog = semantics().assign(backlog=5, outcome="blocked")
    for tables in ([semantics()], [semantics(), backlog]):
        assert limits_by_tests(tables) == ProtocolLimits(EAGER, DETACHED, 1_000_000)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda table: table.drop(columns="outcome"), "semantics.parquet lacks the column outcome"),
        (lambda table: table.assign(outcome="maybe"), "unknown outcome maybe"),
        (lambda table: table.assign(patience_ms="x"), "holds an invalid answer"),
    ],
)
def test_answers_that_no_test_gives_are_refused_and_do_not_count_against_a_size(change, told):
    with pytest.raises(FitError, match=told):
        limits_by_tests([change(semantics())])


@pytest.mark.slow
def test_an_archive_with_tests_has_their_limits_and_one_without_has_those_of_the_durations():
    parts = [
        pandas.DataFrame({"operation": name, "size_bytes": size, "duration_s": duration})
        for name, (size, duration) in operations().items()
    ]
    p2p = pandas.concat(parts, ignore_index=True).assign(clock_cost_s=0.0, link="local")
    tested = fitted_links(MessageTables([p2p], [semantics()]), False).inside.limits
    assert (tested.eager_bytes, tested.detached_bytes, tested.tested_bytes) == (EAGER, DETACHED, 1_000_000)
    read = fitted_links(MessageTables([p2p]), False).inside.limits
    assert read.tested_bytes is None
    assert read.eager_bytes == read.detached_bytes


def two_modes(count: int = 600, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.where(rng.random(count) < 0.8, 0.0, 0.7) + 0.05 * rng.normal(size=count)


def mean_factor(modes: tuple[Mode, ...]) -> float:
    return sum(mode.weight * np.exp(mode.mean + mode.sd**2 / 2) for mode in modes)


def test_the_mean_factor_of_what_is_fitted_is_one():
    for values in (two_modes(), np.random.default_rng(2).exponential(size=300)):
        modes = lognormal_modes(values)
        assert mean_factor(modes) == pytest.approx(1.0, abs=1e-12)
        assert sum(mode.weight for mode in modes) == pytest.approx(1.0, abs=1e-12)
        assert list(modes) == sorted(modes, key=lambda mode: mode.mean)


def test_the_same_values_in_any_order_and_from_any_reference_have_the_same_modes():
    values = two_modes()
    modes = lognormal_modes(values)
    assert lognormal_modes(values) == modes
    assert lognormal_modes(np.random.default_rng(1).permutation(values)) == modes
    for mode, shifted in zip(modes, lognormal_modes(values + np.log(1e-6)), strict=True):  # microseconds
        assert (shifted.weight, shifted.mean, shifted.sd) == pytest.approx(
            (mode.weight, mode.mean, mode.sd), rel=1e-6, abs=1e-6
        )


def test_ticks_of_a_clock_and_a_few_odd_messages_are_no_modes():
    ticks = 300.0 + np.round(2.0 * np.random.default_rng(1).normal(size=1000))  # a sd of 0.7 %, in ticks of 0.3 %
    assert len(lognormal_modes(np.log(ticks))) == 1
    values = np.concatenate([0.1 * np.random.default_rng(1).normal(size=500), [2.0, 2.01, 2.02]])
    assert max(mode.mean for mode in lognormal_modes(values)) < 1.0


def test_one_message_of_a_pair_varies_more_within_a_mode_and_keeps_the_modes():
    pair = centred([Mode(0.5, 0.0, 0.1), Mode(0.5, 1.0, 0.2)])
    one = of_one_message(pair)
    assert [mode.sd for mode in one] == pytest.approx([0.1 * 2**0.5, 0.2 * 2**0.5])
    assert one[1].mean - one[0].mean == pytest.approx(1.0)
    assert mean_factor(one) == pytest.approx(1.0)


LATENCY_S, RATE_BPS = 2e-6, 5e9


def p2p(extra_s: float, *, classes: bool = True) -> pandas.DataFrame:
    """Inside a node; and between nodes, where those across take `extra_s` longer."""
    rng = np.random.default_rng(3)
    frames = []
    for link, distance, more_s in (("local", None, 0.0), ("remote", "same-switch", 0.0), ("remote", "across", extra_s)):
        for block in range(5):
            for operation, share in (("pingpong", 2.0), ("recv", 0.1), ("isend", 0.1)):
                size = np.floor(10 ** rng.uniform(0, 7.3, 60))
                # Eager up to 4 KiB, where the receive takes a tenth of the way; above, all of it. A send ends at once.
                factor = np.where((size > 4096) & (operation == "recv"), 1.0, share)
                factor = np.where((size > 4096) & (operation == "isend"), 0.1 * LATENCY_S / (size / RATE_BPS), factor)
                seconds = factor * (LATENCY_S + more_s + size / RATE_BPS) * (1 + 0.02 * np.abs(rng.normal(size=60)))
                frame = pandas.DataFrame({"operation": operation, "size_bytes": size, "duration_s": seconds})
                ends = {"host": "n1", "peer": "n1" if link == "local" else "n2" if more_s == 0 else "n3"}
                frames.append(frame.assign(link=link, distance=distance, block=block, attempt=0, **ends))
    table = pandas.concat(frames, ignore_index=True).assign(clock_cost_s=0.0)
    return table if classes else table.drop(columns="distance")


def fitted(
    extra_s: float, *, classes: bool = True, switches: tuple[tuple[int, ...], ...] = ((1, 2), (3, 4))
) -> FittedLinks:
    return fitted_links(MessageTables([p2p(extra_s, classes=classes)]), True, switches=switches)


@pytest.mark.slow
def test_a_longer_way_becomes_a_tree_whose_segments_are_those_of_one_switch() -> None:
    links = fitted(1e-6)
    assert links.tree.extra_latency_s == pytest.approx(1e-6, rel=0.1)
    assert float(links.between.one_way_s(np.array([8.0]))[0]) == pytest.approx(LATENCY_S, rel=0.1)
    assert any("between nodes of different switches take +1.0" in note for note in links.notes)
    assert any("as much room as the links of its nodes together" in note for note in links.notes)


@pytest.mark.slow
def test_without_a_difference_or_without_known_switches_there_is_one_network() -> None:
    assert fitted(0.0).tree is None
    assert fitted(1e-6, classes=False).tree is None  # an archive of an earlier version
    unknown = fitted(1e-6, switches=())
    assert unknown.tree is None
    assert any("The platform has one model of both." in note for note in unknown.notes)


def test_messages_across_the_tree_take_as_much_longer_as_was_measured() -> None:
    dahu = load_platform("dahu")
    tree = SwitchTree(((1, 2), (3, 4)), 5e-5, None)
    platform = dahu.model_copy(
        update={
            "nodes": dahu.nodes.model_copy(update={"count": 4}),
            "topology": tree.topology(dahu.network.node_link.bandwidth_Bps),
            "kernels": tuple(
                k.model_copy(update={"pieces": tuple(p.model_copy(update={"per_cpu": None}) for p in k.pieces)})
                for k in dahu.kernels
            ),
            "population": None,
        }
    )

    def time_s(second: int) -> float:
        slots = Mapping(slots=(Slot(0, 0), Slot(second, 0)), source="test")
        hpl = Hpl(n=512, nb=64, p=2, q=1, depth=0)
        return predict(hpl, platform, runs=1, layers=Layers.only(), mapping=slots).time_s.mean

    # A column of the panel exchanges pivots both ways at once: 512 waits for a way that is longer by as much.
    assert time_s(2) - time_s(1) == pytest.approx(512 * 5e-5, rel=0.15)
    assert time_s(3) == pytest.approx(time_s(2), rel=0.01)


@pytest.mark.slow
def test_the_link_is_as_wide_as_asked_and_a_lone_message_keeps_its_time() -> None:
    links = fitted(0.0)
    assert links.between is not None
    for link_bps in (RATE_BPS, 3 * RATE_BPS):
        network = network_model(links.inside, links.between, link_bps)
        assert network.node_link.bandwidth_Bps == link_bps
        large = network.remote.segments[-1]
        assert large.latency_s + 1e7 / large.bandwidth_Bps == pytest.approx(LATENCY_S + 1e7 / RATE_BPS, rel=0.05)
