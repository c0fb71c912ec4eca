"""Platforms as SimGrid's XML, out and in: what is said to be lost, and what is refused."""

import json
import re
from pathlib import Path

import pytest

from lepaute.cli.main import main
from lepaute.errors import InputError, LepauteError
from lepaute.simulate.machine.core import core_topology, wiring
from lepaute.simulate.platform import Platform, load_platform, override
from lepaute.simulate.platform.simgrid import export_xml, host_name, import_xml
from lepaute.simulate.platform.simgrid.machines import bandwidth_Bps

DATA = Path(__file__).parent.parent / "data" / "simgrid"
EFFECTIVE = json.loads((DATA / "effective.json").read_text())


def imported(name: str):
    return import_xml((DATA / f"{name}.xml").read_bytes(), name)


def zone(inside: str, config: str = "") -> str:
    return (
        f'<platform version="4.1"><config>{config}<prop id="smpi/bw-factor" value="0:0.5"/>'
        f'<prop id="smpi/lat-factor" value="0:2"/></config><zone id="z" routing="Full">{inside}</zone></platform>'
    )


def cluster(**changed: str) -> str:
    attributes = {
        "id": "c", "prefix": "n-", "suffix": "", "radical": "0-3", "speed": "1Gf", "bw": "1GBps", "lat": "1us",
    }  # fmt: skip
    return zone("<cluster " + " ".join(f'{k}="{v}"' for k, v in (attributes | changed).items()) + "/>")


def two(more: str = "") -> str:
    """Clusters c and d, and more behind them."""
    other = cluster(id="d", radical="4-7")
    return cluster().replace("</zone>", other[other.index("<cluster") : other.index("</zone>")] + f"{more}</zone>")


@pytest.mark.parametrize("name", EFFECTIVE)
def test_public_platforms_have_the_bandwidths_and_latencies_that_their_factors_stand_for(name: str) -> None:
    platform = imported(name).platform
    expected = EFFECTIVE[name]
    by_start = {segment.above_bytes: segment for segment in platform.network.remote.segments}
    for above_bytes, latency_s, bandwidth in expected["remote"]:
        segment = by_start[above_bytes]
        assert segment.latency_s == pytest.approx(latency_s, rel=1e-12, abs=1e-18)
        assert segment.bandwidth_Bps == pytest.approx(bandwidth, rel=1e-12)
    inside = {segment.above_bytes: segment for segment in platform.network.loopback_segments}
    for above_bytes, latency_s, bandwidth in expected["local"] or []:
        assert inside[above_bytes].latency_s == pytest.approx(latency_s, rel=1e-12, abs=1e-18)
        assert inside[above_bytes].bandwidth_Bps == pytest.approx(bandwidth, rel=1e-12)
    first, last = map(int, expected["nodes"].split("-"))
    assert (platform.nodes.first_number, platform.nodes.count) == (first, last - first + 1)
    core_topology(platform)


@pytest.mark.parametrize("name", ["taurus", "dahu-optimistic-2019", "dahu-realistic-2020"])
def test_protocols_change_where_the_thresholds_are(name: str) -> None:
    segments = imported(name).platform.network.remote.segments
    eager, detached = EFFECTIVE[name]["eager_max_bytes"], EFFECTIVE[name]["detached_max_bytes"]
    for segment in segments:
        largest = segment.above_bytes + 1
        wanted = "eager" if largest <= eager else "detached" if largest <= detached else "rendezvous"
        assert segment.protocol == wanted


def test_overheads_and_costs_of_taurus_are_those_of_the_file() -> None:
    network = imported("taurus").platform.network
    assert network.remote.segments[1].send == (4.06752467953734e-06, 8.98782555257323e-11)
    assert network.remote.segments[1].isend == (3.83673729379869e-06, 7.84867337035856e-11)
    assert network.remote.segments[1].receive == (8.16124874852713e-06, 2.66840481979518e-10)
    assert (network.costs.iprobe_s, network.costs.wtime_s) == (3.49479752916953e-07, 4.195637e-08)
    assert network.flow_factor == "scale"


