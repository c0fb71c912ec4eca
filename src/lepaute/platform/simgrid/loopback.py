"""Messages inside a node: SMPI has one link for them, to which the factors and overheads of all messages apply."""

from dataclasses import dataclass
from decimal import Decimal

from lepaute.platform.schema import Network, Segment
from lepaute.platform.simgrid.decimals import exact, product, quotient
from lepaute.platform.simgrid.latency import Latencies

_TOLERANCE = Decimal("1e-9")  # of ratios that were the same before they were written with 15 digits


@dataclass(frozen=True, slots=True)
class LoopbackLink:
    """The link; `same_bandwidths`, `same_latencies`: does it give every message inside a node its modelled ones."""

    bandwidth_Bps: Decimal  # noqa: N815 - the unit
    latency_s: Decimal
    same_bandwidths: bool
    same_latencies: bool


def loopback_link(network: Network, latencies: Latencies) -> LoopbackLink:
    """The link that comes nearest to the loopback of `network`: exact where its segments are those between nodes
    times one number, else right for the largest messages' bandwidth and the smallest ones' latency."""
    nominal_Bps = exact(network.node_link.bandwidth_Bps)
    pairs = paired(network.loopback_segments, network.remote.segments)
    ratios = [exact(inside.bandwidth_Bps) / exact(between.bandwidth_Bps) for inside, between, _ in pairs]
    bandwidth = product(nominal_Bps, ratios[-1])
    stated = exact(network.loopback.bandwidth_Bps)
    if abs(bandwidth / stated - 1) <= _TOLERANCE:
        bandwidth = stated
    shares = [exact(inside.latency_s) / latencies.totals_s[at] for inside, _, at in pairs if latencies.totals_s[at] > 0]
    out_of_nothing = any(inside.latency_s > 0 and latencies.totals_s[at] == 0 for inside, _, at in pairs)
    latency = product(latencies.nominal_s, shares[0]) if shares else Decimal(0)
    if network.loopback.segments is None:
        bandwidth = nominal_Bps
    return LoopbackLink(
        bandwidth_Bps=quotient(bandwidth, Decimal(1)),
        latency_s=quotient(latency, Decimal(1)),
        same_bandwidths=all(abs(ratio / ratios[-1] - 1) <= _TOLERANCE for ratio in ratios),
        same_latencies=not out_of_nothing and all(abs(share - shares[0]) <= _TOLERANCE * shares[0] for share in shares),
    )


def paired(inside: tuple[Segment, ...], between: tuple[Segment, ...]) -> list[tuple[Segment, Segment, int]]:
    """For each size at which a segment begins: the one inside a node, the one between nodes, and its position."""
    starts = sorted({segment.above_bytes for segment in (*inside, *between)})
    rows = []
    for start in starts:
        at = max(i for i, segment in enumerate(between) if segment.above_bytes <= start)
        inner = [segment for segment in inside if segment.above_bytes <= start][-1]
        rows.append((inner, between[at], at))
    return rows


def same_overheads(network: Network) -> bool:
    """Do messages inside a node have the protocols and overheads of those between nodes?"""
    return all(
        (a.protocol, a.send, a.isend, a.receive) == (b.protocol, b.send, b.isend, b.receive)
        for a, b, _ in paired(network.loopback_segments, network.remote.segments)
    )
