"""The plan of a calibration: cores, blocks, time, and which pairs of nodes are measured."""

import collections
import itertools
from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np
import pytest

from lepaute.measure.layout import ALL, HALF, ONE, ONE_A_SOCKET, Layout, active, loads, made_up_layout, places
from lepaute.measure.link_plan import flow_counts, plan_links
from lepaute.measure.plan import FLOWS, FULL, P2P, QUICK, RING, PlannedRun, Scale, calibration_s, plan, room
from lepaute.measure.schedulers.slurm import switches_of_topology
from lepaute.measure.schedulers.types import ACROSS, SAME_SWITCH, Switches, switches_of

#: Nodes from the smallest to the largest of today, with 4 GB a core.
NODES = ("1x2", "1x4", "1x8", "1x16", "2x8", "2x16", "2x32", "2x64")
GB_A_CORE = 4 << 30


def layout_of(text: str) -> Layout:
    return made_up_layout(text, range(256))


def planned(text: str, scale: Scale = FULL, threads: tuple[int, ...] = (1,), seed: int = 1) -> list[PlannedRun]:
    layout = layout_of(text)
    cores = len(layout.cores)
    return plan(scale, seed, layout, room(scale, GB_A_CORE * cores, cores), threads=threads)


@pytest.mark.parametrize(
    ("text", "threads", "expected"),
    [
        ("1x2", 1, (ONE, ALL)),
        ("1x3", 1, (ONE, ALL)),
        ("1x4", 1, (ONE, HALF, ALL)),
        ("2x1", 1, (ONE, ALL)),  # one a socket is all
        ("2x2", 1, (ONE, ONE_A_SOCKET, ALL)),
        ("2x16", 1, (ONE, ONE_A_SOCKET, HALF, ALL)),
        ("1x2", 2, (ALL,)),
        ("2x16", 8, (ONE, ALL)),
    ],
)
def test_the_loads_are_those_that_differ_on_the_node(text: str, threads: int, expected: tuple[str, ...]) -> None:
    assert loads(layout_of(text), threads) == expected


def test_processes_of_several_threads_lie_on_consecutive_cores_of_a_socket_as_long_as_it_has_so_many() -> None:
    assert places(layout_of("2x4"), 3) == ((0, 1, 2), (4, 5, 6))
    assert places(layout_of("2x4"), 6) == ((0, 1, 2, 3, 4, 5),)
    assert places(layout_of("2x2"), 1) == ((0,), (1,), (2,), (3,))


def test_as_many_cores_compute_as_a_load_says_on_every_socket_as_many_or_another_alone_in_each_block() -> None:
    layout, rng = layout_of("2x8"), np.random.default_rng(1)
    for load, each in ((ONE_A_SOCKET, 1), (HALF, 4), (ALL, 8)):
        cores = [core for (core,) in active(layout, load, 1, 0, rng)]
        assert cores == sorted(set(cores))
        assert [layout.active_beside(socket[0], cores) for socket in layout.sockets] == [each, each]
    alone = [active(layout_of("1x5"), ONE, 1, block, np.random.default_rng(3))[0][0] for block in range(10)]
    assert sorted(alone[:5]) == list(range(5))
    assert alone[5:] == alone[:5]


@pytest.mark.parametrize("text", NODES)
def test_every_block_measures_every_core_under_full_load_one_core_alone_and_a_load_in_between(text: str) -> None:
    layout, runs = layout_of(text), planned(text)
    cores = tuple(core.number for core in layout.cores)
    assert {run.load for run in runs if run.probe == "dgemm"} == set(loads(layout))
    between = len(loads(layout)) > 2
    for block in range(FULL.blocks):
        mine = [run for run in runs if run.block == block]
        assert len({run.name for run in mine}) == len(mine)
        for probe in ("dgemm", "dgemm_content", "hpl_steps_1x1"):
            by_load = {run.load: run for run in mine if run.probe == probe}
            assert {ONE, ALL} <= set(by_load) <= set(loads(layout))
            assert len(by_load) == 2 + between
            assert by_load[ALL].cores == cores
            assert len({by_load[load].ranks for load in by_load}) == len(by_load)
        for probe in ("hpl_steps_column", "hpl_steps_options", "ring"):
            assert [run.cores for run in mine if run.probe == probe] == [cores]


