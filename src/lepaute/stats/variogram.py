"""How far a quantity wanders in the course of time: the variogram of a series, and a model of it with few parameters.

The semivariance at a lag h is half the mean square of the difference of two values that far apart. What it is right
above lag 0, the nugget, is the error of a single value; what it grows by is the wandering. The model is

    semivariance(h) = nugget + slope_per_s * range_s * (1 - exp(-h / range_s))

an exponential variogram, which an infinite range makes that of a random walk, nugget + slope_per_s * h (Chiles &
Delfiner, Geostatistics, 2nd ed., 2.5); older platform files may hold such walks, which are no longer
fitted. Values are logarithms, so that a variance is that of a relative difference.

Semivariances at neighbouring lags share their data, so that a curve through them says little; the model is fitted to
the values themselves. Robust variants damp what few large differences contribute, as Cressie and Hawkins' fourth power
of the mean of square roots does: a machine that makes one step of 6 % would then wander hardly at all. Single values
far from their neighbours on both sides are replaced beforehand, by Hampel's identifier: an interruption that is over
before the next value is no wandering, and as a part of the nugget it would hide what there is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, expm1, fsum, isinf, log, pi, sqrt
from typing import TYPE_CHECKING

from lepaute.kit.later import np, npt
from lepaute.stats.student import SD_OF_MAD

if TYPE_CHECKING:
    Floats = npt.NDArray[np.float64]
    #: Dates and values, in any order; one for each machine, whose clocks need have nothing in common.
    Series = tuple[Sequence[float] | Floats, Sequence[float] | Floats]

#: Fewer values than this say nothing of wandering.
FEWEST = 6
#: What is known of a machine before it is measured: from one time to another its level differs by some such share, give
#: or take an order of magnitude. The scale of a half-Cauchy distribution of the standard deviation in the long run.
PRIOR_RELATIVE_SD = 0.015
#: The longest range in seconds that is thought possible, unless what was measured spans half of it.
LONGEST_RANGE_S = 3600.0
#: Hampel's identifier: neighbours on each side, and robust standard deviations from their median.
NEIGHBOURS, SPIKE_SD = 2, 3.0
#: Ratios of slope to nugget that the likelihood is taken at, in square root, and ranges between the two ends.
RATIOS, RANGES = 200, 20
#: Longer series are thinned to this many means of neighbours.
MAX_VALUES = 300
#: Lags at which the variogram agrees with the mixture, and the probability of the intervals that do.
#: Shares of the mixture below NEGLIGIBLE change no digit of them.
LAGS_S, LEVEL = (0.0, 30.0, 100.0, 300.0, 1800.0, 3600.0, 14400.0), 0.95
NEGLIGIBLE = 1e-20


@dataclass(frozen=True, slots=True)
class VariogramModel:
    """A nugget and what the semivariance grows by, see above; variances are relative, range_s may be infinite.

    span_s : from the first date to the last, the longest lag at which anything was seen
    values : how many there were
    """

    nugget: float
    slope_per_s: float
    range_s: float
    span_s: float
    values: int


def growth(slope_per_s: float, range_s: float, lag_s: float) -> float:
    """What the semivariance at a lag >= 0 has beyond the nugget."""
    return slope_per_s * (lag_s if isinf(range_s) else -range_s * expm1(-lag_s / range_s))


def mean_growth(slope_per_s: float, range_s: float, span_s: float) -> float:
    """Mean of `growth` over the lags of all pairs of dates that are uniform over a span."""
    if isinf(range_s):
        return slope_per_s * span_s / 3.0
    if span_s == 0.0:
        return 0.0
    share = range_s / span_s
    return slope_per_s * range_s * (1.0 - 2.0 * share + 2.0 * share**2 * -expm1(-1.0 / share))


def variance_after(slope_per_s: float, range_s: float, span_s: float, lag_s: float) -> float:
    """Variance of the difference between a value `lag_s` after the end of a span and the mean over the span.

    2 (mean growth from a date of the span to that value) - (mean growth between two dates of the span).
    """
    if isinf(range_s):
        to_value = slope_per_s * (lag_s + span_s / 2.0)
    elif span_s == 0.0:
        to_value = growth(slope_per_s, range_s, lag_s)
    else:
        left = exp(-lag_s / range_s) * range_s / span_s * -expm1(-span_s / range_s)
        to_value = slope_per_s * range_s * (1.0 - left)
    return max(0.0, 2.0 * to_value - mean_growth(slope_per_s, range_s, span_s))


def variance_between(slope_per_s: float, range_s: float, groups: "Sequence[Floats]") -> float:
    """Expected variance, between groups of dates, of the means of a wandering value over the groups.

    What an analysis of variance finds for its effect of the group, values without error: half the mean square of the
    difference of two such means. 0 with fewer than two groups.
    """

    def between(one: "Floats", other: "Floats") -> float:
        lags = np.abs(np.subtract.outer(one, other))
        grown = lags if isinf(range_s) else -range_s * np.expm1(-lags / range_s)
        return slope_per_s * float(grown.mean())

    own = [between(group, group) for group in groups]
    halves = [
        between(one, other) - (own[at] + own[at + 1 + past]) / 2.0
        for at, one in enumerate(groups)
        for past, other in enumerate(groups[at + 1 :])
    ]
    return max(0.0, fsum(halves) / len(halves)) if halves else 0.0


def fit_variogram(series: "Sequence[Series]") -> VariogramModel | None:
    """The model of one or several series, which share it but no level; None with fewer than FEWEST values in all.

    series : dates in seconds, in any order, and logarithms of a duration

    Few values over minutes tell neither how long a machine remembers nor that it does not wander: the model stands for
    all ranges and slopes, by their prior (half-Cauchy, as Gelman, Bayesian Analysis 1, 2006; PRIOR_RELATIVE_SD) and by
    the restricted likelihood of normal values (Patterson & Thompson, Biometrika 58, 1971), in which the level costs
    nothing and the nugget is where it is largest. It is the exponential variogram whose intervals at LAGS_S after the
    series are nearest to those of that mixture. The nugget is that of the most likely range.
    """
    prepared = [_thinned(*_ordered(dates, values)) for dates, values in series if len(dates) > 1]
    count = sum(len(t) for t, _ in prepared)
    if count < FEWEST or count == len(prepared):
        return None
    span_s = max(float(t[-1] - t[0]) for t, _ in prepared)
    if span_s <= 0.0:
        return None
    nearest_s = float(np.median(np.concatenate([np.diff(t) for t, _ in prepared])))
    longest_s = max(LONGEST_RANGE_S, 2.0 * span_s)
    ranges_s = np.geomspace(min(nearest_s, longest_s / 2.0), longest_s, RANGES)
    likelihoods = [_Likelihood(prepared, float(range_s)) for range_s in ranges_s]
    best = max(likelihoods, key=lambda one: one.largest)
    slopes = np.array([likelihood.slopes_per_s for likelihood in likelihoods])
    weights = np.array([np.exp(likelihood.logarithm - best.largest) * likelihood.prior for likelihood in likelihoods])
    slope_per_s, range_s = _nearest(ranges_s, slopes, weights / weights.sum(), span_s)
    return VariogramModel(best.nugget, slope_per_s, range_s, span_s, count)


def _nearest(ranges_s: "Floats", slopes: "Floats", weights: "Floats", span_s: float) -> tuple[float, float]:
    """Slope and range of the exponential variogram that is nearest to a mixture of such.

    slopes, weights : by range and slope, shape (ranges, slopes)
    """
    # What a slope of 1 makes of the variance at each lag, shape (ranges, lags).
    unit = np.array([[variance_after(1.0, float(range_s), span_s, lag_s) for lag_s in LAGS_S] for range_s in ranges_s])
    wanted = np.array([_quantile(slopes * of_range[:, None], weights) for of_range in unit.T])
    if not wanted.min() > 0.0:
        return 0.0, float(ranges_s[0])
    # The slope at which a variogram of each range is nearest, and how near that is.
    logs = 2.0 * np.log(wanted) - np.log(unit)
    at = int(np.argmin(logs.var(axis=1)))
    return float(np.exp(logs[at].mean())), float(ranges_s[at])


def _quantile(variances: "Floats", weights: "Floats") -> float:
    """Standard deviation of the normal distribution that has the interval, at LEVEL, of a mixture of centred ones."""
    from statistics import NormalDist

    import numpy as np
    from scipy.special import ndtr

    kept = (weights > NEGLIGIBLE) & (variances > 0.0)
    if not kept.any():
        return 0.0
    weight, sd = weights[kept], np.sqrt(variances[kept])
    low, high, middle = 0.0, 10.0 * float(sd.max()), 2.0 * float((weight * sd).sum())
    # Newton's method on the logarithm of what lies outside, halving where it would leave what is known.
    for _ in range(60):
        scaled = middle / sd
        outside = 2.0 * float((weight * ndtr(-scaled)).sum())
        low, high = (middle, high) if outside > 1.0 - LEVEL else (low, middle)
        falls = sqrt(2.0 / pi) * float((weight / sd * np.exp(-0.5 * scaled**2)).sum())
        following = middle + log(outside / (1.0 - LEVEL)) * outside / falls if falls > 0.0 and outside > 0.0 else low
        if abs(following - middle) <= 1e-14 * middle:
            break
        middle = following if low < following < high else (low + high) / 2.0
    return middle / NormalDist().inv_cdf(0.5 + LEVEL / 2.0)


class _Likelihood:
    """Restricted likelihood of all series for one range, over the ratio of what wanders to the nugget.

    logarithm, slopes_per_s, prior : by ratio, shape (ratios,)
    """

    def __init__(self, prepared: "Sequence[tuple[Floats, Floats]]", range_s: float) -> None:
        eigenvalues, contrasts = [], []
        for t, z in prepared:
            lags = np.abs(np.subtract.outer(t, t))
            # Of contrasts the covariance is minus the semivariance, whatever the level (Chiles & Delfiner, 2.3.2).
            covariance = range_s * np.exp(-lags / range_s)
            basis = np.linalg.qr(np.column_stack([np.ones(len(t)), np.eye(len(t))[:, 1:]]))[0][:, 1:]
            values, vectors = np.linalg.eigh(basis.T @ covariance @ basis)
            eigenvalues.append(np.maximum(values, 0.0))
            contrasts.append(vectors.T @ (basis.T @ z))
        eigenvalue, square = np.concatenate(eigenvalues), np.concatenate(contrasts) ** 2
        degrees = len(square)
        scale = float(eigenvalue.mean())
        # Uniform in the square root of the ratio, up to where the nugget is a thousandth of what wanders.
        root = np.concatenate([np.linspace(0.0, 3.0, RATIOS, endpoint=False), np.geomspace(3.0, 30.0, RATIOS // 2)])
        ratio = root**2 / scale
        spread = 1.0 + np.multiply.outer(ratio, eigenvalue)
        nugget = np.maximum((square / spread).mean(axis=1), 1e-300)
        self.logarithm = -0.5 * (degrees * np.log(nugget) + np.log(spread).sum(axis=1))
        self.largest = float(self.logarithm.max())
        self.nugget = float(nugget[int(np.argmax(self.logarithm))])
        self.slopes_per_s = ratio * nugget
        in_the_long_run = np.sqrt(self.slopes_per_s * range_s)
        density = 1.0 / (1.0 + (in_the_long_run / PRIOR_RELATIVE_SD) ** 2)
        self.prior = np.maximum(np.gradient(in_the_long_run), 0.0) * density


def _ordered(dates: "Sequence[float] | Floats", values: "Sequence[float] | Floats") -> "tuple[Floats, Floats]":
    t, z = np.asarray(dates, dtype=np.float64), np.asarray(values, dtype=np.float64)
    order = np.argsort(t, kind="stable")
    return t[order], _without_spikes(z[order])


def _without_spikes(values: "Floats") -> "Floats":
    """Values in the order of time, those far from their neighbours' median replaced by it (Hampel's identifier).

    Far is beyond SPIKE_SD times the robust standard deviation of all such distances. A step stays where it is.
    """
    padded = np.pad(values, NEIGHBOURS, mode="reflect") if len(values) > NEIGHBOURS else values
    if len(padded) == len(values):
        return values
    medians = np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * NEIGHBOURS + 1), axis=1)
    distance = np.abs(values - medians)
    far = distance > SPIKE_SD * SD_OF_MAD * float(np.median(distance))
    result: Floats = np.where(far & (np.median(distance) > 0), medians, values)
    return result


def _thinned(t: "Floats", z: "Floats") -> "tuple[Floats, Floats]":
    if len(t) <= MAX_VALUES:
        return t, z
    parts = np.array_split(np.arange(len(t)), MAX_VALUES)
    return np.array([t[part].mean() for part in parts]), np.array([z[part].mean() for part in parts])
