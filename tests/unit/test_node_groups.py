"""Groups of nodes that differ: the file, its refusals, and what simulations make of them."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from lepaute.errors import InputError, PlatformError
from lepaute.simulate import Hpl, Layers, Stencil, predict
from lepaute.simulate.machine.core import core_topology, machine_of, wiring
from lepaute.simulate.machine.groups import slownesses
from lepaute.simulate.machine.mapping import Mapping, Slot, hostfile_slots, rankfile_slots
from lepaute.simulate.platform import Platform, load_platform, override
from lepaute.simulate.platform.combining import combined
from lepaute.simulate.platform.group_picture import draw_platform
from lepaute.simulate.platform.io import parse_platform, with_values
from lepaute.simulate.platform.network_model import NodeLink
from lepaute.simulate.platform.schema import platform_text
from lepaute.simulate.platform.simgrid import export_xml, import_xml
from lepaute.simulate.platform.simgrid.zones import node_speeds_flops
from lepaute.simulate.platform.summary import facts, in_one_line, summary
from lepaute.study.capacity import machines_of
from lepaute.study.schema import Study, load_study

ROOT = Path(__file__).parents[2]
DGEMM = {
    "kernel": "dgemm",
    "pieces": [{"mean": {"mnk": 4.0e-11, "1": 1.0e-6}, "noise": {"kind": "half-normal", "sd": {"mnk": 4.0e-13}}}],
    "discrepancy_relative_sd": 0.03,
}
DTRSM = {"kernel": "dtrsm", "pieces": [{"mean": {"mnk": 5.0e-11}}]}
HPL = Hpl(n=1000, nb=64, p=4, q=6)


def content(**more: Any) -> dict[str, Any]:
    """Two nodes of eight cores and two of four, half as fast and with half the link."""
    return {
        "format": "lepaute-platform/1",
        "name": "mixed",
        "nodes": {"count": 4, "first_number": 1, "cores": 8, "cpus": 2, "memory_bytes": 1 << 34},
        "groups": [
            {"name": "new", "nodes": 2},
            {"name": "old", "nodes": 2, "cores": 4, "speed": 0.5, "link": {"bandwidth_Bps": 5.0e9}},
        ],
        "kernels": [DGEMM, DTRSM],
        "network": {
            "node_link": {"bandwidth_Bps": 1.0e10},
            "loopback": {"bandwidth_Bps": 2.0e10},
            "remote": {"segments": [
                {"above_bytes": 0, "protocol": "eager", "latency_s": 1.0e-6, "bandwidth_Bps": 5.0e9},
                {"above_bytes": 65536, "protocol": "rendezvous", "latency_s": 2.0e-6, "bandwidth_Bps": 9.0e9},
            ]},
        },
        "power": {"idle_W": 100.0, "computing_W": 300.0, "communicating_W": 200.0},
        **more,
    }  # fmt: skip


def mixed(**more: Any) -> Platform:
    return parse_platform(yaml.safe_dump(content(**more)), "mixed.yaml")


def plain(**of_nodes: Any) -> Platform:
    """The same without groups."""
    return mixed(groups=None, nodes=content()["nodes"] | of_nodes)


def times_s(platform: Platform, hpl: Hpl = HPL, **how: Any) -> list[float]:
    return [run.time_s for run in predict(hpl, platform, runs=3, **how).run_list]


def test_a_file_without_groups_keeps_its_digest() -> None:
    assert load_platform("dahu").sha256 == "90188bcac8aaa36c4f7113ff985003befd42c79b72dd238dd4994bf6c6519f32"
    assert "groups" not in platform_text(plain())


def test_groups_come_back_from_the_file() -> None:
    platform = mixed()
    assert parse_platform(platform_text(platform), "again") == platform
    assert platform.sha256 != plain().sha256


@pytest.mark.parametrize(
    "special", [{}, {"cores": 8, "cpus": 2, "kernels": [DGEMM], "speed": 1.0, "power": content()["power"]}]
)
def test_groups_of_one_description_predict_as_the_plain_platform_to_the_last_bit(special: dict[str, Any]) -> None:
    same = mixed(groups=[{"name": "a", "nodes": 3, **special}, {"name": "b", "nodes": 1, **special}])
    alike, grouped = predict(HPL, plain(), runs=3), predict(HPL, same, runs=3)
    assert [run.time_s for run in grouped.run_list] == [run.time_s for run in alike.run_list]
    assert [run.energy_j for run in grouped.run_list] == pytest.approx(
        [run.energy_j for run in alike.run_list], rel=1e-12
    )
    assert machine_of(same).text() == machine_of(plain()).text()


def test_nodes_of_a_group_compute_at_their_speed() -> None:
    """A rank alone only computes, so it takes twice as long on a node that is half as fast."""
    alone, slow = (
        predict(Hpl(n=600, nb=64, p=1, q=1), platform, runs=1, layers=Layers.only()).time_s.mean
        for platform in (plain(), mixed(groups=[{"name": "all", "nodes": 4, "speed": 0.5}]))
    )
    assert slow == pytest.approx(2.0 * alone)


def test_ranks_fill_each_node_with_as_many_as_it_has_cores() -> None:
    assert Mapping().cores(mixed(), 21) == [*range(16), 16, 17, 18, 19, 24]


def test_the_kernels_of_a_group_hold_on_its_nodes_alone() -> None:
    slower = DGEMM | {
        "pieces": [{"mean": {"mnk": 8.0e-11, "1": 1.0e-6}, "noise": {"kind": "half-normal", "sd": {"mnk": 4.0e-13}}}]
    }
    own = mixed(groups=[{"name": "new", "nodes": 2}, {"name": "old", "nodes": 2, "kernels": [slower]}])
    assert node_speeds_flops(own)[0] == pytest.approx(2.0 * node_speeds_flops(own)[2], rel=1e-3)
    kernels = {(kernel.name, kernel.group): kernel for kernel in machine_of(own).kernels}
    assert kernels["dgemm", 1].own_errors
    assert not kernels["dgemm", 0].own_errors
    assert ("dtrsm", 1) not in kernels
    assert times_s(plain()) < times_s(own)


def test_the_link_of_a_group_is_that_of_each_of_its_nodes() -> None:
    topology = core_topology(mixed())
    widths = {topology.link_name(at): link[0] for at, link in enumerate(topology.links)}
    assert {widths[f"n{node}>switch"] for node in (1, 2)} == {1.0e10}
    assert {widths[f"switch>n{node}"] for node in (3, 4)} == {5.0e9}


def test_hosts_are_nodes_by_the_name_of_their_group_or_by_number() -> None:
    platform = mixed()
    slots = hostfile_slots("old-2 slots=4\nnew1 slots=8\nn2 slots=1\n", "hosts", platform)
    assert [slot.node for slot in slots] == [3] * 4 + [0] * 8 + [1]
    with pytest.raises(InputError, match="a node of platform mixed takes 4 ranks"):
        hostfile_slots("old-1 slots=5\n", "hosts", platform)
    with pytest.raises(InputError, match="no node of platform mixed, whose nodes are new-1 to new-2, old-1 to old-2"):
        hostfile_slots("old-3 slots=1\n", "hosts", platform)
    with pytest.raises(InputError, match="has cores 0 to 3"):
        rankfile_slots("rank 0=old-1 slot=4", "ranks", platform)


def test_as_many_ranks_fit_as_all_groups_have_cores() -> None:
    with pytest.raises(InputError, match=r"2 x 8 \+ 2 x 4 cores; take fewer ranks, .* --set groups.new.nodes=N"):
        Mapping().cores(mixed(), 25)


def test_each_group_has_its_own_memory() -> None:
    small = mixed(groups=[{"name": "new", "nodes": 2}, {"name": "old", "nodes": 2, "memory_bytes": 1 << 20}])
    hpl = Hpl(n=2000, nb=64, p=4, q=8)
    with pytest.raises(InputError, match=r"need 0\.008"):
        predict(hpl, small, runs=1)
    assert predict(hpl, mixed(groups=[{"name": "all", "nodes": 4}]), runs=1).time_s.mean > 0.0
    assert Hpl.filling(small, 0.5, p=4, q=8, nb=32).n < Hpl.filling(small, 0.5, p=2, q=8, nb=32).n


def test_energy_is_the_sum_of_the_groups() -> None:
    """Old nodes that draw nothing leave out what they would draw; without their power nothing is known."""
    none = {"idle_W": 0.0, "computing_W": 0.0, "communicating_W": 0.0}
    new, old = {"name": "new", "nodes": 2}, {"name": "old", "nodes": 2}

    def joules(*powers: dict[str, float] | None) -> float | None:
        groups = [group | ({"power": power} if power else {}) for group, power in zip((new, old), powers, strict=True)]
        return predict(HPL, mixed(groups=groups, power=None), runs=1).run_list[0].energy_j

    full = content()["power"]
    both, first, second = joules(full, full), joules(full, none), joules(none, full)
    assert both is not None
    assert first is not None
    assert second is not None
    assert first + second == pytest.approx(both)
    assert both == pytest.approx(predict(HPL, plain(), runs=1).run_list[0].energy_j)
    assert joules(full, None) is None


def test_fields_of_groups_are_set_by_name() -> None:
    changed = override(mixed(), {"groups.old.nodes": 6, "groups.old.speed": 0.25})
    assert changed.groups
    assert (changed.nodes.count, changed.groups[1].nodes, changed.groups[1].speed) == (8, 6, 0.25)
    with pytest.raises(InputError, match=r"there is no group olt \(did you mean old\?\); groups are new, old"):
        override(mixed(), {"groups.olt.speed": 1})
    with pytest.raises(InputError, match=r"set groups\.new\.nodes, groups\.old\.nodes"):
        override(mixed(), {"nodes.count": 8})


def test_knobs_turn_what_groups_have_of_their_own() -> None:
    own = content()["groups"][1] | {"kernels": [DGEMM]}
    fast = override(mixed(groups=[content()["groups"][0], own]), {"scale.computing": 2, "scale.bandwidth": 3})
    assert fast.groups
    assert fast.groups[1].kernels
    assert fast.groups[1].kernels[0].pieces[0].mean["mnk"] == pytest.approx(2.0e-11)
    assert fast.groups[1].link
    assert fast.groups[1].link.bandwidth_Bps == pytest.approx(1.5e10)


GROUP = {"name": "old", "nodes": 2}


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([], "groups"),
        ([GROUP], "groups have 2 nodes in all; nodes.count is 4"),
        ([GROUP, GROUP], r"groups\[1\].name is old, as that of another group"),
        ([GROUP, {"name": "n1", "nodes": 2}], r"groups\[1\].name"),
        ([GROUP, {"name": "new", "nodes": 2, "cores": 16}], r"groups\[1\].cores is 16; .* the most of any node, is 8"),
        ([GROUP, {"name": "new", "nodes": 2, "cores": 3}], r"groups\[1\].cpus is 2; 3 cores cannot be divided"),
        ([GROUP, {"name": "new", "nodes": 2, "speeds": 2}], "speeds is not a field"),
        ([GROUP, {"name": "new", "nodes": 2, "speed": 0}], "speed"),
        ([GROUP, {"name": "new", "nodes": 2, "network": {}}], "network is not a field"),
        ([GROUP, {"name": "new", "nodes": 2, "link": {"bandwidth_Bps": 2.0e10}}], "that of the widest links"),
        ([GROUP, {"name": "new", "nodes": 2, "kernels": [DTRSM | {"kernel": "dgemv"}]}], "other nodes have none"),
        ([GROUP, {"name": "new", "nodes": 2, "kernels": [DTRSM, DTRSM]}], "is a second model of dtrsm"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(groups: list[Any], words: str) -> None:
    with pytest.raises(PlatformError, match=words):
        mixed(groups=groups)


def test_rows_of_single_cpus_are_under_the_numbers_of_the_group() -> None:
    table = {"columns": ["node", "cpu", "mnk"], "rows": [[7, 0, 8.0e-11]]}
    own = {"kernel": "dgemm", "pieces": [{"mean": {"mnk": 4.0e-11}, "per_cpu": table}]}
    group = {"name": "old", "nodes": 2, "first_number": 7, "kernels": [own]}
    speeds = node_speeds_flops(mixed(groups=[{"name": "new", "nodes": 2}, group]))
    assert speeds[2] == pytest.approx(0.75 * speeds[3])  # the mean of a CPU that is half as fast and one that is not
    with pytest.raises(PlatformError, match="valid are nodes 1 to 2"):
        mixed(groups=[{"name": "new", "nodes": 2}, group | {"first_number": 1}])


@pytest.mark.parametrize("topology", [{"kind": "torus", "parameters": "2,2"}])
def test_a_link_of_a_node_needs_a_cable_of_its_own(topology: dict[str, Any]) -> None:
    with pytest.raises(PlatformError, match=r"groups\[1\].link is of a cable to each node"):
        mixed(topology=topology)


def test_a_population_is_of_like_nodes() -> None:
    group = {"weight": 1.0, "mean": [4e-11], "covariance_spatial": [[1e-24]]}
    population = {"kernel": "dgemm", "terms": ["mnk"], "groups": [group], "covariance_temporal": [[1e-24]]}
    with pytest.raises(PlatformError, match="is of nodes that are alike"):
        mixed(population=population | {"draw": "none"})


def test_the_file_of_simgrid_has_hosts_with_their_speed_and_cores_and_comes_back() -> None:
    platform = mixed()
    text = export_xml(platform, wiring(platform)).text
    assert [text.count(f'core="{cores}"') for cores in (8, 4)] == [2, 2]
    back = import_xml(text).platform
    assert back.groups
    assert [(group.name, group.nodes, group.cores) for group in back.groups] == [("new", 2, None), ("old", 2, 4)]
    assert back.groups[1].speed == 0.5
    assert list(wiring(back).links) == list(wiring(platform).links)


def test_hosts_of_several_speeds_become_groups() -> None:
    values = (("fat-1", "2Gf", 4), ("fat-2", "2Gf", 4), ("thin-7", "500Mf,1Mf", 2), ("Jupiter", "1e9f", 4))
    hosts = "".join(f'<host id="{name}" speed="{speed}" core="{cores}"/>' for name, speed, cores in values)
    names = ("fat-1", "fat-2", "thin-7", "Jupiter")
    links = "".join(f'<link id="l{name}" bandwidth="1GBps" latency="1us"/>' for name in names)
    ends = "".join(f'<host_link id="{name}" up="l{name}" down="l{name}"/>' for name in names)
    zone = f'<zone id="z" routing="Cluster">{hosts}{links}{ends}</zone>'
    platform = import_xml(f'<?xml version="1.0"?><platform version="4.1">{zone}</platform>').platform
    assert platform.groups
    found = [(group.name, group.nodes, group.cores, group.speed, group.first_number) for group in platform.groups]
    assert found == [("fat", 2, 4, None, 1), ("thin", 1, 2, 0.25, 7), ("Jupiter", 1, 4, 0.5, None)]
    assert platform.nodes.cores == 4
    assert node_speeds_flops(platform) == (1e9, 1e9, 0.25e9, 0.5e9)


def test_two_platforms_make_one_with_a_group_of_each() -> None:
    fast, slow = plain(), plain(cores=4)
    network = slow.network.model_copy(update={"node_link": NodeLink(bandwidth_Bps=5e9)})
    slow = slow.model_copy(update={"name": "slow", "kernels": (fast.kernels[1],), "network": network})
    both, notes = combined([slow, fast], "both", [3, 1])
    assert both.groups
    assert [(group.name, group.nodes) for group in both.groups] == [("slow", 3), ("mixed", 1)]
    assert both.groups[0].link
    assert both.groups[0].link.bandwidth_Bps == 5e9
    assert both.network == fast.network
    assert [part.nodes.cores for part in both.parts] == [4, 8]
    assert both.assumed
    assert [(each.what, each.source) for each in both.assumed] == [("slow: dgemm", "as on nodes of mixed")]
    assert notes == []
    assert parse_platform(platform_text(both), "again") == both
    with pytest.raises(InputError, match="two or more"):
        combined([fast], "one")
    with pytest.raises(InputError, match="groups within a group"):
        combined([fast, mixed()], "one")


def test_groups_are_shown() -> None:
    platform = mixed()
    assert "2 nodes of 8 cores at 50.0 Gflop/s a core in dgemm, 2 of 4 cores at 25.0" in in_one_line(platform)
    shown = dict(facts(platform))
    assert shown["group old"].startswith("2 nodes old-1 to old-2, 4 cores on 2 CPUs, 16 GiB, dgemm 25")
    assert "link 5.000 GB/s" in shown["group old"]
    assert "group old" in summary(platform)


def test_what_knows_only_like_nodes_says_so() -> None:
    from lepaute.simulate.machine.synthesis import synthesize
    from lepaute.simulate.platform.components import with_cpu_factors

    with pytest.raises(InputError, match="groups of nodes that differ, for which there are no clusters drawn like it"):
        synthesize(mixed(), None, nodes=2)
    with pytest.raises(InputError, match="no factors of single CPUs"):
        with_cpu_factors(mixed(), 1, {0: 2.0})


PARTS = {
    "new node": {"kind": "node", "group": "new", "price": 9000, "ranks": 8},
    "old node": {"kind": "node", "group": "old", "price": 1000, "ranks": 4},
    "any node": {"kind": "node", "price": 5000, "ranks": 8},
}


def study_of(folder: Path, nodes: list[Any]) -> Study:
    (folder / "mixed.yaml").write_text(yaml.safe_dump(content()))
    (folder / "parts.yaml").write_text(yaml.safe_dump({"parts": PARTS}))
    base = {"application": {"name": "hpl", "n": 1000, "nb": 64, "grid": "1x1"}, "platform": str(folder / "mixed.yaml")}
    capacity = {"catalogue": "parts.yaml", "nodes": nodes}
    return Study.model_validate({"question": "capacity", "base": base, "capacity": capacity})


def test_a_study_of_capacity_counts_the_nodes_of_each_group(tmp_path: Path) -> None:
    """Their names, prices, and what the platform and the grid become."""
    machines = machines_of(study_of(tmp_path, [{"new": 2, "old": 3}, {"new": 1, "old": 1}]), tmp_path)
    assert [(machine.name, machine.price) for machine in machines] == [
        ("1 x new node + 1 x old node", 10_000.0),
        ("2 x new node + 3 x old node", 21_000.0),
    ]
    fields = dict(machines[1].fields)
    assert fields.pop("application.grid") == "4x7"
    assert fields == {"platform.groups.new.nodes": 2, "platform.groups.old.nodes": 3}
    values = {path.removeprefix("platform."): value for path, value in fields.items()}
    assert with_values(mixed(), values).nodes.count == 5


def test_a_machine_of_groups_needs_a_part_of_each(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no part of the kind node is with group: gpu"):
        machines_of(study_of(tmp_path, [{"gpu": 2}]), tmp_path)


def test_groups_that_parts_price_are_no_nodes_of_other_machines(tmp_path: Path) -> None:
    assert [machine.name for machine in machines_of(study_of(tmp_path, [2]), tmp_path)] == ["2 x any node"]


def test_an_application_of_seconds_goes_with_the_speed_of_its_nodes() -> None:
    """They are those of a node as fast as the mean of all: here 1.5 and 0.75 times."""
    group = {"nodes": 2, "cores": 8}
    platform = mixed(groups=[{"name": "new", **group}, {"name": "old", **group, "speed": 0.5}])
    speeds = slownesses(platform)
    mean = sum(node_speeds_flops(platform)) / 4
    assert speeds == pytest.approx([mean / node_speeds_flops(platform)[0], mean / node_speeds_flops(platform)[2]])
    one = Stencil(cells=(50, 50, 50), iterations=10, cell_time_s=1e-7)
    slow = predict(one, platform, runs=1, layers=Layers.only(), mapping=Mapping(slots=(Slot(2, 0),)))
    fast = predict(one, platform, runs=1, layers=Layers.only())
    assert slow.time_s.mean == pytest.approx(fast.time_s.mean * speeds[1] / speeds[0])


def test_a_picture_has_a_bar_for_each_group(tmp_path: Path) -> None:
    draw_platform(mixed(), tmp_path / "mixed.svg")
    drawn = (tmp_path / "mixed.svg").read_text()
    assert all(f"<!-- {words} -->" in drawn for words in ("new", "old", "link, GB/s", "Gflop/s a node in dgemm"))


def test_the_example_of_a_mixed_cluster_is_a_study_of_its_groups() -> None:
    folder = ROOT / "examples/studies/mixed"
    study = load_study(folder / "study.yaml")
    machines = machines_of(study, folder)
    assert len(machines) == len(study.capacity.nodes if study.capacity else ())
    platform = load_platform(folder / "cluster.yaml")
    assert platform.groups
    assert {f"platform.groups.{group.name}.nodes" for group in platform.groups} <= set(machines[0].fields)


def test_what_python_and_json_say_of_a_platform_counts_its_groups() -> None:
    assert repr(mixed()) == "<Platform 'mixed': 2 x 8 + 2 x 4 cores, 2 kernel models>"
    assert mixed().facts_in_short()["groups"] == {"new": 2, "old": 2}
    assert "groups" not in plain().facts_in_short()
