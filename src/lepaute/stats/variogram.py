"""How far a quantity wanders in the course of time: the variogram of a series, and a model of it with few parameters.

The semivariance at a lag h is half the mean square of the difference of two values that far apart. What it is right
above lag 0, the nugget, is the error of a single value; what it grows by is the wandering. The model is

    semivariance(h) = nugget + slope_per_s * range_s * (1 - exp(-h / range_s))

an exponential variogram, which an infinite range makes that of a random walk, nugget + slope_per_s * h (Chiles &
Delfiner, Geostatistics, 2nd ed., 2.5). Values are logarithms, so that a variance is that of a relative difference.

Semivariances at neighbouring lags share their data, so that a curve through them says little; the model is fitted to
the values themselves. Robust variants damp what few large
differences contribute, as Cressie and Hawkins' fourth power of the mean of square roots does: a machine that makes one
step of 6 % would then wander hardly at all. What is put right beforehand are single values far from their neighbours on
both sides, by Hampel's identifier: an interruption that is over before the next value is no wandering, and as a part
of the nugget it would hide what there is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, expm1, inf, isinf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    #: Dates and values, in any order; one for each machine, whose clocks need have nothing in common.
    Series = tuple[Sequence[float] | Floats, Sequence[float] | Floats]

#: Fewer values than this say nothing of wandering.
FEWEST = 6
#: A bounded variogram is believed where it is this much more likely, in the logarithm: 90 % of chi-square(1), halved.
#: Otherwise the machine is taken to wander on, which is the wider interval.
BOUNDED_GAIN = 1.35
#: What is known of a machine before it is measured: its speed changes by some such share in so many seconds, give or
#: take an order of magnitude. The scale of a half-Cauchy distribution of the standard deviation.
PRIOR_RELATIVE_SD, PRIOR_LAG_S = 0.01, 100.0
#: Hampel's identifier: neighbours on each side, and robust standard deviations from their median.
NEIGHBOURS, SPIKE_SD = 2, 3.0
#: Ratios of slope to nugget that the likelihood is taken at, in square root, and ranges between the two ends.
RATIOS, RANGES = 200, 8
#: Longer series are thinned to so many means of neighbours.
MOST_VALUES = 300


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

    def growth(self, lag_s: float) -> float:
        """The semivariance at a lag less the nugget."""
        return growth(self.slope_per_s, self.range_s, lag_s)


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
    import numpy as np

    def between(one: "Floats", other: "Floats") -> float:
        lags = np.abs(np.subtract.outer(one, other))
        grown = lags if isinf(range_s) else -range_s * np.expm1(-lags / range_s)
        return slope_per_s * float(grown.mean())

    own = [between(one, one) for one in groups]
    halves = [
        between(one, other) - (own[at] + own[at + 1 + past]) / 2.0
        for at, one in enumerate(groups)
        for past, other in enumerate(groups[at + 1 :])
    ]
    return max(0.0, sum(halves) / len(halves)) if halves else 0.0


def fit_variogram(series: "Sequence[Series]") -> VariogramModel | None:
    """The model of one or several series, which share it but no level; None with fewer than FEWEST values in all.

    series : dates in seconds, in any order, and logarithms of a duration

    Restricted likelihood for normal values (Patterson & Thompson, Biometrika 58, 1971), so that the level costs
    nothing. The nugget is where it is largest; the slope is the median of its posterior, its square root half-Cauchy
    beforehand (Gelman, Bayesian Analysis 1, 2006; PRIOR_RELATIVE_SD): few values over minutes cannot show that a
    machine does not wander, and the most likely slope is 0 as often as not where there is a small one. Nor can values
    that scatter by several per cent tell a quiet machine from one that wanders as far: a flat prior would believe the
    latter. The range is infinite unless a finite one is more likely by BOUNDED_GAIN.
    """
    import numpy as np

    prepared = [_thinned(*_ordered(dates, values)) for dates, values in series if len(dates) > 1]
    count = sum(len(t) for t, _ in prepared)
    if count < FEWEST or count == len(prepared):
        return None
    span_s = max(float(t[-1] - t[0]) for t, _ in prepared)
    if span_s <= 0.0:
        return None
    nearest_s = float(np.median(np.concatenate([np.diff(t) for t, _ in prepared])))
    random_walk = _Likelihood(prepared, inf)
    best = random_walk
    longest_s = span_s / 2.0
    if nearest_s < longest_s:
        bounded = [_Likelihood(prepared, float(r)) for r in np.geomspace(nearest_s, longest_s, RANGES)]
        likeliest = max(bounded, key=lambda one: one.largest)
        if likeliest.largest > random_walk.largest + BOUNDED_GAIN:
            best = likeliest
    return VariogramModel(best.nugget, best.slope_per_s, best.range_s, span_s, count)


class _Likelihood:
    """Restricted likelihood of all series for one range, over the ratio of what wanders to the nugget."""

    def __init__(self, prepared: "Sequence[tuple[Floats, Floats]]", range_s: float) -> None:
        import numpy as np

        eigenvalues, contrasts = [], []
        for t, z in prepared:
            lags = np.abs(np.subtract.outer(t, t))
            # Of contrasts the covariance is minus the semivariance, whatever the level (Chiles & Delfiner, 2.3.2).
            covariance = -lags if isinf(range_s) else range_s * np.exp(-lags / range_s)
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
        logarithm = -0.5 * (degrees * np.log(nugget) + np.log(spread).sum(axis=1))
        self.range_s = range_s
        self.largest = float(logarithm.max())
        self.nugget = float(nugget[int(np.argmax(logarithm))])
        slope = ratio * nugget
        changes = np.sqrt(2.0 * slope * growth(1.0, range_s, PRIOR_LAG_S))
        prior = np.gradient(changes) / (1.0 + (changes / PRIOR_RELATIVE_SD) ** 2)
        cumulated = np.cumsum(np.exp(logarithm - self.largest) * np.maximum(prior, 0.0))
        middle = int(np.searchsorted(cumulated, cumulated[-1] / 2.0))
        self.slope_per_s = float(slope[middle])


def _ordered(dates: "Sequence[float] | Floats", values: "Sequence[float] | Floats") -> "tuple[Floats, Floats]":
    import numpy as np

    t, z = np.asarray(dates, dtype=np.float64), np.asarray(values, dtype=np.float64)
    order = np.argsort(t, kind="stable")
    return t[order], without_spikes(z[order])


def without_spikes(values: "Floats") -> "Floats":
    """Values in the order of time, those far from their neighbours' median replaced by it (Hampel's identifier).

    Far is beyond SPIKE_SD times the robust standard deviation of all such distances. A step stays where it is.
    """
    import numpy as np

    padded = np.pad(values, NEIGHBOURS, mode="reflect") if len(values) > NEIGHBOURS else values
    if len(padded) == len(values):
        return values
    medians = np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * NEIGHBOURS + 1), axis=1)
    distance = np.abs(values - medians)
    far = distance > SPIKE_SD * 1.4826 * float(np.median(distance))
    result: Floats = np.where(far & (np.median(distance) > 0), medians, values)
    return result


def _thinned(t: "Floats", z: "Floats") -> "tuple[Floats, Floats]":
    import numpy as np

    if len(t) <= MOST_VALUES:
        return t, z
    parts = np.array_split(np.arange(len(t)), MOST_VALUES)
    return np.array([t[part].mean() for part in parts]), np.array([z[part].mean() for part in parts])
