"""Latencies, which SMPI has by the link and we by the route; numbers as texts that say exactly what is meant.

SMPI multiplies the sum of the latencies of a route's links by a factor that depends on the size of the message. A
segment of ours says the latency of the whole route, however many links it has, and cables may add to it.
"""

from dataclasses import dataclass
from decimal import Context, Decimal

from lepaute.simulate.platform.network_model import Segment
from lepaute.simulate.platform.schema import Platform
from lepaute.simulate.platform.topology import Topology

#: What SMPI adds to each message: tag, destination, communicator.
ENVELOPE_BYTES = 16
NOMINAL_S = Decimal("1e-7")
#: A factor is a bandwidth over another; written as the quotient of two doubles it would not always give the first one
#: back. With 20 digits it does: the error is far below half a unit in the last place of a double.
_WRITTEN = Context(prec=20)
_EXACT = Context(prec=60)


def exact(number: float) -> Decimal:
    """`number` as it is, to the last bit."""
    return Decimal(number)


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


def level_latency_s(topology: Topology, level: int) -> Decimal:
    """Latency that a cable of `level` adds to the latency of a message, in seconds."""
    levels = topology.levels or ()
    if not levels:
        return Decimal(0)
    return exact(levels[min(level, len(levels) - 1)].latency_s or 0.0)


def cables_add_latency(topology: Topology) -> bool:
    """Does some cable add to the latency of a message?"""
    cables = (*(topology.levels or ()), *(topology.changed or ()), *(topology.links or ()))
    return any(cable.latency_s for cable in cables)


def plan(platform: Platform, *, explicit: bool) -> Latencies:
    """The latencies to export for `platform`; `explicit`: the file gives every link its own latency."""
    topology = platform.topology
    segments = platform.network.remote.segments
    route = longest_route(topology)
    if not explicit and (link_s := _latency_of_each_link(topology, segments, route)) is not None:
        return _same(link_s, link_s * len(route), len(segments))
    if explicit and cables_add_latency(topology) and len({segment.latency_s for segment in segments}) == 1:
        total_s = exact(segments[0].latency_s)
        return _same(total_s, total_s, len(segments))
    added_s = Decimal(0) if explicit else sum((level_latency_s(topology, level) for level in route), Decimal(0))
    totals_s = [exact(segment.latency_s) + added_s for segment in segments]
    envelopes = [quotient(Decimal(ENVELOPE_BYTES), exact(segment.bandwidth_Bps)) for segment in segments]
    enveloped = tuple(latency >= envelope for latency, envelope in zip(totals_s, envelopes, strict=True))
    nominal_s = next((latency for latency in totals_s if latency > 0), NOMINAL_S)
    factors = tuple(
        quotient(latency - envelope if taken else latency, nominal_s)
        for latency, envelope, taken in zip(totals_s, envelopes, enveloped, strict=True)
    )
    link_s = quotient(nominal_s, Decimal(len(route)))
    return Latencies(link_s, nominal_s, tuple(totals_s), factors, enveloped, explicit or topology.kind == "switch")


def _same(link_s: Decimal, total_s: Decimal, segments: int) -> Latencies:
    """Latencies if all segments have the same one."""
    ones, none = (Decimal(1),) * segments, (False,) * segments
    return Latencies(link_s, total_s, (total_s,) * segments, ones, none, same_on_every_route=True)


def _latency_of_each_link(topology: Topology, segments: tuple[Segment, ...], route: tuple[int, ...]) -> Decimal | None:
    """The one latency that each link has, where segments and cables together say just that; else None."""
    if topology.kind == "switch" or len({segment.latency_s for segment in segments}) > 1:
        return None
    of_segment = exact(segments[0].latency_s)
    if topology.kind == "torus":
        cables = {level_latency_s(topology, level) for level in route}
        return cables.pop() if len(cables) == 1 and of_segment == 0 else None
    of_node_cable = quotient(of_segment, Decimal(2)) + level_latency_s(topology, 0)
    others = {level_latency_s(topology, level) for level in route if level > 0}
    return of_node_cable if all(float(other) == float(of_node_cable) for other in others) else None


def remote_latency_s(nominal_s: Decimal, factor: Decimal, bandwidth_Bps: float | None) -> float:
    """The latency that a factor stands for; `bandwidth_Bps`: that of the segment where the envelope was taken off."""
    latency = product(nominal_s, factor)
    if bandwidth_Bps is not None:
        latency += quotient(Decimal(ENVELOPE_BYTES), exact(bandwidth_Bps))
    return float(latency)
