"""The model of messages between two ranks: segments of size with their protocol, overheads, latency and bandwidth.

What is measured and what it becomes (one-way time = half of a ping-pong):
    eager      : one-way = send + latency + size / bandwidth + receive. `send` is what MPI_Isend takes, `receive` what
                 MPI_Recv takes for a message that is there; latency and bandwidth are the rest.
    rendezvous : one-way = latency + size / bandwidth. Both processes are busy or wait all that time.
Interrupted operations (beyond twice the median of their neighbours) are capped: a run of an application that was
disturbed so is recognised and repeated, so they are not part of what is predicted.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from lepaute.errors import FitError
from lepaute.fit.arrays import Floats
from lepaute.fit.least_squares import nonnegative_solution, normal_equations
from lepaute.fit.messages import Series, series
from lepaute.fit.partition_old import best_partitions, bic, candidate_edges, segment_costs
from lepaute.fit.protocol import eager_limit_bytes

MOST_SEGMENTS_PER_PROTOCOL = 3
CANDIDATES = 150
#: Sizes drawn as 10^U from here on are hardly ever drawn twice.
RARELY_TWICE_BYTES = 4096
#: Where the bandwidth of a segment cannot be told from infinite.
HIGHEST_BANDWIDTH_BPS = 1e12
#: Exchanges and ping-pongs of messages from here on tell whether two flows share.
LARGE_BYTES = 256 * 1024
#: Two opposite flows that take up to this many times as long as one alone do not share.
NOT_SHARED = 1.1


@dataclass(frozen=True, slots=True)
class FittedSegment:
    """Messages of more than above_bytes; overheads are (intercept_s, per_byte_s)."""

    above_bytes: int
    protocol: str
    latency_s: float
    bandwidth_Bps: float  # noqa: N815 - the unit
    send: tuple[float, float]
    isend: tuple[float, float]
    receive: tuple[float, float]
    noise_relative_sd: float

    def one_way_s(self, size_bytes: Floats) -> Floats:
        """Time from the start of the send to the end of the receive."""
        fixed = self.send[0] + self.receive[0] + self.latency_s
        return fixed + (self.send[1] + self.receive[1] + 1.0 / self.bandwidth_Bps) * size_bytes


@dataclass(frozen=True, slots=True)
class FittedNetwork:
    """Segments of one class of links, whether flows share, and the cost of calls that move nothing.

    shared_bandwidth_Bps : of the link that concurrent flows share; where they do not, the fastest segment's
    noncontiguous        : segments of messages of a derived datatype with gaps, None where they were not measured
    exchange_ratio       : time of two opposite messages at once over that of one, at large sizes
    """

    segments: tuple[FittedSegment, ...]
    noncontiguous: tuple[FittedSegment, ...] | None
    shared: bool
    shared_bandwidth_Bps: float  # noqa: N815 - the unit
    exchange_ratio: float
    iprobe_s: float
    test_s: float
    wtime_s: float
    iprobe_looks_first: bool = False

    def one_way_s(self, size_bytes: Floats) -> Floats:
        """Time of a message alone, shape of size_bytes."""
        bounds = np.array([part.above_bytes for part in self.segments[1:]], dtype=np.float64)
        which = np.searchsorted(bounds, size_bytes, side="left")
        result = np.zeros_like(size_bytes)
        for number, part in enumerate(self.segments):
            result[which == number] = part.one_way_s(size_bytes[which == number])
        return result


def fit_network(operations: dict[str, Series]) -> FittedNetwork:
    """Fits the segments to ping-pongs, isends and receives, sharing to exchanges.

    operations : series by name; pingpong, isend and recv are needed, exchange, iprobe, test and wtime may be absent
    Raises FitError when a needed one is absent.
    """
    missing = [name for name in ("pingpong", "isend", "recv") if name not in operations]
    if missing:
        raise FitError(f"there are no measurements of {missing[0]}; calibrate with all operations")
    half = operations["pingpong"].scaled(0.5)
    isend, receive = operations["isend"], operations["recv"]
    limit = eager_limit_bytes(isend, half, receive)
    segments: list[FittedSegment] = []
    for protocol, low, high in (("eager", -1.0, limit), ("rendezvous", limit, np.inf)):
        parts = [part.within(low, high) for part in (half, isend, receive)]
        if len(parts[0]) < 3:
            continue
        used = parts if protocol == "eager" else parts[:1]
        cuts = _breakpoints(used)
        bounds = [low, *cuts, high]
        for bottom, top in pairwise(bounds):
            inside = [part.within(bottom, top) for part in parts]
            above = max(0, int(bottom)) if segments else 0
            segments.append(_segment(above, protocol, *inside))
    network_segments = tuple(segments)
    ratio, size_rate = _exchange(operations.get("exchange"), network_segments)
    shared = ratio > NOT_SHARED
    fastest = max(part.bandwidth_Bps for part in network_segments)
    return FittedNetwork(
        network_segments,
        _noncontiguous(operations.get("strided"), network_segments, limit),
        shared,
        2.0 * size_rate if shared else fastest,
        ratio,
        _call_cost(operations.get("iprobe")),
        _call_cost(operations.get("test")),
        _call_cost(operations.get("wtime")),
        looks_first(operations.get("seen")),
    )


def _noncontiguous(
    strided: Series | None, segments: tuple[FittedSegment, ...], limit: float
) -> tuple[FittedSegment, ...] | None:
    """Segments of messages with gaps: above the eager limit from their own times, below as the others.

    A measurement is the message, with the making of its datatype, and an empty answer, whose time is subtracted.
    """
    if strided is None:
        return None
    above = strided.within(limit, np.inf)
    if len(above) < 12:
        return None
    answer_s = float(segments[0].one_way_s(np.zeros(1))[0])
    message = series(above.size_bytes, above.duration_s - answer_s)
    parts = [part for part in segments if part.protocol == "eager"]
    bounds = [limit, *_breakpoints([message]), np.inf]
    for bottom, top in pairwise(bounds):
        inside = message.within(bottom, top)
        first = max(0, int(bottom)) if parts else 0
        nothing = inside.within(np.inf, np.inf)
        parts.append(_segment(first, "rendezvous", inside, nothing, nothing))
    return tuple(parts)


def _breakpoints(parts: list[Series]) -> list[float]:
    """Sizes that cut all series at once, by the relative errors of a line each, number by BIC."""
    parts = [part for part in parts if len(part) >= 12]
    if not parts:
        return []
    edges = candidate_edges(np.concatenate([part.size_bytes for part in parts]), CANDIDATES)
    costs = [
        segment_costs(part.size_bytes, part.capped_s, part.typical_s**-2.0, edges, least=max(5, len(part) // 12))
        for part in parts
    ]
    scales = [max(float(cost[0, -1]) / len(part), 1e-12) for cost, part in zip(costs, parts, strict=True)]
    # The scale of each series' noise is known only after the cut: once more with what the first cut left.
    for _ in range(2):
        total = np.sum([cost / scale for cost, scale in zip(costs, scales, strict=True)], axis=0)
        paths, _ = best_partitions(total, MOST_SEGMENTS_PER_PROTOCOL)
        rss = np.array([[_along(cost, path) for cost in costs] for path in paths])
        scales = [max(float(left) / len(part), 1e-12) for left, part in zip(rss[-1], parts, strict=True)]
    chosen = paths[int(np.argmin(bic(np.maximum(rss, 1e-12), [len(part) for part in parts], 2)))]
    return [float(np.floor(edges[cut])) for cut in chosen]


def _along(cost: Floats, path: tuple[int, ...]) -> float:
    bounds = [0, *path, len(cost) - 1]
    return float(sum(cost[low, high] for low, high in pairwise(bounds)))


def _segment(above_bytes: int, protocol: str, half: Series, isend: Series, receive: Series) -> FittedSegment:
    posting = _affine(isend, isend.capped_s) if len(isend) else (0.0, 0.0)
    if protocol == "eager":
        send, taking = posting, _affine(receive, receive.capped_s) if len(receive) else (0.0, 0.0)
        send, taking = _within_one_way(half, send, taking)
    else:
        send = taking = (0.0, 0.0)
    rest = half.capped_s - sum((part[0] + part[1] * half.size_bytes) for part in (send, taking))
    latency, per_byte = _affine(half, rest)
    bandwidth = min(1.0 / per_byte, HIGHEST_BANDWIDTH_BPS) if per_byte > 0 else HIGHEST_BANDWIDTH_BPS
    segment = FittedSegment(above_bytes, protocol, latency, bandwidth, send, posting, taking, 0.0)
    scatter = half.duration_s / np.maximum(segment.one_way_s(half.size_bytes), 1e-12) - 1.0
    noise = 1.4826 * float(np.median(np.abs(scatter - np.median(scatter)))) if len(half) else 0.0
    # A ping-pong is the sum of two messages, so one of them scatters more.
    return FittedSegment(above_bytes, protocol, latency, bandwidth, send, posting, taking, noise * float(np.sqrt(2.0)))


def _within_one_way(
    half: Series, send: tuple[float, float], receive: tuple[float, float]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Overheads that do not exceed the one-way time they are part of.

    MPI_Isend and MPI_Recv timed apart can take longer than within a ping-pong, where buffers are warm: then both are
    scaled, term by term, to what the whole has (intercepts against intercepts, slopes against slopes).
    """
    whole = _affine(half, half.capped_s)
    factors = [min(1.0, whole[i] / (send[i] + receive[i])) if send[i] + receive[i] > 0 else 1.0 for i in range(2)]
    return (send[0] * factors[0], send[1] * factors[1]), (receive[0] * factors[0], receive[1] * factors[1])


