"""General designs over any factors: all combinations, independent draws, Latin hypercubes; blocks and mixtures.

The draws of a factor depend on the seed and on its own name alone, and combinations are numbered in the order of the
names: the order in which a dict lists the factors decides the order of the columns, and nothing else.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from lepaute.errors import DesignError
from lepaute.measure.design.columns import DECLARATION, DeclaredColumn, Value, declaration_of, shortened
from lepaute.measure.design.factors import Factor, Level, Levels, Names, columns_of, factors_of
from lepaute.measure.design.grammar import factor_text
from lepaute.measure.design.sizes import Draws
from lepaute.measure.design.table import MAX_CELLS, Design, header_of

BLOCK, BLOCKS = "block", "blocks"  # the column, and in the header how many
KIND = "kind"
#: Of this many Latin hypercubes the most even one is taken; of large ones any is even enough.
_CANDIDATES = 16
_MAX_ROWS_TO_CHOOSE = 500

Row = tuple[Value, ...]


def full_factorial(
    factors: Mapping[Any, Any], *, replications: int = 1, blocks: int | None = None, seed: int
) -> Design:
    """Every combination of the levels, `replications` times (in every block), in random order.

    factors: name to list of levels; a tuple of names to a list of tuples, for factors that vary together
    blocks : see `blocks`
    Raises DesignError for a factor without levels (a distribution) and for a table that is far too large.
    """
    checked = factors_of(factors)
    levels = [factor.values for factor in leveled(checked)]
    checked_size(math.prod(map(len, levels)), len(columns_of(checked)), replications, blocks or 1)
    return combined("factorial", checked, list(product(*levels)), {}, replications, blocks, seed)


def sample(
    factors: Mapping[Any, Any], *, count: int, replications: int = 1, blocks: int | None = None, seed: int
) -> Design:
    """`count` treatments, each factor drawn from its levels or distribution independently of the others and each time.

    Raises DesignError if a product cannot be reached within its bounds.
    """
    checked = _checked_for(factors, count, replications, blocks)
    drawn = []
    for names in sorted(checked):
        draws = Draws(seed, "sample", *names)
        drawn.append([checked[names].at(draws.unit(), draws) for _ in range(count)])
    about = {"count": str(count)}
    return combined("sample", checked, list(zip(*drawn, strict=True)), about, replications, blocks, seed)


def latin_hypercube(
    factors: Mapping[Any, Any], *, count: int, replications: int = 1, blocks: int | None = None, seed: int
) -> Design:
    """`count` treatments, with one in each of `count` strata of equal probability of every factor.

    Levels occur equally often, to within one, where `count` is no multiple of their number. A product takes one target
    in each stratum. McKay, Beckman and Conover, "A comparison of three methods for selecting values of input
    variables", Technometrics 21 (1979). Up to 500 rows, the hypercube with the lowest centred L2 discrepancy of 16
    (`scipy.stats.qmc.discrepancy`): plain ones may by chance lie near a diagonal.
    """
    checked = _checked_for(factors, count, replications, blocks)
    order = sorted(checked)
    several = len(order) > 1 and 1 < count <= _MAX_ROWS_TO_CHOOSE
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
    return combined("latin", checked, list(zip(*drawn, strict=True)), {"count": str(count)}, replications, blocks, seed)


def blocks(design: Design, *, count: int, seed: int) -> Design:
    """`count` blocks, one after the other, each with all the rows of `design` in an order of its own.

    The column `block` numbers them from 0. Raises DesignError if the design has blocks already.
    """
    if BLOCK in design.columns:
        raise DesignError("the design has blocks already; make it without them")
    arguments = {f"part.0.{key}": text for key, text in design.header.items()}
    return arranged("blocks", seed, _declared(design), design.rows, arguments=arguments, blocks=count)


def mix(*designs: Design, seed: int, kinds: Sequence[str] | None = None) -> Design:
    """One table of the rows of several designs, shuffled across all of them.

    kinds: a name for each design, for a first column `kind`

    A factor that a design does not have is empty (None) in its rows. Where the designs have blocks, all must have
    them, and the rows of a block stay in it. Raises DesignError if a factor has texts in one and numbers in another.
    """
    if not designs:
        raise DesignError("nothing to mix; give designs")
    names = [str(kind) for kind in kinds] if kinds is not None else []
    if kinds is not None and (isinstance(kinds, str) or len(set(names)) != len(names) or len(names) != len(designs)):
        raise DesignError(f"{len(names)} kinds for {len(designs)} designs; give each design a name of its own")
    columns = ([DeclaredColumn(KIND, "text")] if names else []) + _together(designs, reserved=bool(names))
    checked_size(sum(map(len, designs)), len(columns), 1, 1)
    blocked = [BLOCK in design.columns for design in designs]
    if any(blocked) and not all(blocked):
        raise DesignError("some designs have blocks and some have not; give all of them blocks, or none")
    rows: list[Row] = []
    for number, design in enumerate(designs):
        extra: dict[str, Value] = {KIND: names[number]} if names else {}
        for given in design:
            cells = [((extra | given).get(column.name), column.type) for column in columns]
            rows.append(tuple(float(v) if kind == "real" and isinstance(v, int) else v for v, kind in cells))
    if any(blocked):
        place = [column.name for column in columns].index(BLOCK)
        # Numbers as a rule; where somebody made a block of another kind, equal ones still stay together.
        values = sorted({row[place] for row in rows}, key=lambda value: (str(type(value)), value))
        mixed = [
            row
            for value in values
            for row in Draws(seed, "order", str(value)).shuffled([row for row in rows if row[place] == value])
        ]
    else:
        mixed = Draws(seed, "order").shuffled(rows)
    header = header_of("mix", seed) | {DECLARATION: declaration_of(columns), "parts": str(len(designs))}
    for number, design in enumerate(designs):
        header |= {f"part.{number}.{key}": text for key, text in design.header.items()}
    return Design(header, tuple(column.name for column in columns), tuple(mixed))


def leveled(factors: Mapping[Names, Factor]) -> list[Levels]:
    """The factors in the order of their names; raises DesignError if one is a distribution."""
    levels = []
    for names, factor in sorted(factors.items(), key=lambda item: item[0]):
        if not isinstance(factor, Levels):
            raise DesignError(
                f"{','.join(names)} is a distribution; combinations need levels (log_spaced, or logspace on the "
                "command line, gives some), or take a sample or a Latin hypercube"
            )
        levels.append(factor)
    return levels


def combined(
    generator: str,
    factors: Mapping[Names, Factor],
    treatments: Sequence[Sequence[Level]],
    about: Mapping[str, str],
    replications: int,
    blocks: int | None,
    seed: int,
) -> Design:
    """The design of treatments whose levels stand in the order of the names; about: what the header says besides."""
    order = sorted(factors)
    places = [order.index(names) for names in factors]
    rows = [tuple(value for place in places for value in treatment[place]) for treatment in treatments]
    arguments = {**about, **{f"factor.{number}": factor_text(*item) for number, item in enumerate(factors.items())}}
    return arranged(
        generator, seed, columns_of(factors), rows, arguments=arguments, replications=replications, blocks=blocks
    )


def arranged(
    generator: str,
    seed: int,
    columns: Sequence[DeclaredColumn],
    treatments: Sequence[Row],
    *,
    arguments: Mapping[str, str],
    replications: int = 1,
    blocks: int | None = None,
) -> Design:
    """The design in which every treatment occurs `replications` times, in random order.

    blocks: None shuffles everything together; a number repeats the whole in as many blocks, one after the other, each
            shuffled for itself and numbered from 0 in the column `block`
    """
    checked_size(len(treatments), len(columns), replications, 1 if blocks is None else blocks)
    repeated = [row for row in treatments for _ in range(replications)]
    if blocks is None:
        rows = Draws(seed, "order").shuffled(repeated)
    else:
        columns = (DeclaredColumn(BLOCK, "int"), *columns)
        rows = [(block, *row) for block in range(blocks) for row in Draws(seed, "order", str(block)).shuffled(repeated)]
    header = header_of(generator, seed) | {DECLARATION: declaration_of(columns), "replications": str(replications)}
    header |= {**({} if blocks is None else {BLOCKS: str(blocks)}), **arguments}
    return Design(header, tuple(column.name for column in columns), tuple(rows))


def checked_size(treatments: int, columns: int, replications: int, blocks: int) -> None:
    """Raises DesignError for counts that make no sense or a table that is too large to be made."""
    for what, count in (("replications", replications), ("blocks", blocks)):
        if type(count) is not int or count < 1:
            raise DesignError(f"{what} is {shortened(repr(count))}; give a whole number >= 1")
    rows = treatments * replications * blocks
    if rows * (columns + 2) > MAX_CELLS:
        raise DesignError(
            f"{rows} rows are too many: {treatments} treatments, {replications} replications, {blocks} blocks; take "
            "fewer levels, or a fraction, a Latin hypercube or a sample of them"
        )


def _checked_for(factors: Mapping[Any, Any], count: int, replications: int, blocks: int | None) -> dict[Names, Factor]:
    checked = factors_of(factors)
    if type(count) is not int or count < 1:
        raise DesignError(f"count is {str(count)[:60]!r}; give a whole number >= 1")
    checked_size(count, len(columns_of(checked)), replications, blocks or 1)
    return checked


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
    from scipy.stats import qmc

    return float(qmc.discrepancy(np.array(cube).T, method="CD"))


def _declared(design: Design) -> list[DeclaredColumn]:
    """The columns of a design with their types; those of the closed kinds are integers and texts."""
    return [
        column
        if isinstance(column, DeclaredColumn)
        else DeclaredColumn(column.name, "text" if column.choices else "int")
        for column in design.schema
    ]


def _together(designs: Sequence[Design], *, reserved: bool) -> list[DeclaredColumn]:
    types: dict[str, str] = {}
    for design in designs:
        for column in _declared(design):
            if reserved and column.name == KIND:
                raise DesignError("a design has a factor named kind; leave out the names of kinds, or rename it")
            other = types.setdefault(column.name, column.type)
            if other != column.type:
                if "text" in {other, column.type}:
                    raise DesignError(f"{column.name} has texts in one design and numbers in another; rename one")
                types[column.name] = "real"  # whole and real numbers
    return [DeclaredColumn(name, kind) for name, kind in types.items()]
