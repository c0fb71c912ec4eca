"""Does the mean of r new observations belong to the population of n earlier ones? The prediction region as a test.

For independent vectors of p normal variables with unknown mean and covariance (Chew, Journal of the American
Statistical Association 61, 1966, section 4.4; equations 9.1 to 9.4 of Cornebize's thesis),

    t = nr (n - p) / ((n + r) (n - 1) p) (m - x)' S^-1 (m - x)

is distributed as F(p, n - p), with m the mean of the new observations, x and S the sample mean and covariance of the
earlier ones. S may rest on more than these: with nu degrees of freedom (n - 1 above), independent of both means,

    t = nr (nu - p + 1) / ((n + r) nu p) (m - x)' S^-1 (m - x)  ~  F(p, nu - p + 1)

(Hotelling's T² with nu degrees of freedom; Anderson, Multivariate Statistical Analysis, 3rd ed., 5.2.2).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, fdtrc, stdtrit

from lepaute.errors import InputError
from lepaute.stats.expanding import Floats, Integers

#: A test needs this many degrees of freedom in the denominator, n >= p + 2: with one, quantiles are beyond any use.
MIN_DEGREES = 2
#: A standard deviation below this share of the mean is rounding, hence none.
ROUNDING = 8 * float(np.finfo(np.float64).eps)
#: Eigenvalues of a correlation matrix below this, times p, are 0: rounding leaves about 1e-14.
SINGULAR = 1e-12
_CHUNK = 20_000
#: Below this p-values lose digits.
_SMALLEST = 1e-280
_FRACTION_TERMS = 400


@dataclass(frozen=True, slots=True)
class RegionTests:
    """One element a test, shape (tests,).

    n, degrees_of_freedom : of the reference mean and of its covariance (nu)
    statistic, p_value    : t and P(F >= t), which the thesis calls likelihood (9.4); NaN if nothing could be tested
    direction : 1 where the new mean is above the old one, -1 below, 0 for p > 1, where there is no such thing
    low, high : what a mean of r new observations lies between with the asked confidence (9.3); NaN for p > 1
    missing   : observations that are missing to a test, at least; 0 if it was made
    """

    n: Integers
    degrees_of_freedom: Integers
    statistic: Floats
    p_value: Floats
    direction: npt.NDArray[np.int8]
    low: Floats
    high: Floats
    missing: Integers


def region_tests(
    new: Floats,
    mean: Floats,
    scatter: Floats,
    n: Integers,
    degrees_of_freedom: Integers,
    r: int,
    confidence: float,
    variance: Floats | None = None,
    missing_else: Integers | None = None,
) -> RegionTests:
    """Many tests of the same p and r.

    new, mean : of the r new and of the n earlier observations, shape (tests, p), any units
    scatter   : sum of products of deviations with these degrees of freedom, n - 1 or more, shape (tests, p, p)
    n, degrees_of_freedom : shape (tests,); n below 1 says that so many less one are missing
    confidence : of low and high, in (0, 1)
    variance  : of the difference of new and mean, in variances of an observation, shape (tests,); 1/n + 1/r by default
    missing_else : observations that are missing for another reason; none by default
    A covariance without full rank is one that does not yet have enough observations: each adds at most one to its rank.
    Raises InputError for r below 1, and for a confidence that is none.
    """
    if r < 1:
        raise InputError(f"a window has {r} values; it needs at least 1")
    if not 0 < confidence < 1:
        raise InputError(f"the confidence is {confidence!r}; it must lie between 0 and 1")
    tests, p = mean.shape
    nu = np.asarray(degrees_of_freedom, dtype=np.int64)
    n = np.asarray(n, dtype=np.int64)
    missing: Integers = np.maximum(0, np.maximum(p - 1 + MIN_DEGREES - nu, 1 - n))
    if missing_else is not None:
        missing = np.maximum(missing, missing_else)
    statistic = np.full(tests, np.nan)
    for begin in range(0, tests, _CHUNK):
        at = begin + np.flatnonzero(missing[begin : begin + _CHUNK] == 0)
        squares, rank = _distances(new[at] - mean[at], mean[at], scatter[at], nu[at])
        missing[at] = p - rank
        at, squares = at[rank == p], squares[rank == p]
        weight = n[at] * r / (n[at] + r) if variance is None else 1 / variance[at]
        statistic[at] = squares * weight * ((nu[at] - p + 1) / (nu[at] * p))
    done = missing == 0
    p_value, low, high = np.full(tests, np.nan), np.full(tests, np.nan), np.full(tests, np.nan)
    p_value[done] = fdtrc(p, nu[done] - p + 1, statistic[done])
    direction = np.zeros(tests, np.int8)
    if p == 1:
        direction[done] = np.sign(new[done, 0] - mean[done, 0]).astype(np.int8)
        # F(1, nu) is the square of Student's t
        quantile = -_by_degrees(stdtrit, nu[done], 0.5 * (1 - confidence))
        spread = scatter[done, 0, 0] / nu[done]
        spread = spread * (n[done] + r) / (n[done] * r) if variance is None else spread * variance[done]
        half = quantile * np.sqrt(spread)
        low[done], high[done] = mean[done, 0] - half, mean[done, 0] + half
    return RegionTests(np.maximum(n, 0), np.maximum(nu, 0), statistic, p_value, direction, low, high, missing)


def _by_degrees(function: Callable[..., Any], degrees: Integers, at: float) -> Floats:
    """The function of each, worked out once for each number of degrees of freedom where these are few."""
    most = int(degrees.max(initial=0))
    found: Floats = function(degrees, at) if most >= len(degrees) else function(np.arange(most + 1), at)[degrees]
    return found


def log10_p_values(statistic: npt.ArrayLike, p: npt.ArrayLike, degrees_of_freedom: npt.ArrayLike) -> Floats:
    """log10 of P(F >= statistic) with F(p, nu - p + 1), also where the probability is too small for a number.

    All of one shape; NaN stays NaN. Where P is below 1e-280, by the continued fraction of the incomplete beta function
    (Olver et al., NIST Handbook of Mathematical Functions, 8.17.22).
    """
    t, p, nu = np.broadcast_arrays(*(np.asarray(each, np.float64) for each in (statistic, p, degrees_of_freedom)))
    m = nu - p + 1
    known = np.isfinite(t) & (m > 0)
    found = np.full(t.shape, np.nan)
    probability = np.zeros(t.shape)
    probability[known] = fdtrc(p[known], m[known], t[known])
    usual = known & (probability > _SMALLEST)
    found[usual] = np.log10(probability[usual])
    tiny = known & ~usual
    if tiny.any():
        a, b = m[tiny] / 2, p[tiny] / 2
        ratio = p[tiny] * t[tiny] / m[tiny]
        log_x, log_rest = -np.log1p(ratio), np.log(ratio) - np.log1p(ratio)
        log_p = a * log_x + b * log_rest - np.log(a) - betaln(a, b) - np.log(_beta_fraction(a, b, np.exp(log_x)))
        found[tiny] = log_p / np.log(10.0)
    return found


def _beta_fraction(a: Floats, b: Floats, x: Floats) -> Floats:
    """1 + d1/(1 + d2/(1 + ...)), from which on I_x(a, b) = x^a (1 - x)^b / (a B(a, b)) / this; x below a / (a + b)."""
    value = np.ones_like(x)
    for k in range(_FRACTION_TERMS, 0, -1):
        half = k // 2
        if k % 2:
            term = -(a + half) * (a + b + half) * x / ((a + k - 1) * (a + k))
        else:
            term = half * (b - half) * x / ((a + k - 1) * (a + k))
        value = 1 + term / value
    return value


def _distances(difference: Floats, mean: Floats, scatter: Floats, nu: Integers) -> tuple[Floats, Integers]:
    """(difference' S^-1 difference, rank of S); by the eigenvalues of the correlations, so that units do not matter."""
    p = difference.shape[1]
    sd = np.sqrt(np.maximum(0.0, np.diagonal(scatter, axis1=1, axis2=2)) / nu[:, None])
    varies = sd > ROUNDING * np.abs(mean)
    sd = np.where(varies, sd, 1.0)
    scaled = np.where(varies, difference / sd, 0.0)
    if p == 1:
        return scaled[:, 0] ** 2, varies[:, 0].astype(np.int64)
    both = varies[:, :, None] & varies[:, None, :]
    correlation = np.where(both, scatter / nu[:, None, None] / (sd[:, :, None] * sd[:, None, :]), 0.0)
    eigenvalues, vectors = np.linalg.eigh(correlation)
    full = eigenvalues > SINGULAR * p
    along = np.einsum("tij,ti->tj", vectors, scaled)
    squares: Floats = np.sum(along**2 / np.where(full, eigenvalues, np.inf), axis=1)
    return squares, full.sum(axis=1).astype(np.int64)
