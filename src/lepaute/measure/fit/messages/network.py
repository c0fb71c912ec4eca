"""The model of messages between two ranks: segments of size with their protocol, overheads, latency and bandwidth.

What is measured and what it becomes (one-way time = half of a ping-pong):
    eager      : one-way = send + latency + size / bandwidth + receive. `send` is what MPI_Isend takes, `receive` what
                 MPI_Recv takes for a message that is there; latency and bandwidth are the rest.
    detached   : one-way = send + latency + size / bandwidth. The sender goes on, the transfer waits for the receive.
    rendezvous : one-way = latency + size / bandwidth. Both processes are busy or wait all that time.
Interrupted operations (beyond twice the median of their neighbours) are capped: a run of an application that was
disturbed so is recognised and repeated, so they are not part of what is predicted.

Up to what size messages leave eagerly: by tests of send completion, or by durations of MPI_Isend and of receives.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas

from lepaute.errors import FitError, LepauteError
from lepaute.measure.fit.messages.segment import FittedSegment, Series, fit_segment, series
from lepaute.measure.fit.numeric import Floats, Integers, first_of_largest, simplest, weighted_line
from lepaute.measure.fit.observations.columns import check_columns
from lepaute.measure.fit.segmentation import segment_jointly
from lepaute.measure.observation_columns import SEMANTICS
from lepaute.stats.send_completion import OUTCOMES, Row, rows_of, semantic_limits

#: The limit of a protocol is sought between these sizes.
LOWEST_BYTES, HIGHEST_BYTES = 64.0, 4.0 * 1024**2
#: Above the limit MPI_Isend only announces the message: it takes less than this share of the message's time.
ANNOUNCING = 0.2
FEWEST = 4
#: Libraries set their limits to powers of two: one so near is taken for it.
POWER_OF_TWO = 0.1
#: Most breakpoints of one protocol; the information criterion mostly asks for fewer.
MAX_BREAKPOINTS = 5
#: Distinct sizes of every series in a segment.
MIN_SIZES = 5
#: A series with fewer points says nothing of where it changes.
MIN_POINTS = 12
#: Distinct sizes of all series together that are kept distinct: the time of the search grows with their square.
MAX_SIZES = 250
#: Exchanges and ping-pongs of messages from here on show whether two flows share.
LARGE_BYTES = 256 * 1024
#: Two opposite flows that take up to this many times as long as one alone do not share.
NOT_SHARED = 1.1
#: Fewer points of a protocol are too few for a line of their own.
MIN_OF_A_PROTOCOL = 3
#: Sizes drawn as 10^U from here on are hardly ever drawn twice.
RARELY_TWICE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class ProtocolLimits:
    """Largest sizes that are sent eagerly, and without waiting for the receive; 0 for none, inf for all.

    tested_bytes : largest size of the experiments that found them, None if they were read from durations
    """

    eager_bytes: float
    detached_bytes: float
    tested_bytes: int | None = None

    @classmethod
    def of_eager(cls, limit_bytes: float) -> "ProtocolLimits":
        """Nothing is detached."""
        return cls(limit_bytes, limit_bytes)

    def parts(self) -> Iterator[tuple[str, float, float]]:
        """(protocol, above this size, up to that one), in increasing order, those that hold any size."""
        low = -1.0
        for protocol, high in (
            ("eager", self.eager_bytes),
            ("detached", self.detached_bytes),
            ("rendezvous", float("inf")),
        ):
            if high > max(low, 0.0):
                yield protocol, low, high
                low = high


def _eager_limit_bytes(isend: Series, half: Series, receive: Series) -> float:
    """Largest size that is sent eagerly; infinite where MPI_Isend copies the message whatever its size.

    isend   : durations of MPI_Isend
    half    : halves of ping-pongs
    receive : durations of MPI_Recv of a message that was sent long before
    An eager MPI_Isend copies the message, so its cost rises with the size; above the limit it only announces it, at a
    cost that does not depend on the size. A receive copies an eager message that is there; of an announced one it has
    yet to ask for the data. The limit is the size that parts such a line from such a constant, and the receives into
    two lines, best, in absolute deviations of the logarithm: a few interrupted calls move it little.
    """
    largest = isend.within(HIGHEST_BYTES / 4, np.inf)
    if len(largest) < FEWEST:
        largest = isend.within(float(np.quantile(isend.size_bytes, 0.9)), np.inf)
    whole = np.interp(np.log1p(largest.size_bytes), np.log1p(half.size_bytes), half.typical_s)
    if len(largest) == 0 or float(np.median(largest.duration_s / whole)) > ANNOUNCING:
        return float("inf")
    x, y = isend.size_bytes, np.log(isend.duration_s)
    candidates = [
        i for i in range(FEWEST, len(x) - FEWEST) if LOWEST_BYTES <= x[i] <= HIGHEST_BYTES and x[i] < x[i + 1]
    ]
    if not candidates:
        return float("inf")
    off = np.array([_deviation(isend, y, i) + _parted(receive, float(x[i])) for i in candidates])
    best = candidates[first_of_largest(-off, float(np.min(off)))]
    between = float(np.sqrt(x[best] * x[best + 1]))
    power = 2.0 ** round(float(np.log2(between)))
    return power if abs(between / power - 1.0) < POWER_OF_TWO else float(np.floor(between))


def _parted(receive: Series, last_eager_bytes: float) -> float:
    """Sum of absolute deviations of the logarithm from a line below and a line above."""
    parts = (receive.within(-1.0, last_eager_bytes), receive.within(last_eager_bytes, np.inf))
    return sum(_off_line(part.size_bytes, part.capped_s, np.log(part.duration_s)) for part in parts if len(part) > 0)


def _off_line(x: Floats, y: Floats, log_duration: Floats) -> float:
    intercept, slope = weighted_line(x, y, 1.0 / y**2)
    return float(np.sum(np.abs(log_duration - np.log(np.maximum(intercept + max(slope, 0.0) * x, 1e-10)))))


def _deviation(isend: Series, log_duration: Floats, last_eager: int) -> float:
    """Sum of absolute deviations when the sizes up to index last_eager are eager and all others announced."""
    low, above = slice(0, last_eager + 1), log_duration[last_eager + 1 :]
    eager = _off_line(isend.size_bytes[low], isend.capped_s[low], log_duration[low])
    return eager + float(np.sum(np.abs(above - np.median(above))))


def limits_by_tests(frames: Sequence[pandas.DataFrame]) -> ProtocolLimits | None:
    """The limits that the tests found; None if there are none.

    frames : semantics observations of one class of links; those of rank 0 with nothing sent before count
    An asynchronous send is eager, a synchronous one rendezvous. Where all tested sizes are alike, so are larger ones.
    Raises FitError when a column is missing, or holds what no test answers.
    """
    rows: list[Row] = []
    for frame in frames:
        check_columns(frame, SEMANTICS)
        try:
            rows += rows_of(frame)
        except LepauteError:
            raise
        except ValueError as problem:
            raise FitError(f"{SEMANTICS} holds an invalid answer ({problem}); the file is damaged") from None
    if unknown := sorted({outcome for _, _, outcome, _ in rows} - OUTCOMES):  # would count as answers against a size
        raise FitError(f"{SEMANTICS}: unknown outcome {unknown[0][:60]}; the file is damaged or of a newer Lepaute")
    if not {"deadlock", "corruption"} <= {row[1] for row in rows}:
        return None
    limits = semantic_limits(rows)
    return ProtocolLimits(limits.asynchronous_up_to_bytes, limits.detached_up_to_bytes, limits.tested_up_to_bytes)


def _shared_breakpoints(parts: list[Series]) -> list[float]:
    """Sizes that cut all series at once, by the logarithmic errors of a line each: as few as `simplest` takes.

    Exact up to MAX_SIZES distinct sizes in all; else a breakpoint is one of this many, at equal shares of the points.
    """
    pairs = _grouped_sizes([part for part in parts if len(part) >= MIN_POINTS])
    pairs = [pair for pair in pairs if np.ptp(pair[0]) > 0]  # one size says nothing of where its series changes
    if not pairs:
        return []
    joint = segment_jointly(pairs, objective="log", most_breakpoints=MAX_BREAKPOINTS, least_points=MIN_SIZES)
    few = joint.candidates[simplest(np.array([candidate.criterion for candidate in joint.candidates]))]
    return [math.floor(size) for size in few.breakpoints]


def _grouped_sizes(parts: Sequence[Series]) -> list[tuple[Floats, Floats]]:
    """Sizes and durations; where there are too many sizes, each becomes the largest of its group, and its duration what
    it would be there, by the local medians."""
    pooled = np.concatenate([part.size_bytes for part in parts]) if parts else np.zeros(0)
    if len(np.unique(pooled)) <= MAX_SIZES:
        return [(part.size_bytes, part.capped_s) for part in parts]
    largest = np.unique(np.quantile(pooled, np.linspace(0, 1, MAX_SIZES + 1)[1:], method="higher"))
    pairs = []
    for part in parts:
        grouped_bytes = largest[np.searchsorted(largest, part.size_bytes, side="left")]
        known, first = np.unique(part.size_bytes, return_index=True)
        typical_s = np.interp(np.log1p(grouped_bytes), np.log1p(known), part.typical_s[first])
        pairs.append((grouped_bytes, part.capped_s * typical_s / part.typical_s))
    return pairs


@dataclass(frozen=True, slots=True)
class FittedNetwork:
    """Segments of one class of links, whether flows share, and the cost of calls that move nothing.

    shared_bandwidth_Bps : of the link that concurrent flows share; where they do not, the fastest segment's
    noncontiguous        : segments of messages of a derived datatype with gaps, None if they were not measured
    busy                 : segments of messages whose receiver computes between its probes for them, None likewise
    exchange_ratio       : time of two opposite messages at once over that of one, at large sizes
    limits               : of the protocols; tested: found by tests of send-completion semantics, not from durations
    start_relative_sd    : of the factor that a start of mpirun has on its transfers; start_overhead_sd: on its calls
    sizes                : smallest and largest size that the segments were fitted to, None if nothing says so;
                           noncontiguous_sizes, busy_sizes: the same of messages with gaps and to busy receivers
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
    limits: ProtocolLimits | None = None
    sizes: tuple[int, int] | None = None
    noncontiguous_sizes: tuple[int, int] | None = None
    start_relative_sd: float = 0.0
    start_overhead_sd: float = 0.0
    busy: tuple[FittedSegment, ...] | None = None
    busy_sizes: tuple[int, int] | None = None

    def one_way_s(self, size_bytes: Floats) -> Floats:
        """Time of a message alone, shape of size_bytes."""
        return one_way_s(self.segments, size_bytes)


