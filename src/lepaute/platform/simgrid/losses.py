"""What of a platform SimGrid's XML does not hold, a sentence each."""

from collections.abc import Iterator

from lepaute.platform.schema import Platform
from lepaute.platform.simgrid.latency import cables_add_latency, longest_route
from lepaute.platform.simgrid.loopback import same_overheads
from lepaute.platform.simgrid.settings import segments_of_file, thresholds
from lepaute.platform.simgrid.zones import (
    Parts,
    cable_bandwidths_Bps,
    limiters_fit,
    simgrid_routes_otherwise,
)
from lepaute.platform.topology import Topology

_ORDER = ("eager", "detached", "rendezvous")


def losses(platform: Platform, parts: Parts, form: str) -> Iterator[str]:
    """The sentences; `form`: how the hosts are written (cluster, star or mesh)."""
    yield from _of_computing(platform, parts, form)
    yield from _of_messages(platform)
    yield from _of_messages_inside_nodes(platform, parts)
    yield from _of_topology(platform, parts, form)
    if platform.power is not None:
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
    if platform.episodes is not None:
        yield "episodes: the correlation of successive calls on a core is left out."
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
    if any(network.discrepancies.values()):
        yield "discrepancy_relative_sd: that messages take another time in another calibration is left out."
    if len(kept := segments_of_file(segments)) < len(segments):
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
    return topology.kind == "switch" or (topology.kind == "fat-tree" and len(longest_route(topology)) == 2)


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
        yield "topology: SimGrid 3.32 takes some routes of this topology another way (docs/simgrid.md)."
    if not limiters_fit(topology):
        yield "topology.limiters: the aggregate limits of nodes and switches are left out."
    for field in ("changed", "removed"):
        if getattr(topology, field):
            yield f"topology.{field}: ignored; all cables are present and alike."
    if topology.cables == "first":
        yield "topology.cables first: all parallel cables are used."
