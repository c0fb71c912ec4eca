"""From messages between nodes of several switches to the topology of a platform."""

import numpy as np
import pandas
import pytest

from lepaute.measure.fit.messages.distances import SwitchTree
from lepaute.measure.fit.messages.links import FittedLinks, MessageTables, fitted_links, network_model
from lepaute.simulate import Hpl, Layers, Mapping, predict
from lepaute.simulate.machine.mapping import Slot
from lepaute.simulate.platform import load_platform

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