def _affine(part: Series, values_s: Floats) -> tuple[float, float]:
    """Intercept and slope, both >= 0, least squares of relative errors."""
    if len(part) == 0:
        return 0.0, 0.0
    scale = max(float(part.size_bytes.max()), 1.0)
    unit = float(np.median(part.typical_s))
    x = np.column_stack([np.ones(len(part)), part.size_bytes / scale])
    coefficients = nonnegative_solution(*normal_equations(x, values_s / unit, (part.typical_s / unit) ** -2.0))
    return float(coefficients[0]) * unit, float(coefficients[1]) * unit / scale


def _exchange(exchange: Series | None, segments: tuple[FittedSegment, ...]) -> tuple[float, float]:
    """Median ratio of an exchange to one message alone at large sizes, and median bytes per second of an exchange."""
    if exchange is None:
        return 1.0, 1.0
    large = exchange.within(LARGE_BYTES, np.inf)
    if len(large) < 5:
        return 1.0, 1.0
    alone = FittedNetwork(segments, None, False, 1.0, 1.0, 0.0, 0.0, 0.0).one_way_s(large.size_bytes)
    return float(np.median(large.duration_s / alone)), float(np.median(large.size_bytes / large.duration_s))


def looks_first(looks: Series | None) -> bool:
    """Does MPI_Iprobe mostly need more than one call to find a message that has come long before?

    looks : every call until the message was found; a size measured once has as many entries as calls. Small sizes are
            drawn more than once and do not count.
    """
    if looks is None:
        return False
    _, calls = np.unique(looks.within(RARELY_TWICE_BYTES, np.inf).size_bytes, return_counts=True)
    if len(calls) == 0:
        return False
    return bool(np.median(calls) > 1.0)


def _call_cost(calls: Series | None) -> float:
    """Mean of calls that move nothing, those beyond ten times the median capped; 0 where not measured."""
    if calls is None or len(calls) == 0:
        return 0.0
    return float(np.mean(np.minimum(calls.duration_s, 10.0 * float(np.median(calls.duration_s)))))
