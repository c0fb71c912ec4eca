"""Hosts, links and routes of a platform as elements of SimGrid's XML; the speed of hosts, the link inside a node.

Latencies SMPI has by the link and we by the route; numbers are texts that say exactly what is meant. SMPI multiplies
the sum of the latencies of a route's links by a factor that depends on the size of the message. A segment of ours says
the latency of the whole route, however many links it has, and cables may add to it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from math import fsum
from xml.sax.saxutils import quoteattr

from lepaute.simulate.platform.kernel_model import piece_of, value_of
from lepaute.simulate.platform.network_model import Network, Segment
from lepaute.simulate.platform.schema import Platform
from lepaute.simulate.platform.simgrid.routes import FLOW
from lepaute.simulate.platform.topology import Topology

#: What SMPI adds to each message: tag, destination, communicator.
ENVELOPE_BYTES = 16
NOMINAL_S = Decimal("1e-7")
#: A factor is a bandwidth over another; written as the quotient of two doubles it would not always give the first one
#: back. With 20 digits it does: the error is far below half a unit in the last place of a double.
_WRITTEN = Context(prec=20)
_EXACT = Context(prec=60)


def quotient(number: Decimal, divisor: Decimal) -> Decimal:
    """`number` / `divisor`, 20 digits."""
    return _WRITTEN.divide(number, divisor)


def text_of(number: Decimal) -> str:
    """The shortest text of `number`, such as 0.795 or 1.5E-7."""
    return str(_WRITTEN.plus(number).normalize(_WRITTEN))


def product(*factors: Decimal) -> Decimal:
    """The product of `factors`, exact for as many digits as files have."""
    result = Decimal(1)
    for factor in factors:
        result = _EXACT.multiply(result, factor)
    return result


@dataclass(frozen=True, slots=True)
class Latencies:
    """Latencies from the links and the factors of a platform.

    link_s        : latency of each link of a cluster, in seconds
    nominal_s     : latency that the factors multiply on the longest route, in seconds
    totals_s      : latency of the longest route, of each segment between nodes
    factors       : of each segment between nodes
    enveloped     : of each segment, was the time of the envelope taken off its latency
    same_on_every_route : do all routes have the latency that the platform says
    """

    link_s: Decimal
    nominal_s: Decimal
    totals_s: tuple[Decimal, ...]
    factors: tuple[Decimal, ...]
    enveloped: tuple[bool, ...]
    same_on_every_route: bool


def longest_route(topology: Topology) -> tuple[int, ...]:
    """The level of each link of a longest route between two nodes; of a graph (0, 0)."""
    sizes = topology.sizes
    if topology.kind == "fat-tree":
        levels = tuple(range(sizes[0][0]))
        return levels + levels[::-1]
    if topology.kind == "dragonfly":
        groups, chassis, routers = (part[0] for part in sizes[:3])
        inside = (1,) * (routers > 1) + (2,) * (chassis > 1)
        return (0, *inside, *((3, *inside) if groups > 1 else ()), 0)
    if topology.kind == "torus":
        return tuple(level for level, size in enumerate(sizes[0]) for _ in range(size // 2)) or (0,)
    return (0, 0)


def _level_latency_s(topology: Topology, level: int) -> Decimal:
    """Latency that a cable of `level` adds to the latency of a message, in seconds."""
    levels = topology.levels or ()
    if not levels:
        return Decimal(0)
    return Decimal(levels[min(level, len(levels) - 1)].latency_s or 0.0)


def cables_add_latency(topology: Topology) -> bool:
    """Does some cable add to the latency of a message?"""
    lists = (topology.levels, topology.changed, topology.links, topology.route_links)
    return any(cable.latency_s for cables in lists for cable in cables or ())


def plan(platform: Platform, *, explicit: bool) -> Latencies:
    """The latencies to export for `platform`; `explicit`: the file gives every link its own latency."""
    topology = platform.topology
    segments = platform.network.remote.segments
    route = longest_route(topology)
    if not explicit and (link_s := _latency_of_each_link(topology, segments, route)) is not None:
        return _same(link_s, link_s * len(route), len(segments))
    by_size = tuple(
        Decimal(1 if segment.cable_latency_factor is None else segment.cable_latency_factor) for segment in segments
    )
    if set(by_size) != {Decimal(1)}:  # the factors are for all latencies
        of_route_s = Decimal(segments[0].latency_s) / by_size[0] if by_size[0] else Decimal(0)
        all_s = tuple(product(of_route_s, factor) for factor in by_size)
        return Latencies(of_route_s, of_route_s, all_s, by_size, (False,) * len(by_size), same_on_every_route=True)
    if explicit and cables_add_latency(topology) and len({segment.latency_s for segment in segments}) == 1:
        total_s = Decimal(segments[0].latency_s)
        return _same(total_s, total_s, len(segments))
    added_s = Decimal(0) if explicit else sum((_level_latency_s(topology, level) for level in route), Decimal(0))
    totals_s = [Decimal(segment.latency_s) + added_s for segment in segments]
    envelopes = [quotient(Decimal(ENVELOPE_BYTES), Decimal(segment.bandwidth_Bps)) for segment in segments]
    enveloped = tuple(latency >= envelope for latency, envelope in zip(totals_s, envelopes, strict=True))
    nominal_s = next((latency for latency in totals_s if latency > 0), NOMINAL_S)
    factors = tuple(
        quotient(latency - envelope if taken else latency, nominal_s)
        for latency, envelope, taken in zip(totals_s, envelopes, enveloped, strict=True)
    )
    link_s = quotient(nominal_s, Decimal(len(route)))
    return Latencies(link_s, nominal_s, tuple(totals_s), factors, enveloped, explicit or topology.is_switch)


def _same(link_s: Decimal, total_s: Decimal, segments: int) -> Latencies:
    """Latencies if all segments have the same one."""
    ones, none = (Decimal(1),) * segments, (False,) * segments
    return Latencies(link_s, total_s, (total_s,) * segments, ones, none, same_on_every_route=True)


def _latency_of_each_link(topology: Topology, segments: tuple[Segment, ...], route: tuple[int, ...]) -> Decimal | None:
    """The one latency that each link has, where segments and cables together say just that; else None."""
    if topology.kind in ("switch", "routes") or len({segment.latency_s for segment in segments}) > 1:
        return None
    of_segment = Decimal(segments[0].latency_s)
    if topology.kind == "torus":
        cables = {_level_latency_s(topology, level) for level in route}
        return cables.pop() if len(cables) == 1 and of_segment == 0 else None
    of_node_cable = quotient(of_segment, Decimal(2)) + _level_latency_s(topology, 0)
    others = {_level_latency_s(topology, level) for level in route if level > 0}
    return of_node_cable if all(float(other) == float(of_node_cable) for other in others) else None


def remote_latency_s(nominal_s: Decimal, factor: Decimal, bandwidth_Bps: float | None) -> float:
    """The latency that a factor stands for; `bandwidth_Bps`: that of the segment where the envelope was taken off."""
    latency = product(nominal_s, factor)
    if bandwidth_Bps is not None:
        latency += quotient(Decimal(ENVELOPE_BYTES), Decimal(bandwidth_Bps))
    return float(latency)


TOPOLOGIES = {"switch": "FLAT", "fat-tree": "FAT_TREE", "dragonfly": "DRAGONFLY", "torus": "TORUS"}
_NEVER_A_LIMIT_BPS = "1e18Bps"
_TOLERANCE = Decimal("1e-9")  # of ratios that were the same before they were written with 15 digits
#: Speed of a host where a platform has no model of dgemm.
NOMINAL_FLOPS = 1e9
_SIDE = 1024.0  # of the square matrices whose product stands for computing in general


@dataclass(frozen=True, slots=True)
class Wiring:
    """The links of a topology as (name, bandwidth_Bps, latency_s), and the numbers of those from node a to node b."""

    links: Sequence[tuple[str, float, float]]
    route: Callable[[int, int], Sequence[int]]


@dataclass(frozen=True, slots=True)
class LoopbackLink:
    """The one link of SMPI for messages inside a node, to which the factors and overheads of all messages apply.

    `same_bandwidths`, `same_latencies`: does it give every message inside a node its modelled ones.
    """

    bandwidth_Bps: Decimal  # noqa: N815 - the unit
    latency_s: Decimal
    same_bandwidths: bool
    same_latencies: bool


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts of every form of a zone; `prefix` and a node's number are the name of its host."""

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
    """Are there routes that SimGrid 3.32 takes another way, where ours keep the rule (reference/platform_file.md)?"""
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
    if limiters is None or topology.is_switch:
        return True
    return topology.kind != "torus" and limiters.node_bandwidth_Bps == limiters.switch_bandwidth_Bps


