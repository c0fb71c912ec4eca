"""Student's t distribution in plain Python: a prediction has half a second, and importing SciPy alone takes it.

Formulas: Abramowitz & Stegun 26.7.1 (as an incomplete beta function) and 26.5.8 (its continued fraction, by Lentz).
"""

from functools import lru_cache
from math import exp, inf, isfinite, lgamma, log

from lepaute.errors import InputError

#: The 97.5 % quantile of the normal distribution, to which Student's tends.
NORMAL_975 = 1.959963984540054
#: Of the normal distribution, the standard deviation over the median absolute deviation.
SD_OF_MAD = 1.4826
_TINY = 1e-300


@lru_cache(maxsize=256)
def student_quantile(probability: float, degrees_of_freedom: float) -> float:
    """The t with P(T <= t) = `probability`, 0 < probability < 1; relative error below 1e-9.

    Raises InputError for other probabilities, or degrees of freedom that are not positive.
    """
    if not (isfinite(degrees_of_freedom) and degrees_of_freedom > 0):
        raise InputError(f"degrees of freedom are {degrees_of_freedom!r}; they must be finite and above 0")
    if not 0 < probability < 1:
        raise InputError(f"the probability of a quantile is {probability!r}; it must lie between 0 and 1")
    if probability == 0.5:
        return 0.0
    tail = min(probability, 1 - probability)
    # Bisection in log t: safe for the heavy tails of few degrees of freedom, where Newton's steps overshoot.
    low, high = -700.0, 700.0
    while high - low > 1e-13 * max(1.0, abs(low)):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _upper_tail(exp(middle), degrees_of_freedom) > tail else (low, middle)
    t = exp(0.5 * (low + high))
    return t if probability > 0.5 else -t


def _upper_tail(t: float, nu: float) -> float:
    """P(T > t) for t > 0, = I_x(nu/2, 1/2) / 2 at x = nu / (nu + t²)."""
    square = t * t
    if square == inf:
        return 0.0
    # both x and 1 - x directly: neither cancels
    return 0.5 * _regularised_beta(nu / (nu + square), square / (nu + square), 0.5 * nu, 0.5)


def _regularised_beta(x: float, complement: float, a: float, b: float) -> float:
    """I_x(a, b), the regularised incomplete beta function; complement = 1 - x."""
    if x <= 0:
        return 0.0
    if complement <= 0:
        return 1.0
    front = exp(a * log(x) + b * log(complement) + lgamma(a + b) - lgamma(a) - lgamma(b))
    # the fraction converges quickly on one side of the mean only
    if x < (a + 1) / (a + b + 2):
        return front * _beta_fraction(x, a, b) / a
    return 1.0 - front * _beta_fraction(complement, b, a) / b


def _beta_fraction(x: float, a: float, b: float) -> float:
    c, d = 1.0, 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1))
    value = d
    for i in range(1, 10_000):
        even = i * (b - i) * x / ((a + 2 * i - 1) * (a + 2 * i))
        odd = -(a + i) * (a + b + i) * x / ((a + 2 * i) * (a + 2 * i + 1))
        for term in (even, odd):
            d = 1.0 / _away_from_zero(1.0 + term * d)
            c = _away_from_zero(1.0 + term / c)
            value *= d * c
        if abs(d * c - 1.0) < 1e-16:
            break
    return value


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
