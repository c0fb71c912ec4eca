"""Out to SimGrid's XML and in again: what the file can hold comes back to the last bit."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lepaute.simulate.machine.core import wiring
from lepaute.simulate.platform import Platform, load_platform, override, shipped_names
from lepaute.simulate.platform.io import ALIASES
from lepaute.simulate.platform.network_model import Costs, Loopback, Network, NodeLink, Remote, Segment
from lepaute.simulate.platform.nodes import Nodes
from lepaute.simulate.platform.simgrid import export_xml, import_xml
from lepaute.simulate.platform.simgrid.machines import numbers
from lepaute.simulate.platform.topology import CableModel, Limiters, Topology

PROTOCOLS = ("eager", "detached", "rendezvous")
latencies = st.one_of(st.just(0.0), st.floats(1e-9, 1e-2))
bandwidths = st.floats(1e6, 1e12)
overheads = st.tuples(st.floats(0.0, 1e-3), st.floats(0.0, 1e-8))
texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=40)


@st.composite
def segments(draw: st.DrawFn, latency: st.SearchStrategy[float] = latencies) -> tuple[Segment, ...]:
    """As SMPI can have them: eager below detached below rendezvous, thresholds of 31 bits."""
    starts = sorted({0, *draw(st.lists(st.integers(1, 2**31 - 18), max_size=5))})
    protocols = sorted(
        draw(st.lists(st.sampled_from(PROTOCOLS), min_size=len(starts), max_size=len(starts))), key=PROTOCOLS.index
    )
    return tuple(
        Segment(
            above_bytes=start,
            protocol=protocol,
            latency_s=draw(latency),
            bandwidth_Bps=draw(bandwidths),
            send=draw(overheads),
            isend=draw(overheads),
            receive=draw(overheads),
        )
        for start, protocol in zip(starts, protocols, strict=True)
    )


@st.composite
def topologies(draw: st.DrawFn) -> tuple[Topology, int]:
    """A topology that one element describes, and its number of nodes."""
    kind = draw(st.sampled_from(["switch", "fat-tree", "dragonfly", "torus"]))
    duplex = draw(st.sampled_from([None, "shared"]))
    limit = draw(st.one_of(st.none(), bandwidths))
    if kind == "switch":
        limiters = None if limit is None else Limiters(node_bandwidth_Bps=limit)
        return Topology(kind="switch", duplex=duplex, limiters=limiters), draw(st.integers(1, 2000))
    parameters, count = draw(
        st.sampled_from(
            {
                "fat-tree": [("2;4,4;1,2;1,1", 16), ("3;4,4,2;1,2,2;1,1,3", 32), ("1;5;1;1", 5)],
                "dragonfly": [("3,1;1,1;3,1;2", 18), ("2,3;2,2;4,1;1", 16)],
                "torus": [("4,3", 12), ("7", 7), ("2,2,5", 20)],
            }[kind]
        )
    )
    limiters = None
    if limit is not None and kind != "torus":
        limiters = Limiters(node_bandwidth_Bps=limit, switch_bandwidth_Bps=limit)
    return Topology(kind=kind, parameters=parameters, duplex=duplex, limiters=limiters), count


@st.composite
def platforms(draw: st.DrawFn) -> Platform:
    topology, count = draw(topologies())
    cpus = draw(st.integers(1, 3))
    return Platform(
        name=draw(texts.filter(bool)),
        description=draw(texts),
        source=draw(st.one_of(st.none(), texts)),
        nodes=Nodes(
            count=count,
            first_number=draw(st.integers(0, 40)),
            cores=cpus * draw(st.integers(1, 9)),
            cpus=cpus,
            core_to_cpu=draw(st.sampled_from(["modulo", "block"])),
            memory_bytes=draw(st.one_of(st.none(), st.integers(1, 2**50))),
            peak_flops_per_core=draw(st.one_of(st.none(), bandwidths)),
        ),
        kernels=(),
        network=Network(
            flow_factor="scale",
            sharing=draw(st.sampled_from([None, "fair", "exact"])),
            node_link=NodeLink(bandwidth_Bps=draw(bandwidths)),
            loopback=Loopback(bandwidth_Bps=draw(bandwidths)),
            remote=Remote(segments=draw(segments())),
            costs=Costs(iprobe_s=draw(latencies), test_s=draw(latencies), wtime_s=draw(latencies)),
        ),
        topology=topology,
    )


@pytest.mark.slow
@given(platforms())
@settings(max_examples=150)
def test_what_goes_out_comes_in_again_to_the_last_bit(platform):
    imported = import_xml(export_xml(platform).text)
    assert imported.platform == platform
    assert imported.notes == ()


@given(platforms(), st.booleans())
@settings(max_examples=60)
def test_out_in_and_out_again_is_the_same_file(platform, every_route):
    every_route = every_route and platform.nodes.count <= 20
    links = wiring(platform) if every_route else None
    text = export_xml(platform, links, every_route=every_route).text
    again = import_xml(text).platform
    assert export_xml(again, wiring(again) if every_route else None, every_route=every_route).text == text


@given(st.floats(1e-9, 1e-3), segments(st.just(0.0)), st.sampled_from(["2;4,4;1,2;1,1", "3;2,2,2;1,1,1;1,1,1"]))
@settings(max_examples=60)
def test_latencies_of_cables_come_back_where_the_file_holds_them(cable_s, rows, parameters):
    # a link is 1 cable, the segment is the two of the nodes
    base = load_platform("stampede-like")
    rows = tuple(row.model_copy(update={"latency_s": 2 * cable_s}) for row in rows)
    levels = (CableModel(latency_s=0.0), CableModel(latency_s=cable_s))
    topology = Topology(kind="fat-tree", parameters=parameters, levels=levels)
    network = base.network.model_copy(update={"remote": Remote(segments=rows), "flow_factor": "scale"})
    count = topology.node_count
    assert count is not None
    nodes = base.nodes.model_copy(update={"count": count})
    update = {"kernels": (), "assumed": None, "topology": topology, "network": network, "nodes": nodes}
    platform = base.model_copy(update=update)
    assert import_xml(export_xml(platform).text).platform == platform


def test_of_shipped_platforms_all_that_the_file_holds_comes_back():
    for name in shipped_names():
        if name in ALIASES:
            continue
        platform = override(load_platform(name), {"network.flow_factor": "scale"})
        again = import_xml(export_xml(platform).text).platform
        left_out = dict.fromkeys(("busy", "discrepancy_relative_sd"))
        assert again.network.remote == platform.network.remote.model_copy(update=left_out)
        assert again.nodes == platform.nodes
        assert again.network.costs == platform.network.costs or platform.network.costs.iprobe_looks_first
        assert export_xml(import_xml(export_xml(again).text).platform).text == export_xml(again).text


@given(st.lists(st.integers(0, 99), min_size=1, max_size=8, unique=True))
def test_a_list_of_numbers_is_read_as_it_is_written(listed):
    assert numbers(",".join(map(str, listed)), "radical") == tuple(listed)