def test_messages_go_between_cores_of_every_distance_and_other_ones_in_each_block() -> None:
    pairs = collections.defaultdict(set)
    for run in planned("2x16"):
        if run.probe == "p2p":
            pairs[run.name].add(run.cores)
            assert f"p2p_{layout_of('2x16').distance(*run.cores)}" == run.name
    assert {name: len(drawn) for name, drawn in pairs.items()} == dict.fromkeys(
        ("p2p_same-l3", "p2p_other-socket"), FULL.blocks
    )
    assert {run.name for run in planned("1x2") if run.probe == "p2p"} == {"p2p_same-l3"}


def test_each_number_of_threads_has_its_own_runs_of_kernels_and_messages_are_measured_once() -> None:
    runs = [run for run in planned("2x16", threads=(1, 8)) if run.block == 0]
    eight = {run.name: run for run in runs if run.threads == 8}
    assert {name: run.ranks for name, run in eight.items()} == {
        "dgemm_one_8_threads": 1, "dgemm_all_8_threads": 4, "hpl_steps_1x1_one_8_threads": 1,
        "hpl_steps_1x1_all_8_threads": 4, "hpl_steps_column_8_threads": 4,
    }  # fmt: skip
    assert all(len(run.cores) == 8 * run.ranks for run in eight.values())
    assert collections.Counter(run.probe for run in runs)["ring"] == 1
    # All cores as one process: there is one load, and no column.
    whole = [run.name for run in planned("1x2", threads=(1, 2)) if run.threads == 2 and run.block == 0]
    assert sorted(whole) == ["dgemm_all_2_threads", "hpl_steps_1x1_all_2_threads"]


def test_all_processes_together_stay_within_two_fifths_of_the_memory() -> None:
    for text, memory_bytes in itertools.product(("1x2", "2x16", "2x64"), (8 << 30, 64 << 30)):
        layout = layout_of(text)
        cores = len(layout.cores)
        for run in plan(FULL, 1, layout, room(FULL, memory_bytes, cores)):
            if run.most_bytes is not None:
                taken = run.ranks * run.most_bytes
            elif run.probe.startswith("hpl_steps"):
                column = 1 if run.probe == "hpl_steps_1x1" else run.ranks
                # A block more than the largest matrix that is fitted.
                sizes = ((int(str(m)) / column - 256, int(str(n)) - 256) for _, m, n, *_ in run.design.rows)
                taken = max(8 * run.ranks * m * n for m, n in sizes)
            else:
                continue
            assert taken <= 0.4 * memory_bytes * 1.01, run.name


def test_the_time_does_not_depend_on_the_number_of_cores_and_is_bounded() -> None:
    """Cores work in parallel; with more loads to measure each of those between has fewer rows."""
    full, quick = (
        {text: calibration_s(planned(text, scale), gflops=60.0) for text in NODES} for scale in (FULL, QUICK)
    )
    assert full["1x2"] < 145  # `make demo` has five minutes for this and 36 real runs, which take two
    middle = (max(full.values()) + min(full.values())) / 2
    assert all(abs(time_s - middle) < 0.1 * middle for time_s in full.values()), full
    assert max(full.values()) < 600
    assert max(quick.values()) < 60, quick


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


def test_pairs_and_numbers_of_flows_are_reached_over_the_blocks_and_names_of_one_machine_kept_apart() -> None:
    links = plan_links(QUICK, 1, nodes(2), LIMITS, Switches())
    assert {(link.first, link.second, link.distance, link.turn) for link in links} == {("n1", "n2", None, 0)}
    for block in range(QUICK.blocks):
        probes = [link.run.probe for link in links if link.run.block == block]
        assert sorted(probes) == sorted([P2P, RING, FLOWS, FLOWS, FLOWS])
    assert [link.run.name for link in links] == [
        link.run.name for link in plan_links(QUICK, 1, nodes(2), LIMITS, Switches())
    ]
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
