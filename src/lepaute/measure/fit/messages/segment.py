"""Measured point-to-point operations as arrays, and the segment of sizes that is fitted to them, with its noise.

The noise of messages: a mixture of normal distributions of the logarithm of a duration over its mean.

Logarithms, because modes of messages lie at factors of each other: a mixture of the relative residuals themselves would
give some messages durations below zero, and to cut those would move the mean.

One segment of message sizes: its line for each operation, and the noise about it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum

import numpy as np
import pandas

from lepaute.errors import FitError
from lepaute.measure.fit.numeric import Floats, Mode, likeliest_modes, local_median, normal_equations, subset
from lepaute.measure.fit.observations.columns import check_columns, net_seconds
from lepaute.measure.observation_columns import NEEDED, P2P
from lepaute.stats.algebra import nonnegative_solution
from lepaute.stats.robust import robust_sd

#: A duration beyond this many times the median of its neighbours in size was interrupted.
CAP = 2.0
MAX_MODES = 4
#: Points that a mode must account for: fewer are a few odd messages, not a mode.
MIN_OF_A_MODE = 10
#: Durations that differ by less than this share are taken as equal: a clock's ticks must not become modes.
RESOLUTION = 0.01
#: So many points, at equal shares of the sorted ones, determine a mixture as well as more would.
MAX_POINTS = 4000
#: Durations below a twentieth of the median, or above twenty times, say no more about the noise than these.
WIDEST = float(np.log(20.0))
#: Largest deviation of a mode: a wider one would draw messages of a hundred times the mean, which nobody measured.
LARGEST_SD = 1.0
#: The bandwidth of a segment that cannot be distinguished from infinite.
HIGHEST_BANDWIDTH_BPS = 1e12
#: So large a share of a segment's messages beyond the cap were not interrupted: that is how its messages are.
NOT_INTERRUPTED = 0.25
#: Even then, so many times the median counts at most: one message that waited for the processor would be most of it.
HIGHEST_CAP = 10.0


@dataclass(frozen=True, slots=True)
class Series:
    """Durations of one operation, shape (n,), in increasing size; the clock's cost is subtracted.

    capped_s : the same, none above CAP times the local median
    typical_s: the local median
    """

    size_bytes: Floats
    duration_s: Floats
    capped_s: Floats
    typical_s: Floats

    def __len__(self) -> int:
        return len(self.size_bytes)

    def within(self, low: float, high: float) -> "Series":
        """The part with low < size <= high."""
        return subset(self, (self.size_bytes > low) & (self.size_bytes <= high))

    def scaled(self, factor: float) -> "Series":
        return Series(self.size_bytes, self.duration_s * factor, self.capped_s * factor, self.typical_s * factor)


def series_of(frames: Sequence["pandas.DataFrame"]) -> dict[str, Series]:
    """Series by operation from the p2p observations of archives.

    Raises FitError when a column is missing, or the ping-pongs, isends or receives are too few or of one size.
    """
    for frame in frames:
        check_columns(frame, P2P)
    table = pandas.concat([frame.loc[:, list(NEEDED[P2P])] for frame in frames], ignore_index=True)
    net_s = net_seconds(table)
    sizes = table["size_bytes"].to_numpy(dtype=np.float64)
    names = table["operation"].astype(str).to_numpy()
    result = {str(name): series(sizes[names == name], net_s[names == name]) for name in np.unique(names)}
    for needed in ("pingpong", "isend", "recv"):
        if len(result.get(needed, ())) < 10:
            raise FitError(f"there are fewer than 10 measurements of {needed}; calibrate with more")
        sizes_of_it = result[needed].size_bytes
        if sizes_of_it[0] == sizes_of_it[-1]:
            raise FitError(
                f"all {len(sizes_of_it)} measurements of {needed} are of {sizes_of_it[0]:g} bytes, which say nothing "
                "of other sizes; calibrate with more"
            )
    return result


def series(size_bytes: Floats, duration_s: Floats) -> Series:
    """A series in increasing size; durations below a nanosecond, to the clock the same as 0, become one."""
    if len(size_bytes) == 0:
        return Series(*(np.zeros(0) for _ in range(4)))
    order = np.argsort(size_bytes, kind="stable")
    size, duration = size_bytes[order], np.maximum(duration_s[order], 1e-9)
    typical = local_median(size, duration)
    return Series(size, duration, np.minimum(duration, CAP * typical), typical)


def lognormal_modes(log_ratio: Floats) -> tuple[Mode, ...]:
    """The mixture of log(duration / fitted mean), in increasing order of the means, centred by `centred`.

    log_ratio : shape (n,), in any order and from any reference: a common shift does not matter
    How many modes, at most MAX_MODES, says `likeliest_modes`; each accounts for MIN_OF_A_MODE points. None for
    fewer points than that.
    Raises FitError for values that are not finite.
    """
    values = np.sort(np.asarray(log_ratio, dtype=np.float64))
    middle = float(np.median(values)) if len(values) else 0.0
    if not np.all(np.isfinite(values)):
        raise FitError("the noise of messages needs finite durations > 0; leave out the others")
    if len(values) < MIN_OF_A_MODE:
        return ()
    values = np.clip(values, middle - WIDEST, middle + WIDEST)
    if len(values) > MAX_POINTS:
        values = values[np.linspace(0, len(values) - 1, MAX_POINTS).round().astype(np.int64)]
    modes = likeliest_modes(
        values, min(MAX_MODES, len(values) // MIN_OF_A_MODE), least_sd=RESOLUTION, fewest=MIN_OF_A_MODE
    )
    # Without what RESOLUTION has added.
    sds = [min(float(np.sqrt(max(mode.sd**2 - RESOLUTION**2, 0.0))), LARGEST_SD) for mode in modes]
    return centred([Mode(mode.weight, mode.mean, sd) for mode, sd in zip(modes, sds, strict=True)])


def centred(modes: Sequence[Mode]) -> tuple[Mode, ...]:
    """The same modes, their means shifted alike, so that the mean factor on a duration is 1:
    sum of weight * exp(mean + sd^2 / 2), the mean of a mixture of lognormal distributions."""
    total = fsum(mode.weight for mode in modes)
    shift = float(np.log(sum(mode.weight * np.exp(mode.mean + mode.sd**2 / 2) for mode in modes) / total))
    return tuple(Mode(mode.weight / total, mode.mean - shift, mode.sd) for mode in modes)


def of_one_message(modes: Sequence[Mode]) -> tuple[Mode, ...]:
    """The noise of one message, from that of the average of two that followed each other (half a ping-pong).

    A mode is taken as a state that both messages met, since modes of half ping-pongs do not come in the binomial shares
    that independent ones would have; within a mode the two are independent, so one varies by sqrt(2) more.
    """
    return centred([Mode(mode.weight, mode.mean, min(mode.sd * float(np.sqrt(2.0)), LARGEST_SD)) for mode in modes])


@dataclass(frozen=True, slots=True)
class FittedSegment:
    """Messages of more than above_bytes; overheads are (intercept_s, per_byte_s).

    modes : of log(duration of a message / its fitted mean); none of too few, for which noise_relative_sd stands
    """

    above_bytes: int
    protocol: str
    latency_s: float
    bandwidth_Bps: float  # noqa: N815 - the unit
    send: tuple[float, float]
    isend: tuple[float, float]
    receive: tuple[float, float]
    noise_relative_sd: float
    modes: tuple[Mode, ...] = ()

    def one_way_s(self, size_bytes: Floats) -> Floats:
        """Time from the start of the send to the end of the receive."""
        fixed = self.send[0] + self.receive[0] + self.latency_s
        return fixed + (self.send[1] + self.receive[1] + 1.0 / self.bandwidth_Bps) * size_bytes

    def overheads_s(self, size_bytes: Floats) -> Floats:
        """Seconds that the send and the receive take of a message's time."""
        return self.send[0] + self.receive[0] + (self.send[1] + self.receive[1]) * size_bytes


