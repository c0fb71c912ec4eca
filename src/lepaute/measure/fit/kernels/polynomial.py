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
milliseconds among its calls says nothing about its rate: a tail of few calls is that of all kernels (`settled`).

The error of a polynomial's coefficients and of its tail, from calls that are not independent.

Calls of one process, and of processes of one mpirun, have in common what it was faster or slower. So the covariance is
that of the cluster jackknife over such launches. It is that of the coefficients and of the excess (the tail, see
`polynomial`) together: a factor on all coefficients, from few interrupted calls, is the least certain of all.

A piece of a kernel may have calls of few launches, whose spread is then a poor estimate; how much processes differ is
known better from all kernels together (`variability.days`). Where that is known, the two covariances are averaged by
their degrees of freedom, the second one counting for KERNELS_ALIKE (the conjugate estimate of a variance: Smyth 2004,
Statistical Applications in Genetics and Molecular Biology 3, article 3). What all launches of a block have in common is
no difference between launches of a block, and is added.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lepaute.errors import FitError
from lepaute.measure.fit.numeric import (
    Booleans,
    Floats,
    Integers,
    clusters_of,
    independent_columns,
    inflation,
    normal_equations,
    shifts_by_row,
    whitening,
)
from lepaute.stats import algebra
from lepaute.stats.robust import robust_sd

#: Terms that a fit of a kernel tries, most important first: of two that the data cannot distinguish, the first is kept.
DEFAULT_TERMS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("dgemm", "dgemm_nn"), ("mnk", "mn", "mk", "nk", "1")),
    **dict.fromkeys(("dtrsm", "dtrsm_left"), ("mnk", "mn", "m", "n", "1")),
    **dict.fromkeys(("dgemv", "dger"), ("mn", "m", "n", "1")),
    "dtrsv": ("nn", "n", "1"),
    **dict.fromkeys(("dscal", "idamax", "daxpy", "dcopy", "dlocswp"), ("n", "1")),
    "pdfact_glue": ("m", "n", "1"),
    "pdupdate_glue": ("1",),
    "first_touch": ("n", "1"),
}
#: Swaps and copies.
MATRIX_TERMS: tuple[str, ...] = ("mn", "m", "n", "1")
#: Degrees of freedom that the differences between processes over all kernels count for in the error of one.
KERNELS_ALIKE = 4.0
#: A centred half-normal exceeds six standard deviations once in 100,000 draws.
CUT_SD = 6.0
#: Relative error that a polynomial of a kernel has in any case.
DEFAULT_FLOOR = 0.02
ITERATIONS = 10
#: A duration so little below zero, in units of the mean, is zero.
ZERO = 1e-9
# Mean of |X| of a centred half-normal variate X of variance one: 4 (a (Phi(a) - 1/2) - phi(0) + phi(a)) / c with
# a = sqrt(2/pi), c = sqrt(1 - 2/pi).
MEAN_ABSOLUTE_HALF_NORMAL = 0.8006237
# Its median, from 20 million draws.
MEDIAN_ABSOLUTE_HALF_NORMAL = 0.7259
#: So many interrupted calls of a kernel weigh as much as those of all other kernels together.
INTERRUPTED_CALLS = 20.0


def default_terms(kernel: str) -> tuple[str, ...]:
    return DEFAULT_TERMS.get(kernel, MATRIX_TERMS)


def term_column(term: str, m: "Floats", n: "Floats", k: "Floats") -> "Floats":
    """Values of one term, shape of m; "1" is the constant.  Raises KeyError for a letter other than m, n, k."""
    if term == "1":
        return np.ones_like(m)
    letters = {"m": m, "n": n, "k": k}
    column = letters[term[0]].copy()
    for letter in term[1:]:
        column *= letters[letter]
    return column


def design_matrix(terms: Sequence[str], m: "Floats", n: "Floats", k: "Floats") -> "Floats":
    """Columns of the terms, shape (len(m), len(terms))."""
    return np.column_stack([term_column(term, m, n, k) for term in terms])


@dataclass(frozen=True, slots=True)
class ProcessEffects:
    """Relative standard deviations of what processes differ by, all kernels together.

    of_block, of_launch : of effects common to all processes of a block, and of one launch in it
    block_degrees_of_freedom : of the first
    """

    of_block: float
    of_launch: float
    block_degrees_of_freedom: int


