"""Messages under load: which measurements stand for them, and how conditions compare."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas
import pytest

from lepaute.errors import FitError
from lepaute.measure.fit.messages.conditions import condition_effects, loaded_series
from lepaute.measure.fit.messages.links import FittedLinks, MessageTables, fitted_links, network_model, over_link
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


def test_a_busy_receiver_takes_a_message_as_long_as_mpi_recv_after_the_probe():
    network = links(("idle", "iprobe+dgemm")).inside
    assert network.busy is not None
    size = np.array([20_000.0, 1e5, 1e6, 8e6])
    expected = SLOWER["iprobe+dgemm"] * one_way_s(size) * 1.024  # half-normal noise of 0.03; no piece of dgemm
    assert one_way_of(network.busy, size) / expected == pytest.approx(np.ones(4), abs=0.02)


def test_an_eager_message_to_a_busy_receiver_costs_more_by_the_slower_copy():
    """It has come while the receiver computed: only MPI_Recv, which copies it, is slower (twice as slow here)."""
    network = links(("iprobe+dgemm",)).inside
    assert network.busy is not None
    size = np.array([10.0, 1000.0, 4000.0])
    more_s = one_way_of(network.busy, size) - network.one_way_s(size)
    assert more_s == pytest.approx(3e-7 + size / 2e10, rel=0.1)


@pytest.mark.parametrize("names", [(), ("idle", "dgemm", "iprobe")])
def test_a_ring_without_receivers_that_compute_tells_nothing_of_them(names):
    assert links(names).inside.busy is None


def test_too_few_messages_to_busy_receivers_are_not_fitted():
    found = ring(("iprobe+dgemm",)).query("call == 'recv' and size_bytes > 5000").head(9)
    assert fitted_links(MessageTables([p2p()], [], [found]), False).inside.busy is None


def test_all_messages_under_a_condition_leave_none_for_busy_receivers():
    assert links(condition="iprobe+dgemm").inside.busy is None


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


def test_a_ring_without_a_column_is_no_calibration():
    with pytest.raises(FitError, match=r"ring.parquet lacks the column role"):
        fitted_links(MessageTables([p2p()], [], [ring().drop(columns="role")]), False, "dgemm")


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


def test_a_ring_of_no_message_of_a_size_is_refused():
    usual = {name: series(np.arange(1.0, 30.0), np.full(29, 1e-6)) for name in ("pingpong", "isend", "recv")}
    few = ring(("dgemm",)).head(4)
    with pytest.raises(FitError, match="4 messages under dgemm"):
        loaded_series([few], "dgemm", 4096, usual)


@pytest.mark.slow
def test_a_ring_with_too_few_messages_is_told_and_stops_only_who_asks_for_it():
    few = MessageTables([p2p()], [], [pandas.concat([ring(("idle",)).head(6), ring(("dgemm",))])])
    fitted = fitted_links(few, False)
    assert (fitted.inside, fitted.effects) == (links(()).inside, ())
    (note,) = fitted.notes
    assert note.startswith("What messages take under idle (local) is unknown: the ring has 6 messages")
    with pytest.raises(FitError, match="6 messages under idle"):
        fitted_links(few, False, "idle")