def fit_segment(
    above_bytes: int, protocol: str, message: Series, isend: Series, receive: Series, *, pairs: bool = True
) -> FittedSegment:
    """The segment of messages of these sizes.

    message : times from the beginning of a send to the end of its receive; pairs: each is the mean of two, there and
              back, which vary less than one
    isend, receive : durations of MPI_Isend, and of MPI_Recv of a message that is there; may be empty
    eager: part of the time of a message; detached: MPI_Isend is; rendezvous: neither, both processes are busy.
    """
    times_s = _times(message)
    posting = relative_line(isend, isend.capped_s)
    send = posting if protocol in ("eager", "detached") else (0.0, 0.0)
    taking = relative_line(receive, receive.capped_s) if protocol == "eager" else (0.0, 0.0)
    # MPI_Isend and MPI_Recv timed apart can take longer than within a ping-pong, where buffers are warm: then both are
    # scaled, term by term, to what the whole has (intercepts against intercepts, slopes against slopes).
    terms = zip(relative_line(message, times_s), send, taking, strict=True)
    low, steep = (min(1.0, whole / (first + last)) if first + last > 0 else 1.0 for whole, first, last in terms)
    send, taking = (send[0] * low, send[1] * steep), (taking[0] * low, taking[1] * steep)
    rest = times_s - sum((part[0] + part[1] * message.size_bytes) for part in (send, taking))
    latency, per_byte = relative_line(message, rest)
    bandwidth = min(1.0 / per_byte, HIGHEST_BANDWIDTH_BPS) if per_byte > 0 else HIGHEST_BANDWIDTH_BPS
    segment = FittedSegment(above_bytes, protocol, latency, bandwidth, send, posting, taking, 0.0)
    fitted_s = np.maximum(segment.one_way_s(message.size_bytes), 1e-12)
    # Of the durations that the mean is of: a mean with those that were interrupted, and noise without, would not fit.
    modes = lognormal_modes(np.log(times_s / fitted_s))
    if modes:
        return replace(segment, modes=of_one_message(modes) if pairs else modes)
    return replace(segment, noise_relative_sd=_relative_sd(message.duration_s / fitted_s, pairs))


