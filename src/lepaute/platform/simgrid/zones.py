"""Hosts, links and routes of a platform as elements of SimGrid's XML."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from xml.sax.saxutils import quoteattr

from lepaute.platform.schema import Platform
from lepaute.platform.simgrid.decimals import exact, text_of
from lepaute.platform.simgrid.latency import Latencies
from lepaute.platform.simgrid.loopback import LoopbackLink
from lepaute.platform.topology import Topology

TOPOLOGIES = {"switch": "FLAT", "fat-tree": "FAT_TREE", "dragonfly": "DRAGONFLY", "torus": "TORUS"}
_NEVER_A_LIMIT_BPS = "1e18Bps"


@dataclass(frozen=True, slots=True)
class Wiring:
    """The links of a topology as (name, bandwidth_Bps, latency_s), and the numbers of those from node a to node b."""

    links: Sequence[tuple[str, float, float]]
    route: Callable[[int, int], Sequence[int]]


@dataclass(frozen=True, slots=True)
class Parts:
    """What all forms of a zone are made of; `prefix` and a node's number are the name of its host."""

    platform: Platform
    latencies: Latencies
    loopback: LoopbackLink
    speeds_flops: tuple[float, ...]
    prefix: str

    def host(self, node: int) -> str:
        """Name of node 0, 1, ..."""
        return f"{self.prefix}{self.platform.nodes.first_number + node}"


def cable_bandwidths_Bps(platform: Platform) -> set[float]:  # noqa: N802 - the unit
    """The bandwidths that the cables of the levels of `platform` have."""
    standard = platform.network.node_link.bandwidth_Bps
    return {level.bandwidth_Bps or standard for level in platform.topology.levels or ()} or {standard}


def simgrid_routes_otherwise(topology: Topology) -> bool:
    """Are there routes that SimGrid 3.32 takes another way, where ours keep to the rule (docs/platform.md)?"""
    sizes = topology.sizes
    if topology.kind == "fat-tree":
        return any(cables > 1 for cables in sizes[3][:-1])
    if topology.kind == "dragonfly":
        (groups, _), (chassis, _), (routers, _), _ = sizes
        return chassis > 1 or groups > routers
    return False


def limiters_fit(topology: Topology) -> bool:
    """Has a cluster element what limits nodes and switches? It gives both the same limit, but for a single switch."""
    limiters = topology.limiters
    if limiters is None or topology.kind == "switch":
        return True
    return topology.kind != "torus" and limiters.node_bandwidth_Bps == limiters.switch_bandwidth_Bps


def cluster(parts: Parts) -> Iterator[str]:
    """One element for all hosts, which have the mean of their speeds."""
    nodes, topology = parts.platform.nodes, parts.platform.topology
    last = nodes.first_number + nodes.count - 1
    speed = sum(parts.speeds_flops) / len(parts.speeds_flops)
    attributes = {
        "id": f"{parts.prefix}cluster",
        "prefix": parts.prefix,
        "suffix": "",
        "radical": f"{nodes.first_number}-{last}",
        "speed": f"{speed!r}f",
        "core": str(nodes.cores),
        "bw": f"{max(cable_bandwidths_Bps(parts.platform))!r}Bps",
        "lat": f"{text_of(parts.latencies.link_s)}s",
        "sharing_policy": _policy(parts.platform),
        "loopback_bw": f"{text_of(parts.loopback.bandwidth_Bps)}Bps",
        "loopback_lat": f"{text_of(parts.loopback.latency_s)}s",
    }
    if topology.kind != "switch":
        attributes |= {"topology": TOPOLOGIES[topology.kind], "topo_parameters": topology.parameters or ""}
    limiters = topology.limiters
    if limiters is not None and limiters_fit(topology):
        if limiters.node_bandwidth_Bps is not None:
            attributes["limiter_link"] = f"{limiters.node_bandwidth_Bps!r}Bps"
        if limiters.switch_bandwidth_Bps is not None and topology.kind == "switch":
            attributes["bb_bw"] = f"{limiters.switch_bandwidth_Bps!r}Bps"
    yield _element("cluster", attributes)


