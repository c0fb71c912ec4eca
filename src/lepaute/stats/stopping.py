"""How many more observations until an interval is narrow enough, and which interval may be believed then.

Looking at the interval after every observation and stopping when it is narrow (Chow & Robbins, Annals of Mathematical
Statistics 36, 1965) covers the truth less often than it says: it stops where the spread looks smaller than it is, and
for skewed durations that is where the mean looks smaller, too. Stein's two stages (ibid. 16, 1945) avoid that for
normal values by taking the spread from the pilot alone, and pay for a small pilot. Here the sizes at which anybody
looks are fixed before the first observation, growing by half: least, 1.5 least, ..., most; and the chance of missing, 1
- confidence, is shared out among looks so that the union bound holds:

- where the width alone ends the measurement (the default), among the three looks at which it can end in practice: the
  size that the true spread needs, and one size before or after it. To end two sizes early, 20 values or more would have
  to show a spread a third too small. That is an argument and no proof; the promise tests show the coverage for
  durations that are normal, skewed and of two modes, and that it falls short without the sharing.
- where anything may end it, a person who looks at the values included, among all looks and one more for the moment at
  which the budget ends. For the median this holds exactly, whatever the distribution of the durations.

The price is in observations, against a known spread and a size fixed in advance: 1.5 and 2.1 (default target) for the
wider interval, times 1.2 on average for the steps between sizes. Looks that double, or a confidence sequence that
allows a look at any time, would cost the second one. With least = most there is one look and no price.

Stein's two-stage procedure. A first stage of n values has the variance s^2 with n - 1 degrees of freedom. With
N >= (t s / d)^2 values in all, the first ones among them, the mean is within d of the truth with the stated confidence,
whatever the true variance is, where values are normal and independent: N depends on the first stage through s alone,
which the mean is independent of.
Source: C. Stein, "A two-sample test for a linear hypothesis ...", Annals of Mathematical Statistics 16 (1945).
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, exp, fsum, inf, isfinite, log, sqrt
from numbers import Real
from statistics import NormalDist, stdev
from typing import Literal, TypeVar, get_args

from lepaute.errors import InputError
from lepaute.kit.numbers import of_type
from lepaute.kit.text import counted, exact_number, significant
from lepaute.stats.intervals import Interval, median_interval, standard_deviation
from lepaute.stats.student import student_quantile

Statistic = Literal["mean", "median", "geometric mean"]
Ending = Literal["width", "anything"]
#: Looks that share the chance of missing where the width alone ends a measurement.
LIKELY_LOOKS = 3
#: Each look is at this many times the observations of the one before. Between 1.25 and 2 the cost hardly changes.
GROWTH = 1.5
Key = TypeVar("Key", bound=Hashable)
#: Standard deviation of a median of normal values over that of their mean, in large samples.
MEDIAN_FACTOR = 1.2533


@dataclass(frozen=True, slots=True)
class Target:
    """The interval that a measurement is for.

    relative_half_width : half the interval's width over its estimate; 0.02 is ± 2 %
    confidence          : chance that the interval at the end holds the true value, whenever the measurement ended
    statistic           : mean and geometric mean by Student's interval (of the logarithms), median by order statistics
    least, most         : observations before the first look, and after which it ends in any case. Below 20 values the
                          means are at the mercy of what has not been seen: a second mode that takes 30 % of the calls
                          is absent from 10 of them once in 35 times, from 20 of them once in 1250.
    ended_by            : what decides when the measurement ends besides a budget that is blind to the values: their
                          interval's width, or anything; see the top of this file
    Raises InputError if a number makes no sense.
    """

    relative_half_width: float = 0.02
    confidence: float = 0.95
    statistic: Statistic = "mean"
    least: int = 20
    most: int = 1000
    ended_by: Ending = "width"

    def __post_init__(self) -> None:
        for name in ("relative_half_width", "confidence", "least", "most"):
            of_type(getattr(self, name), name, Real, "a number")
        if not (isfinite(self.relative_half_width) and self.relative_half_width > 0):
            raise InputError(f"the relative half-width is {self.relative_half_width!r}; it must be above 0")
        if not 0 < self.confidence < 1:
            raise InputError(f"the confidence is {self.confidence!r}; it must lie between 0 and 1, such as 0.95")
        if self.statistic not in get_args(Statistic):
            raise InputError(f"the statistic is {self.statistic!r}; it must be one of {', '.join(get_args(Statistic))}")
        if self.ended_by not in get_args(Ending):
            raise InputError(f"ended_by is {self.ended_by!r}; it must be one of {', '.join(get_args(Ending))}")
        if not 2 <= self.least <= self.most:
            raise InputError(f"least is {self.least!r} and most {self.most!r}; they must satisfy 2 <= least <= most")

    def looks(self) -> tuple[int, ...]:
        """The numbers of observations at which the interval is looked at, in increasing order, the last one `most`."""
        sizes = [self.least]
        while sizes[-1] < self.most:
            sizes.append(min(self.most, max(sizes[-1] + 1, round(sizes[-1] * GROWTH))))
        return tuple(sizes)

    @property
    def miss(self) -> float:
        """The chance of missing that a single look may have."""
        looks = len(self.looks())
        if looks == 1:
            return 1 - self.confidence
        return (1 - self.confidence) / (min(looks, LIKELY_LOOKS) if self.ended_by == "width" else looks + 1)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a level is.

    seen, used          : observations there are, and those that the interval is from (the first ones, in their order)
    estimate, interval  : in the unit of the durations; None if there are too few values for an interval
    relative_half_width : inf if there is no interval, or the estimate is 0 and nothing is relative to it
    reached             : whether the interval is as narrow as the target asks
    more                : observations until the look at which the target is expected, or `most`; 0 when there
    """

    target: Target
    seen: int
    used: int
    estimate: float | None
    interval: Interval
    relative_half_width: float
    reached: bool
    more: int

    def __str__(self) -> str:
        """One line of text, such as "mean ± 1.62 % (95 % confidence, 45 values), the target of 2 % is reached"."""
        target = self.target
        if self.estimate is None:
            return f"no interval from {counted(self.seen, 'value')}, the first look is at {target.least}"
        outcome = "is reached" if self.reached else "is not reached"
        aim = f"the target of {exact_number(100 * target.relative_half_width)} % {outcome}"
        if self.relative_half_width == inf:
            return (
                f"{target.statistic} 0 ({self.used} values): no relative width, {aim}; time more work per observation"
            )
        width = f"± {significant(100 * self.relative_half_width)} %"
        return f"{target.statistic} {width} ({100 * target.confidence:g} % confidence, {self.used} values), {aim}"


