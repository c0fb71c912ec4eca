"""Which pairs of nodes are measured, when, and with how many flows."""

from collections import defaultdict
from dataclasses import dataclass, replace

from lepaute.measure.layout import Layout, made_up_layout
from lepaute.measure.link_plan import flow_counts, plan_links
from lepaute.measure.plan import FLOWS, FULL, P2P, QUICK, RING, room
from lepaute.measure.schedulers.slurm import switches_of_topology
from lepaute.measure.schedulers.types import ACROSS, SAME_SWITCH, Switches, switches_of

LIMITS = room(QUICK, 64 << 30, 16)
#: As Slurm 22.05 prints a tree of two levels.
SLURM = """\
SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[1-4]
SwitchName=s2 Level=0 LinkSpeed=1 Nodes=n[5-8]
SwitchName=top Level=1 LinkSpeed=1 Nodes=n[1-8] Switches=s[1-2]
"""


@dataclass(frozen=True)
class Node:
    name: str
    machine: str
    layout: Layout
    memory_bytes: int = 64 << 30


def nodes(count: int, cores: int = 16, machines: int | None = None) -> list[Node]:
    layout = made_up_layout(f"1x{cores}", range(cores))
    return [Node(f"n{i + 1}", f"m{i % (machines or count)}", layout) for i in range(count)]


def test_pairs_are_drawn_anew_and_those_of_one_turn_share_no_node_and_no_uplink() -> None:
    switches = switches_of("n[1-4];n[5-8];n[9-12];n[13-16]")
    links = plan_links(FULL, 7, nodes(16), LIMITS, switches)
    pairs_of_blocks = set()
    for block in range(FULL.blocks):
        by_turn = defaultdict(set)
        for link in links:
            if link.run.block == block:
                assert link.distance == switches.distance(link.first, link.second)
                by_turn[link.turn].add((link.first, link.second, link.distance))
        # Each switch has two pairs of its own, all at once; then two pairs across, which leave no switch twice.
        same, across = by_turn.values()
        assert (len(same), len(across)) == (8, 2)
        assert {distance for *_, distance in same} == {SAME_SWITCH}
        assert {distance for *_, distance in across} == {ACROSS}
        for turn in (same, across):
            used = [name for first, second, _ in turn for name in (first, second)]
            assert len(set(used)) == len(used)
        assert len({switches.of(name) for first, second, _ in across for name in (first, second)}) == 4
        pairs_of_blocks.add(frozenset(same | across))
    assert len(pairs_of_blocks) == FULL.blocks


def test_of_unknown_switches_all_pairs_are_of_one_class_and_the_first_node_has_rank_0() -> None:
    links = plan_links(QUICK, 1, nodes(2), LIMITS, Switches())
    assert {(link.first, link.second, link.distance, link.turn) for link in links} == {("n1", "n2", None, 0)}
    for block in range(QUICK.blocks):
        probes = [link.run.probe for link in links if link.run.block == block]
        assert sorted(probes) == sorted([P2P, RING, FLOWS, FLOWS, FLOWS])
    assert [link.run.name for link in links] == [
        link.run.name for link in plan_links(QUICK, 1, nodes(2), LIMITS, Switches())
    ]


def test_every_number_of_flows_is_reached_over_the_blocks_and_one_and_all_in_each() -> None:
    assert flow_counts(1) == [1]
    assert flow_counts(2) == [1, 2]
    assert flow_counts(24) == [1, 2, 4, 8, 16, 24]
    seen = set()
    many = replace(FULL, blocks=40)
    for link in plan_links(many, 3, nodes(2), LIMITS, Switches()):
        if link.run.probe == FLOWS:
            assert link.run.ranks % 2 == 0
            mine = link.run.cores[: link.run.ranks // 2]
            assert len(set(mine)) == len(mine)
            seen.add(len(mine))
    assert seen == {1, 2, 4, 8, 16}


def test_names_of_one_machine_share_its_cores_and_never_run_side_by_side() -> None:
    links = plan_links(QUICK, 1, nodes(4, cores=4, machines=1), LIMITS, Switches())
    for link in links:
        assert len(set(link.run.cores)) == len(link.run.cores), "no core has two ranks"
    assert len({(link.first, link.second) for link in links if (link.run.block, link.turn) == (0, 0)}) == 1


def test_slurm_tells_the_leaf_switches_and_a_network_that_is_no_tree_tells_none() -> None:
    switches = switches_of_topology(SLURM)
    assert switches.distance("n1", "n4") == SAME_SWITCH
    assert switches.distance("n4", "n5") == ACROSS
    assert switches.distance("n1", "login") is None
    assert switches.among(["n2", "n7"]).nodes == (("n2",), ("n7",))
    assert switches.among(["n2", "login"]) == Switches()
    assert switches_of_topology(SLURM + "SwitchName=other Level=0 Nodes=n[1-2]\n") == Switches()
    assert switches_of_topology("slurm_load_topo: No topology information available") == Switches()
