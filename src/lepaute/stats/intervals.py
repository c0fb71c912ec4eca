"""Intervals: of a median by order statistics, of one further run by logarithms; and means.

The mean of durations without the few longest: what a machine takes as a rule, its regular interruptions included.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import exp, fsum, hypot, isfinite, lgamma, log, nan, sqrt
from typing import NamedTuple

from lepaute import _core
from lepaute.errors import InputError
from lepaute.stats.control_variates import Adjusted, Controls, adjusted
from lepaute.stats.student import NORMAL_975, student_quantile

#: From this many runs on, the quantiles of the runs themselves are taken. With fewer, the 2.5 % quantile would lie
#: outside the runs seen: its position is 0.025 (R + 1), which reaches the first of them at R = 39.
EMPIRICAL_FROM = 40
#: More runs than these are not advised.
MAX_ADVISED = 1000
_LARGEST_LOG = 700.0  # what exponential() takes


def median_interval(values: Iterable[float], miss: float) -> tuple[float, float] | None:
    """The interval that misses the median of the values with chance <= `miss`, see `median_rank`; None for too few."""
    ordered = sorted(values)
    rank = median_rank(len(ordered), miss)
    return (float(ordered[rank - 1]), float(ordered[len(ordered) - rank])) if rank else None


@lru_cache(maxsize=256)
def median_rank(count: int, miss: float) -> int:
    """The largest r such that [x(r), x(n + 1 - r)] of the ordered values misses the median with chance <= `miss`.

    count : n >= 1 values; miss : in (0, 1)
    The chance is 2 P(B <= r - 1), B binomial(n, 1/2); 0 if not even the extremes are enough. Values with ties make
    the interval cover more often, never less.
    Source: Conover, Practical Nonparametric Statistics, section 3.2 (confidence interval for a quantile).
    """
    if count < 1 or not (isfinite(miss) and 0 < miss < 1):
        raise InputError(
            f"a rank for {count!r} values and a miss of {miss!r} does not exist; give n >= 1, 0 < miss < 1"
        )
    # about where the normal approximation has it, and then step by step: a few steps whatever n is
    rank = max(0, int(count / 2 - sqrt(count * log(2 / miss) / 2)))
    while rank > 0 and 2 * _at_most(rank - 1, count) > miss:
        rank -= 1
    while 2 * (rank + 1) <= count + 1 and 2 * _at_most(rank, count) <= miss:
        rank += 1
    return rank


def _at_most(successes: int, count: int) -> float:
    """P(B <= successes) for B binomial(count, 1/2), successes < count / 2 + 1; summed from its largest term down."""
    term = exp(lgamma(count + 1) - lgamma(successes + 1) - lgamma(count - successes + 1) - count * log(2))
    total = 0.0
    for k in range(successes, -1, -1):
        total += term
        if term < 1e-17 * total:
            break
        term *= k / (count - k + 1)
    return total


def upper_trimmed_mean(values: Sequence[float], share: float = 0.05) -> float:
    """The mean of all values but the largest `share` of them, rounded down; of n >= 1 values in any unit.

    A median does not see a machine that is taken away a few milliseconds in ten; a mean sees every interruption.
    """
    ordered = sorted(values)
    kept = ordered[: len(ordered) - int(share * len(ordered))]
    return fsum(kept) / len(kept)


class Interval(NamedTuple):
    """[low, high], in the unit of the values; both None if a single value says nothing about the spread."""

    low: float | None
    high: float | None

    @property
    def ends(self) -> tuple[float, float]:
        """Both as numbers, NaN if there is no interval."""
        return nan if self.low is None else self.low, nan if self.high is None else self.high


def prediction_interval(values: Sequence[float], common_sd: float = 0.0, controls: Controls | None = None) -> Interval:
    """The 95 % prediction interval for one further value of the same kind: durations, or rates of the same work.

    values : R >= 1 finite numbers >= 0, any one unit
    R = 1: no interval. R < 40: Student's prediction interval of the logarithms x, mean(x) ± t(R-1, 0.975) · sd(x) ·
    sqrt(1 + 1/R), exact for log-normal values. R >= 40: empirical 2.5 % and 97.5 % quantiles, at positions p (R + 1)
    among the ordered logarithms; their expected coverage is 95 % whatever the distribution. Student's holds less where
    tails are long (docs/concepts/intervals.md).
    The interval of rates is that of durations, inverted. A 0 has no logarithm: where
    there is one, the bounds are those of the values themselves, and not below 0.
    common_sd : standard deviation of the logarithm of a factor that all values lack alike, unknown and near 1, so that
        they do not show it; each bound moves away from the mean: squares of its distance and of 1.96 common_sd add up
    controls : of the values; what they explain of the logarithms is taken out of the values, and the distance of its
        quantiles added in the same way: Student's interval, with a degree of freedom less for each, is of what is left
    Raises InputError if there is no value, or one that is not finite or below 0.
    """
    if not values or not all(isfinite(value) and value >= 0.0 for value in values):
        raise InputError(f"a prediction interval needs finite values >= 0; got {list(values)[:5]!r}")
    if len(values) == 1:
        return Interval(None, None)
    least, most = min(values), max(values)
    if least == most and (common_sd == 0.0 or most == 0.0):
        return Interval(least, least)
    if least == 0.0:
        low, high = _bounds(values)
        return Interval(max(low, 0.0), high)
    left = _adjusted_logs(values, controls)
    low, high = _bounds(left.logs, left.estimated, left.widening)
    if common_sd > 0.0 or left.estimated:
        mean, reach = fsum(left.logs) / len(values), NORMAL_975 * common_sd
        below, above = max(0.0, mean - low), max(0.0, high - mean)
        low = mean - sqrt(below * below + left.below * left.below + reach * reach)
        high = mean + sqrt(above * above + left.above * left.above + reach * reach)
    return Interval(_core.exponential(max(low, -_LARGEST_LOG)), _core.exponential(min(high, _LARGEST_LOG)))


def runs_that_tell(mean: float, sd: float, known_sd: float, count: int, estimated: int = 0) -> int | None:
    """Values, `count` at least, with which 0 would be outside their 95 % prediction interval if mean and standard
    deviation are what they seem; None if no number would do.

    known_sd : the part of the spread that no further value changes;  estimated : coefficients that they have to tell
    """
    if abs(mean) <= NORMAL_975 * hypot(sd, known_sd):
        return None
    for runs in range(max(count, 2 + estimated), MAX_ADVISED + 1):
        own = student_quantile(0.975, runs - 1 - estimated) * sd * sqrt(1.0 + 1.0 / runs)
        if hypot(own, NORMAL_975 * known_sd) < abs(mean):
            return runs
    return None


def basis_of_interval(values: Sequence[float], controls: Controls | None = None) -> str | None:
    """What a `prediction_interval` rests on, in words; None without one."""
    if len(values) < 2:
        return None
    how = "quantiles" if len(values) >= EMPIRICAL_FROM else "Student's t"
    if controls is None or min(values) <= 0.0:
        return f"{how} of these alone"
    priced = _adjusted_logs(values, controls).estimated > 0
    return f"priced draws, and {how} of what they leave" if priced else f"{how} of these alone"


def expected(values: Sequence[float], controls: Controls | None = None) -> float:
    """The mean of the distribution that R >= 1 values >= 0 are drawn from: theirs, or with the controls at their own
    means instead of those that the values happen to have.

    What the controls explain is taken as log-normal, with its 2.5 % and 97.5 % quantiles: the mean of a Student effect
    of few degrees of freedom is what its rarest draws make of it.
    """
    mean = fsum(values) / len(values)
    if controls is None or len(values) < 2 or min(values) <= 0.0:
        return mean
    left = _adjusted_logs(values, controls)
    if not left.estimated:
        return mean
    return _core.exponential(0.5 * left.variance) * fsum(map(_core.exponential, left.logs)) / len(values)


def median_of_runs(values: Sequence[float], controls: Controls | None = None) -> float:
    """The geometric mean of R >= 1 values > 0, with the controls at their means."""
    return _core.exponential(fsum(_adjusted_logs(values, controls).logs) / len(values))


def interval_of_mean(
    values: Sequence[float], sd_on_one_day: float, count: int, common_sd: float = 0.0, controls: Controls | None = None
) -> Interval:
    """The 95 % prediction interval for the mean of `count` further values of one day on one machine.

    values, common_sd, controls : as of `prediction_interval`, each value of another day and machine
    sd_on_one_day : standard deviation of the logarithms of values of the same day and machine. It is that part of the
        values' own that a mean of `count` lessens, so that the logarithms of the bounds lie as much closer to the mean.
    Raises InputError as `prediction_interval`.
    """
    low, high = prediction_interval(values, common_sd, controls)
    if low is None or high is None or low <= 0.0 or low == high:
        return Interval(low, high)
    left = _adjusted_logs(values, controls)
    variance = standard_deviation(left.logs) ** 2 + left.variance + common_sd**2
    lessened = min(sd_on_one_day**2, variance) * (1.0 - 1.0 / count)
    factor, mean = sqrt(1.0 - lessened / variance), fsum(left.logs) / len(left.logs)
    ends = (mean + factor * (_core.natural_log(end) - mean) for end in (low, high))
    return Interval(*map(_core.exponential, ends))


def _bounds(values: Sequence[float], estimated: int = 0, widening: float | None = None) -> tuple[float, float]:
    count = len(values)
    if count >= EMPIRICAL_FROM:
        ordered = sorted(values)
        return _quantile(ordered, 0.025), _quantile(ordered, 0.975)
    # Twelve digits: how its last ones come out depends on the processor.
    freedom = count - 1 - estimated
    t = float(f"{student_quantile(0.975, freedom):.12g}")
    half = t * standard_deviation(values) * sqrt((1 + (widening or 1 / count)) * ((count - 1) / freedom))
    mean = fsum(values) / count
    return mean - half, mean + half


def _adjusted_logs(values: Sequence[float], controls: Controls | None) -> Adjusted:
    """`adjusted`, with log and exp of the core: those of the C library differ in the last bit between processors."""
    return adjusted([_core.natural_log(value) for value in values], controls)


def standard_deviation(values: Sequence[float]) -> float:
    """The sample standard deviation (divisor R - 1) of R >= 2 values."""
    mean = fsum(values) / len(values)
    # Not ** 2, which is pow() of the C library: its last bit depends on the processor.
    distances = [value - mean for value in values]
    return sqrt(fsum(distance * distance for distance in distances) / (len(values) - 1))


def _quantile(ordered: Sequence[float], probability: float) -> float:
    """The value at position p (R + 1), from 1, of `ordered`, linear in between (type 6 of Hyndman & Fan, 1996)."""
    position = probability * (len(ordered) + 1)
    below = min(max(int(position), 1), len(ordered) - 1)
    return ordered[below - 1] + (position - below) * (ordered[below] - ordered[below - 1])
