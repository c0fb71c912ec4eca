"""One segment of message sizes: its line for each operation, and the noise about it."""

from dataclasses import dataclass, replace

import numpy as np

from lepaute.fit.messages.noise import lognormal_modes, of_one_message
from lepaute.fit.messages.series import CAP, Series
from lepaute.fit.numeric.arrays import Floats
from lepaute.fit.numeric.least_squares import nonnegative_solution, normal_equations
from lepaute.fit.numeric.mixture import Mode

#: The bandwidth of a segment that cannot be distinguished from infinite.
HIGHEST_BANDWIDTH_BPS = 1e12
#: So large a share of a segment's messages beyond the cap were not interrupted: that is how its messages are.
NOT_INTERRUPTED = 0.25
#: Even then, so many times the median is the most that counts: of a hundred messages one that waited for a slice of the
#: processor would be most of the mean.
HIGHEST_CAP = 10.0


@dataclass(frozen=True, slots=True)
class FittedSegment:
    """Messages of more than above_bytes; overheads are (intercept_s, per_byte_s).

    modes : of log(duration of a message / its fitted mean); none where too few were measured, and then
            noise_relative_sd stands for them
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


def fit_segment(
    above_bytes: int, protocol: str, message: Series, isend: Series, receive: Series, *, pairs: bool = True, seed: int
) -> FittedSegment:
    """The segment of messages of these sizes.

    message : times from the beginning of a send to the end of its receive; pairs: each is the mean of two, there and
              back, which vary less than one
    isend, receive : durations of MPI_Isend, and of MPI_Recv of a message that is there; may be empty
    eager: what the two take is part of the time of a message; detached: what MPI_Isend takes is; rendezvous: neither,
    both processes are busy or wait all the time.
    """
    times_s = _times(message)
    posting = relative_line(isend, isend.capped_s)
    send = posting if protocol in ("eager", "detached") else (0.0, 0.0)
    taking = relative_line(receive, receive.capped_s) if protocol == "eager" else (0.0, 0.0)
    send, taking = _within_one_way(relative_line(message, times_s), send, taking)
    rest = times_s - sum((part[0] + part[1] * message.size_bytes) for part in (send, taking))
    latency, per_byte = relative_line(message, rest)
    bandwidth = min(1.0 / per_byte, HIGHEST_BANDWIDTH_BPS) if per_byte > 0 else HIGHEST_BANDWIDTH_BPS
    segment = FittedSegment(above_bytes, protocol, latency, bandwidth, send, posting, taking, 0.0)
    fitted_s = np.maximum(segment.one_way_s(message.size_bytes), 1e-12)
    # Of the durations that the mean is of: a mean with those that were interrupted, and noise without, would not fit.
    modes = lognormal_modes(np.log(times_s / fitted_s), seed=seed)
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
    coefficients = nonnegative_solution(*normal_equations(x, values_s / unit, (part.typical_s / unit) ** -2.0))
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


def _within_one_way(
    whole: tuple[float, float], send: tuple[float, float], receive: tuple[float, float]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Overheads that do not exceed the one-way time they are part of.

    MPI_Isend and MPI_Recv timed apart can take longer than within a ping-pong, where buffers are warm: then both are
    scaled, term by term, to what the whole has (intercepts against intercepts, slopes against slopes).
    """
    factors = [min(1.0, whole[i] / (send[i] + receive[i])) if send[i] + receive[i] > 0 else 1.0 for i in range(2)]
    return (send[0] * factors[0], send[1] * factors[1]), (receive[0] * factors[0], receive[1] * factors[1])


def _relative_sd(ratio: Floats, pairs: bool) -> float:
    if len(ratio) == 0:
        return 0.0
    robust = 1.4826 * float(np.median(np.abs(ratio - np.median(ratio))))
    return robust * float(np.sqrt(2.0)) if pairs else robust