def cluster(parts: Parts) -> Iterator[str]:
    """One element for all hosts, which have the mean of their speeds."""
    nodes, topology = parts.platform.nodes, parts.platform.topology
    speed = fsum(speed / len(parts.speeds_flops) for speed in parts.speeds_flops)
    attributes = {
        "id": f"{parts.prefix}cluster",
        "prefix": parts.prefix,
        "suffix": "",
        "radical": f"{nodes.first_number}-{nodes.first_number + nodes.count - 1}",
        "speed": f"{speed!r}f",
        "core": str(nodes.cores),
        "bw": f"{max(cable_bandwidths_Bps(parts.platform))!r}Bps",
        "lat": f"{text_of(parts.latencies.link_s)}s",
        "sharing_policy": _policy(parts.platform),
        "loopback_bw": f"{text_of(parts.loopback.bandwidth_Bps)}Bps",
        "loopback_lat": f"{text_of(parts.loopback.latency_s)}s",
    }
    if not topology.is_switch:
        attributes |= {"topology": TOPOLOGIES[topology.kind], "topo_parameters": topology.parameters or ""}
    limiters = topology.limiters
    if limiters is not None and limiters_fit(topology):
        if limiters.node_bandwidth_Bps is not None:
            attributes["limiter_link"] = f"{limiters.node_bandwidth_Bps!r}Bps"
        if limiters.switch_bandwidth_Bps is not None and topology.is_switch:
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
    # a link of both directions is listed twice
    for name, bandwidth_Bps, latency_s in {link[0]: link for link in wiring.links}.values():
        # SMPI has 16 bytes of a message's on the way itself
        added_s = Decimal(0) if name.startswith(FLOW) else Decimal(latency_s)
        yield _link(name, f"{bandwidth_Bps!r}Bps", added_s, "SHARED")
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
        cores = str(parts.platform.node(node).cores)
        yield _element("host", {"id": parts.host(node), "speed": f"{speed!r}f", "core": cores})


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
    ends = {"src": source, "dst": destination} | ({} if symmetrical else {"symmetrical": "NO"})
    return _element("route", ends, "".join(_element("link_ctn", {"id": link}) for link in links))


