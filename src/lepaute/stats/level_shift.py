"""How much a level changed at a cut of a series, and how certain the cut is."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp, floor, fsum, inf, sqrt

import numpy as np

from lepaute.stats.expanding import Floats
from lepaute.stats.robust import robust_sd
from lepaute.stats.student import student_quantile

#: Values further from the median of their side than this many standard deviations count as if they were there.
MAX_DEVIATIONS = 3.0
#: The 95 % quantile of the date's error, in long-run variances over the squared change (Bai 1997, equation 20).
DATE_QUANTILE = 11.0


@dataclass(frozen=True, slots=True)
class LevelShift:
    """Means before and after a cut, all in the unit of the values.

    difference         : after less before
    standard_error     : of the difference
    degrees_of_freedom : that it rests on
    date_reach         : the true cut may lie so many values off, with 95 % confidence; inf if the levels are equal
    """

    before: float
    after: float
    difference: float
    standard_error: float
    degrees_of_freedom: float
    date_reach: float

    def half_width(self, confidence: float) -> float:
        """Of the interval of the difference."""
        return student_quantile(0.5 + confidence / 2, self.degrees_of_freedom) * self.standard_error


def level_shift(before: Floats, after: Floats, rho: float, *, pooled: bool = True) -> LevelShift:
    """The change from `before` to `after`, series of n1 and n2 values whose neighbours have the correlation `rho`.

    Welch's t interval (pooled: with one variance for both sides), each mean with the variance of that of an
    autoregressive series, s^2 / n' where n' = n / (1 + 2 sum (1 - k/n) rho^k) is the number of independent values that
    would say as much. Spikes are moved to MAX_DEVIATIONS. n1 + n2 >= 3.
    """
    n1, n2 = len(before), len(after)
    if n1 < 1 or n2 < 1 or n1 + n2 < 3:
        raise ValueError(f"{n1} and {n2} values have no difference with an error")
    magnitudes = np.abs(np.concatenate([before - np.median(before), after - np.median(after)]))
    typical = robust_sd(magnitudes[magnitudes > 0], 0.0) if (magnitudes > 0).any() else 0.0
    sides = [_drawn_in(side, typical) for side in (before, after)]
    means = [float(side.mean()) for side in sides]
    squares = [float(((side - mean) ** 2).sum()) for side, mean in zip(sides, means, strict=True)]
    independent = [independent_values(n, rho) for n in (n1, n2)]
    # What the mean takes off: n - n / n' of the sum of squares of correlated values is left in expectation.
    left = [n - n / one for n, one in zip((n1, n2), independent, strict=True)]
    degrees = [max(0.0, one - 1) for one in independent]
    if pooled or min(degrees) < 1:
        variance = sum(squares) / max(sum(left), 1e-9)
        variances = [variance / one for one in independent]
        freedom = max(1.0, sum(degrees))
    else:
        variances = [square / one_left / one for square, one_left, one in zip(squares, left, independent, strict=True)]
        total = sum(variances)
        terms = [v * v / d for v, d in zip(variances, degrees, strict=True)]
        freedom = max(1.0, total * total / sum(terms)) if sum(terms) > 0 else sum(degrees)
    difference = means[1] - means[0]
    spread = sum(squares) / max(sum(left), 1e-9)
    long_run = spread * (1 + rho) / (1 - rho)
    reach = inf if difference == 0 else DATE_QUANTILE * long_run / difference**2
    return LevelShift(
        means[0], means[1], difference, sqrt(sum(variances)), freedom, reach if reach == inf else floor(reach + 0.5)
    )


@dataclass(frozen=True, slots=True)
class Onset:
    """When series changed together: as a step, or on a line that begins at a level.

    step_s, line_s : the date of the first value of the new level, and that at which the line leaves the old one
    gain           : the logarithm of how much likelier the line is than the step
    before, now    : of each series, the level before the line, and the end of the line
    rest           : the sum of squares that the likelier one leaves, over all series
    """

    step_s: float
    line_s: float
    gain: float
    before: tuple[float, ...]
    now: tuple[float, ...]
    rest: float

    @property
    def date_s(self) -> float:
        """Between both, nearer to the likelier one."""
        weight = 1 / (1 + exp(min(-self.gain, 700.0)))
        return (1 - weight) * self.step_s + weight * self.line_s


def onset(series: Sequence[tuple[Floats, Floats]]) -> Onset:
    """Of one or several series, each of (dates in s, ascending; values), n >= 3, with normal noise of its own variance.

    Every date of a value but the first is tried for both; each series has its own levels and its own slope.
    """
    dates = np.unique(np.concatenate([times[1:] for times, _ in series]))
    shapes = np.zeros((2, len(dates)))
    rests = np.zeros((2, len(dates)))
    fits = []
    for times, x in series:
        since = np.maximum(times[None, :] - times[np.maximum(np.searchsorted(times, dates) - 1, 0)][:, None], 0.0)
        fit = [_rest(x, shape) for shape in ((since > 0).astype(np.float64), since)]
        for kind, (rest, *_) in enumerate(fit):
            shapes[kind] -= len(x) / 2 * np.log(np.maximum(rest, 1e-300))
            rests[kind] += rest
        fits.append(fit[1])
    step, line = (int(each.argmax()) for each in shapes)
    gain = float(shapes[1, line] - shapes[0, step])
    before = tuple(float(level[line]) for _, level, _ in fits)
    now = tuple(float(end[line]) for *_, end in fits)
    return Onset(
        float(dates[step]), float(dates[line]), gain, before, now, float(rests[1, line] if gain > 0 else rests[0, step])
    )


def _rest(x: Floats, shapes: Floats) -> tuple[Floats, Floats, Floats]:
    """Sums of squares around a level plus a multiple of each shape, (shapes, n); the level; both at the last value."""
    centred = shapes - shapes.mean(axis=1, keepdims=True)
    power = (centred**2).sum(axis=1)
    y = x - x.mean()
    with np.errstate(invalid="ignore", divide="ignore"):
        slope = np.where(power > 0, centred @ y / power, 0.0)
    rest: Floats = np.maximum((y**2).sum() - slope**2 * power, 0.0)
    level = x.mean() - slope * shapes.mean(axis=1)
    return rest, level, level + slope * shapes[:, -1]


@lru_cache(maxsize=4096)
def independent_values(count: int, rho: float) -> float:
    """How many independent values have a mean as certain as that of `count` of an autoregressive series; at least 1."""
    weighted = fsum((1 - k / count) * rho**k for k in range(1, count)) if rho > 0 else 0.0
    return max(1.0, count / (1 + 2 * weighted))


def _drawn_in(values: Floats, typical: float) -> Floats:
    middle = float(np.median(values))
    reach = MAX_DEVIATIONS * typical
    moved: Floats = np.clip(values, middle - reach, middle + reach) if typical > 0 else values
    return moved
