"""Draws of sizes: pure functions of a generator.

Sizes of kernels and messages span many decades, and so do their durations: a uniform draw would
spend nearly all rows, and time, in the last decade. Hence logarithmic draws.
"""

import hashlib
import itertools
import math
import random
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from lepaute.errors import DesignError

Row = TypeVar("Row")
Triple = tuple[int, int, int]
_BITS = 53

#: Most draws for one triple before the bounds are taken to be impossible.
_MAX_DRAWS = 20_000
#: A triple of integers is accepted when its product misses the target by at most this share.
_PRODUCT_TOLERANCE = 0.1


def strata(rng: np.random.Generator, count: int) -> list[float]:
    """`count` positions in [0, 1), one in each of `count` strata of equal width, in rising order."""
    return [float(u) for u in (np.arange(count) + rng.random(count)) / max(count, 1)]


def stratified_log_uniform(rng: np.random.Generator, count: int, low: float, high: float) -> list[float]:
    """`count` values in [low, high], one in each of `count` strata of equal width in the logarithm, in rising order.

    Strata keep the total of a small design, and so its duration, nearly the same for every seed.
    """
    if count < 0 or not 0 < low <= high:
        raise DesignError(f"cannot draw {count} values from {low:g} to {high:g}; need count >= 0 and 0 < low <= high")
    return [log_uniform_at(u, low, high) for u in strata(rng, count)]


def log_uniform_at(position: float, low: float, high: float) -> float:
    """The value in [low, high] with that share, in [0, 1], of the log-uniform law below it."""
    return min(max(low * math.exp(position * math.log(high / low)), low), high)


def stratified_uniform(rng: np.random.Generator, count: int, low: int, high: int) -> list[int]:
    """`count` integers in [low, high], one in each of `count` strata of equal width, in rising order."""
    if count < 0 or low > high:
        raise DesignError(f"cannot draw {count} integers from {low} to {high}; need count >= 0 and low <= high")
    return [uniform_at(u, low, high) for u in strata(rng, count)]


def uniform_at(position: float, low: int, high: int) -> int:
    """The integer in [low, high] with that share, in [0, 1), of the uniform law below it."""
    return low + math.floor(position * (high - low + 1))


def triple_of_product(rng: np.random.Generator, product: float, most: Triple) -> Triple:
    """(m, n, k), each from 1 to its bound in `most`, whose product is within 10 % of `product`.

    Log-uniform given the product: two of the logarithms are drawn uniformly and the third follows;
    draws outside the bounds are rejected, which leaves the uniform law on what remains of the simplex.
    Which of the three follows is drawn too, so that the rounding favours none.
    Raises DesignError when the bounds admit no such triple.
    """
    if not 1 <= product <= (1 + _PRODUCT_TOLERANCE) * math.prod(most) or min(most) < 1:
        raise DesignError(f"no m, n, k up to {most} have the product {product:g}; raise the bounds or lower it")
    logs = np.log(np.array(most, dtype=np.float64))
    for _ in range(_MAX_DRAWS):
        last = int(rng.integers(3))
        first, second = (axis for axis in range(3) if axis != last)
        size = [0, 0, 0]
        size[first] = round(math.exp(rng.random() * float(logs[first])))
        size[second] = round(math.exp(rng.random() * float(logs[second])))
        size[last] = round(product / (size[first] * size[second]))
        if 1 <= size[last] <= most[last] and abs(math.prod(size) / product - 1) <= _PRODUCT_TOLERANCE:
            return (size[0], size[1], size[2])
    raise DesignError(f"found no m, n, k up to {most} with the product {product:g}; raise the bounds")


def permutations_within(triple: Triple, most: Triple) -> list[Triple]:
    """The distinct permutations of a triple that respect the bounds, in sorted order.

    All orders of the same three sizes have the same product, hence the same leading term: what differs
    between their durations determines the other coefficients.
    """
    distinct = sorted(set(itertools.permutations(triple)))
    return [(m, n, k) for m, n, k in distinct if m <= most[0] and n <= most[1] and k <= most[2]]


def log_uniform_bytes(rng: np.random.Generator, count: int, low: int, high: int) -> list[int]:
    """`count` message sizes 10^U in bytes, U uniform, from `low` to `high`, independent of each other."""
    if count < 0 or not 1 <= low <= high:
        raise DesignError(f"cannot draw {count} sizes from {low} to {high} bytes; need count >= 0 and 1 <= low <= high")
    exponents = math.log10(low) + rng.random(count) * (math.log10(high) - math.log10(low))
    return [min(max(round(10.0**u), low), high) for u in exponents]


def shuffled(rng: np.random.Generator, rows: Sequence[Row]) -> list[Row]:
    """The rows in random order: drift of the machine then hits all sizes alike instead of looking like a size."""
    return [rows[i] for i in rng.permutation(len(rows))]


def in_turn(rng: np.random.Generator, levels: Sequence[Row], count: int) -> list[Row]:
    """`count` of the levels: all in random order, then all in another order, and so on."""
    result: list[Row] = []
    while len(result) < count:
        result += shuffled(rng, levels)
    return result[:count]


class Draws:
    """A stream of draws for one purpose; streams of other purposes, or other seeds, are independent of it.

    Of the general designs, whose files must come again byte for byte years later, on any machine: Python promises that
    `random.Random(seed).random()` stays the same for ever; NumPy promises no such thing for its distributions (NEP 19).
    """

    def __init__(self, seed: int, *purpose: str) -> None:
        """Raises DesignError when the seed is not a whole number >= 0."""
        if type(seed) is not int or not 0 <= seed < 2**64:
            raise DesignError(f"the seed is {str(seed)[:60]!r}; give a whole number from 0 to 2^64 - 1")
        digest = hashlib.sha256("\0".join(("lepaute design", str(seed), *purpose)).encode()).digest()
        self.unit = random.Random(int.from_bytes(digest, "big")).random  # uniform in [0, 1), multiples of 2^-53

    def below(self, bound: int) -> int:
        """A whole number from 0 to bound - 1, each with the same probability; bound <= 2^64."""
        words = 1 if bound <= 1 << 32 else 2
        span = 1 << (_BITS * words)
        limit = span - span % bound  # beyond it the remainders are not equally probable
        while True:
            number = 0
            for _ in range(words):
                number = (number << _BITS) | int(self.unit() * (1 << _BITS))
            if number < limit:
                return number % bound

    def shuffled(self, items: Sequence[Row]) -> list[Row]:
        """The items in an order of which every one is equally probable (Fisher and Yates)."""
        order = list(items)
        for last in range(len(order) - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order