def _element(tag: str, attributes: dict[str, str], inside: str = "") -> str:
    written = " ".join(f"{name}={quoteattr(value)}" for name, value in attributes.items())
    return f"<{tag} {written}>{inside}</{tag}>" if inside else f"<{tag} {written}/>"


def node_speeds_flops(platform: Platform) -> tuple[float, ...]:
    """Flop/s of one core of each node, for what a program computes outside the modelled kernels.

    A dgemm of order 1024 in its mean duration, averaged over the node's CPUs; the nominal 1e9 where there is no model
    of dgemm, or one that gives no positive duration.
    """
    if platform.groups is not None:
        speeds = list[float]()
        for group, part in zip(platform.groups, platform.parts, strict=True):
            known = any(model.kernel == "dgemm" for model in part.kernels)
            factor = 1.0 if known else group.speed or 1.0
            speeds += [speed * factor for speed in node_speeds_flops(part)]
        return tuple(speeds)
    nodes = platform.nodes
    models = [model for model in platform.kernels if model.kernel == "dgemm"]
    if not models:
        return (NOMINAL_FLOPS,) * nodes.count
    model = min(models, key=lambda each: each.threads)
    piece = piece_of(model, _SIDE, _SIDE, _SIDE)
    table = piece.per_cpu
    rows = {} if table is None else {(int(row[0]), int(row[1])): row[2:] for row in table.rows}
    speeds = []
    for number in range(nodes.first_number, nodes.first_number + nodes.count):
        of_cpus = []
        for cpu in range(nodes.cpus):
            mean, unit = piece.mean, nodes.socket_of_cpu(cpu) if table is not None and table.by_socket else cpu
            if table is not None and (number, unit) in rows:
                cells = zip(table.columns[2:], rows[number, unit], strict=True)
                mean = {term: value for term, value in cells if not term.startswith("sd:")}
            duration_s = value_of(mean, _SIDE, _SIDE, _SIDE)
            of_cpus.append((2.0 * _SIDE**3 / duration_s if duration_s > 0 else NOMINAL_FLOPS) / model.threads)
        speeds.append(fsum(flops / nodes.cpus for flops in of_cpus))
    return tuple(speeds)