def assess(durations: Sequence[float], target: Target, *, ended: bool = False) -> Progress:
    """Says how narrow the interval of one level is, and how many observations it still needs.

    durations : as they came, any number of them, finite and >= 0 in any one unit
    ended     : the budget has ended and this is the last look: the interval is from all values, however many (two at
                least). Otherwise it is from the values of the last scheduled look, so that looking again and again at
                one level does not weaken the promise.
    Raises InputError for a duration that is negative or not finite, and for a zero where a geometric mean is asked for.
    """
    for place, duration in enumerate(durations):
        if not (isfinite(duration) and duration >= 0):
            raise InputError(f"duration {place} is {duration!r}; a duration must be finite and >= 0")
        if duration == 0 and target.statistic == "geometric mean":
            raise InputError(
                f"duration {place} is 0, which has no geometric mean; use the median, or time more work per observation"
            )
    seen, looks = len(durations), target.looks()
    used = seen if ended else max((size for size in looks if size <= seen), default=0)
    if used < 2:
        return Progress(target, seen, used, None, Interval(None, None), inf, False, max(0, target.least - seen))
    values = durations[:used]
    estimate, interval = _interval(values, target)
    low, high = interval.ends
    relative = inf if estimate == 0 else (high - low) / 2 / estimate
    reached = relative <= target.relative_half_width
    more = 0 if reached or seen >= target.most else _needed(values, relative, target, seen) - seen
    return Progress(target, seen, used, estimate, interval, relative, reached, more)