def one_way_s(segments: tuple[FittedSegment, ...], size_bytes: Floats) -> Floats:
    """Time of a message alone, shape of size_bytes."""
    return _by_segment(segments, size_bytes, FittedSegment.one_way_s)


def overheads_s(segments: tuple[FittedSegment, ...], size_bytes: Floats) -> Floats:
    """Seconds that the overheads of calls take of a message's time."""
    return _by_segment(segments, size_bytes, FittedSegment.overheads_s)


def segment_numbers(segments: tuple[FittedSegment, ...], size_bytes: Floats) -> Integers:
    """Which of the segments holds, by size."""
    bounds = np.array([part.above_bytes for part in segments[1:]], dtype=np.float64)
    return np.searchsorted(bounds, size_bytes, side="left").astype(np.int64)


def _by_segment(
    segments: tuple[FittedSegment, ...], size_bytes: Floats, of: Callable[[FittedSegment, Floats], Floats]
) -> Floats:
    which = segment_numbers(segments, size_bytes)
    result = np.zeros_like(size_bytes)
    for number, part in enumerate(segments):
        result[which == number] = of(part, size_bytes[which == number])
    return result


def fit_network(operations: dict[str, Series], limits: ProtocolLimits | None = None) -> FittedNetwork:
    """Fits the segments to ping-pongs, isends and receives, sharing to exchanges.

    operations : series by name; pingpong, isend and recv are needed, exchange, iprobe, test and wtime may be absent
    limits     : of the protocols, where experiments found them; else they are read from the durations
    Raises FitError when a needed one is absent, or has too few sizes.
    """
    missing = [name for name in ("pingpong", "isend", "recv") if name not in operations]
    if missing:
        raise FitError(f"there are no measurements of {missing[0]}; calibrate with all operations")
    half = operations["pingpong"].scaled(0.5)
    isend, receive = operations["isend"], operations["recv"]
    if limits is None:
        limits = ProtocolLimits.of_eager(_eager_limit_bytes(isend, half, receive))
    segments = fit_segments(half, isend, receive, limits)
    ratio, size_rate = _exchange(operations.get("exchange"), segments)
    shared = ratio > NOT_SHARED
    gaps = _gaps(operations.get("strided"), segments, limits)
    return FittedNetwork(
        segments,
        gaps[0] if gaps else None,
        shared,
        2.0 * size_rate if shared else max(part.bandwidth_Bps for part in segments),
        ratio,
        call_cost(operations.get("iprobe")),
        call_cost(operations.get("test")),
        call_cost(operations.get("wtime")),
        _looks_first(operations.get("seen")),
        limits,
        size_range(half),
        (size_range(half)[0], gaps[1]) if gaps else None,
    )


