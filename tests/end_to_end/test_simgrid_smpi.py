"""Exported platforms in the real SimGrid: what SMPI says of single messages, of many at once, and of routes."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from support_limits import HANG_S, ran

from lepaute.simulate.machine.core import core_topology, wiring
from lepaute.simulate.platform import Platform, load_platform, override
from lepaute.simulate.platform.io import parse_platform
from lepaute.simulate.platform.network_model import Segment
from lepaute.simulate.platform.simgrid import export_xml, host_name, import_xml

pytestmark = [
    pytest.mark.machine,
    pytest.mark.skipif(
        shutil.which("smpicc") is None or shutil.which("g++") is None,
        reason="SimGrid's smpicc is not installed (Debian: libsimgrid-dev)",
    ),
]
DATA = Path(__file__).parent.parent / "data" / "simgrid"

# A fat tree whose latency is that of its cables: 1 us each, as SimGrid has it. Protocols and breakpoints of all kinds.
SMALL = Path(__file__).parents[1].joinpath("data", "texts", "simgrid_smpi.yaml").read_text()
CABLES = "levels: [{latency_s: 0}, {latency_s: 1e-6}]"
FAT_TREE = f'{{kind: fat-tree, parameters: "2;4,4;1,2;1,1", {CABLES}}}'
DRAGONFLY = f'{{kind: dragonfly, parameters: "3,1;1,1;3,1;2", {CABLES}}}'
TORUS = '{kind: torus, parameters: "4,3", levels: [{latency_s: 1e-6}]}'
GRAPH = (
    '{kind: graph, switches: [{name: a, nodes: "1-3"}, {name: b, nodes: "4-6"}, {name: c}], '
    "links: [{between: [a, c]}, {between: [c, b]}, {between: [n1, n6]}]}"
)
#: Platforms whose latencies are those of their cables.
ON_LINKS = ("fat tree", "dragonfly", "torus")
SIZES = (0, 1, 1000, 1001, 64000, 64001, 5_000_000)


def small(topology: str, count: int, latency_s: float) -> Platform:
    return parse_platform(SMALL.format(count=count, topology=topology, latency=latency_s))


PLATFORMS = {
    "switch": lambda: small("{kind: switch}", 4, 1e-6),
    "fat tree": lambda: small(FAT_TREE, 16, 2e-6),
    "dragonfly": lambda: small(DRAGONFLY, 18, 2e-6),
    "torus": lambda: small(TORUS, 12, 0.0),
    "graph": lambda: small(GRAPH, 6, 1.5e-6),
    "dahu": lambda: override(load_platform("dahu"), {"network.flow_factor": "scale"}),
}


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("simgrid")
    subprocess.run(["smpicc", "-O1", DATA / "messages.c", "-o", folder / "messages"], check=True, timeout=HANG_S)
    source = DATA / "routes.cpp"
    subprocess.run(["g++", "-std=c++17", source, "-o", folder / "routes", "-lsimgrid"], check=True, timeout=HANG_S)
    return folder


def simulated_s(
    platform: Platform,
    nodes: Sequence[int],
    messages: Sequence[str],
    folder: Path,
    work: Path,
    *,
    every_route: bool = False,
) -> list[float]:
    """Seconds of each message, from the call of MPI_Send to the end of the receive; rank r is on nodes[r]."""
    (work / "platform.xml").write_text(export_xml(platform, wiring(platform), every_route=every_route).text)
    (work / "hosts").write_text("".join(f"{host_name(platform, node)}\n" for node in nodes))
    run = ["smpirun", "-no-privatize", "-np", str(len(nodes)), "-platform", "platform.xml", "-hostfile", "hosts"]
    options = ["--cfg=surf/precision:1e-12", "--log=root.thresh:error"]  # smpirun itself says 1e-9
    command = ["timeout", "-k", "1", str(HANG_S), *run, *options, str(folder / "messages"), *messages]
    done = ran(command, cwd=work)
    assert done.returncode == 0, done.stderr[-2000:]
    return [float(line.split()[3]) for line in done.stdout.splitlines()]


def segment_of(segments: Sequence[Segment], size_bytes: int) -> Segment:
    return [s for s in segments if s.above_bytes < size_bytes or s.above_bytes == 0][-1]


def lone_s(platform: Platform, a: int, b: int, size_bytes: int, *, on_links: bool) -> float:
    """What the native engine takes a lone message for: overheads, latency of segment and cables, bytes over bandwidth.

    on_links : latencies are those of links, so that SMPI's 16 bytes of envelope are on top
    """
    segment = segment_of(platform.network.remote.segments, size_bytes)
    topology = core_topology(platform)
    cables_s = sum(topology.links[link][1] for link in topology.route(a, b))
    sent_bytes = size_bytes + (16 if on_links else 0)
    time_s = segment.latency_s + cables_s + sent_bytes / segment.bandwidth_Bps
    if segment.protocol == "rendezvous":
        return time_s
    return time_s + sum(overhead[0] + overhead[1] * size_bytes for overhead in (segment.send, segment.receive))


@pytest.mark.parametrize("name", PLATFORMS)
def test_a_lone_message_takes_its_modelled_time_between_any_two_nodes(name, programs, tmp_path):
    platform = PLATFORMS[name]()
    last = platform.nodes.count - 1
    nodes = (0, 1, platform.nodes.count // 2, last)
    pairs = [(a, b) for a in range(4) for b in range(4) if a != b]
    messages = [(a, b, size) for size in SIZES for a, b in pairs]
    seen = simulated_s(platform, nodes, [f"{a}:{b}:{size}" for a, b, size in messages], programs, tmp_path)
    on_links = name in ON_LINKS
    expected = [lone_s(platform, nodes[a], nodes[b], size, on_links=on_links) for a, b, size in messages]
    assert seen == pytest.approx(expected, rel=1e-6)


def with_one_ratio(dahu: Platform) -> Platform:
    """Dahu whose messages above 64 kB have one rate: bandwidths inside a node are those between nodes times one number,
    which is all that SimGrid's file can say."""
    inside, between = (
        tuple(segment for segment in segments if segment.above_bytes <= 64000)
        for segments in (dahu.network.loopback_segments, dahu.network.remote.segments)
    )
    rate_Bps = between[-1].bandwidth_Bps * inside[0].bandwidth_Bps / between[0].bandwidth_Bps
    nominal = {"bandwidth_Bps": rate_Bps, "latency_s": 0.0}
    links = {"loopback": (*inside[:-1], inside[-1].model_copy(update=nominal)), "remote": between}
    changed = {
        link: getattr(dahu.network, link).model_copy(update={"segments": segments}) for link, segments in links.items()
    }
    return dahu.model_copy(update={"network": dahu.network.model_copy(update=changed)})


