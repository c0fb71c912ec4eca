"""Many tests at once, whatever their dependence: which are significant, and how wide intervals of these have to be."""

from collections.abc import Sequence
from math import fsum

from lepaute.errors import InputError


def benjamini_yekutieli(p_values: Sequence[float]) -> tuple[float, ...]:
    """p-values corrected for their number m, in the same order: min over j >= i of p(j) m (1 + 1/2 + ... + 1/m) / j.

    Taking those of at most q for real makes the expected share of false ones among them at most q, under any dependence
    of the tests; where nothing is real, the chance of any. Source: Benjamini & Yekutieli, Annals of Statistics 29
    (2001), theorem 1.3. Raises InputError for what is no probability.
    """
    if not all(0 <= p <= 1 for p in p_values):
        raise InputError("a p-value is not between 0 and 1")
    count = len(p_values)
    factor = count * fsum(1 / i for i in range(1, count + 1))
    corrected = [1.0] * count
    least = 1.0
    order = sorted(range(count), key=p_values.__getitem__)
    for position in range(count, 0, -1):
        index = order[position - 1]
        least = min(least, p_values[index] * factor / position)
        corrected[index] = least
    return tuple(corrected)


def selected_level(selected: int, count: int, level: float) -> float:
    """The level for what is said about each of the `selected` of `count` that a test at `level` chose.

    At this one, further tests in each of them, or intervals, are wrong for a share of at most `level` of the selected:
    level * selected / (count (1 + 1/2 + ... + 1/count)), under any dependence. Source: Benjamini & Bogomolov, Journal
    of the Royal Statistical Society B 76 (2014); for intervals Benjamini & Yekutieli, JASA 100 (2005).
    """
    return level * selected / (count * fsum(1 / i for i in range(1, count + 1))) if count else level
