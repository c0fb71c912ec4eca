"""Factors: what a column of a design may take, as levels or as a distribution.

A factor stands under its name, with the unit in it (`size_bytes`). Factors that vary together stand under a tuple of
names: `("m", "n", "k")` with tuples as levels, or with a distribution of their product.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from lepaute.design.cells import Value, is_integer, is_real, is_text, shortened
from lepaute.design.columns import MOST_COLUMNS, DeclaredColumn
from lepaute.design.distributions import MOST_LEVELS, Factor, Level, LogUniform, Product, Uniform
from lepaute.design.draws import Draws
from lepaute.errors import DesignError
from lepaute.kit.numbers import plain

Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Levels:
    """Given values, each a tuple with a value a column; all are equally probable."""

    values: tuple[Level, ...]
    types: tuple[str, ...]

    @property
    def width(self) -> int:
        return len(self.types)

    def at(self, position: float, draws: Draws) -> Level:  # noqa: ARG002 - part of the protocol
        return self.values[int(position * len(self.values))]


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
        factor = given if isinstance(given, (Levels, Uniform, LogUniform, Product)) else levels_of(names, given)
        if factor.width != len(names):
            raise DesignError(f"{','.join(names)} are {len(names)} names for {factor.width} values; give a name each")
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
    if len(columns) > MOST_COLUMNS:
        raise DesignError(f"{len(columns)} factors; a design has at most {MOST_COLUMNS}")
    for first, second in pairwise(sorted(column.name for column in columns)):
        if first == second:
            raise DesignError(f"two factors are named {first}; give each a name of its own")
    return tuple(columns)


def levels_of(names: Names, given: object) -> Levels:
    """The levels of one factor, or of several that vary together; raises DesignError with what is wrong.

    given: a list of values; of tuples where there is more than one name
    """
    name = ",".join(names)
    if isinstance(given, (str, bytes, set, frozenset, Mapping)) or not isinstance(given, Iterable):
        raise DesignError(
            f"the levels of {shortened(name)} are {shortened(repr(given))}; "
            "give them in a list, which has an order: [1, 1024]"
        )
    values = list(given) if not isinstance(given, range) else list(given[: MOST_LEVELS + 1])
    if not 1 <= len(values) <= MOST_LEVELS:
        raise DesignError(f"{shortened(name)} has {len(values)} levels; give at least one, and at most {MOST_LEVELS}")
    rows = [tuple(value) if isinstance(value, (tuple, list)) else (value,) for value in values]
    if any(len(row) != len(names) for row in rows):
        raise DesignError(f"a level of {shortened(name)} has not {len(names)} values; give each level a value a name")
    columns = [_column(one, [row[place] for row in rows]) for place, one in enumerate(names)]
    levels = tuple(zip(*(cells for _, cells in columns), strict=True))
    if len(set(levels)) != len(levels):
        raise DesignError(f"a level of {shortened(name)} is given twice; use replications to measure it more often")
    return Levels(levels, tuple(kind for kind, _ in columns))


def _column(name: str, values: list[Any]) -> tuple[str, list[Value]]:
    plain_values = [plain(value) for value in values]
    for kind, fits in (("int", is_integer), ("text", is_text)):
        if all(fits(value) for value in plain_values):
            return kind, plain_values
    if all(is_integer(value) or is_real(value) for value in plain_values):
        return "real", [float(value) for value in plain_values]
    odd = [value for value in plain_values if not (is_integer(value) or is_real(value) or is_text(value))]
    if odd:
        raise DesignError(
            f"a level of {shortened(name)} is {shortened(repr(odd[0]))}; give whole numbers of 64 bits, "
            "finite real numbers, or texts of one line; for true and false, 1 and 0 or words"
        )
    raise DesignError(f"the levels of {shortened(name)} are numbers and texts; give them all as texts")
