"""Platforms as SimGrid's XML: names, settings, what is said to be lost, and what is refused."""

import re
from pathlib import Path

import pytest

from lepaute.cli.main import main
from lepaute.errors import InputError
from lepaute.simulate.machine.core import wiring
from lepaute.simulate.platform import Platform, load_platform, override
from lepaute.simulate.platform.simgrid import export_xml, host_name, import_xml

DATA = Path(__file__).parent.parent / "data" / "platforms"


def setting(text: str, name: str) -> str:
    found = re.search(f'<prop id="{name}" value="([^"]*)"/>', text)
    assert found is not None, name
    return found[1]


def with_topology(topology: str, count: int, **more: str) -> Platform:
    base = load_platform("stampede-like").model_copy(update={"kernels": (), "assumed": None})
    base = base.model_copy(update={"nodes": base.nodes.model_copy(update={"count": count})})
    known = {f"network.{link}.discrepancy_relative_sd": "null" for link in ("remote", "loopback")}
    return override(base, {"topology": topology, "network.flow_factor": "scale"} | known | more)


def lost(platform: Platform, **options: object) -> str:
    return "\n".join(export_xml(platform, **options).lost)  # type: ignore[arg-type]


def test_hosts_are_named_for_the_platform_and_numbered_as_its_nodes() -> None:
    dahu = load_platform("dahu")
    assert (host_name(dahu, 0), host_name(dahu, 31)) == ("dahu-2020-01-1", "dahu-2020-01-32")
    assert host_name(load_platform("stampede-like"), 0) == "stampede-like-0"
    odd = dahu.model_copy(update={"name": "a b/\u00e9<&>"})
    assert host_name(odd, 0) == "a-b-1"
    assert '<host id="a-b-1" ' in export_xml(odd).text
    with pytest.raises(InputError, match="no node with index 32"):
        host_name(dahu, 32)


def test_thresholds_are_where_smpi_changes_over() -> None:
    text = export_xml(load_platform("dahu")).text
    # a message of 8133 bytes has 8149 on the wire and is the last of its segment; one of 64000 the last eager one
    starts = [entry.split(":")[0] for entry in setting(text, "smpi/bw-factor").split(";")]
    assert starts == ["0", "8149", "15847", "33972", "64016"]
    assert [e.split(":")[0] for e in setting(text, "smpi/os").split(";")] == ["0", "8133", "15831", "33956", "64000"]
    assert setting(text, "smpi/async-small-thresh") == "64001"


def test_simgrids_corrections_are_off_and_probes_do_not_grow() -> None:
    text = export_xml(load_platform("dahu")).text
    for name in ("network/crosstraffic", "network/weight-S", "network/TCP-gamma"):
        assert setting(text, name) == "0"
    assert setting(text, "smpi/grow-injected-times") == "no"
    assert setting(text, "smpi/simulate-computation") == "no"


def test_the_file_itself_says_what_it_does_not_hold() -> None:
    exported = export_xml(load_platform("dahu"))
    comment = exported.text[exported.text.index("<!--") : exported.text.index("-->")]
    assert exported.lost
    assert all(sentence in comment for sentence in exported.lost)
    assert "--" not in comment[4:]


def test_nothing_is_lost_of_a_platform_that_the_file_can_hold() -> None:
    assert lost(with_topology("{kind: switch}", 64)) == ""


SLOW = "{above_bytes: 0, protocol: eager, latency_s: 1e-6, bandwidth_Bps: 1e9}"
FAST = "{above_bytes: 9, protocol: eager, latency_s: 1e-7, bandwidth_Bps: 9e9}"
LOSSES = {
    "network.flow_factor": ({"network.flow_factor": "bound"}, "flow_factor bound"),
    "shared loopback": ({"network.loopback.shared": "true"}, "network.loopback.shared"),
    "probe": ({"network.costs.iprobe_looks_first": "true"}, "iprobe_looks_first"),
    "noise": ({"network.remote.segments[0].noise_relative_sd": "0.1"}, "noise_relative_sd"),
    "days": ({"days": "{common_relative_sd: 0.1, cpu_relative_sd: 0, degrees_of_freedom: 5}"}, "days: "),
    "episodes": ({"episodes": "{relative_sd: 0.1, duration_s: 1}"}, "episodes: "),
    "slow state": ({"slow_state": "{share: 0.1, length_s: 4, factor: 2}"}, "slow_state: "),
    "power": ({"power": "{idle_W: 1, computing_W: 2, communicating_W: 2}"}, "power: "),
    "order": ({"network.remote.segments[0].protocol": "rendezvous", "network.remote.segments[1].protocol": "eager"},
              "protocol: SMPI knows eager, then detached"),
    "rendezvous overhead": ({"network.remote.segments[1].send": "[1e-6, 0]"}, "no overhead for a rendezvous"),
    "large": ({"network.remote.segments[1].above_bytes": "3000000000"}, "32-bit"),
    "cpus": ({"nodes.cores": "4", "nodes.cpus": "2"}, "nodes.cpus"),
    "loopback": ({"network.loopback.segments": f"[{SLOW}, {FAST}]"}, "bandwidths inside a node"),
    "noncontiguous": ({"network.remote.noncontiguous": f"[{SLOW}]"}, "noncontiguous"),
}  # fmt: skip