@dataclass(frozen=True, slots=True)
class CoefficientError:
    """What the covariance of (coefficients, excess), shape (p + 1, p + 1), is made of.

    independent        : if all calls were independent
    clustered          : of the jackknife over launches, not yet inflated
    degrees_of_freedom : of `clustered`; 0 if there is one launch
    events             : degrees of freedom of the variance of the excess: interrupted calls that it rests on, less one
    by_launch          : covariance of the coefficients for each unit of variance of an effect, relative to the
                         duration, that all calls of a launch have in common, shape (p, p)
    by_block           : the same of an effect of whole blocks, less what `clustered` has of it
    """

    independent: Floats
    clustered: Floats
    degrees_of_freedom: float
    events: float
    by_launch: Floats
    by_block: Floats

    def scaled(self, factor: Floats) -> "CoefficientError":
        """Error of the coefficients times `factor`, shape (p,)."""
        both = np.outer(np.append(factor, 1.0), np.append(factor, 1.0))
        inner = np.outer(factor, factor)
        return replace(
            self,
            independent=self.independent * both,
            clustered=self.clustered * both,
            by_launch=self.by_launch * inner,
            by_block=self.by_block * inner,
        )

    def without_excess(self) -> "CoefficientError":
        """Error if the excess is given, not estimated."""
        known = np.ones(len(self.independent))
        known[-1] = 0.0
        both = np.outer(known, known)
        return replace(self, independent=self.independent * both, clustered=self.clustered * both)

    def covariance(self, effects: ProcessEffects | None = None) -> Floats:
        """The covariance, inflated so that normal intervals of 95 % are those of Student's t, see `inflation`."""
        freedom = self.degrees_of_freedom
        # Few launches leave directions in which they do not differ at all: there, at least the calls do.
        result = self.clustered + self.independent / max(freedom, 1.0)
        if effects is not None:
            alike = self.independent.copy()
            alike[:-1, :-1] += effects.of_launch**2 * self.by_launch
            result = (freedom * self.clustered + KERNELS_ALIKE * alike) / (freedom + KERNELS_ALIKE)
            freedom += KERNELS_ALIKE
        factor = inflation(freedom) if freedom else 1.0
        result = factor * result
        if effects is not None:
            of_blocks = inflation(effects.block_degrees_of_freedom) * effects.of_block**2
            result[:-1, :-1] += of_blocks * self.by_block
        few = np.sqrt(max(1.0, inflation(max(self.events, 1.0)) / factor))
        result[-1] *= few
        result[:, -1] *= few
        return result


def coefficient_error(
    x: Floats,
    coefficients: Floats,
    residual: Floats,
    weight: Floats,
    excess: tuple[Floats, Floats],
    launch: Integers | None,
    block: Integers | None,
) -> CoefficientError:
    """The error of weighted least squares coefficients, those that are 0 taken for known, and of an excess.

    x, residual, weight : shapes (calls, p), (calls,), (calls,)
    excess              : of each call its part above and below the cut; the excess is the ratio of their sums
    launch, block       : of the process of each call; None: all calls are independent
    """
    active = coefficients != 0
    above, below = excess
    by_call = np.column_stack([shifts_by_row(x, residual, weight, active), _ratio_shifts(above, below)])
    independent = algebra.squares(by_call)
    squares = float(np.sum(above**2))
    events = float(np.sum(above)) ** 2 / squares - 1.0 if squares > 0 else 0.0
    nothing = np.zeros((x.shape[1], x.shape[1]))
    alone = CoefficientError(independent, np.zeros_like(independent), 0.0, events, nothing, nothing)
    if launch is None:
        return alone
    by_launch, share_of_launch = _level_shifts(x, coefficients, weight, active, launch)
    by_block, share_of_block = _level_shifts(x, coefficients, weight, active, launch if block is None else block)
    apart = max(0.0, 1.0 - share_of_launch / share_of_block) if share_of_block > 0 else 0.0
    clusters = clusters_of(x, residual, weight, active, launch)
    if len(clusters) < 2:  # how launches differ does not show here
        return CoefficientError(independent, np.zeros_like(independent), 0.0, events, by_launch, by_block)
    of_ratio = _ratio_shifts(*(np.bincount(clusters.code, part).astype(np.float64) for part in excess))
    clustered = clusters.covariance(np.column_stack([clusters.shifts, of_ratio]))
    return CoefficientError(independent, clustered, clusters.degrees_of_freedom, events, by_launch, apart * by_block)


def _ratio_shifts(above: Floats, below: Floats) -> Floats:
    """Shift of sum(above) / sum(below) by each part."""
    whole = float(np.sum(below))
    if whole <= 0.0:
        return np.zeros_like(above)
    result: Floats = (above - float(np.sum(above)) / whole * below) / np.maximum(whole - below, 1e-3 * whole)
    return result


