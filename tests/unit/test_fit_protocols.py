"""Limits of the protocols, tested or given, and what a detached message is made of."""

import numpy as np
import pandas
import pytest

from lepaute.errors import FitError
from lepaute.measure.fit.messages.links import MessageTables, fitted_links, network_model
from lepaute.measure.fit.messages.network import ProtocolLimits, fit_network, limits_by_tests
from lepaute.measure.fit.messages.segment import series

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


def test_protocols_that_hold_no_size_have_no_segment():
    def protocols(eager: float, detached: float) -> set[str]:
        made = {name: series(*pair) for name, pair in operations().items()}
        return {part.protocol for part in fit_network(made, ProtocolLimits(eager, detached)).segments}

    assert protocols(0, 0) == {"rendezvous"}
    assert protocols(0, DETACHED) == {"detached", "rendezvous"}
    assert protocols(float("inf"), float("inf")) == {"eager"}


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


def test_without_both_tests_there_are_no_limits():
    assert limits_by_tests([]) is None
    assert limits_by_tests([semantics().query("test == 'deadlock'")]) is None


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