def test_a_fat_tree_of_one_latency_factor_keeps_the_latency_of_each_cable() -> None:
    platform = imported("stampede").platform
    assert (platform.name, platform.topology.kind, platform.topology.parameters) == (
        "stampede", "fat-tree", "2;20,320;1,8;1,2"
    )  # fmt: skip
    topology = core_topology(platform)
    for other, links in ((1, 2), (6399, 4)):
        cables_s = sum(topology.links[link][1] for link in topology.route(0, other))
        assert platform.network.remote.segments[0].latency_s + cables_s == pytest.approx(links * 5.2e-6, rel=1e-12)


def test_cabinets_have_the_backbone_of_their_zone() -> None:
    one = '<cabinet id="cab{0}" prefix="n-" suffix="" radical="{1}" speed="1Gf" bw="1GBps" lat="1us"/>'
    inside = one.format(1, "1-4") + one.format(2, "5-8") + '<backbone id="bb" bandwidth="20GBps" latency="3us"/>'
    topology = core_topology(import_xml(zone(inside).replace("Full", "Cluster")).platform)
    assert [topology.link_name(link) for link in topology.route(0, 7)[:3]] == ["z_link_n-1_UP", "bb", "z_link_n-8_DOWN"]


def test_what_is_ignored_is_said() -> None:
    notes = "\n".join(imported("taurus").notes)
    for word in ("watt_per_state", "network/crosstraffic", "plus 16 bytes", "kernel models"):
        assert word in notes
    assert "smpi/async-small-thresh, smpi/send-is-detached-thresh" in "\n".join(imported("stampede").notes)


def test_limiter_backbone_and_shared_links_of_a_cluster_are_read_and_what_changes_no_message_is_named() -> None:
    energy = '<prop id="wattage_off" value="10"/>'
    text = cluster(speed="2Gf,1Gf").replace("/></zone>", f">{energy}</cluster></zone>")
    service = (
        '<zone id="s"><host id="front" speed="0Gf"/></zone><zoneRoute src="s" dst="c"><link_ctn id="l"/></zoneRoute>'
    )
    found = import_xml(text.replace("</zone>", f"{service}</zone>"))
    assert found.platform.sha256 == import_xml(cluster()).platform.sha256
    assert found.notes[0].startswith(
        "ignored: speeds (computing follows kernel models), p-states (c), energy (wattage_off)"
    )
    assert found.notes[1] == "hosts without speed are left out, as those of services: front."
    topology = import_xml(
        cluster(limiter_link="1.5GBps", bb_bw="20GBps", bb_lat="3us", sharing_policy="SHARED")
    ).platform
    assert topology.topology.limiters.node_bandwidth_Bps == 1.5e9
    assert topology.topology.limiters.switch_bandwidth_Bps == 2e10
    assert topology.topology.duplex == "shared"
    assert topology.network.remote.segments[0].latency_s == pytest.approx(2 * (2 * 1e-6 + 3e-6))


HOSTS = "".join(f'<host id="h{i}" speed="1Gf" core="4"/>' for i in (5, 6, 7))
LINKS = "".join(f'<link id="l{i}" bandwidth="8Gbps" latency="2us" sharing_policy="SPLITDUPLEX"/>' for i in (5, 6, 7))
STAR = zone(
    HOSTS + LINKS + "".join(f'<host_link id="h{i}" up="l{i}_UP" down="l{i}_DOWN"/>' for i in (5, 6, 7))
    + '<backbone id="bb" bandwidth="100GBps" latency="1us"/>'
)  # fmt: skip


def test_hosts_around_a_switch_are_a_switch() -> None:
    platform = import_xml(STAR).platform
    assert (platform.nodes.count, platform.nodes.first_number, platform.nodes.cores) == (3, 5, 4)
    assert platform.topology.kind == "switch"
    assert platform.topology.limiters.switch_bandwidth_Bps == 1e11
    assert platform.network.node_link.bandwidth_Bps == 1e9
    assert platform.network.remote.segments[0].bandwidth_Bps == 0.5e9
    assert platform.network.remote.segments[0].latency_s == pytest.approx(2 * 5e-6)