def _interval(values: Sequence[float], target: Target) -> tuple[float, Interval]:
    count = len(values)
    if target.statistic == "median":
        ordered = sorted(values)
        middle = 0.5 * (ordered[(count - 1) // 2] + ordered[count // 2])
        # too few values for the confidence asked for: as far as order statistics go, anything is possible
        return middle, Interval(*(median_interval(ordered, target.miss) or (0.0, inf)))
    if target.statistic == "geometric mean":
        mean, half = _student([log(value) for value in values], target.miss)
        return exp(mean), Interval(exp(mean - half), exp(mean + half))
    mean, half = _student(values, target.miss)
    return mean, Interval(mean - half, mean + half)


def _student(values: Sequence[float], miss: float) -> tuple[float, float]:
    """Mean and half-width of Student's interval; exactly 0 wide where all values are equal."""
    if min(values) == max(values):
        return values[0], 0.0
    mean = fsum(values) / len(values)
    return mean, student_quantile(1 - miss / 2, len(values) - 1) * standard_deviation(values) / sqrt(len(values))


def _needed(values: Sequence[float], relative: float, target: Target, seen: int) -> int:
    """The first look after `seen` at which an interval of this spread would be narrow enough; `most` if none is."""
    later = [size for size in target.looks() if size > seen]
    if not isfinite(relative):
        return later[0]  # nothing is known about the spread
    half_width = _quantile(target, len(values)) / sqrt(len(values))
    for size in later:
        if relative * _quantile(target, size) / sqrt(size) / half_width <= target.relative_half_width:
            return size
    return target.most


def _quantile(target: Target, count: int) -> float:
    # a median's interval narrows as the normal quantile over the root of n, whatever the distribution
    return student_quantile(1 - target.miss / 2, 1e6 if target.statistic == "median" else count - 1)


def next_round(
    levels: Mapping[Key, Sequence[float]],
    target: Target,
    *,
    seconds: float | None = None,
    costs_s: Mapping[Key, float] | None = None,
) -> dict[Key, int]:
    """How many further observations of each level the next round takes; the caller shuffles them together.

    levels       : the values of each level so far, as they came; empty for a new one
    seconds      : how long the round may take at most
    costs_s      : how long an observation of each level takes, of those where that is known; None: the values are
                   durations, in s, and an observation takes the mean of its level
    Every level of `levels` is a key of the result, with 0 if it needs nothing or gets nothing; all 0: it is over, as
    `assess(..., ended=True)` then says for each level. The level furthest from its target (relative half-width over
    target; those without an interval before all) gets what it needs, then the next one. A level of which no duration is
    known costs, when seconds count, as much as the longest level; where none is known, every level gets one
    observation, and the next is planned with what these took. Raises InputError for budgets or values that cannot be.
    """
    if seconds is not None and not (isfinite(seconds) and seconds >= 0):
        raise InputError(f"the budget is {seconds!r} seconds; it must be finite and >= 0")
    progress = {key: assess(values, target) for key, values in levels.items()}
    # sorted() keeps the order of equals, so the plan depends on nothing but the arguments
    distance = {key: each.relative_half_width / each.target.relative_half_width for key, each in progress.items()}
    order = sorted(progress, key=distance.__getitem__, reverse=True)
    means_s = {key: fsum(values) / len(values) for key, values in levels.items() if values}
    costs = means_s if costs_s is None else costs_s
    longest = max(costs.values(), default=None)
    left_s = inf if seconds is None else seconds
    plan = dict.fromkeys(levels, 0)
    for key in order:
        count = progress[key].more
        if seconds is not None and longest is None:
            count = min(count, 1 if seconds > 0 else 0)
        cost_s = costs.get(key, longest or 0.0) if seconds is not None else 0.0
        affordable = left_s / cost_s if cost_s > 0 else inf
        # a whole number of observations; what 0.1 + 0.1 + 0.1 loses to rounding must not cost one
        plan[key] = int(min(count, affordable * (1 + 1e-12)))
        left_s -= plan[key] * cost_s
    return plan


def values_needed(first_stage: Sequence[float], half_width: float, confidence: float = 0.95) -> float:
    """N of the procedure, at least the first stage; infinite where that has fewer than two values.

    half_width: d, in the unit of the values; raises InputError if it is not above 0
    """
    if not (isfinite(half_width) and half_width > 0):
        raise InputError(f"the wanted half-width is {half_width!r}; it must be above 0")
    count = len(first_stage)
    if count < 2:
        return inf
    needed = (student_quantile(0.5 + confidence / 2, count - 1) * stdev(first_stage) / half_width) ** 2
    return max(count, ceil(needed)) if isfinite(needed) else inf


def median_sd_factor(values: Sequence[float]) -> float:
    """The d with which a median of n values like these has the standard deviation d / sqrt(n), in large samples.

    values: in the order of their measurement, at least 4. Their spread is taken from the interquartile range, so that a
    single outlier, which a median does not see, does not count; dependence of successive values from the correlation
    of the ranks of neighbours r, as if they were an autoregressive series: (1 + r) / (1 - r) times the variance.
    """
    import numpy as np

    if len(values) < 4:
        raise InputError(f"{len(values)} values tell nothing of their spread; give at least 4")
    low, high = np.quantile(values, [0.25, 0.75])
    spread = float(high - low) / (2 * NormalDist().inv_cdf(0.75))
    ranks = np.argsort(np.argsort(values, kind="stable"), kind="stable").astype(float)
    correlation = float(np.clip(np.corrcoef(ranks[1:], ranks[:-1])[0, 1], 0.0, 0.9)) if len(values) > 4 else 0.0
    return MEDIAN_FACTOR * spread * sqrt((1 + correlation) / (1 - correlation))


def calls_for_median(deviation: float, half_width: float, confidence: float = 0.95) -> float:
    """How many values give a median with that half-width; deviation: of `median_sd_factor`."""
    return (NormalDist().inv_cdf(0.5 + confidence / 2) * deviation / half_width) ** 2


def calls_for_least_error(deviation: float, between: float, mpirun_s: float, call_s: float) -> float:
    """How many calls an mpirun has so that the mean over mpiruns has the least variance for the time they take.

    deviation: of a call, of `median_sd_factor`; between: standard deviation of the effects of mpiruns
    mpirun_s, call_s: what an mpirun takes without calls, and each call
    Source: W. G. Cochran, Sampling Techniques (3rd ed., 1977), section 10.6: with m mpiruns of n calls the variance
    (between^2 + deviation^2 / n) / m has its least value, for m (mpirun_s + n call_s) seconds, at the n returned.
    """
    return inf if between <= 0 else deviation / between * sqrt(mpirun_s / call_s)