def fit_segments(
    message: Series, isend: Series, receive: Series, limits: ProtocolLimits, *, pairs: bool = True
) -> tuple[FittedSegment, ...]:
    """The segments of messages of the time `message`, with `pairs` the mean of there and back (`fit_segment`).

    Raises FitError if there are fewer than three measurements of every protocol.
    """
    segments: list[FittedSegment] = []
    for protocol, low, high in limits.parts():
        parts = [part.within(low, high) for part in (message, isend, receive)]
        if len(parts[0]) < MIN_OF_A_PROTOCOL:
            continue
        used = {"eager": parts, "detached": parts[:2], "rendezvous": parts[:1]}[protocol]
        # Calls alone would show where they change, but in a segment without messages these would take no time.
        cuts = _shared_breakpoints(used) if len(parts[0]) >= MIN_POINTS else []
        for bottom, top in pairwise([low, *cuts, high]):
            inside = [part.within(bottom, top) for part in parts]
            segments.append(fit_segment(max(0, int(bottom)) if segments else 0, protocol, *inside, pairs=pairs))
    if not segments:
        raise FitError(f"there are {len(message)} measurements of messages, too few for a line; calibrate with more")
    return tuple(segments)


def _gaps(
    strided: Series | None, segments: tuple[FittedSegment, ...], limits: ProtocolLimits
) -> tuple[tuple[FittedSegment, ...], int] | None:
    """Segments of messages with gaps, above the eager limit from their own times, below as others; the largest size.

    A measurement is the message, with the making of its datatype, and an empty answer, whose time is subtracted.
    """
    if strided is None:
        return None
    limit = limits.eager_bytes
    above = strided.within(limit, np.inf)
    if len(above) < MIN_POINTS:
        return None
    message = series(above.size_bytes, above.duration_s - float(segments[0].one_way_s(np.zeros(1))[0]))
    parts = [part for part in segments if part.protocol == "eager"]
    for bottom, top in pairwise([limit, *_shared_breakpoints([message]), np.inf]):
        inside = message.within(bottom, top)
        first = max(0, int(bottom)) if parts else 0
        nothing = inside.within(np.inf, np.inf)
        parts.append(fit_segment(first, "rendezvous", inside, nothing, nothing, pairs=False))
    return tuple(parts), size_range(message)[1]