@pytest.mark.parametrize("what", LOSSES)
def test_what_the_file_cannot_hold_is_named(what: str) -> None:
    settings, sentence = LOSSES[what]
    assert sentence in lost(with_topology("{kind: switch}", 4, **settings))


FAT_TREE = '{kind: fat-tree, parameters: "2;20,320;1,8;1,2"%s}'


@pytest.mark.parametrize(
    ("field", "sentence"),
    [
        ("", "that of the platform on the longest routes"),
        ("", "inverse proportion to the latencies"),
        (", removed: [s2.0]", "topology.removed"),
        (", changed: [{name: s2.0, bandwidth_Bps: 1}]", "topology.changed"),
        (", cables: first", "all parallel cables are used"),
        (", levels: [{}, {bandwidth_Bps: 1.0e+11}]", "bandwidth of the widest level"),
        (", limiters: {node_bandwidth_Bps: 1.0e+10}", "topology.limiters"),
    ],
)
def test_what_an_element_of_a_large_tree_cannot_hold_is_named(field: str, sentence: str) -> None:
    assert sentence in lost(with_topology(FAT_TREE % field, 6400))


def test_a_small_topology_that_no_element_describes_is_written_route_by_route_and_comes_back() -> None:
    platform = with_topology(
        '{kind: fat-tree, parameters: "2;4,4;1,2;1,1", removed: [s2.1], levels: [{}, {bandwidth_Bps: 2.0e+10}]}', 16
    )
    exported = export_xml(platform, wiring(platform))
    assert exported.text.count("<route ") == 16 * 16
    assert import_xml(exported.text).platform == platform


def test_a_graph_needs_its_wiring_and_not_too_many_nodes() -> None:
    graph = with_topology('{kind: graph, switches: [{name: a, nodes: "0-2"}]}', 3)
    assert import_xml(export_xml(graph, wiring(graph)).text).platform == graph
    with pytest.raises(InputError, match="graph of 3 nodes cannot be written"):
        export_xml(graph)
    large = with_topology('{kind: graph, switches: [{name: a, nodes: "0-199"}]}', 200)
    with pytest.raises(InputError, match="up to 128 nodes"):
        export_xml(large, wiring(large))


def test_a_dragonfly_on_which_simgrid_crashes_is_refused_where_it_has_many_nodes() -> None:
    platform = with_topology('{kind: dragonfly, parameters: "3,2;2,1;2,2;20"}', 240)
    with pytest.raises(InputError, match=r"SimGrid 3\.32 crashes on a dragonfly of more groups"):
        export_xml(platform, wiring(platform))


def test_a_host_has_the_rate_of_dgemm_on_its_node() -> None:
    text = export_xml(load_platform(str(DATA / "small.yaml"))).text
    # small.yaml: mean of 1e-10 mnk - 1e-10 mn + 2e-6 s, with rows of their own for two of four CPUs
    speeds = [float(speed) for speed in re.findall(r'<host id="[^"]*" speed="([^"]*)f"', text)]
    assert len(speeds) == 2
    assert all(1e9 < speed < 1e11 for speed in speeds)
    assert speeds[0] != speeds[1]


def test_a_platform_without_dgemm_has_the_nominal_speed() -> None:
    assert 'speed="1000000000.0f"' in export_xml(with_topology("{kind: switch}", 4)).text


def test_the_command_writes_the_file_and_says_what_is_lost(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "dahu.xml"
    assert main(["platform", "export", "dahu", "--output", str(out)]) == 0
    printed = capsys.readouterr()
    answer, caveats = printed.out.splitlines()
    assert answer == f"{out}: 32 hosts of platform dahu-2020-01, dahu-2020-01-1 to dahu-2020-01-32, each at one speed"
    assert caveats.startswith("8 caveats: kernels not exported; days not exported; ")
    assert out.read_text() == export_xml(load_platform("dahu")).text
    assert [path.name for path in tmp_path.iterdir()] == ["dahu.xml"]
