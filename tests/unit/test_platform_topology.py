"""The topology of a platform: read, described, and built by the core."""

import re
from pathlib import Path

import pytest

from lepaute import _core
from lepaute.errors import InputError, PlatformError
from lepaute.simulate.machine.core import core_topology, machine_of
from lepaute.simulate.platform.io import load_platform, override, parse_platform, shipped_names
from lepaute.simulate.platform.schema import Platform, platform_text
from lepaute.simulate.platform.topology import switch_counts

SMALL = Path(__file__).parent.parent / "data" / "platforms" / "small.yaml"


def with_topology(topology: str, nodes: int) -> Platform:
    return override(load_platform(SMALL), {"nodes.count": str(nodes), "topology": topology})


def names(topology: _core.Topology, a: int, b: int) -> str:
    return " ".join(topology.link_name(link) for link in topology.route(a, b))


@pytest.mark.parametrize("name", shipped_names())
def test_shipped_platforms_have_a_topology_of_their_nodes(name: str) -> None:
    platform = load_platform(name)
    assert core_topology(platform).nodes == platform.nodes.count
    machine_of(platform, threads=max((model.threads for model in platform.kernels), default=1))


def test_one_switch_is_the_default_and_leaves_digest_and_text_as_they_were() -> None:
    small = load_platform(SMALL)
    assert small.topology.model_dump(exclude_none=True) == {"kind": "switch"}
    assert "topology: {kind: switch}\n" in platform_text(small)
    topology = core_topology(small)
    assert topology.links == [(1.25e10, 0.0)] * 4
    assert names(topology, 1, 0) == "n2>switch switch>n1"  # small numbers its nodes from 1


def test_a_fat_tree_in_simgrids_notation_is_built_with_the_node_link_as_default() -> None:
    platform = with_topology(
        """{kind: fat-tree, parameters: "2;4,4;1,2;1,2", levels: [{}, {bandwidth_Bps: 5e10, latency_s: 1e-7}]}""", 16
    )
    topology = core_topology(platform)
    links = [topology.links[link] for link in topology.route(0, 4)]
    assert links == [(1.25e10, 0.0), (5e10, 1e-7), (5e10, 1e-7), (1.25e10, 0.0)]
    assert names(topology, 0, 5) == "n1>s1.0 s1.0>s2.1#0 s2.1>s1.1#0 s1.1>n6"
    assert switch_counts(platform.topology) == (4, 2)


def test_dragonfly_torus_and_graph_are_built() -> None:
    fly = core_topology(with_topology("""{kind: dragonfly, parameters: "3,4;3,2;4,1;2"}""", 72))
    assert names(fly, 0, 1) == "n1>r0.0.0 r0.0.0>n2"
    torus = core_topology(with_topology("""{kind: torus, parameters: "4,4", duplex: shared}""", 16))
    assert torus.route(0, 1) == torus.route(1, 0)
    graph = with_topology(
        """
        kind: graph
        switches: [{name: left, nodes: 1-3}, {name: right, nodes: "4,5"}]
        links: [{between: [left, right], cables: 2, bandwidth_Bps: 1e9}, {between: [n6, right], latency_s: 1e-6}]
        """,
        6,
    )
    topology = core_topology(graph)
    assert names(topology, 0, 4) == "n1>left left>right#0 right>n5"
    assert names(topology, 0, 3) == "n1>left left>right#1 right>n4"
    assert topology.links[topology.route(0, 4)[1]] == (1e9, 0.0)
    assert topology.links[topology.route(5, 0)[0]] == (1.25e10, 1e-6)


def test_limiters_are_links_of_the_route() -> None:
    limits = "{node_bandwidth_Bps: 2e9, switch_bandwidth_Bps: 3e10}"
    topology = core_topology(with_topology(f"{{kind: switch, limiters: {limits}}}", 2))
    assert names(topology, 0, 1) == "limiter of n1 n1>switch limiter of switch switch>n2 limiter of n2"
    assert [topology.links[link][0] for link in topology.route(0, 1)] == [2e9, 1.25e10, 3e10, 1.25e10, 2e9]


@pytest.mark.parametrize(
    ("topology", "nodes", "words"),
    [
        ("""{kind: fat-tree, parameters: "2;4,4;1,2;1,2", removed: [s3.0]}""", 16, "no part named 's3.0'; nodes are"),
        ("""{kind: fat-tree, parameters: "2;4,4;1,2;1,2", removed: [s1.1]}""", 16, "no route from node n1 to node n5"),
        ("""{kind: switch, changed: [{name: n3-switch, latency_s: 1}]}""", 2, "no part named 'n3-switch'"),
        ("""{kind: graph, switches: [{name: a, nodes: "1"}, {name: b, nodes: "2"}]}""", 2, "no route from node n1 to"),
        ("""{kind: graph, switches: [{name: a, nodes: 1-9}]}""", 2, "n3, which is neither a switch nor a node"),
        ("""{kind: graph, switches: [{name: n1, nodes: 1-2}]}""", 2, "two parts of the topology are named n1"),
    ],
)
def test_parts_that_are_not_there_and_nodes_that_nothing_joins_are_refused_in_one_line(
    topology, nodes, words, tmp_path, refusal_of
):
    platform = with_topology(topology, nodes)
    with pytest.raises(InputError, match=re.escape(words)):
        core_topology(platform)
    file = tmp_path / "p.yaml"
    file.write_text(platform_text(platform), encoding="utf-8")
    assert words in refusal_of("platform", "check", file)


def test_a_topology_is_written_read_and_overridden_like_any_field() -> None:
    platform = with_topology("""{kind: fat-tree, parameters: "2;4,4;1,2;1,2", removed: [s2.1]}""", 16)
    assert parse_platform(platform_text(platform)) == platform
    assert override(platform, {"topology.removed": "null"}).sha256 != platform.sha256
    first = override(platform, {"topology.cables": "first", "topology.removed": "[]"})
    assert names(core_topology(first), 0, 6) == "n1>s1.0 s1.0>s2.0#0 s2.0>s1.1#0 s1.1>n7"
    with pytest.raises(InputError, match=r"with changed parts; with 8 nodes it has no such form: set the whole"):
        override(platform, {"nodes.count": "8"})
    with pytest.raises(PlatformError, match=r"topology\.parameters is for 16 nodes; nodes\.count is 8"):
        override(platform, {"nodes.count": "8", "topology.removed": "null"})