def star(parts: Parts) -> Iterator[str]:
    """A host and a link for each node of a switch, so that each has its own speed."""
    platform = parts.platform
    shared = platform.topology.duplex == "shared"
    width = f"{max(cable_bandwidths_Bps(platform))!r}Bps"
    nodes = range(platform.nodes.count)
    yield f'<zone id={quoteattr(parts.prefix + "cluster")} routing="Cluster">'
    yield from _hosts(parts)
    for node in nodes:
        yield _link(f"{parts.host(node)}_link", width, parts.latencies.link_s, _policy(platform))
    yield from _loopback_links(parts)
    for node in nodes:
        link = f"{parts.host(node)}_link"
        up, down = (link, link) if shared else (f"{link}_UP", f"{link}_DOWN")
        yield _element("host_link", {"id": parts.host(node), "up": up, "down": down})
    limiters = platform.topology.limiters
    if limiters is not None and limiters.switch_bandwidth_Bps is not None:
        backbone = {"id": "switch", "bandwidth": f"{limiters.switch_bandwidth_Bps!r}Bps", "latency": "0s"}
        yield _element("backbone", backbone)
    yield from _loopback_routes(parts)
    yield "</zone>"


def mesh(parts: Parts, wiring: Wiring) -> Iterator[str]:
    """Every link, and the route between every two nodes; each route has the latency that the platform says.

    The latency of a segment is that of a link of its own at the start of each route, wide enough to limit nothing.
    """
    nodes = range(parts.platform.nodes.count)
    yield f'<zone id={quoteattr(parts.prefix + "cluster")} routing="Full">'
    yield from _hosts(parts)
    for name, bandwidth_Bps, latency_s in wiring.links:
        yield _link(name, f"{bandwidth_Bps!r}Bps", exact(latency_s), "SHARED")
    for node in nodes:
        yield _link(f"{parts.host(node)}_latency", _NEVER_A_LIMIT_BPS, parts.latencies.nominal_s, "FATPIPE")
    yield from _loopback_links(parts)
    yield from _loopback_routes(parts)
    for a in nodes:
        for b in nodes:
            if a != b:
                links = [f"{parts.host(a)}_latency", *(wiring.links[link][0] for link in wiring.route(a, b))]
                yield _route(parts.host(a), parts.host(b), links, symmetrical=False)
    yield "</zone>"


def _hosts(parts: Parts) -> Iterator[str]:
    for node, speed in enumerate(parts.speeds_flops):
        yield _element(
            "host", {"id": parts.host(node), "speed": f"{speed!r}f", "core": str(parts.platform.nodes.cores)}
        )


def _loopback_links(parts: Parts) -> Iterator[str]:
    width = f"{text_of(parts.loopback.bandwidth_Bps)}Bps"
    for node in range(parts.platform.nodes.count):
        yield _link(f"{parts.host(node)}_loopback", width, parts.loopback.latency_s, "FATPIPE")


def _loopback_routes(parts: Parts) -> Iterator[str]:
    for node in range(parts.platform.nodes.count):
        host = parts.host(node)
        yield _route(host, host, [f"{host}_loopback"], symmetrical=True)


def _policy(platform: Platform) -> str:
    return "SHARED" if platform.topology.duplex == "shared" else "SPLITDUPLEX"


def _link(name: str, bandwidth: str, latency_s: Decimal, policy: str) -> str:
    latency = f"{text_of(latency_s)}s"
    return _element("link", {"id": name, "bandwidth": bandwidth, "latency": latency, "sharing_policy": policy})


def _route(source: str, destination: str, links: Sequence[str], *, symmetrical: bool) -> str:
    inside = "".join(_element("link_ctn", {"id": link}) for link in links)
    ends = {"src": source, "dst": destination} | ({} if symmetrical else {"symmetrical": "NO"})
    return _element("route", ends, inside)


def _element(tag: str, attributes: dict[str, str], inside: str = "") -> str:
    written = " ".join(f"{name}={quoteattr(value)}" for name, value in attributes.items())
    return f"<{tag} {written}>{inside}</{tag}>" if inside else f"<{tag} {written}/>"
