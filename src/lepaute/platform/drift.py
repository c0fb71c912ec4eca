"""How a machine wanders, as a platform says it: the sentinels of its calibration, and the drift that they show."""

from datetime import UTC, datetime
from math import inf, sqrt
from typing import Annotated

from pydantic import AfterValidator

from lepaute.platform.values import Count, NonNegative, Positive, Value, fault
from lepaute.stats.variogram import variance_after

#: No machine is known worse than by a factor of about two: a random walk that is continued for a year says nothing.
MOST_RELATIVE_SD = 0.5


def _date(text: str) -> str:
    try:
        known = datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        known = False
    if not known:
        raise fault(f"is {text[:40]!r}; a date and time with its zone is expected, such as 2026-11-22T20:13:49+00:00")
    return text


Date = Annotated[str, AfterValidator(_date)]


class Sentinel(Value):
    """The product that watches over the speed of the machine: dgemm(m, n, k) on all cores at once, over and over.

    `duration_s`: of one call, mean over the calibration; `relative_error`: its standard error over it
    `ended`: date of the last one
    """

    m: Count
    n: Count
    k: Count
    duration_s: Positive
    relative_error: NonNegative
    ended: Date

    @property
    def gflops(self) -> float:
        """Rate of one core."""
        return 2e-9 * self.m * self.n * self.k / self.duration_s

    def lag_s(self, now: datetime | None = None) -> float:
        """Seconds from the end of the calibration until a date, the present unless given; never below 0."""
        return max(0.0, ((now or datetime.now(UTC)) - datetime.fromisoformat(self.ended)).total_seconds())


class Drift(Value):
    """The variogram of log(duration of a sentinel): of a random walk, or an exponential one where it is bounded.

    `slope_per_s`: growth of the semivariance in a second of lag, at short lags
    `range_s`: where the semivariance levels off, at slope_per_s * range_s; null: it grows on
    `span_s`: of the calibrations; what the variogram says of longer lags was not measured
    `common_relative_sd`: what the effect of the day holds of it already, being the spread between blocks minutes apart
    """

    slope_per_s: NonNegative
    range_s: Positive | None = None
    span_s: Positive
    common_relative_sd: NonNegative

    def relative_sd(self, lag_s: float) -> float:
        """Of the difference between the machine `lag_s` after the calibration and its mean during it."""
        variance = variance_after(self.slope_per_s, self.range_s or inf, self.span_s, max(0.0, lag_s))
        # Twelve digits: the last ones of the exponential in it depend on the processor.
        return min(MOST_RELATIVE_SD, float(f"{sqrt(variance):.12g}"))

    def day_relative_sd(self, common_relative_sd: float, lag_s: float) -> float:
        """The effect of the day with what the machine drifts by, beyond what the former holds already."""
        after, known = self.relative_sd(lag_s), self.common_relative_sd
        more = max(0.0, after * after - known * known)
        return max(common_relative_sd, min(MOST_RELATIVE_SD, sqrt(common_relative_sd * common_relative_sd + more)))