def loopback_link(network: Network, latencies: Latencies) -> LoopbackLink:
    """The link that comes nearest to the loopback of `network`: exact where its segments are those between nodes
    times one number, else right for the largest messages' bandwidth and the smallest ones' latency."""
    nominal_Bps = Decimal(network.node_link.bandwidth_Bps)
    pairs = paired(network.loopback_segments, network.remote.segments)
    ratios = [Decimal(inside.bandwidth_Bps) / Decimal(between.bandwidth_Bps) for inside, between, _ in pairs]
    bandwidth = product(nominal_Bps, ratios[-1])
    stated = Decimal(network.loopback.bandwidth_Bps)
    if abs(bandwidth / stated - 1) <= _TOLERANCE:
        bandwidth = stated
    unit_s, totals_s = latencies.nominal_s, latencies.totals_s
    if not unit_s:  # routes have the latencies of their links alone
        unit_s, totals_s = NOMINAL_S, tuple(product(NOMINAL_S, factor) for factor in latencies.factors)
    shares = [Decimal(inside.latency_s) / totals_s[at] for inside, _, at in pairs if totals_s[at] > 0]
    out_of_nothing = any(inside.latency_s > 0 and totals_s[at] == 0 for inside, _, at in pairs)
    if network.loopback.segments is None:
        bandwidth = nominal_Bps
    return LoopbackLink(
        bandwidth_Bps=quotient(bandwidth, Decimal(1)),
        latency_s=quotient(product(unit_s, shares[0]) if shares else Decimal(0), Decimal(1)),
        same_bandwidths=all(abs(ratio / ratios[-1] - 1) <= _TOLERANCE for ratio in ratios),
        same_latencies=not out_of_nothing and all(abs(share - shares[0]) <= _TOLERANCE * shares[0] for share in shares),
    )


def own_loopback_link(network: Network) -> LoopbackLink:
    """For a runtime with its own factors: of the bandwidth that they refer to, and of a latency that they can scale."""
    return LoopbackLink(Decimal(network.loopback.bandwidth_Bps), NOMINAL_S, same_bandwidths=True, same_latencies=True)


def paired(inside: tuple[Segment, ...], between: tuple[Segment, ...]) -> list[tuple[Segment, Segment, int]]:
    """For each size at which a segment begins: the one inside a node, the one between nodes, and its position."""
    rows = []
    for start in sorted({segment.above_bytes for segment in (*inside, *between)}):
        at = max(i for i, segment in enumerate(between) if segment.above_bytes <= start)
        rows.append(([segment for segment in inside if segment.above_bytes <= start][-1], between[at], at))
    return rows


def same_overheads(network: Network) -> bool:
    """Do messages inside a node have the protocols and overheads of those between nodes?"""
    return all(
        (a.protocol, a.send, a.isend, a.receive) == (b.protocol, b.send, b.isend, b.receive)
        for a, b, _ in paired(network.loopback_segments, network.remote.segments)
    )
