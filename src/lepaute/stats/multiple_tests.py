"""Many tests at once: which are significant, and how wide intervals of these have to be."""

from collections.abc import Sequence
from math import fsum

from lepaute.errors import InputError


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """The p-values corrected for their number, in the same order: Holm, Scandinavian Journal of Statistics 6 (1979)."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    corrected = [1.0] * len(p_values)
    highest = 0.0
    for position, index in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - position) * p_values[index]))
        corrected[index] = highest
    return tuple(corrected)


def benjamini_hochberg(p_values: Sequence[float]) -> tuple[float, ...]:
    """p-values corrected for their number m, in the same order: min over j >= i of p(j) m / j.

    Taking those of at most q for real makes the expected share of false ones among them at most q where the tests are
    independent or depend on each other positively, as rows that share their mpiruns do. Source: Benjamini & Hochberg,
    Journal of the Royal Statistical Society B 57 (1995); for the dependence Benjamini & Yekutieli (2001), theorem 1.2.
    Raises InputError for what is no probability.
    """
    return _stepped_up(p_values, 1.0)


def benjamini_yekutieli(p_values: Sequence[float]) -> tuple[float, ...]:
    """p-values corrected for their number m, in the same order: min over j >= i of p(j) m (1 + 1/2 + ... + 1/m) / j.

    Taking those of at most q for real makes the expected share of false ones among them at most q, under any dependence
    of the tests; where nothing is real, the chance of any. Source: Benjamini & Yekutieli, Annals of Statistics 29
    (2001), theorem 1.3. Raises InputError for what is no probability.
    """
    return _stepped_up(p_values, fsum(1 / i for i in range(1, len(p_values) + 1)))


def _stepped_up(p_values: Sequence[float], factor: float) -> tuple[float, ...]:
    if not all(0 <= p <= 1 for p in p_values):
        raise InputError("a p-value is not between 0 and 1")
    count = len(p_values)
    corrected = [1.0] * count
    least = 1.0
    order = sorted(range(count), key=p_values.__getitem__)
    for position in range(count, 0, -1):
        index = order[position - 1]
        least = min(least, p_values[index] * factor * count / position)
        corrected[index] = least
    return tuple(corrected)


def selected_level(selected: int, count: int, level: float) -> float:
    """The level for what is said about each of the `selected` of `count` that a test at `level` chose.

    At this one, further tests in each of them, or intervals, are wrong for a share of at most `level` of the selected:
    level * selected / (count (1 + 1/2 + ... + 1/count)), under any dependence. Source: Benjamini & Bogomolov, Journal
    of the Royal Statistical Society B 76 (2014); for intervals Benjamini & Yekutieli, JASA 100 (2005).
    """
    return level * selected / (count * fsum(1 / i for i in range(1, count + 1))) if count else level
