"""The interval of a median by order statistics: exact for every continuous distribution."""

from functools import lru_cache
from math import exp, isfinite, lgamma, log, sqrt

from lepaute.errors import InputError


@lru_cache(maxsize=256)
def median_rank(count: int, miss: float) -> int:
    """The largest r such that [x(r), x(n + 1 - r)] of the ordered values misses the median with chance <= `miss`.

    count : n >= 1 values; miss : in (0, 1)
    The chance is 2 P(B <= r - 1), B binomial(n, 1/2); 0 where not even the extremes are enough. Values with ties make
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
