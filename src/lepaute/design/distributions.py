"""Distributions of factors: uniform, 10^U, and whole numbers of a given product."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lepaute.design.cells import MOST_INTEGER, Value, is_integer, is_real, shortened
from lepaute.design.draws import Draws
from lepaute.errors import DesignError
from lepaute.kit.numbers import plain

Level = tuple[Value, ...]

MOST_LEVELS = 1_000_000
MOST_PRODUCT = 1e300
#: Drawn real numbers keep this many digits: the last ones depend on the machine's mathematical library.
_DIGITS = 12
_MOST_DRAWS = 20_000
_PRODUCT_TOLERANCE = 0.1


class Factor(Protocol):
    """What one name, or several that vary together, may take."""

    @property
    def width(self) -> int:
        """How many columns it fills."""

    @property
    def types(self) -> tuple[str, ...]:
        """The type of each of its columns: int, real or text."""

    def at(self, position: float, draws: Draws) -> Level:
        """The values at a position in [0, 1), of which uniform ones give the law; `draws` gives what else it needs."""


@dataclass(frozen=True, slots=True)
class Uniform:
    """Uniform between two bounds, both included; whole numbers where `whole`, else real ones."""

    low: float
    high: float
    whole: bool

    width = 1

    def __post_init__(self) -> None:
        _check_bounds(self.low, self.high, self.whole)

    @property
    def types(self) -> tuple[str, ...]:
        return ("int" if self.whole else "real",)

    def at(self, position: float, draws: Draws) -> Level:  # noqa: ARG002
        if self.whole:
            # In whole numbers: a float has not the digits for a wide range.
            low, high = int(self.low), int(self.high)
            return (low + (int(position * 2**53) * (high - low + 1) >> 53),)
        value = self.low * (1 - position) + self.high * position  # no overflow where high - low would
        return (_rounded(value, self.low, self.high),)


@dataclass(frozen=True, slots=True)
class LogUniform:
    """10^U between two bounds > 0, U uniform: each decade gets the same share; whole numbers are rounded to."""

    low: float
    high: float
    whole: bool

    width = 1

    def __post_init__(self) -> None:
        _check_bounds(self.low, self.high, self.whole)
        if self.low <= 0:
            raise DesignError(f"log_uniform from {self.low} to {self.high}; both bounds must be above 0")

    @property
    def types(self) -> tuple[str, ...]:
        return ("int" if self.whole else "real",)

    def at(self, position: float, draws: Draws) -> Level:  # noqa: ARG002
        value = _between_logarithms(position, self.low, self.high)
        if self.whole:
            return (min(max(round(value), int(self.low)), int(self.high)),)
        return (_rounded(value, self.low, self.high),)


@dataclass(frozen=True, slots=True)
class Product:
    """Whole numbers whose product is spread between two bounds, uniformly or (logarithmic) as 10^U.

    low, high  : of the product; each row comes within 10 % of the target at its position
    least, most: bounds of each number; equal ones fix it

    Given the target, all logarithms but one are drawn uniformly within the bounds and the last follows; draws outside
    the bounds are rejected, which leaves the uniform law on the part of the simplex that remains. Which one follows is
    drawn too, so that the rounding favours none. The generalisation of `sizes.triple_of_product` to any number.
    """

    low: float
    high: float
    least: tuple[int, ...]
    most: tuple[int, ...]
    logarithmic: bool

    def __post_init__(self) -> None:
        _check_bounds(self.low, self.high, whole=False)
        bounds = list(zip(self.least, self.most, strict=False))
        if len(self.least) != len(self.most) or not bounds or not all(1 <= a <= b <= MOST_INTEGER for a, b in bounds):
            raise DesignError(
                f"a product of numbers from {list(self.least)} to {list(self.most)}; give as many lower as upper "
                "bounds, with 1 <= least <= most"
            )
        smallest, largest = math.prod(self.least), math.prod(self.most)
        if largest > MOST_PRODUCT:
            raise DesignError(
                f"the upper bounds {shortened(str(list(self.most)))} have a product above {MOST_PRODUCT:g}"
            )
        if not smallest <= self.low or not self.high <= largest:
            raise DesignError(
                f"products from {self.low:g} to {self.high:g} of numbers from {list(self.least)} to {list(self.most)}; "
                f"those numbers give {smallest:g} to {largest:g}. Change the bounds of either."
            )

    @property
    def width(self) -> int:
        return len(self.most)

    @property
    def types(self) -> tuple[str, ...]:
        return ("int",) * len(self.most)

    def at(self, position: float, draws: Draws) -> Level:
        if self.logarithmic:
            target = _between_logarithms(position, self.low, self.high)
        else:
            target = self.low * (1 - position) + self.high * position
        free = [axis for axis, (a, b) in enumerate(zip(self.least, self.most, strict=True)) if a < b]
        for _ in range(_MOST_DRAWS):
            numbers = list(self.least)
            last = free[draws.below(len(free))] if free else 0
            for axis in free:
                if axis != last:
                    numbers[axis] = round(_between_logarithms(draws.unit(), self.least[axis], self.most[axis]))
            numbers[last] = 1
            numbers[last] = round(target / math.prod(numbers))
            reached = math.prod(numbers)
            within = self.least[last] <= numbers[last] <= self.most[last]
            if within and abs(reached / target - 1) <= _PRODUCT_TOLERANCE:
                return tuple(numbers)
        raise DesignError(
            f"found no numbers from {list(self.least)} to {list(self.most)} with a product near {target:g}; widen them"
        )


def uniform(low: float, high: float) -> Uniform:
    """Uniform from low to high, both included: whole numbers when both are ints, else real numbers."""
    low, high, whole = _bounds(low, high)
    return Uniform(low, high, whole)


def log_uniform(low: float, high: float) -> LogUniform:
    """10^U from low to high, U uniform: whole numbers when both bounds are ints, else real numbers."""
    low, high, whole = _bounds(low, high)
    return LogUniform(low, high, whole)


def uniform_product(low: float, high: float, *, most: Sequence[int], least: Sequence[int] | None = None) -> Product:
    """Tuples of whole numbers between `least` (default 1) and `most`, whose product is uniform from low to high."""
    return _product(low, high, most, least, logarithmic=False)


def log_uniform_product(low: float, high: float, *, most: Sequence[int], least: Sequence[int] | None = None) -> Product:
    """Tuples of whole numbers between `least` (default 1) and `most`, whose product is 10^U from low to high."""
    return _product(low, high, most, least, logarithmic=True)


def log_spaced(low: float, high: float, count: int) -> list[int] | list[float]:
    """`count` levels from low to high at equal ratios; whole (and each once) when both bounds are ints."""
    law = log_uniform(low, high)
    if type(count) is not int or not 2 <= count <= MOST_LEVELS:
        raise DesignError(f"{str(count)[:60]} levels from {low} to {high}; give a count of at least 2")
    values = [_between_logarithms(i / (count - 1), law.low, law.high) for i in range(count)]
    if law.whole:
        return sorted({min(max(round(value), int(law.low)), int(law.high)) for value in values})
    return [_rounded(value, law.low, law.high) for value in values]


def _bounds(low: Any, high: Any) -> tuple[Any, Any, bool]:
    low, high = plain(low), plain(high)
    whole = is_integer(low) and is_integer(high)
    if not whole and not all(is_integer(bound) or is_real(bound) for bound in (low, high)):
        raise DesignError(f"a range from {shortened(repr(low))} to {shortened(repr(high))}; give two finite numbers")
    return (low, high, True) if whole else (float(low), float(high), False)


def _check_bounds(low: float, high: float, whole: bool) -> None:
    fits = is_integer if whole else is_real
    if not (fits(low) and fits(high) and low <= high):
        raise DesignError(f"a range from {low} to {high}; give two finite numbers, the lower one first")


def _product(low: float, high: float, most: Sequence[int], least: Sequence[int] | None, logarithmic: bool) -> Product:
    low, high, _ = _bounds(low, high)
    upper = tuple(plain(bound) for bound in most)
    lower = tuple(plain(bound) for bound in least) if least is not None else (1,) * len(upper)
    if not all(is_integer(bound) for bound in lower + upper):
        raise DesignError(f"a product of numbers from {list(lower)} to {list(upper)}; give whole numbers as bounds")
    return Product(float(low), float(high), lower, upper, logarithmic)


def _between_logarithms(position: float, low: float, high: float) -> float:
    try:
        value = 10 ** (math.log10(low) * (1 - position) + math.log10(high) * position)
    except OverflowError:  # within rounding of the largest number there is
        return high
    return min(max(value, low), high)


def _rounded(value: float, low: float, high: float) -> float:
    return min(max(float(f"{value:.{_DIGITS}g}"), low), high)