def test_a_message_inside_a_node_takes_its_modelled_time_and_the_envelope(programs: Path, tmp_path: Path) -> None:
    platform = with_one_ratio(PLATFORMS["dahu"]())
    sizes = (1, 8133, 8134, 64000, 64001, 5_000_000)
    seen = simulated_s(platform, (0, 0), [f"0:1:{size}" for size in sizes], programs, tmp_path)
    for size, time_s in zip(sizes, seen, strict=True):
        segment = segment_of(platform.network.loopback_segments, size)
        charged = segment.protocol != "rendezvous"
        overheads = (segment.send[0] + segment.receive[0] + (segment.send[1] + segment.receive[1]) * size) * charged
        # a latency of 0 leaves nothing to take the 16 bytes off
        expected = overheads + segment.latency_s + (size + 16) / segment.bandwidth_Bps
        assert time_s == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("every_route", [False, True], ids=["one element", "every route"])
@pytest.mark.parametrize("name", ["switch", "fat tree", "dragonfly", "torus", "graph"])
def test_messages_sent_at_once_share_the_links_of_our_routes(name, every_route, programs, tmp_path):
    platform = PLATFORMS[name]()
    count = platform.nodes.count
    half = count // 2
    # The lower half sends to the upper one: mirrored, shifted, and to every second node, which crowds cables.
    patterns = [
        [(a, count - 1 - a) for a in range(half)],
        [(a, half + (a + 1) % half) for a in range(half)],
        [(a, half + 2 * a) for a in range(half // 2)],
    ]
    size = 8_000_000
    arguments = [",".join(f"{a}:{b}:{size}" for a, b in pattern) for pattern in patterns]
    seen = simulated_s(platform, range(count), arguments, programs, tmp_path, every_route=every_route)
    on_links = name in ON_LINKS
    expected = [time for pattern in patterns for time in shared_s(platform, pattern, size, on_links=on_links)]
    assert seen == pytest.approx(expected, rel=1e-5)
    assert max(seen) > 1.5 * min(seen) or name in ("switch", "torus")  # else nothing was shared


def test_with_every_route_the_latency_of_a_fat_tree_is_that_of_its_segment_on_all_routes(programs, tmp_path):
    platform = small('{kind: fat-tree, parameters: "2;4,4;1,2;1,1"}', 16, 2e-6)
    messages = [f"0:{b}:{size}" for b in (1, 2) for size in SIZES]
    seen = simulated_s(platform, (0, 1, 15), messages, programs, tmp_path, every_route=True)
    expected = [lone_s(platform, 0, b, size, on_links=False) for b in (1, 15) for size in SIZES]
    assert seen == pytest.approx(expected, rel=1e-6)


def shared_s(platform: Platform, pairs: Sequence[tuple[int, int]], size_bytes: int, *, on_links: bool) -> list[float]:
    """The oracle: weighted max-min shares of the links, scaled by segment over link bandwidth, from event to event.

    SimGrid weighs a flow by the inverse of its route's latency: with latencies on links, of its number of links.
    """
    topology = core_topology(platform)
    segment = segment_of(platform.network.remote.segments, size_bytes)
    scale = segment.bandwidth_Bps / platform.network.node_link.bandwidth_Bps
    routes = [topology.route(a, b) for a, b in pairs]
    latency_s = [segment.latency_s + sum(topology.links[link][1] for link in route) for route in routes]
    left = [(size_bytes + 16 * on_links) / scale for _ in pairs]
    end_s: list[float | None] = [None] * len(pairs)
    now_s = 0.0
    while None in end_s:
        active = [i for i in range(len(pairs)) if end_s[i] is None and latency_s[i] <= now_s]
        weights = [1.0 / latency_s[i] for i in active]
        rate = max_min([routes[i] for i in active], weights, [capacity for capacity, _ in topology.links])
        ends = [now_s + left[i] / rate[k] for k, i in enumerate(active)]
        next_s = min([*ends, *(start for start in latency_s if start > now_s)])
        for k, i in enumerate(active):
            left[i] -= rate[k] * (next_s - now_s)
            if ends[k] <= next_s * (1 + 1e-12):
                end_s[i] = next_s
        now_s = next_s
    return [end for end in end_s if end is not None]


def max_min(routes: Sequence[Sequence[int]], weights: Sequence[float], capacities: Sequence[float]) -> list[float]:
    """Progressive filling: the most crowded link settles its flows, and so on."""
    rate: dict[int, float] = {}
    left = list(capacities)
    while len(rate) < len(routes):
        users = {link: [f for f, r in enumerate(routes) if link in r and f not in rate] for r in routes for link in r}
        load = {link: sum(weights[f] for f in flows) for link, flows in users.items() if flows}
        crowded = min(load, key=lambda link: left[link] / load[link])
        level = left[crowded] / load[crowded]
        for flow in users[crowded]:
            rate[flow] = level * weights[flow]
            for used in routes[flow]:
                left[used] -= rate[flow]
    return [rate[f] for f in range(len(routes))]


ROUTED = {
    "a fat tree of three levels": ('{kind: fat-tree, parameters: "3;4,4,4;1,2,2;1,1,2"}', 64),
    "a fat tree with parallel cables below the top": ('{kind: fat-tree, parameters: "2;4,4;1,2;2,1"}', 16),
    "a dragonfly of several chassis": ('{kind: dragonfly, parameters: "3,1;2,1;3,1;2"}', 36),
    "a dragonfly of more groups than routers": ('{kind: dragonfly, parameters: "3,2;2,1;2,2;2"}', 24),
    "a torus of three dimensions": ('{kind: torus, parameters: "4,3,2"}', 24),
    "a torus without a cable": ('{kind: torus, parameters: "5,6", removed: [n1-n2]}', 30),
    "a graph": (GRAPH, 6),
}


@pytest.mark.parametrize("name", ROUTED)
def test_routes_are_ours_link_by_link(name: str, programs: Path, tmp_path: Path) -> None:
    topology, count = ROUTED[name]
    platform = small(topology, count, 1e-6)
    (tmp_path / "platform.xml").write_text(export_xml(platform, wiring(platform)).text)
    command = ["timeout", "-k", "1", str(HANG_S), str(programs / "routes"), "platform.xml", "--log=root.thresh:error"]
    done = ran(command, cwd=tmp_path, check=True)
    theirs = {tuple(line.split("\t")[:2]): line.split("\t")[3:] for line in done.stdout.splitlines()}
    ours = core_topology(platform)
    named: dict[str, int] = {}  # SimGrid's name of a link -> our number; one to one
    for a in range(count):
        for b in range(count):
            if a == b:
                continue
            route = [n for n in theirs[host_name(platform, a), host_name(platform, b)] if not n.endswith("_latency")]
            assert len(route) == len(ours.route(a, b))
            for link, number in zip(route, ours.route(a, b), strict=True):
                assert named.setdefault(link, number) == number
    assert len(set(named.values())) == len(named)


def test_a_lone_message_on_an_imported_platform_of_zones_takes_as_long_as_under_smpi(programs, tmp_path):
    """All pairs of hosts; the file says nothing of factors, so that SimGrid's depend on the size."""
    hosts = ["a-0", "a-1", "b-0", "b-1", "r-0", "r-1", "h0", "h1", "h2"]
    (tmp_path / "hosts").write_text("\n".join(hosts))
    messages = [(a, b, size) for size in (1, 10_000, 1_000_000) for a in range(9) for b in range(9) if a != b]
    run = ["smpirun", "-no-privatize", "-np", "9", "-platform", DATA / "zones.xml", "-hostfile", tmp_path / "hosts"]
    options = ["--cfg=surf/precision:1e-12", "--cfg=smpi/wtime:0", "--cfg=smpi/simulate-computation:no"]
    arguments = [f"{a}:{b}:{size}" for a, b, size in messages]
    done = ran([*run, *options, "--log=root.thresh:error", programs / "messages", *arguments], cwd=tmp_path)
    seen = [float(line.split()[3]) for line in done.stdout.splitlines()]
    platform = import_xml((DATA / "zones.xml").read_bytes()).platform
    topology, link_Bps = core_topology(platform), platform.network.node_link.bandwidth_Bps
    expected = []
    for a, b, size in messages:
        segment = segment_of(platform.network.remote.segments, size)
        links = [topology.links[link] for link in topology.route(a, b)]
        narrowest_Bps = min(link_Bps, *(width for width, _ in links)) * segment.bandwidth_Bps / link_Bps
        expected.append(segment.cable_latency_factor * sum(latency for _, latency in links) + size / narrowest_Bps)
    assert seen == pytest.approx(expected, rel=0.003)  # of 16 bytes more
