"""General designs over any factors: all combinations, independent draws, Latin hypercubes.

The draws of a factor depend on the seed and on its own name alone, and combinations are numbered in the order of the
names: the order in which a dict lists the factors decides the order of the columns, and nothing else.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from lepaute.design.arrange import arranged, checked_size
from lepaute.design.cells import Value
from lepaute.design.distributions import Factor, Level
from lepaute.design.draws import Draws
from lepaute.design.factors import Levels, Names, columns_of, factors_of
from lepaute.design.grammar import factor_text
from lepaute.design.table import Design
from lepaute.errors import DesignError

#: Of this many Latin hypercubes the most even one is taken; of large ones any is even enough.
_CANDIDATES = 16
_MOST_ROWS_TO_CHOOSE = 500


def full_factorial(
    factors: Mapping[Any, Any], *, replications: int = 1, blocks: int | None = None, seed: int
) -> Design:
    """Every combination of the levels, `replications` times (in every block), in random order.

    factors: name to list of levels; a tuple of names to a list of tuples, for factors that vary together
    blocks : see `blocks`
    Raises DesignError for a factor without levels (a distribution) and for a table that is far too large.
    """
    checked = factors_of(factors)
    levels = [levels_in(checked, names) for names in sorted(checked)]
    checked_size(math.prod(len(one.values) for one in levels), len(columns_of(checked)), replications, blocks or 1)
    rows = in_columns(checked, list(product(*(one.values for one in levels))))
    arguments = factor_lines(checked)
    return arranged(
        "factorial", seed, columns_of(checked), rows, arguments=arguments, replications=replications, blocks=blocks
    )


def sample(
    factors: Mapping[Any, Any], *, count: int, replications: int = 1, blocks: int | None = None, seed: int
) -> Design:
    """`count` treatments, each factor drawn from its levels or distribution independently of the others and each time.

    Raises DesignError where a product cannot be reached within its bounds.
    """
    checked = factors_of(factors)
    _check_count(count)
    checked_size(count, len(columns_of(checked)), replications, blocks or 1)
    drawn = []
    for names in sorted(checked):
        draws = Draws(seed, "sample", *names)
        drawn.append([checked[names].at(draws.unit(), draws) for _ in range(count)])
    return _drawn("sample", checked, drawn, count, replications, blocks, seed)


def latin_hypercube(
    factors: Mapping[Any, Any], *, count: int, replications: int = 1, blocks: int | None = None, seed: int
) -> Design:
    """`count` treatments, with one in each of `count` strata of equal probability of every factor.

    Levels occur equally often, to within one, where `count` is no multiple of their number. A product takes one target
    in each stratum. McKay, Beckman and Conover, "A comparison of three methods for selecting values of input
    variables", Technometrics 21 (1979). Up to 500 rows, the hypercube with the lowest centred L2 discrepancy of 16
    (`scipy.stats.qmc.discrepancy`): plain ones may by chance lie near a diagonal.
    """
    checked = factors_of(factors)
    _check_count(count)
    checked_size(count, len(columns_of(checked)), replications, blocks or 1)
    order = sorted(checked)
    several = len(order) > 1 and 1 < count <= _MOST_ROWS_TO_CHOOSE
    cubes = [_hypercube(order, count, seed, number) for number in range(_CANDIDATES if several else 1)]
    best = min(cubes, key=_discrepancy) if several else cubes[0]
    drawn = []
    for names, positions in zip(order, best, strict=True):
        draws = Draws(seed, "within", *names)
        factor = checked[names]
        if isinstance(factor, Levels):
            drawn.append(_balanced(factor, positions, draws))
        else:
            drawn.append([factor.at(position, draws) for position in positions])
    return _drawn("latin", checked, drawn, count, replications, blocks, seed)


def levels_in(factors: Mapping[Names, Factor], names: Names) -> Levels:
    """The factor of these names, which must have levels; raises DesignError where it is a distribution."""
    factor = factors[names]
    if not isinstance(factor, Levels):
        raise DesignError(
            f"{','.join(names)} is a distribution; combinations need levels (log_spaced, or logspace on the command "
            "line, gives some), or take a sample or a Latin hypercube"
        )
    return factor


def in_columns(factors: Mapping[Names, Factor], treatments: Sequence[Sequence[Level]]) -> list[tuple[Value, ...]]:
    """Rows of treatments, whose levels stand in the order of the names: in the order of the columns."""
    order = sorted(factors)
    places = [order.index(names) for names in factors]
    return [tuple(value for place in places for value in treatment[place]) for treatment in treatments]


def factor_lines(factors: Mapping[Names, Factor]) -> dict[str, str]:
    """The header's lines about the factors, as the command line takes them."""
    return {f"factor.{number}": factor_text(*item) for number, item in enumerate(factors.items())}


def _drawn(
    generator: str,
    factors: Mapping[Names, Factor],
    drawn: Sequence[Sequence[Level]],
    count: int,
    replications: int,
    blocks: int | None,
    seed: int,
) -> Design:
    rows = in_columns(factors, list(zip(*drawn, strict=True)))
    arguments = {"count": str(count), **factor_lines(factors)}
    return arranged(
        generator, seed, columns_of(factors), rows, arguments=arguments, replications=replications, blocks=blocks
    )


def _hypercube(order: Sequence[Names], count: int, seed: int, number: int) -> list[list[float]]:
    """Positions in [0, 1), a list a factor: in random order, one in each stratum."""
    cube = []
    for names in order:
        draws = Draws(seed, "strata", str(number), *names)
        strata = draws.shuffled(range(count))
        # Rounding up at the end of a stratum would put two into the next one.
        cube.append([min((k + draws.unit()) / count, math.nextafter((k + 1) / count, 0.0)) for k in strata])
    return cube


def _balanced(levels: Levels, positions: Sequence[float], draws: Draws) -> list[Level]:
    """The levels in the order of the positions, each equally often to within one; which ones more often is drawn."""
    count, many = len(positions), len(levels.values)
    first = draws.below(many)
    chosen = [levels.values[0]] * count
    for rank, row in enumerate(sorted(range(count), key=positions.__getitem__)):
        chosen[row] = levels.values[(rank * many // count + first) % many]
    return chosen


def _discrepancy(cube: Sequence[Sequence[float]]) -> float:
    import numpy as np
    from scipy.stats import qmc

    return float(qmc.discrepancy(np.array(cube).T, method="CD"))


def _check_count(count: int) -> None:
    if type(count) is not int or count < 1:
        raise DesignError(f"count is {str(count)[:60]!r}; give a whole number >= 1")
