"""Topology, crowding and sockets of a platform, and kernels without a model: read, refused, predicted."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from lepaute import _core
from lepaute.errors import InputError, PlatformError
from lepaute.simulate import Hpl, Layers, predict
from lepaute.simulate.machine.core import core_topology, machine_of
from lepaute.simulate.machine.mapping import Mapping, Slot
from lepaute.simulate.platform.io import load_platform, override, parse_platform, shipped_names
from lepaute.simulate.platform.kernel_model import KernelModel, Noise, Piece, models_of, told_of_missing
from lepaute.simulate.platform.schema import Platform, platform_text
from lepaute.simulate.platform.summary import summary
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


TABLE = [[1 / 3, 0.2], [1.0, 0.3]]
NONE = Layers(**dict.fromkeys(Layers.__dataclass_fields__, False))


def platform(crowding: object = None, **nodes: object) -> Platform:
    """One node of eight cores whose only kernel is dgemm, 0.1 ns for each product."""
    content = yaml.safe_load(SMALL.read_text())
    content["nodes"] = {"count": 1, "first_number": 1, "cores": 8, "cpus": 8, **nodes}
    content["kernels"] = [{"kernel": "dgemm", "pieces": [{"mean": {"mnk": 1e-10}}], "crowding": crowding}]
    content["days"] = None
    return Platform.model_validate(content)


def refusal(field: str, value: str, base: Platform) -> str:
    with pytest.raises(PlatformError) as caught:
        override(base, {field: value})
    return str(caught.value)


def compute_s(on: Platform, cores: list[int], threads: int = 1) -> float:
    """Seconds in dgemm of two ranks whose first cores are these."""
    mapping = Mapping(slots=tuple(Slot(0, core) for core in cores))
    hpl = Hpl(n=512, nb=64, p=1, q=len(cores), threads_per_rank=threads)
    return predict(hpl, on, runs=1, mapping=mapping, layers=NONE).kernel_time_s["dgemm"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("[]", "kernels[0].crowding is an empty table"),
        ("[0.1, 0.2]", "kernels[0].crowding[0] is 0.1; a number, or a table [[share, increase], ...] is expected"),
        ("[[0.5, 0.1], [0.5, 0.2]]", "kernels[0].crowding[1] has the share 0.5; shares rise from row to row"),
        ("[[1.5, 0.1]]", "kernels[0].crowding[0] has the share 1.5; shares rise"),
        ("[[0.5, -1]]", "kernels[0].crowding[0] is -1; an increase is above -1"),
        ("-2", "kernels[0].crowding is -2; an increase is above -1"),
        ("much", "kernels[0].crowding is much; a number, or a table"),
        ("[[0.5, .nan]]", "kernels[0].crowding[0] is [0.5, nan]; a number, or a table"),
        ("true", "kernels[0].crowding is True; a number, or a table"),
    ],
)
def test_what_is_no_crowding_is_refused(value: str, said: str) -> None:
    assert said in refusal("kernels[0].crowding", value, platform())


def test_a_table_is_written_and_read_back_and_told() -> None:
    written = platform(TABLE, sockets=2)
    assert parse_platform(platform_text(written)) == written
    assert "8 cores on 8 CPUs (modulo) in 2 sockets" in summary(written)
    assert "+20.0 % when 33 % of the others compute, +30.0 % when all of the others compute" in summary(written)


@pytest.mark.parametrize(
    ("cores", "threads", "increase"),
    [([0, 4], 1, 0.0), ([0, 3], 1, 0.2), ([0, 2], 2, 0.3), ([0, 4], 4, 0.0), ([0, 1], 1, 0.2)],
)
def test_only_cores_of_the_ranks_socket_crowd_it_as_many_as_ranks_have_threads(cores, threads, increase):
    # Two sockets of four cores: one of three others, both others of a rank of two threads, none of one of four.
    on = platform(TABLE, sockets=2)
    model: dict[str, Any] = on.kernels[0].model_dump() | {"threads": threads}
    on = Platform.model_validate(on.model_dump() | {"kernels": [model]})
    alone = Platform.model_validate(on.model_dump() | {"kernels": [model | {"crowding": None}]})
    ratio = compute_s(on, cores, threads) / compute_s(alone, cores, threads)
    assert ratio == pytest.approx(1.0 + increase, rel=1e-12)


def test_coefficients_of_a_socket_are_those_of_its_cpus() -> None:
    on = platform(sockets=2)
    piece = on.kernels[0].pieces[0].model_dump()
    piece["per_cpu"] = {"columns": ["node", "socket", "mnk"], "rows": [[1, 1, 2e-10]]}
    on = Platform.model_validate(on.model_dump() | {"kernels": [{"kernel": "dgemm", "pieces": [piece]}]})
    assert compute_s(on, [5]) == pytest.approx(2 * compute_s(on, [3]), rel=1e-12)
    assert "1 sockets have their own" in summary(on)
    said = refusal("kernels[0].pieces[0].per_cpu.rows", "[[1, 2, 2e-10]]", on)
    assert "is for node 1, socket 2; valid are nodes 1 to 1 with sockets 0 to 1" in said


def test_cpus_of_a_socket_share_the_error_of_its_coefficients() -> None:
    on = platform(sockets=2)
    piece = on.kernels[0].pieces[0].model_dump() | {"covariance": {"terms": ["mnk"], "matrix": [[1e-22]]}}
    piece["per_cpu"] = {"columns": ["node", "socket", "mnk"], "rows": [[1, 0, 1e-10], [1, 1, 1e-10]]}
    on = Platform.model_validate(on.model_dump() | {"kernels": [{"kernel": "dgemm", "pieces": [piece]}]})

    def drawn_s(core: int) -> float:
        mapping = Mapping(slots=(Slot(0, core),))
        return predict(Hpl(n=512, nb=64, p=1, q=1), on, runs=1, mapping=mapping).time_s.mean

    assert drawn_s(0) == drawn_s(3)
    assert drawn_s(0) != drawn_s(4)


def model(kernel: str, threads: int = 1) -> KernelModel:
    return KernelModel(kernel=kernel, threads=threads, pieces=(Piece(mean={"1": 1e-6}, noise=Noise()),))


def taken(models: list[KernelModel], kernel: str, threads: int) -> tuple[str, int] | None:
    found = models_of(models, [kernel], threads)
    return (found[kernel].kernel, found[kernel].threads) if found else None


def test_a_kernel_takes_its_own_model_then_its_routines_then_those_of_fewer_threads() -> None:
    dgemm, variant, swap = model("dgemm"), model("dgemm_nn"), model("dlaswp06T")
    assert taken([dgemm, variant], "dgemm_nn", 1) == ("dgemm_nn", 1)
    assert taken([dgemm], "dgemm_nn", 1) == ("dgemm", 1)
    assert taken([dgemm], "dger", 1) is None
    many = [dgemm, variant, swap, model("dgemm", 8)]
    assert taken(many, "dgemm_nn", 8) == ("dgemm", 8)
    assert taken(many, "dlaswp06N", 8) == ("dlaswp06T", 1)


def test_the_description_names_what_was_not_measured_and_what_it_costs() -> None:
    kernels = ["dgemm", "dgemm_nn", "dger"]
    assert told_of_missing([model(kernel) for kernel in kernels], kernels) == []
    assert told_of_missing([model("dgemm"), model("dger"), model("dgemm", 8)], kernels) == [
        "Not measured, and modelled by another kernel: dgemm_nn (dgemm).",
        "Not measured with 8 threads, and modelled by another kernel: dgemm_nn (dgemm), dger (dger, one thread).",
    ]
    assert told_of_missing([model("dgemm")], ["dger"]) == ["Not measured, and taken to cost nothing: dger."]
