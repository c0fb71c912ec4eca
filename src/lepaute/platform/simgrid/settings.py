"""The settings of SMPI that stand for a network: factors, overheads, thresholds, costs.

SMPI looks a factor up by the bytes on the wire, which are those of the message and 16 more, and takes the last entry
whose threshold is below; overheads it looks up by the bytes of the message; a send is eager or detached below, not at,
its threshold. So a segment above s bytes begins at s + 16 in the tables of factors and at s in those of overheads,
and a protocol that ends with s bytes has the threshold s + 1.
"""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

from lepaute.platform.schema import Platform, Segment
from lepaute.platform.simgrid.decimals import exact, quotient, text_of
from lepaute.platform.simgrid.latency import ENVELOPE_BYTES, Latencies

#: Settings by size of message, which callbacks of a runtime replace.
TABLES = ("smpi/bw-factor", "smpi/lat-factor", "smpi/os", "smpi/ois", "smpi/or")
#: SMPI reads thresholds as 32-bit integers.
LARGEST_THRESHOLD = 2**31 - 1


def segments_of_file(segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """Those of `segments` whose threshold a file can hold."""
    return tuple(s for s in segments if s.above_bytes + ENVELOPE_BYTES <= LARGEST_THRESHOLD)


def settings(platform: Platform, latencies: Latencies, speed_flops: float) -> Iterator[tuple[str, str]]:
    """(name, value) of all settings; `speed_flops`: of the machine on which a program would be timed."""
    network = platform.network
    segments = segments_of_file(network.remote.segments)
    nominal_Bps = exact(network.node_link.bandwidth_Bps)
    yield "smpi/bw-factor", _factors(segments, (quotient(exact(s.bandwidth_Bps), nominal_Bps) for s in segments))
    yield "smpi/lat-factor", _factors(segments, latencies.factors)
    yield "smpi/os", _overheads(segments, (s.send for s in segments))
    yield "smpi/ois", _overheads(segments, (s.isend for s in segments))
    yield "smpi/or", _overheads(segments, (s.receive for s in segments))
    eager, detached = thresholds(segments)
    yield "smpi/async-small-thresh", str(eager)
    yield "smpi/send-is-detached-thresh", str(detached)
    yield "smpi/iprobe", repr(network.costs.iprobe_s)
    yield "smpi/test", repr(network.costs.test_s)
    yield "smpi/wtime", repr(network.costs.wtime_s)
    yield "smpi/init", "0"
    yield "smpi/grow-injected-times", "no"
    yield "smpi/simulate-computation", "no"
    yield "smpi/host-speed", f"{speed_flops!r}f"
    yield "network/crosstraffic", "0"
    yield "network/weight-S", "0"
    yield "network/TCP-gamma", "0"
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


def _overheads(segments: Sequence[Segment], overheads: Iterable[tuple[float, float]]) -> str:
    pairs = zip(segments, overheads, strict=True)
    return ";".join(f"{s.above_bytes}:{intercept!r}:{slope!r}" for s, (intercept, slope) in pairs)
