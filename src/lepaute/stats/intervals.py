"""The interval in which one further run is expected."""

from collections.abc import Sequence
from math import fsum, isfinite, sqrt
from typing import NamedTuple

from lepaute.errors import InputError
from lepaute.stats.student import student_quantile

#: From this many runs on, the quantiles of the runs themselves are taken. With fewer, the 2.5 % quantile would lie
#: outside the runs seen: its position is 0.025 (R + 1), which reaches the first of them at R = 39.
EMPIRICAL_FROM = 40


class Interval(NamedTuple):
    """[low, high], in the unit of the values; both None where a single value says nothing about the spread."""

    low: float | None
    high: float | None


def prediction_interval(values: Sequence[float]) -> Interval:
    """The 95 % prediction interval for one further value of the same kind.

    values : R >= 1 finite numbers, any one unit
    R = 1: no interval. R < 40: Student's prediction interval, mean ± t(R-1, 0.975) · sd · sqrt(1 + 1/R), exact for
    normal values. R >= 40: empirical 2.5 % and 97.5 % quantiles, at positions p (R + 1) among the ordered values; their
    expected coverage is 95 % whatever the distribution.
    Raises InputError where there is no value, or one that is not finite.
    """
    count = len(values)
    if not count or not all(isfinite(value) for value in values):
        raise InputError(f"a prediction interval needs finite values; got {list(values)[:5]!r}")
    if count == 1:
        return Interval(None, None)
    if count >= EMPIRICAL_FROM:
        ordered = sorted(values)
        return Interval(_quantile(ordered, 0.025), _quantile(ordered, 0.975))
    half = student_quantile(0.975, count - 1) * standard_deviation(values) * sqrt(1 + 1 / count)
    mean = fsum(values) / count
    return Interval(mean - half, mean + half)


def standard_deviation(values: Sequence[float]) -> float:
    """The sample standard deviation (divisor R - 1) of R >= 2 values."""
    mean = fsum(values) / len(values)
    return sqrt(fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def _quantile(ordered: Sequence[float], probability: float) -> float:
    """The value at position p (R + 1), from 1, of `ordered`, linear in between (type 6 of Hyndman & Fan, 1996)."""
    position = probability * (len(ordered) + 1)
    below = min(max(int(position), 1), len(ordered) - 1)
    weight = position - below
    return ordered[below - 1] + weight * (ordered[below] - ordered[below - 1])