def relative_line(part: Series, values_s: Floats) -> tuple[float, float]:
    """Intercept and slope, both >= 0, least squares of relative errors; (0, 0) of nothing."""
    if len(part) == 0:
        return 0.0, 0.0
    scale = max(float(part.size_bytes.max()), 1.0)
    unit = float(np.median(part.typical_s))
    x = np.column_stack([np.ones(len(part)), part.size_bytes / scale])
    coefficients = nonnegative_solution(*normal_equations(x, values_s / unit, 1.0 / (part.typical_s / unit) ** 2))
    return float(coefficients[0]) * unit, float(coefficients[1]) * unit / scale


def _times(message: Series) -> Floats:
    """Durations that mean and noise are fitted to: few beyond the cap were interrupted and are capped, many are a mode
    of their own, which is capped by its own median."""
    beyond = message.duration_s > CAP * message.typical_s
    if len(message) == 0 or float(np.mean(beyond)) < NOT_INTERRUPTED:
        return message.capped_s
    slow = float(np.median(message.duration_s[beyond] / message.typical_s[beyond]))
    result: Floats = np.minimum(message.duration_s, min(CAP * slow, HIGHEST_CAP) * message.typical_s)
    return result


def _relative_sd(ratio: Floats, pairs: bool) -> float:
    if len(ratio) == 0:
        return 0.0
    robust = robust_sd(ratio)
    return robust * float(np.sqrt(2.0)) if pairs else robust