def test_hosts_with_unlike_links_have_routes() -> None:
    star = STAR.replace('routing="Full"', 'routing="Cluster"')
    shared = star.replace("SPLITDUPLEX", "SHARED").replace("_UP", "").replace("_DOWN", "")
    unlike = star.replace('id="l7" bandwidth="8', 'id="l7" bandwidth="4')
    assert [import_xml(text).platform.topology.kind for text in (shared, unlike)] == ["switch", "routes"]


#: Two clusters, one half-duplex behind a backbone, a zone of cabinets, shortest paths between them but for a bypass.
ZONES = (DATA / "zones.xml").read_text()


def test_routes_through_zones_have_the_links_that_the_zones_say() -> None:
    found = import_xml(ZONES)
    topology = core_topology(found.platform)
    assert topology.nodes == 9

    def links(a: int, b: int) -> list[str]:
        names = [topology.link_name(link) for link in topology.route(a, b)]
        return [name for name in names if not name.startswith("flow")]

    assert links(0, 1) == ["left_link_a-0_UP", "left_link_a-1_DOWN"]
    # a link of both directions, and the backbone once
    assert links(2, 3) == ["right_link_b-0", "right_backbone", "right_link_b-1"]
    assert links(0, 2) == ["left_link_a-0_UP", "short", "right_backbone", "right_link_b-0"]
    assert links(2, 0) == ["right_link_b-0", "right_backbone", "long", "short", "left_link_a-0_DOWN"]
    assert links(4, 5) == ["rack_link_r-0_UP", "bb", "rack_link_r-1_DOWN"]
    assert links(0, 4)[1:4] == ["short", "long", "bb"]  # through the zone in between
    assert links(4, 6) == ["rack_link_r-0_UP", "bb", "third", "x"]
    assert links(6, 8) == ["x", "y"]
    assert links(8, 6) == ["direct"]
    # a flow's own part of a FATPIPE
    assert topology.links[topology.route(8, 6)[-1]][0] == 10e6
    assert "FATPIPE" in "".join(found.notes)
    again = import_xml(export_xml(found.platform, wiring(found.platform)).text).platform
    assert again.topology == found.platform.topology
    assert again.network.remote == found.platform.network.remote


def test_the_latency_factor_of_a_tree_may_depend_on_the_size_of_messages() -> None:
    tree = import_xml(cluster(**TREE).replace('"0:2"', '"0:2;100:3"')).platform
    segments = tree.network.remote.segments
    assert {(s.latency_s, s.cable_latency_factor) for s in segments} == {(4e-6, 2.0), (6e-6, 3.0)}
    assert tree.topology.levels[1].latency_s == 1e-6
    assert import_xml(export_xml(tree, wiring(tree)).text).platform.network.remote == tree.network.remote


@pytest.mark.parametrize(
    ("text", "bytes_per_s"),
    [
        ("10Gbps", 1.25e9), ("7.0GBps", 7e9), ("1MiBps", 2**20), ("8Kibps", 1024), ("125kBps", 125e3), ("3e6", 3e6),
        ("1EBps", 1e18),
    ],
)  # fmt: skip
def test_bandwidths_are_read_in_all_units(text: str, bytes_per_s: float) -> None:
    assert bandwidth_Bps(text, "bw") == bytes_per_s


