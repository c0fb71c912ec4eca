"""Factors: what a column of a design may take, as levels or as a distribution: uniform, 10^U, numbers of a product.

A factor stands under its name, with the unit in it (`size_bytes`). Factors that vary together stand under a tuple of
names: `("m", "n", "k")` with tuples as levels, or with a distribution of their product.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

from lepaute.errors import DesignError
from lepaute.kit.numbers import plain
from lepaute.measure.design.columns import (
    MAX_COLUMNS,
    MAX_INTEGER,
    DeclaredColumn,
    Value,
    is_integer,
    is_real,
    is_text,
    shortened,
)
from lepaute.measure.design.sizes import Draws

Names = tuple[str, ...]
Level = tuple[Value, ...]

MAX_LEVELS = 1_000_000
MAX_PRODUCT = 1e300
#: Drawn real numbers keep this many digits: the last ones depend on the machine's mathematical library.
_DIGITS = 12
_MAX_DRAWS = 20_000
_PRODUCT_TOLERANCE = 0.1


class Factor(Protocol):
    """What one name, or several that vary together, may take."""

    @property
    def types(self) -> tuple[str, ...]:
        """The type of each of its columns: int, real or text."""

    def at(self, position: float, draws: Draws) -> Level:
        """The values at a position in [0, 1), of which uniform ones give the law; `draws` gives what else it needs."""


@dataclass(frozen=True, slots=True)
class Levels:
    """Given values, each a tuple with a value a column; all are equally probable."""

    values: tuple[Level, ...]
    types: tuple[str, ...]

    def at(self, position: float, draws: Draws) -> Level:  # noqa: ARG002 - part of the protocol
        return self.values[int(position * len(self.values))]


@dataclass(frozen=True, slots=True)
class Range:
    """Uniform between two bounds, both included, or (logarithmic) 10^U, where each decade gets the same share.

    whole: whole numbers, else real ones
    """

    low: float
    high: float
    whole: bool
    logarithmic: bool

    def __post_init__(self) -> None:
        _check_bounds(self.low, self.high, self.whole)
        if self.logarithmic and self.low <= 0:
            raise DesignError(f"log_uniform from {self.low} to {self.high}; both bounds must be above 0")

    @property
    def types(self) -> tuple[str, ...]:
        return ("int" if self.whole else "real",)

    def at(self, position: float, draws: Draws) -> Level:  # noqa: ARG002
        low, high = self.low, self.high
        if self.whole and not self.logarithmic:
            # In whole numbers: a float has not the digits for a wide range.
            return (int(low) + (int(position * 2**53) * (int(high) - int(low) + 1) >> 53),)
        return (self.near(_between(position, low, high, self.logarithmic)),)

    def near(self, value: float) -> float:
        """The number of the range that a value stands for."""
        if self.whole:
            return min(max(round(value), int(self.low)), int(self.high))
        return min(max(float(f"{value:.{_DIGITS}g}"), self.low), self.high)


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
        numbers = f"numbers from {list(self.least)} to {list(self.most)}"
        if len(self.least) != len(self.most) or not bounds or not all(1 <= a <= b <= MAX_INTEGER for a, b in bounds):
            raise DesignError(f"a product of {numbers}; give as many lower as upper bounds, with 1 <= least <= most")
        smallest, largest = math.prod(self.least), math.prod(self.most)
        if largest > MAX_PRODUCT:
            raise DesignError(
                f"the upper bounds {shortened(str(list(self.most)))} have a product above {MAX_PRODUCT:g}"
            )
        if not smallest <= self.low or not self.high <= largest:
            raise DesignError(
                f"products from {self.low:g} to {self.high:g} of {numbers}; those numbers give {smallest:g} to "
                f"{largest:g}. Change the bounds of either."
            )

    @property
    def types(self) -> tuple[str, ...]:
        return ("int",) * len(self.most)

    def at(self, position: float, draws: Draws) -> Level:
        target = _between(position, self.low, self.high, self.logarithmic)
        free = [axis for axis, (a, b) in enumerate(zip(self.least, self.most, strict=True)) if a < b]
        for _ in range(_MAX_DRAWS):
            numbers = list(self.least)
            last = free[draws.below(len(free))] if free else 0
            for axis in free:
                if axis != last:
                    numbers[axis] = round(_between(draws.unit(), self.least[axis], self.most[axis], logarithmic=True))
            numbers[last] = 1
            numbers[last] = round(target / math.prod(numbers))
            within = self.least[last] <= numbers[last] <= self.most[last]
            if within and abs(math.prod(numbers) / target - 1) <= _PRODUCT_TOLERANCE:
                return tuple(numbers)
        raise DesignError(
            f"found no numbers from {list(self.least)} to {list(self.most)} with a product near {target:g}; widen them"
        )


def uniform(low: float, high: float) -> Range:
    """Uniform from low to high, both included: whole numbers when both are ints, else real numbers."""
    return Range(*_bounds(low, high), logarithmic=False)


def log_uniform(low: float, high: float) -> Range:
    """10^U from low to high, U uniform: whole numbers when both bounds are ints, else real numbers."""
    return Range(*_bounds(low, high), logarithmic=True)


def uniform_product(low: float, high: float, *, most: Sequence[int], least: Sequence[int] | None = None) -> Product:
    """Tuples of whole numbers between `least` (default 1) and `most`, whose product is uniform from low to high."""
    return _product(low, high, most, least, logarithmic=False)


def log_uniform_product(low: float, high: float, *, most: Sequence[int], least: Sequence[int] | None = None) -> Product:
    """Tuples of whole numbers between `least` (default 1) and `most`, whose product is 10^U from low to high."""
    return _product(low, high, most, least, logarithmic=True)


def log_spaced(low: float, high: float, count: int) -> list[int] | list[float]:
    """`count` levels from low to high at equal ratios; whole (and each once) when both bounds are ints."""
    law = log_uniform(low, high)
    if type(count) is not int or not 2 <= count <= MAX_LEVELS:
        raise DesignError(f"{str(count)[:60]} levels from {low} to {high}; give a count of at least 2")
    values = [law.near(_between(i / (count - 1), law.low, law.high, logarithmic=True)) for i in range(count)]
    return sorted(set(values)) if law.whole else values


def factors_of(factors: Mapping[Any, Any]) -> dict[Names, Factor]:
    """The factors by their names, checked, in the order given; raises DesignError with what is wrong.

    factors: name, or tuple of names that vary together, to a list of levels or to a distribution
    """
    if not isinstance(factors, Mapping) or not factors:
        raise DesignError("no factors; give a dict of names to levels or distributions: {'size_bytes': [1, 1024]}")
    checked: dict[Names, Factor] = {}
    for key, given in factors.items():
        names = (key,) if isinstance(key, str) else tuple(key) if isinstance(key, tuple) else ()
        if not names or not all(isinstance(name, str) for name in names):
            raise DesignError(f"a factor is named {shortened(str(key))!r}; give a name, or a tuple of names")
        factor = given if isinstance(given, (Levels, Range, Product)) else levels_of(names, given)
        if len(factor.types) != len(names):
            raise DesignError(
                f"{','.join(names)} are {len(names)} names for {len(factor.types)} values; give a name each"
            )
        checked[names] = factor
    columns_of(checked)
    return checked


def columns_of(factors: Mapping[Names, Factor]) -> tuple[DeclaredColumn, ...]:
    """The columns that the factors fill, in their order; raises DesignError for a name that is bad or taken twice."""
    columns = [
        DeclaredColumn(name, kind)
        for names, factor in factors.items()
        for name, kind in zip(names, factor.types, strict=True)
    ]
    if len(columns) > MAX_COLUMNS:
        raise DesignError(f"{len(columns)} factors; a design has at most {MAX_COLUMNS}")
    for first, second in pairwise(sorted(column.name for column in columns)):
        if first == second:
            raise DesignError(f"two factors are named {first}; give each a name of its own")
    return tuple(columns)


def levels_of(names: Names, given: object) -> Levels:
    """The levels of one factor, or of several that vary together; raises DesignError with what is wrong.

    given: a list of values; of tuples where there is more than one name
    """
    name = shortened(",".join(names))
    if isinstance(given, (str, bytes, set, frozenset, Mapping)) or not isinstance(given, Iterable):
        raise DesignError(
            f"the levels of {name} are {shortened(repr(given))}; give them in a list, which has an order: [1, 1024]"
        )
    values = list(given) if not isinstance(given, range) else list(given[: MAX_LEVELS + 1])
    if not 1 <= len(values) <= MAX_LEVELS:
        raise DesignError(f"{name} has {len(values)} levels; give at least one, and at most {MAX_LEVELS}")
    rows = [tuple(value) if isinstance(value, (tuple, list)) else (value,) for value in values]
    if any(len(row) != len(names) for row in rows):
        raise DesignError(f"a level of {name} has not {len(names)} values; give each level a value a name")
    columns = [_column(one, [row[place] for row in rows]) for place, one in enumerate(names)]
    levels = tuple(zip(*(cells for _, cells in columns), strict=True))
    if len(set(levels)) != len(levels):
        raise DesignError(f"a level of {name} is given twice; use replications to measure it more often")
    return Levels(levels, tuple(kind for kind, _ in columns))


def _column(name: str, given: list[Any]) -> tuple[str, list[Value]]:
    values = [plain(value) for value in given]
    for kind, fits in (("int", is_integer), ("text", is_text)):
        if all(fits(value) for value in values):
            return kind, values
    if all(is_integer(value) or is_real(value) for value in values):
        return "real", [float(value) for value in values]
    odd = [value for value in values if not (is_integer(value) or is_real(value) or is_text(value))]
    if odd:
        raise DesignError(
            f"a level of {shortened(name)} is {shortened(repr(odd[0]))}; give whole numbers of 64 bits, "
            "finite real numbers, or texts of one line; for true and false, 1 and 0 or words"
        )
    raise DesignError(f"the levels of {shortened(name)} are numbers and texts; give them all as texts")


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


def _between(position: float, low: float, high: float, logarithmic: bool) -> float:
    if not logarithmic:
        return low * (1 - position) + high * position  # no overflow where high - low would
    try:
        value = 10 ** (math.log10(low) * (1 - position) + math.log10(high) * position)
    except OverflowError:  # within rounding of the largest number there is
        return high
    return min(max(value, low), high)