def _level_shifts(
    x: Floats, coefficients: Floats, weight: Floats, active: Booleans, group: Integers
) -> tuple[Floats, float]:
    """Sum over groups of v v', with v what a group adds to the coefficients if it takes twice as long, shape (p, p);
    and the sum of squares of the groups' shares in the level."""
    result = np.zeros((x.shape[1], x.shape[1]))
    chosen = x[:, active]
    mean = algebra.times(chosen, coefficients[active])
    root = whitening(chosen, weight)
    _, code = np.unique(group, return_inverse=True)
    columns = (chosen * (weight * mean)[:, None]).T
    sums: Floats = np.column_stack([np.bincount(code, column) for column in columns]).astype(np.float64)
    result[np.ix_(active, active)] = algebra.squares(algebra.times(algebra.times(sums, root), root.T))
    return result, float(np.sum(np.bincount(code, weight * mean**2) ** 2))


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
        return np.maximum(algebra.times(design_matrix(self.terms, m, n, k), self.mean), 0.0)

    @property
    def covariance(self) -> Floats:
        """Covariance of `mean`, shape (p, p); inflated where it rests on few launches, see `coefficient_error`.

        The error of the tail's own excess and that of the machine's go together: the one is part of the other.
        """
        joint = self.error.covariance(self.effects)
        share, other_error = self.tail
        own_error = float(np.sqrt(max(0.0, joint[-1, -1])))
        joint[-1] *= share
        joint[:, -1] *= share
        joint[-1, -1] = (share * own_error + (1.0 - share) * other_error) ** 2
        by_both = np.column_stack([self.growth * np.eye(len(self.mean)), self.mean / self.growth])
        return algebra.times(algebra.times(by_both, joint), by_both.T)

    def deviation(self, m: Floats, n: Floats, k: Floats) -> Floats:
        """Standard deviations in seconds, shape of m."""
        if not self.sd_terms:
            return np.zeros(len(m))
        return algebra.times(design_matrix(self.sd_terms, m, n, k), self.sd)


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
    predicted = np.maximum(algebra.times(x, state.mean), 0.0) * growth
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
    kept = usable[independent_columns(columns[:, usable] / scale[usable], 1.0 / np.maximum(np.abs(y), _least(y)))]
    return tuple(terms[i] for i in kept), columns[:, kept] / scale[kept], 1.0 / scale[kept]


def _least(y: Floats) -> float:
    """Values below this count as if they had it: a clock may see no time at all pass, even in most calls."""
    return 1e-3 * float(np.median(np.abs(y)) or np.mean(np.abs(y)))


def r_squared(measured: Floats, predicted: Floats) -> float:
    """1 - residual sum of squares / total sum of squares; 0 if the measured values do not vary."""
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
    first = algebra.nonnegative_solution(*normal_equations(x, y, share / np.maximum(np.abs(y), _least(y))))
    safe = np.maximum(algebra.times(x, first), 1e-6)
    mean = first
    sd = np.zeros(x_sd.shape[1])
    deviation = robust_sd(y / safe, 1.0) * safe
    robust, cut, residual = deviation, y, y - safe
    weight = share / safe**2
    for _ in range(ITERATIONS):
        expected = np.maximum(algebra.times(x, mean), 0.1 * safe)
        spread = np.maximum(deviation, 1e-4 * expected + 1e-9)
        cut = np.minimum(y, expected + CUT_SD * np.maximum(robust, 0.01 * expected))
        weight = share / (spread**2 + (floor * expected) ** 2)
        gram, moment = normal_equations(x, cut, weight)
        if nonnegative:
            mean = algebra.nonnegative_solution(gram, moment, last_free=True)
        else:
            mean = algebra.solution(gram, moment)
            # Once more for what is left: squares of columns that are nearly dependent lose half of the digits.
            mean += algebra.solution(gram, algebra.products(x, weight * (cut - algebra.times(x, mean))))
        fitted = algebra.times(x, mean)
        if np.min(fitted) < -ZERO:
            mean = algebra.nonnegative_solution(gram, moment)
            fitted = algebra.times(x, mean)
        residual = cut - fitted
        sd = _deviation_coefficients(x_sd, residual, share, spread, expected, x.shape[1])
        deviation = algebra.times(x_sd, sd)
        robust = deviation * _robust_factor(residual, deviation)
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
    weight = share / np.maximum(spread, 1e-3 * float(np.max(spread))) ** 2
    sd = algebra.nonnegative_solution(*normal_equations(x, np.abs(residual) / MEAN_ABSOLUTE_HALF_NORMAL, weight))
    counts = share / expected
    fitted = float(np.sum(counts * algebra.times(x, sd) ** 2))
    if fitted <= 0.0:
        return sd
    # Degrees of freedom that the mean has used up.
    n = len(x)
    return sd * float(np.sqrt(np.sum(counts * residual**2) / fitted * n / max(n - of_mean, 1)))


def _robust_factor(residual: Floats, deviation: Floats) -> float:
    """Factor of the standard deviation so that the median residual is that of a half-normal; <= 1.

    The cut goes by this: otherwise an outlier among few calls raises the deviation, which raises the cut, and so on.
    """
    positive = deviation > 0
    if not positive.any():
        return 1.0
    return min(1.0, float(np.median(np.abs(residual[positive]) / deviation[positive])) / MEDIAN_ABSOLUTE_HALF_NORMAL)


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
        variance += part**2 * float(max(fit.error.independent[-1, -1], fit.error.clustered[-1, -1]))
        squares += (part * fit.excess) ** 2 / fit.excess_calls if fit.excess_calls > 0 else 0.0
    if above <= 0.0:
        return 0.0, 0.0
    return above / below, float(np.sqrt(inflation(max(above**2 / squares - 1.0, 1.0)) * variance)) / below


def settled(fit: PolynomialFit, machine: float, machine_error: float = 0.0) -> PolynomialFit:
    """The fit with a tail between its own (many interruptions) and that of the machine (few)."""
    share = fit.excess_calls / (fit.excess_calls + INTERRUPTED_CALLS)
    growth = 1.0 + share * fit.excess + (1.0 - share) * machine
    return replace(fit, mean=fit.mean * (growth / fit.growth), growth=growth, tail=(share, machine_error))
