"""A platform as the XML that SimGrid 3.32 reads, and what gets lost on the way."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import fsum
from xml.sax.saxutils import quoteattr

from lepaute.errors import InputError
from lepaute.simulate.platform.network_model import Segment
from lepaute.simulate.platform.nodes import cores_text, with_links
from lepaute.simulate.platform.schema import Platform
from lepaute.simulate.platform.simgrid.zones import (
    ENVELOPE_BYTES,
    Latencies,
    Parts,
    Wiring,
    cable_bandwidths_Bps,
    cables_add_latency,
    cluster,
    limiters_fit,
    longest_route,
    loopback_link,
    mesh,
    node_speeds_flops,
    own_loopback_link,
    plan,
    quotient,
    same_overheads,
    simgrid_routes_otherwise,
    star,
    text_of,
)
from lepaute.simulate.platform.topology import Topology

#: Above this number of nodes, no file names the route between every two.
MAX_NODES_WITH_ROUTES = 128

__all__ = ["MAX_NODES_WITH_ROUTES", "Exported", "Wiring", "export_xml", "holds_loopback", "host_name"]


@dataclass(frozen=True, slots=True)
class Exported:
    """`text`: the file; `lost`: a sentence for each thing of the platform that it does not hold."""

    text: str
    lost: tuple[str, ...]


def host_name(platform: Platform, node_index: int) -> str:
    """The name, in the exported file, of the host that stands for node `node_index` (0 to count - 1).

    Raises InputError for a node that is not there.
    """
    if not 0 <= node_index < platform.nodes.count:
        raise InputError(
            f"platform {platform.name} has no node with index {node_index}; valid are 0 to {platform.nodes.count - 1}"
        )
    return f"{_prefix(platform)}{platform.nodes.first_number + node_index}"


def holds_loopback(platform: Platform) -> bool:
    """Does the file say exactly what messages inside a node cost, where it is host by host or route by route?

    And does SimGrid share links evenly then: it weighs flows by 1 / latency, and those without any by 1.
    """
    latencies = plan(platform, explicit=True)
    loopback = loopback_link(platform.network, latencies)
    none = [factor <= 0 for factor in latencies.factors]
    return (
        loopback.same_bandwidths
        and loopback.same_latencies
        and same_overheads(platform.network)
        and (all(none) or not any(none))
    )


def export_xml(
    platform: Platform, wiring: Wiring | None = None, *, every_route: bool = False, tables: bool = True
) -> Exported:
    """`platform` as SimGrid's XML (version 4.1), with all settings of SMPI.

    wiring      : the links and routes of the topology; with it, up to 128 nodes whose topology no cluster element
                  describes are written link by link and route by route
    every_route : write those of any topology so, which makes latencies the same on all routes, and shares of links
    tables      : with SMPI's factors and overheads by size of message; without, for a runtime that has its own
    Raises InputError for a topology that cannot be written: a graph or every_route without wiring or of more nodes,
    and what SimGrid crashes on.
    """
    platform = with_links(platform)
    form = _form(platform, wiring, every_route)
    latencies = plan(platform, explicit=form == "mesh")
    loopback = loopback_link(platform.network, latencies) if tables else own_loopback_link(platform.network)
    speeds = node_speeds_flops(platform)
    parts = Parts(platform, latencies, loopback, speeds, _prefix(platform))
    lost = tuple(losses(platform, parts, form))
    if form == "mesh":
        assert wiring is not None
        zone = mesh(parts, wiring)
    else:
        zone = star(parts) if form == "star" else cluster(parts)
    lines = [
        "<?xml version='1.0'?>",
        '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">',
        *_comment(platform, lost),
        '<platform version="4.1">',
        '<config id="General">',
        *(
            _prop(name, value)
            for name, value in settings(platform, latencies, fsum(speed / len(speeds) for speed in speeds))
            if tables or name not in TABLES
        ),
        "</config>",
        f'<zone id={quoteattr(_prefix(platform) + "zone")} routing="Full">',
        *(_prop(f"lepaute:{name}", json.dumps(value)) for name, value in _own(platform, parts, form)),
        *zone,
        "</zone>",
        "</platform>",
    ]
    return Exported("\n".join(lines) + "\n", lost)


def _prefix(platform: Platform) -> str:
    return f"{re.sub('[^A-Za-z0-9._]+', '-', platform.name).strip('-') or 'node'}-"


def _form(platform: Platform, wiring: Wiring | None, every_route: bool) -> str:
    """cluster: one element; star: host by host, each with its speed; mesh: route by route."""
    topology, count = platform.topology, platform.nodes.count
    if wiring is not None and count <= MAX_NODES_WITH_ROUTES and (every_route or _needs_explicit_routes(platform)):
        return "mesh"
    by_size = any(segment.cable_latency_factor not in (None, 1) for segment in platform.network.remote.segments)
    if topology.kind in ("graph", "routes") or every_route or by_size:
        raise InputError(
            f"platform {platform.name}: a {topology.kind} of {count} nodes cannot be written route by route, which is "
            f"done up to {MAX_NODES_WITH_ROUTES} nodes; use a fat-tree, dragonfly or torus element"
        )
    if topology.kind == "dragonfly" and topology.sizes[0][0] > topology.sizes[2][0]:
        raise InputError(
            f"platform {platform.name}: SimGrid 3.32 crashes on a dragonfly of more groups ({topology.sizes[0][0]}) "
            f"than a chassis has routers ({topology.sizes[2][0]}), and {count} nodes cannot be written route by route, "
            f"which is done up to {MAX_NODES_WITH_ROUTES}; give the chassis more routers"
        )
    limited = topology.limiters is not None and topology.limiters.node_bandwidth_Bps is not None
    unlike = len({part.nodes.cores for part in platform.parts}) > 1
    differ = unlike or len(set(node_speeds_flops(platform))) > 1
    if platform.groups is not None and (topology.changed or (differ and (not topology.is_switch or limited))):
        raise InputError(
            f"platform {platform.name}: groups of {cores_text(platform)} and their links are written route by route, "
            f"up to {MAX_NODES_WITH_ROUTES} nodes, not {count}; take fewer nodes, or one switch without links of groups"
        )
    return "star" if topology.is_switch and differ and not limited else "cluster"


def _needs_explicit_routes(platform: Platform) -> bool:
    topology = platform.topology
    return bool(
        topology.kind in ("graph", "routes")
        or any(segment.cable_latency_factor not in (None, 1) for segment in platform.network.remote.segments)
        or topology.changed
        or topology.removed
        or topology.cables == "first"
        or (platform.groups is not None and not topology.is_switch)
        or len(cable_bandwidths_Bps(platform)) > 1
        or not limiters_fit(topology)
        or simgrid_routes_otherwise(topology)
    )


def _own(platform: Platform, parts: Parts, form: str) -> Iterator[tuple[str, object]]:
    """Properties that SimGrid does not read and import needs."""
    nodes, network = platform.nodes, platform.network
    yield "name", platform.name
    if platform.description:
        yield "description", platform.description
    if platform.source is not None:
        yield "source", platform.source
    of_nodes = nodes.model_dump(exclude={"count", "first_number", "cores"}, exclude_none=True, exclude_defaults=True)
    if of_nodes:
        yield "nodes", of_nodes
    if platform.groups is not None:
        yield "groups", [group.model_dump(exclude={"kernels", "power"}, exclude_none=True) for group in platform.groups]
    if network.sharing is not None:
        yield "sharing", network.sharing
    if form == "mesh" or cable_bandwidths_Bps(platform) != {network.node_link.bandwidth_Bps}:
        yield "node_link_Bps", network.node_link.bandwidth_Bps
    if float(parts.loopback.bandwidth_Bps) != network.loopback.bandwidth_Bps:
        yield "loopback_Bps", network.loopback.bandwidth_Bps
    # Are the factors of latency for a whole route, or for each of its links? And how much of a message's 16 bytes of
    # envelope is already taken off?
    on_links = parts.latencies.same_on_every_route and not platform.topology.is_switch and form == "cluster"
    by_size = any(segment.cable_latency_factor not in (None, 1) for segment in network.remote.segments)
    yield "latency", "sized" if by_size else "links" if on_links else "route"
    yield "enveloped", [int(taken) for taken in parts.latencies.enveloped]
    if form == "mesh":
        yield "topology", platform.topology.model_dump(mode="json", exclude_none=True)


def _prop(name: str, value: str) -> str:
    return f"<prop id={quoteattr(name)} value={quoteattr(value)}/>"


def _comment(platform: Platform, lost: tuple[str, ...]) -> list[str]:
    comment = [f"Platform {platform.name}, written by Lepaute for SimGrid 3.32."]
    if lost:
        comment += ["Not in this file:", *(f"- {sentence}" for sentence in lost)]
    # a comment has no two dashes and no control characters; ASCII is what every reader has
    return ["<!--", *(re.sub("[^ -~]", "?", sentence).replace("--", "- -") for sentence in comment), "-->"]


_ORDER = ("eager", "detached", "rendezvous")


def losses(platform: Platform, parts: Parts, form: str) -> Iterator[str]:
    """The sentences; `form`: how the hosts are written (cluster, star or mesh)."""
    yield from _of_computing(platform, parts, form)
    yield from _of_messages(platform)
    yield from _of_messages_inside_nodes(platform, parts)
    yield from _of_topology(platform, parts, form)
    if any(part.power for part in platform.parts):
        yield "power: the power draw of nodes is left out."
    if platform.assumed:
        yield "assumed: what was guessed, and how far it may be wrong, is left out."
    if platform.archive_id is not None or platform.blas is not None:
        yield "archive_id, blas: the archive of the calibration and the BLAS it measured are left out."


def _of_computing(platform: Platform, parts: Parts, form: str) -> Iterator[str]:
    if platform.kernels:
        count = len({model.kernel for model in platform.kernels})
        models = "the model of 1 kernel is" if count == 1 else f"the models of {count} kernels are"
        yield f"kernels: {models} left out; a host has one speed, that of a dgemm of order 1024."
        if form == "cluster" and len(set(parts.speeds_flops)) > 1:
            yield "kernels: every host has the mean speed of all; a cluster element cannot give hosts their own."
    if platform.days is not None:
        yield "days: the effect of a day on durations is left out."
    if platform.population is not None:
        yield "population: nodes and days that runs draw are left out."
    for name in ("episodes", "wandering"):
        if getattr(platform, name) is not None:
            yield f"{name}: the correlation of successive calls on a core is left out."
    if platform.slow_state is not None:
        yield "slow_state: hosts are as fast as in undisturbed runs."
    if any(group.kernels for group in platform.groups or ()):
        yield "groups: kernels that nodes of some groups have of their own are left out, and their speed with them."
    if platform.nodes.cpus > 1:
        yield "nodes.cpus: all cores of a host are alike; the number of CPUs is only recorded."


def _of_messages(platform: Platform) -> Iterator[str]:
    network = platform.network
    segments = network.remote.segments
    if network.flow_factor == "bound":
        yield (
            "network.flow_factor bound: SMPI gives a flow its fair share times its factor, as flow_factor scale does, "
            "so that concurrent messages are slower or faster."
        )
    if any(segment.noise_relative_sd for segment in (*segments, *network.loopback_segments)):
        yield "noise_relative_sd: the noise on messages is left out."
    if any(segment.noise for segment in network.all_segments):
        yield "noise: the modes of message durations are left out."
    if any(sizes is not None for sizes in network.fitted_sizes.values()):
        yield "range_bytes: the range of sizes that the segments were fitted to is left out."
    if network.remote.noncontiguous is not None or network.loopback.noncontiguous is not None:
        yield "noncontiguous: messages of noncontiguous datatypes cost the same as contiguous ones."
    if network.remote.busy is not None or network.loopback.busy is not None:
        yield "busy: messages to a rank that computes between its probes cost the same as others."
    if any((*network.discrepancies.values(), *network.overhead_errors.values())):
        yield (
            "discrepancy_relative_sd, overhead_relative_sd: that messages take another time in another calibration is "
            "left out."
        )
    if len(kept := _segments_of_file(segments)) < len(segments):
        yield (
            f"network.remote.segments: those above {kept[-1].above_bytes} bytes, since SMPI's thresholds are 32-bit "
            "integers."
        )
    if [s.protocol for s in kept] != sorted((s.protocol for s in kept), key=_ORDER.index):
        eager, detached = thresholds(kept)
        yield (
            f"protocol: SMPI knows eager, then detached, then rendezvous; here below {eager} and {detached} bytes, and "
            "segments in another order take that of their size."
        )
    if any(s.protocol == "rendezvous" and any((*s.send, *s.receive)) for s in kept):
        yield "send, receive: SMPI charges no overhead for a rendezvous (it charges isend)."
    if network.costs.iprobe_looks_first:
        yield "network.costs.iprobe_looks_first: SMPI looks for a message after the time of MPI_Iprobe has passed."


def _of_messages_inside_nodes(platform: Platform, parts: Parts) -> Iterator[str]:
    network = platform.network
    if network.loopback.shared:
        yield "network.loopback.shared: messages inside a node do not contend with each other."
    if not parts.loopback.same_bandwidths:
        yield (
            "network.loopback.segments: bandwidths inside a node are those between nodes times one number, right for "
            "the largest messages."
        )
    if not parts.loopback.same_latencies:
        yield (
            "network.loopback.segments: latencies inside a node are those between nodes times one number, right for "
            "the smallest messages."
        )
    if not same_overheads(network):
        yield "network.loopback.segments: protocols and overheads inside a node are those between nodes."


def _of_topology(platform: Platform, parts: Parts, form: str) -> Iterator[str]:
    if not parts.latencies.same_on_every_route:
        yield (
            "latency_s: each link has the same share of it, so that it is that of the platform on the longest routes, "
            "and less on routes of fewer links."
        )
    if not _equal_shares(platform.topology, form):
        yield (
            "sharing: SimGrid shares a link in inverse proportion to the latencies of the flows' routes, so that a "
            "message over fewer links gets more of it."
        )
    yield from _of_mesh(platform, parts) if form == "mesh" else _of_cluster(platform)


def _equal_shares(topology: Topology, form: str) -> bool:
    """Have all routes the same latency in the file? SimGrid shares links in inverse proportion to it."""
    if form == "mesh":
        return not cables_add_latency(topology)
    return topology.is_switch or (topology.kind == "fat-tree" and len(longest_route(topology)) == 2)


def _of_mesh(platform: Platform, parts: Parts) -> Iterator[str]:
    topology = platform.topology
    if cables_add_latency(topology) and len(set(parts.latencies.factors)) > 1:
        yield "topology: latencies of cables are multiplied by the latency factor of the message."
    cables = (*(topology.levels or ()), *(topology.changed or ()), *(topology.links or ()))
    if any(cable.bandwidth_Bps for cable in cables) or topology.limiters is not None:
        yield (
            "bandwidth_Bps: SMPI's factors apply to the narrowest link on the way, so that a message alone is "
            "slower over a link narrower than network.node_link, and faster where all are wider."
        )


def _of_cluster(platform: Platform) -> Iterator[str]:
    topology = platform.topology
    widths = cable_bandwidths_Bps(platform)
    if len(widths) > 1:
        yield "topology.levels: all cables have the bandwidth of the widest level."
    elif widths != {platform.network.node_link.bandwidth_Bps}:
        yield (
            "topology.levels: factors apply to the bandwidth of the cables, so that a message alone is slower or "
            "faster than its segment by as much as the cables are narrower or wider than network.node_link."
        )
    if simgrid_routes_otherwise(topology):
        yield "topology: SimGrid 3.32 takes some routes of this topology another way (docs/howto/simgrid.md)."
    if not limiters_fit(topology):
        yield "topology.limiters: the aggregate limits of nodes and switches are left out."
    for field in ("changed", "removed"):
        if getattr(topology, field):
            yield f"topology.{field}: ignored; all cables are present and alike."
    if topology.cables == "first":
        yield "topology.cables first: all parallel cables are used."


#: Settings by size of message, which callbacks of a runtime replace.
TABLES = ("smpi/bw-factor", "smpi/lat-factor", "smpi/os", "smpi/ois", "smpi/or")
#: SMPI reads thresholds as 32-bit integers.
LARGEST_THRESHOLD = 2**31 - 1


def _segments_of_file(segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """Segments of `segments` whose threshold a file can hold."""
    return tuple(s for s in segments if s.above_bytes + ENVELOPE_BYTES <= LARGEST_THRESHOLD)


def settings(platform: Platform, latencies: Latencies, speed_flops: float) -> Iterator[tuple[str, str]]:
    """(name, value) of all settings; `speed_flops`: of the machine on which a program would be timed."""
    network = platform.network
    segments = _segments_of_file(network.remote.segments)
    nominal_Bps = Decimal(network.node_link.bandwidth_Bps)
    yield "smpi/bw-factor", _factors(segments, (quotient(Decimal(s.bandwidth_Bps), nominal_Bps) for s in segments))
    yield "smpi/lat-factor", _factors(segments, latencies.factors)
    for name, call in (("os", "send"), ("ois", "isend"), ("or", "receive")):
        yield f"smpi/{name}", ";".join("{}:{!r}:{!r}".format(s.above_bytes, *getattr(s, call)) for s in segments)
    eager, detached = thresholds(segments)
    yield "smpi/async-small-thresh", str(eager)
    yield "smpi/send-is-detached-thresh", str(detached)
    for name in ("iprobe", "test", "wtime"):
        yield f"smpi/{name}", repr(getattr(network.costs, f"{name}_s"))
    yield "smpi/init", "0"
    yield "smpi/grow-injected-times", "no"
    yield "smpi/simulate-computation", "no"
    yield "smpi/host-speed", f"{speed_flops!r}f"
    yield from ((f"network/{name}", "0") for name in ("crosstraffic", "weight-S", "TCP-gamma"))
    yield "surf/precision", "1e-12"
    yield "maxmin/precision", "1e-5"


def thresholds(segments: Sequence[Segment]) -> tuple[int, int]:
    """Sizes in bytes from which on a send is no longer eager, and no longer detached."""
    return _first(segments, ("detached", "rendezvous")), _first(segments, ("rendezvous",))


def _first(segments: Sequence[Segment], protocols: tuple[str, ...]) -> int:
    position = next((i for i, segment in enumerate(segments) if segment.protocol in protocols), None)
    if position is None:
        return LARGEST_THRESHOLD
    return segments[position].above_bytes + 1 if position else 0


def _factors(segments: Sequence[Segment], factors: Iterable[Decimal]) -> str:
    # messages of 0 bytes have 16 on the wire: the first threshold stays 0
    starts = (s.above_bytes + ENVELOPE_BYTES if s.above_bytes else 0 for s in segments)
    return ";".join(f"{start}:{text_of(factor)}" for start, factor in zip(starts, factors, strict=False))
