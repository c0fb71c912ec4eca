"""Random draws of the general designs: the same on every machine and with every version of every library.

Python promises that `random.Random(seed).random()` gives the same sequence for ever; NumPy promises no such thing for
the distributions and permutations of its generators (NEP 19). A design file must come again byte for byte years later.
"""

import hashlib
import random
from collections.abc import Sequence
from typing import TypeVar

from lepaute.errors import DesignError

Item = TypeVar("Item")

_BITS = 53


class Draws:
    """A stream of draws for one purpose; streams of other purposes, or other seeds, are independent of it."""

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

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """The items in an order of which every one is equally probable (Fisher and Yates)."""
        order = list(items)
        for last in range(len(order) - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order