def size_range(message: Series) -> tuple[int, int]:
    """Smallest and largest size, in bytes."""
    return int(message.size_bytes.min()), int(message.size_bytes.max())


def _exchange(exchange: Series | None, segments: tuple[FittedSegment, ...]) -> tuple[float, float]:
    """Median ratio of an exchange to one message alone at large sizes, and median bytes per second of an exchange."""
    if exchange is None:
        return 1.0, 1.0
    large = exchange.within(LARGE_BYTES, np.inf)
    if len(large) < 5:
        return 1.0, 1.0
    alone_s = one_way_s(segments, large.size_bytes)
    return float(np.median(large.duration_s / alone_s)), float(np.median(large.size_bytes / large.duration_s))


def _looks_first(looks: Series | None) -> bool:
    """Does MPI_Iprobe mostly need more than one call to find a message that has come long before?

    looks : every call until the message was found, of sizes measured once; small sizes are drawn more than once.
    """
    if looks is None:
        return False
    _, calls = np.unique(looks.within(RARELY_TWICE_BYTES, np.inf).size_bytes, return_counts=True)
    return len(calls) > 0 and bool(np.median(calls) > 1.0)


def call_cost(calls: Series | None) -> float:
    """Mean of calls that move nothing, those beyond ten times the median capped; 0 if not measured."""
    if calls is None or len(calls) == 0:
        return 0.0
    return float(np.mean(np.minimum(calls.duration_s, 10.0 * float(np.median(calls.duration_s)))))
