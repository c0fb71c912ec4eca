"""A platform as the XML that SimGrid 3.32 reads, and what gets lost on the way."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

from lepaute.errors import InputError
from lepaute.platform.schema import Platform
from lepaute.platform.simgrid.latency import plan
from lepaute.platform.simgrid.loopback import loopback_link, same_overheads
from lepaute.platform.simgrid.losses import losses
from lepaute.platform.simgrid.settings import TABLES, settings
from lepaute.platform.simgrid.speed import node_speeds_flops
from lepaute.platform.simgrid.zones import (
    Parts,
    Wiring,
    cable_bandwidths_Bps,
    cluster,
    limiters_fit,
    mesh,
    simgrid_routes_otherwise,
    star,
)

#: Above this number of nodes, no file names the route between every two.
MOST_NODES_WITH_ROUTES = 128

__all__ = ["MOST_NODES_WITH_ROUTES", "Exported", "Wiring", "export_xml", "holds_loopback", "host_name"]


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
    """Does the file say exactly what messages inside a node cost, where it is host by host or route by route?"""
    loopback = loopback_link(platform.network, plan(platform, explicit=True))
    return loopback.same_bandwidths and loopback.same_latencies and same_overheads(platform.network)


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
    form = _form(platform, wiring, every_route)
    latencies = plan(platform, explicit=form == "mesh")
    loopback = loopback_link(platform.network, latencies)
    speeds = node_speeds_flops(platform)
    parts = Parts(platform, latencies, loopback, speeds, _prefix(platform))
    lost = tuple(losses(platform, parts, form))
    if form == "mesh":
        assert wiring is not None
        zone = mesh(parts, wiring)
    else:
        zone = star(parts) if form == "star" else cluster(parts)
    mean_speed = sum(speeds) / len(speeds)
    lines = [
        "<?xml version='1.0'?>",
        '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">',
        *_comment(platform, lost),
        '<platform version="4.1">',
        '<config id="General">',
        *(
            _prop(name, value)
            for name, value in settings(platform, latencies, mean_speed)
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
    if wiring is not None and count <= MOST_NODES_WITH_ROUTES and (every_route or _beyond_cluster(platform)):
        return "mesh"
    if topology.kind == "graph" or every_route:
        raise InputError(
            f"platform {platform.name}: a {topology.kind} of {count} nodes cannot be written route by route, which is "
            f"done up to {MOST_NODES_WITH_ROUTES} nodes; use a fat-tree, dragonfly or torus element"
        )
    if topology.kind == "dragonfly" and topology.sizes[0][0] > topology.sizes[2][0]:
        raise InputError(
            f"platform {platform.name}: SimGrid 3.32 crashes on a dragonfly of more groups ({topology.sizes[0][0]}) "
            f"than a chassis has routers ({topology.sizes[2][0]}), and {count} nodes cannot be written route by route, "
            f"which is done up to {MOST_NODES_WITH_ROUTES}; give the chassis more routers"
        )
    limited = topology.limiters is not None and topology.limiters.node_bandwidth_Bps is not None
    differ = len(set(node_speeds_flops(platform))) > 1
    return "star" if topology.kind == "switch" and differ and not limited else "cluster"


def _beyond_cluster(platform: Platform) -> bool:
    topology = platform.topology
    return bool(
        topology.kind == "graph"
        or topology.changed
        or topology.removed
        or topology.cables == "first"
        or len(cable_bandwidths_Bps(platform)) > 1
        or not limiters_fit(topology)
        or simgrid_routes_otherwise(topology)
    )


def _own(platform: Platform, parts: Parts, form: str) -> Iterator[tuple[str, object]]:
    """What SimGrid does not read, and import needs."""
    nodes, network = platform.nodes, platform.network
    yield "name", platform.name
    if platform.description:
        yield "description", platform.description
    if platform.source is not None:
        yield "source", platform.source
    of_nodes = nodes.model_dump(exclude={"count", "first_number", "cores"}, exclude_none=True, exclude_defaults=True)
    if of_nodes:
        yield "nodes", of_nodes
    if network.sharing is not None:
        yield "sharing", network.sharing
    if form == "mesh" or cable_bandwidths_Bps(platform) != {network.node_link.bandwidth_Bps}:
        yield "node_link_Bps", network.node_link.bandwidth_Bps
    if float(parts.loopback.bandwidth_Bps) != network.loopback.bandwidth_Bps:
        yield "loopback_Bps", network.loopback.bandwidth_Bps
    # Are the factors of latency for a whole route, or for each of its links? And how much of a message's 16 bytes of
    # envelope is already taken off?
    on_links = parts.latencies.same_on_every_route and platform.topology.kind != "switch" and form == "cluster"
    yield "latency", "links" if on_links else "route"
    yield "enveloped", [int(taken) for taken in parts.latencies.enveloped]
    if form == "mesh":
        yield "topology", platform.topology.model_dump(mode="json", exclude_none=True)


def _prop(name: str, value: str) -> str:
    return f"<prop id={quoteattr(name)} value={quoteattr(value)}/>"


def _comment(platform: Platform, lost: tuple[str, ...]) -> Iterator[str]:
    comment = [f"Platform {platform.name}, written by Lepaute for SimGrid 3.32."]
    if lost:
        comment += ["Not in this file:", *(f"- {sentence}" for sentence in lost)]
    # a comment has no two dashes and no control characters; ASCII is what every reader has
    lines = (re.sub("[^ -~]", "?", sentence).replace("--", "- -") for sentence in comment)
    yield "<!--"
    yield from lines
    yield "-->"
