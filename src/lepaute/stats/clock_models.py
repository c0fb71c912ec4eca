"""Times of ranks by the clock of rank 0, and how far apart events of several ranks are, with the error of the clocks.

The models are those that probe-collectives writes for each rank (probes/clock_model.h, which has the derivations): a
reading x of a rank's clock is the time y0 + (1 + b) (x - x0) of rank 0's. Two kinds of error: a random one with a
standard deviation, and one by latencies that differ by direction, which nothing shows and which is only bounded.
"""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from lepaute.stats.expanding import Floats, Integers

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class ClockModels:
    """Models of many readings, arrays of one shape (or that broadcast); a row of the probe's files is a model.

    x0_ns, y0_ns : int64; of the rank's clock, and of rank 0's at that moment
    drift        : seconds that rank 0's clock gains in a second of this one
    variance_ns2, drift_variance, covariance_ns: of y0 and the drift; bound_ns: greatest error by asymmetric latencies
    """

    x0_ns: Any
    y0_ns: Any
    drift: Any
    variance_ns2: Any
    drift_variance: Any
    covariance_ns: Any
    bound_ns: Any

    def at(self, x_ns: Any) -> Integers:
        """The time of rank 0's clock, ns, when the clocks show x_ns (a double has too few digits for either)."""
        since = np.asarray(x_ns, dtype=np.int64) - np.asarray(self.x0_ns, dtype=np.int64)
        gained = np.rint(np.asarray(self.drift, dtype=float) * since).astype(np.int64)
        return np.asarray(self.y0_ns, dtype=np.int64) + since + gained

    def deviation_ns(self, x_ns: Any) -> Floats:
        """Standard deviation of `at`, without the bound."""
        since = (np.asarray(x_ns, dtype=np.int64) - np.asarray(self.x0_ns, dtype=np.int64)).astype(float)
        variance = (
            np.asarray(self.variance_ns2, dtype=float)
            + 2 * since * np.asarray(self.covariance_ns, dtype=float)
            + since**2 * np.asarray(self.drift_variance, dtype=float)
        )
        deviation: Floats = np.sqrt(np.maximum(variance, 0.0))
        return deviation


@dataclass(frozen=True, slots=True)
class Spreads:
    """Last less first of events, one on each rank: of each call, ns, with the interval that clocks leave; float64."""

    spread_ns: Floats
    low_ns: Floats
    high_ns: Floats


def exit_skew(start_ns: Any, models: ClockModels) -> Spreads:
    """The spread of the starts of each call, which is the exit skew of the synchronisation before it.

    start_ns : (calls, ranks), int64, of each rank's own clock; models: of shapes that broadcast to it
    The truth lies between low_ns and high_ns of a call in 95 of 100 synchronisations of the clocks, if no latency
    differs by more than the bound. Calls after one synchronisation share its error, which no average narrows.
    """
    times_ns = models.at(start_ns)
    deviation = np.broadcast_to(models.deviation_ns(start_ns), times_ns.shape)
    bound = np.broadcast_to(np.asarray(models.bound_ns, dtype=float), times_ns.shape)
    return spread(times_ns, quantile(times_ns.shape[-1]) * deviation + bound)


def quantile(ranks: int) -> float:
    """Standard deviations that hold the errors of all ranks but rank 0 at once in at least 95 of 100 (Bonferroni)."""
    return NormalDist().inv_cdf(1 - (1 - CONFIDENCE) / (2 * max(1, ranks - 1)))


def spread(times_ns: Any, half_widths_ns: Any) -> Spreads:
    """Last less first along the last axis, each time being within its half-width of the truth.

    times_ns: int64, (..., n), n >= 1; half_widths_ns: of the same shape, not negative.
    low and high are the least and the greatest spread that such times allow.
    """
    times = np.asarray(times_ns, dtype=np.int64)
    near = (times - times[..., :1]).astype(float)  # events of a call are near each other: exact as doubles
    half = np.asarray(half_widths_ns, dtype=float)
    seen = near.max(axis=-1) - near.min(axis=-1)
    if near.shape[-1] == 1:
        return Spreads(seen, seen, seen)
    earliest, latest = near - half, near + half
    low = np.maximum(0.0, earliest.max(axis=-1) - latest.min(axis=-1))
    # The greatest difference of two different events: one event is not apart from itself.
    last, first = np.sort(latest, axis=-1), np.sort(earliest, axis=-1)
    same = latest.argmax(axis=-1) == earliest.argmin(axis=-1)
    others = np.maximum(last[..., -2] - first[..., 0], last[..., -1] - first[..., 1])
    return Spreads(seen, low, np.maximum(np.where(same, others, last[..., -1] - first[..., 0]), seen))