PASSWD = 'SYSTEM "file:///etc/passwd"'
MESH = zone(
    "".join(f'<host id="a{i}" speed="1f"/>' for i in (1, 2, 3))
    + '<link id="x" bandwidth="1"/><link id="y" bandwidth="1"/>'
    + '<route src="a1" dst="a2"><link_ctn id="x"/></route><route src="a1" dst="a3"><link_ctn id="y"/></route>'
    + '<route src="a2" dst="a3"><link_ctn id="x"/></route>'
)
#: What a platform has no counterpart of, put behind a cluster, or in the place of something in it.
UNMODELLED = {
    "trace_connect": ('<trace_connect src="a" dst="b"/>', "trace_connect 'a': is a "),
    "trace": ('<trace id="t" periodicity="1.0">0 1</trace>', "trace 't': is a profile"),
    "peer": ('<peer id="p" speed="1Gf" bw_in="1" bw_out="1" lat="1"/>', "peer 'p': is a peer"),
    "file": ('<link id="l" bandwidth="1" bandwidth_file="f"/>', "link 'l': has bandwidth_file"),
    "vivaldi": ('<zone id="v" routing="Vivaldi"/>', "zone 'v': has routing Vivaldi"),
    "wifi": ('<link id="l" bandwidth="1" sharing_policy="WIFI"/>', "link 'l': has sharing_policy WIFI"),
}
TREE = {"topology": "FAT_TREE", "topo_parameters": "2;2,2;1,2;1,1"}
BAD = {
    **{what: (cluster().replace("</zone>", f"{text}</zone>"), message) for what, (text, message) in UNMODELLED.items()},
    "zone route": (two('<zoneRoute src="c" dst="d"><link_ctn/></zoneRoute>'),
                   "link_ctn '': there is no link ''"),
    "way of a link": (MESH.replace('id="y" b', 'id="y" sharing_policy="SPLITDUPLEX" b'),
                      "link_ctn 'y': there is no link 'y'; give it a direction"),
    "twice over a link": (MESH.replace('<link_ctn id="y"/>', '<link_ctn id="y"/><link_ctn id="y"/>'),
                          "the route from 'a1' to 'a3' has no link, or one twice"),
    "no way": (MESH.replace('src="a2" dst="a3"', 'src="a2" dst="a3" symmetrical="NO"'),
               "zone 'z' has no route from 'a3' to 'a2'"),
    "link of nothing": (MESH.replace('"y" bandwidth="1"', '"y" bandwidth="0"'), "bandwidth of link 'y' is 0"),
    "gateways": (zone('<zone id="a" routing="Full"><host id="x"/></zone>'
                      '<zone id="b" routing="Full"><host id="y"/></zone><link id="l" bandwidth="1"/>'
                      '<zoneRoute src="a" dst="b" gw_src="y" gw_dst="x">'
                      '<link_ctn id="l"/></zoneRoute>'), "gateways lead nowhere on the way from 'x' to 'y'"),
    "hosts twice": (MESH.replace('id="a2"', 'id="a1"', 1), "is a second host of the name 'a1'"),
    "dragonfly": (cluster(topology="DRAGONFLY", topo_parameters="1,1;2,1;1,1;2"), "in a dragonfly of several chassis"),
    "tree beside a host": (cluster(**TREE).replace("</zone>", '<host id="front" speed="1f"/></zone>'),
                           "cluster 'c': its routing or topology cannot be imported together"),
    "many hosts": (cluster(radical="0-256").replace("</zone>", '<host id="front" speed="1f"/></zone>'),
                   "routes between every two of more than 256 hosts"),
    "fatpipe": (cluster(sharing_policy="FATPIPE"), "sharing_policy of cluster 'c' is 'FATPIPE'"),
    "bandwidth": (cluster(bw="fast"), "platform.xml:1: bw of cluster 'c' is 'fast'"),
    "unit": (cluster(lat="3parsec"), "lat of cluster 'c' is '3parsec'"),
    "radical": (cluster(radical="7-3"), "radical of cluster 'c' is '7-3'"),
    "no radical": (zone('<cluster id="c" prefix="n" bw="1" lat="1"/>'), "radical of cluster 'c' is missing"),
    "too many": (cluster(radical="0-999999999"), "at most 1000000 numbers"),
    "topology": (cluster(topology="RING"), "it must be one of FLAT"),
    "parameters": (cluster(topology="TORUS", topo_parameters="3,3"), "is for 9 nodes; nodes.count is 4"),
    "two clusters": (two(), "zone 'z' has no route from 'c' to 'd'"),
    "nothing": (zone(""), "has neither a cluster nor a host"),
    "no platform": ("<html/>", "the root element is 'html'"),
    "not XML": ("<platform>\n<zone></platform>", "platform.xml:2: is not XML (mismatched tag)"),
    "empty": ("", "is not XML (no element found)"),
    "negative": (cluster(bw="-1Bps"), "bw of cluster 'c' is '-1Bps'"),
    "zero": (cluster(bw="0Bps"), "is not a valid platform"),
    "factor": (cluster().replace('"0:2"', '"0:x"'), "smpi/lat-factor: a value is 'x'"),
    "our property": (
        cluster().replace("<cluster", '<prop id="lepaute:name" value="7"/><cluster'),
        "lepaute:name is '7'",
    ),
    "deep": ("<platform>" + "<zone>" * 50 + "</zone>" * 50 + "</platform>", "nested more than 32 deep"),
    "entity": ('<!DOCTYPE platform [<!ENTITY a "x">]><platform/>', "declares an internal DTD or entities"),
    "external entity": (f"<!DOCTYPE platform [<!ENTITY a {PASSWD}>]><platform>&a;</platform>", "declares"),
    "parameter entity": (f"<!DOCTYPE platform [<!ENTITY % a {PASSWD}> %a;]><platform/>", "declares"),
    "attribute defaults": ('<!DOCTYPE platform [<!ATTLIST cluster bw CDATA "1Bps">]><platform/>', "declares"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_what_is_no_platform_is_refused_in_one_line(what: str) -> None:
    text, message = BAD[what]
    with pytest.raises(LepauteError) as refused:
        import_xml(text)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_command_writes_a_platform_that_check_and_show_take(output_of, tmp_path):
    out = tmp_path / "taurus.yaml"
    assert f"{out}: platform taurus: 16 nodes of 12 cores" in output_of(
        "platform", "import", DATA / "taurus.xml", "-o", out
    )
    assert "watt_per_state" in output_of("platform", "import", DATA / "taurus.xml", "-o", out, "--force", "--details")
    assert main(["platform", "check", str(out)]) == 0
    assert "taurus: 16 nodes of 12 cores, " in output_of("platform", "show", out)
    assert load_platform(out) == imported("taurus").platform


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
    factors, overheads = (setting(text, f"smpi/{name}").split(";")[:5] for name in ("bw-factor", "os"))
    assert [entry.split(":")[0] for entry in factors] == ["0", "8149", "15847", "33972", "64016"]
    assert [entry.split(":")[0] for entry in overheads] == ["0", "8133", "15831", "33956", "64000"]
    assert setting(text, "smpi/async-small-thresh") == "64001"


def test_the_file_itself_says_what_it_does_not_hold() -> None:
    exported = export_xml(load_platform("dahu"))
    comment = exported.text[exported.text.index("<!--") : exported.text.index("-->")]
    assert exported.lost
    assert all(sentence in comment for sentence in exported.lost)
    assert "--" not in comment[4:]


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


def test_a_graph_and_a_dragonfly_on_which_simgrid_crashes_need_wiring_and_not_too_many_nodes() -> None:
    graph = with_topology('{kind: graph, switches: [{name: a, nodes: "0-2"}]}', 3)
    assert import_xml(export_xml(graph, wiring(graph)).text).platform == graph
    with pytest.raises(InputError, match="graph of 3 nodes cannot be written"):
        export_xml(graph)
    large = with_topology('{kind: graph, switches: [{name: a, nodes: "0-199"}]}', 200)
    with pytest.raises(InputError, match="up to 128 nodes"):
        export_xml(large, wiring(large))
    platform = with_topology('{kind: dragonfly, parameters: "3,2;2,1;2,2;20"}', 240)
    with pytest.raises(InputError, match=r"SimGrid 3\.32 crashes on a dragonfly of more groups"):
        export_xml(platform, wiring(platform))


def test_the_command_writes_the_file_and_says_what_is_lost(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "dahu.xml"
    assert main(["platform", "export", "dahu", "--output", str(out)]) == 0
    answer, caveats = capsys.readouterr().out.splitlines()
    assert answer == f"{out}: 32 hosts of platform dahu-2020-01, dahu-2020-01-1 to dahu-2020-01-32, each at one speed"
    assert caveats.startswith("8 caveats: kernels not exported; days not exported; ")
    assert out.read_text() == export_xml(load_platform("dahu")).text
    assert [path.name for path in tmp_path.iterdir()] == ["dahu.xml"]
