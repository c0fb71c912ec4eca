"""Heteroscedastic fit of durations: mean and standard deviation are both polynomials of the parameters (M-2, N-2).

    duration = sum_t c_t * term_t(m, n, k) + sd(m, n, k) * noise,    sd = sum_t s_t * term_t(m, n, k),  s_t >= 0

The terms of the two are the same unless others are asked for the standard deviation.

The noise has mean zero and variance one; a centred half-normal is what the simulator draws. The coefficients come from
iterated weighted least squares with weights 1 / (sd^2 + (floor * mean)^2); the floor stands for the error of the
polynomial itself, without which the few most regular calls would decide everything.

The tail. A call that was interrupted takes ten times its time or more, and one such call would turn the fit. Nothing
is thrown away: a duration is cut at mean + CUT_SD * sd for the shape of the polynomial, what was cut off is summed, and
the fitted mean is scaled up by it. That is right when interruptions come at a rate per second of computing, as those of
the system do: then the lost time is a fixed share of any duration. Where the kernel's own excess is all the excess that
counts, the sum is as measured. A short kernel is called for milliseconds in all, and one interruption of ten
milliseconds among its calls says nothing about its rate: where the tail rests on few calls, the kernel takes the share
of all kernels together (`settled`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lepaute.errors import FitError
from lepaute.fit.kernels.coefficient_error import CoefficientError, ProcessEffects, coefficient_error
from lepaute.fit.kernels.terms import design_matrix
from lepaute.fit.numeric.arrays import Floats, Integers
from lepaute.fit.numeric.clusters import inflation
from lepaute.fit.numeric.least_squares import (
    independent_columns,
    nonnegative_solution,
    normal_equations,
    solution,
)

#: A centred half-normal exceeds six standard deviations once in 100,000 draws.
CUT_SD = 6.0
#: Relative error that a polynomial of a kernel has in any case.
DEFAULT_FLOOR = 0.02
ITERATIONS = 10

# Mean of |X| of a centred half-normal variate X of variance one: 4 (a (Phi(a) - 1/2) - phi(0) + phi(a)) / c with
# a = sqrt(2/pi), c = sqrt(1 - 2/pi).
MEAN_ABSOLUTE_HALF_NORMAL = 0.8006237
# Its median, from 20 million draws.
MEDIAN_ABSOLUTE_HALF_NORMAL = 0.7259
#: So many interrupted calls of a kernel weigh as much as those of all other kernels together.
INTERRUPTED_CALLS = 20.0


@dataclass(frozen=True, slots=True)
class PolynomialFit:
    """A fitted mean and standard deviation with how well they hold.

    terms        : those that the data determine, in the order of `mean` and `covariance`
    sd_terms     : the same of `sd`
    mean, sd     : seconds per unit of the term; the mean includes the tail, the sd does not
    error        : of mean / growth and of the excess as measured
    tail         : share of that excess in the growth, and the standard error of what the rest was taken from
    effects      : what processes differ by, where that is known
    time_s       : sum of the durations
    excess       : time above the cut over time below it, as measured
    excess_calls : number of calls that the excess effectively rests on, (sum e)^2 / sum e^2
    growth       : factor of the mean for the tail; 1 + excess unless another was asked for
    """

    terms: tuple[str, ...]
    sd_terms: tuple[str, ...]
    mean: Floats
    sd: Floats
    error: CoefficientError
    n_observations: int
    time_s: float
    excess: float
    excess_calls: float
    growth: float
    r_squared: float
    mean_absolute_relative_error: float
    tail: tuple[float, float] = (1.0, 0.0)
    effects: ProcessEffects | None = None

    def predict(self, m: Floats, n: Floats, k: Floats) -> Floats:
        """Mean durations in seconds, shape of m; never below zero, as in the simulator."""
        return np.maximum(design_matrix(self.terms, m, n, k) @ self.mean, 0.0)

    @property
    def covariance(self) -> Floats:
        """Of `mean`, shape (p, p); inflated where it rests on few launches, see `coefficient_error`.

        The error of the tail's own excess and that of the machine's are taken to go together: the one is part of the
        other.
        """
        joint = self.error.covariance(self.effects)
        share, other_error = self.tail
        own_error = float(np.sqrt(max(0.0, joint[-1, -1])))
        joint[-1] *= share
        joint[:, -1] *= share
        joint[-1, -1] = (share * own_error + (1.0 - share) * other_error) ** 2
        by_both = np.column_stack([self.growth * np.eye(len(self.mean)), self.mean / self.growth])
        result: Floats = by_both @ joint @ by_both.T
        return result

    def grown(self, growth: float, tail: tuple[float, float]) -> "PolynomialFit":
        """The same fit with another factor for the tail."""
        return replace(self, mean=self.mean * (growth / self.growth), growth=growth, tail=tail)

    def deviation(self, m: Floats, n: Floats, k: Floats) -> Floats:
        """Standard deviations in seconds, shape of m."""
        if not self.sd_terms:
            return np.zeros(len(m))
        result: Floats = design_matrix(self.sd_terms, m, n, k) @ self.sd
        return result


def fit_polynomial(
    terms: Sequence[str],
    m: Floats,
    n: Floats,
    k: Floats,
    duration_s: Floats,
    *,
    importance: Floats | None = None,
    relative_floor: float = DEFAULT_FLOOR,
    nonnegative: bool = False,
    growth: float | None = None,
    sd_terms: Sequence[str] | None = None,
    launch: Integers | None = None,
    block: Integers | None = None,
) -> PolynomialFit:
    """Fits mean and standard deviation to single calls.

    m, n, k, duration_s : float64, shape (calls,)
    importance          : positive factor of each call's weight, or None for 1
    relative_floor      : error of the polynomial relative to the mean, >= 0
    nonnegative         : coefficients of the mean are kept >= 0 but for the last, so that the model can be
                          extrapolated; all are kept so where the free ones would predict a duration below zero
    growth              : factor for the tail, or None for what makes the sum as measured
    sd_terms            : terms of the standard deviation, or None for those of the mean
    launch, block       : of the processes that made the calls, numbers of shape (calls,); None: all are independent
    Raises FitError without calls, with a duration that is not finite, or when all durations are zero.
    """
    _check(duration_s)
    unit = float(np.mean(np.abs(duration_s)))
    y = duration_s / unit
    known, x, factor = _determined(terms, m, n, k, y)
    same = sd_terms is None or tuple(sd_terms) == tuple(terms)
    sd_known, x_sd, sd_factor = (known, x, factor) if same else _determined(sd_terms or (), m, n, k, y)
    share = np.ones_like(y) if importance is None else importance / float(np.mean(importance))
    state = _iterate(x, x_sd, y, share, relative_floor, nonnegative)
    parts = share * (y - state.cut), share * state.cut
    error = coefficient_error(x, state.mean, state.residual, state.weight, parts, launch, block)
    if growth is not None:
        error = error.without_excess()
    growth = 1.0 + state.excess if growth is None else growth
    factor = unit * factor
    predicted = np.maximum(x @ state.mean, 0.0) * growth
    return PolynomialFit(
        terms=known,
        sd_terms=sd_known,
        mean=state.mean * growth * factor,
        sd=state.sd * unit * sd_factor,
        error=error.scaled(factor),
        n_observations=len(y),
        time_s=float(np.sum(duration_s)),
        excess=state.excess,
        excess_calls=state.excess_calls,
        growth=growth,
        r_squared=r_squared(y, predicted),
        mean_absolute_relative_error=mean_absolute_relative_error(y, predicted),
    )


def _determined(
    terms: Sequence[str], m: Floats, n: Floats, k: Floats, y: Floats
) -> tuple[tuple[str, ...], Floats, Floats]:
    """The terms that the calls determine, their columns scaled to a largest value of 1, and what each was divided by
    (as a factor on its coefficient)."""
    columns = design_matrix(terms, m, n, k)
    scale = np.max(np.abs(columns), axis=0)
    usable = np.flatnonzero(scale > 0)
    # In relative terms: a term must matter somewhere for calls of its own size, not only next to the largest call.
    start = 1.0 / np.maximum(np.abs(y), _least(y))
    kept = usable[independent_columns(columns[:, usable] / scale[usable], start)]
    return tuple(terms[i] for i in kept), columns[:, kept] / scale[kept], 1.0 / scale[kept]


def _least(y: Floats) -> float:
    """Values below this count as if they had it: a clock may see no time at all pass, even in most calls."""
    return 1e-3 * float(np.median(np.abs(y)) or np.mean(np.abs(y)))


def r_squared(measured: Floats, predicted: Floats) -> float:
    """1 - residual sum of squares / total sum of squares; 0 where the measured values do not vary."""
    total = float(np.sum((measured - measured.mean()) ** 2))
    return 1.0 - float(np.sum((measured - predicted) ** 2)) / total if total > 0 else 0.0


def mean_absolute_relative_error(measured: Floats, predicted: Floats) -> float:
    """Mean of |predicted - measured| / predicted over the calls whose prediction is above zero; NaN without any."""
    valid = predicted > 0
    return float(np.mean(np.abs(measured[valid] / predicted[valid] - 1.0))) if valid.any() else float("nan")


@dataclass(slots=True)
class _State:
    """Where the iteration stands, in scaled units; `excess` is time above the cut over time below it."""

    mean: Floats
    sd: Floats
    weight: Floats
    cut: Floats
    residual: Floats
    excess: float
    excess_calls: float


def _iterate(x: Floats, x_sd: Floats, y: Floats, share: Floats, floor: float, nonnegative: bool) -> _State:
    # The first mean is positive everywhere, whatever the outliers: weights and cuts need that.
    first = nonnegative_solution(*normal_equations(x, y, share / np.maximum(np.abs(y), _least(y))))
    safe = np.maximum(x @ first, 1e-6)
    mean = first
    sd = np.zeros(x_sd.shape[1])
    deviation = 1.4826 * float(np.median(np.abs(y / safe - 1.0))) * safe
    robust, cut = deviation, y
    weight = share / safe**2
    for _ in range(ITERATIONS):
        expected = np.maximum(x @ mean, 0.1 * safe)
        spread = np.maximum(deviation, 1e-4 * expected + 1e-9)
        cut = np.minimum(y, expected + CUT_SD * np.maximum(robust, 0.01 * expected))
        weight = share / (spread**2 + (floor * expected) ** 2)
        gram, moment = normal_equations(x, cut, weight)
        mean = solution(gram, moment)
        if nonnegative:
            mean = nonnegative_solution(gram, moment, last_free=True)
        if np.min(x @ mean) < 0.0:
            mean = nonnegative_solution(gram, moment)
        sd = _deviation_coefficients(x_sd, cut - x @ mean, share, spread, expected, x.shape[1])
        deviation = x_sd @ sd
        robust = deviation * _robust_factor(cut - x @ mean, deviation)
    residual = cut - x @ mean
    below, above = float(np.sum(share * cut)), share * (y - cut)
    excess = float(np.sum(above)) / below if below > 0 else 0.0
    squares = float(np.sum(above**2))
    return _State(mean, sd, weight, cut, residual, excess, float(np.sum(above)) ** 2 / squares if squares > 0 else 0.0)


def _deviation_coefficients(
    x: Floats, residual: Floats, share: Floats, spread: Floats, expected: Floats, of_mean: int
) -> Floats:
    """Coefficients of the standard deviation, >= 0, from the absolute residuals about a mean of `of_mean` coefficients.

    Absolute, not squared: less is decided by the few largest. A last factor makes the squared residuals add up to the
    fitted variances, so that sums of calls scatter as measured even where the noise is no half-normal. Squares count by
    the inverse of the expected duration, as relative ones do by the time: the mean of squared ratios would be that of
    the few calls, small ones mostly, whose fitted deviation is next to nothing.
    """
    absolute = np.abs(residual) / MEAN_ABSOLUTE_HALF_NORMAL
    weight = share / np.maximum(spread, 1e-3 * float(np.max(spread))) ** 2
    sd = nonnegative_solution(*normal_equations(x, absolute, weight))
    counts = share / expected
    fitted = float(np.sum(counts * (x @ sd) ** 2))
    if fitted <= 0.0:
        return sd
    # Degrees of freedom that the mean has used up.
    n = len(x)
    return sd * float(np.sqrt(np.sum(counts * residual**2) / fitted * n / max(n - of_mean, 1)))


def _robust_factor(residual: Floats, deviation: Floats) -> float:
    """What the standard deviation is to be multiplied by so that the median residual is that of a half-normal; <= 1.

    The cut goes by this: otherwise an outlier among few calls raises the deviation, which raises the cut, and so on.
    """
    positive = deviation > 0
    if not positive.any():
        return 1.0
    median = float(np.median(np.abs(residual[positive]) / deviation[positive]))
    return min(1.0, median / MEDIAN_ABSOLUTE_HALF_NORMAL)


def _check(duration_s: Floats) -> None:
    if len(duration_s) == 0:
        raise FitError("there are no calls to fit; measure some")
    if not np.all(np.isfinite(duration_s)):
        raise FitError("a duration is not finite; the raw file is damaged, measure again")
    if not np.any(duration_s > 0):
        raise FitError("no duration is above zero once the clock's cost is subtracted; measure longer calls")


def machine_excess(fits: Iterable[PolynomialFit]) -> tuple[float, float]:
    """Time above the cut over time below it, of all fits together, and its standard error.

    The errors of the fits are taken to be independent; their sum rests on the interrupted calls of all.
    """
    above = below = variance = squares = 0.0
    for fit in fits:
        part = fit.time_s / (1.0 + fit.excess)
        below += part
        above += part * fit.excess
        variance += part**2 * fit.error.excess_variance
        squares += (part * fit.excess) ** 2 / fit.excess_calls if fit.excess_calls > 0 else 0.0
    if above <= 0.0:
        return 0.0, 0.0
    few = inflation(max(above**2 / squares - 1.0, 1.0))
    return above / below, float(np.sqrt(few * variance)) / below


def settled(fit: PolynomialFit, machine: float, machine_error: float = 0.0) -> PolynomialFit:
    """The fit with a tail between its own (many interruptions) and that of the machine (few)."""
    share = fit.excess_calls / (fit.excess_calls + INTERRUPTED_CALLS)
    return fit.grown(1.0 + share * fit.excess + (1.0 - share) * machine, (share, machine_error))
