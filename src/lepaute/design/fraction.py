"""Fractional factorial designs: some combinations, chosen so that the main effects can be estimated separately."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from lepaute.design.arrange import arranged, checked_size
from lepaute.design.balanced import balanced_subset
from lepaute.design.cells import shortened
from lepaute.design.draws import Draws
from lepaute.design.factors import columns_of, factors_of
from lepaute.design.generators import factor_lines, in_columns, levels_in
from lepaute.design.table import Design
from lepaute.design.two_level import parsed, searched
from lepaute.errors import DesignError

_MOST_SUBSET_ROWS = 5000


def fractional(
    factors: Mapping[Any, Any],
    *,
    generators: Sequence[str] = (),
    runs: int | None = None,
    replications: int = 1,
    blocks: int | None = None,
    seed: int,
) -> Design:
    """A fraction of the combinations of the levels.

    generators: of a two-level fraction 2^(k-p): `["d=a*b*c"]`, `["e=-a*b"]`
    runs      : number of treatments. Where all factors have two levels and it is a power of two, the regular fraction
                of the highest resolution; else a subset in which levels are balanced and pairs of levels nearly so

    The header says `method` (regular or balanced), and of a regular fraction the resolution and the aliases, of a
    balanced one `pair_imbalance` (0: orthogonal). Raises DesignError for what cannot be.
    """
    checked = factors_of(factors)
    order = sorted(checked)
    levels = [levels_in(checked, names) for names in order]
    labels = [",".join(names) for names in order]
    sizes = [len(one.values) for one in levels]
    if isinstance(generators, str) or bool(generators) == (runs is not None):
        raise DesignError("a fraction needs either a list of generators, such as ['d=a*b*c'], or a number of runs")
    two = all(size == 2 for size in sizes)
    if generators or (runs is not None and two and type(runs) is int and runs > 0 and runs & (runs - 1) == 0):
        if not two:
            odd = next(label for label, size in zip(labels, sizes, strict=True) if size != 2)
            raise DesignError(f"{odd} does not have two levels; generators need two of each factor, else give runs")
        fraction = parsed(labels, generators) if runs is None else searched(labels, runs)
        checked_size(2 ** (len(labels) - len(fraction.generators)), len(labels), replications, blocks or 1)
        rows = fraction.rows()
        about = {"method": "regular", **fraction.describe()}
    else:
        if type(runs) is not int or not max(sizes) <= runs <= min(math.prod(sizes), _MOST_SUBSET_ROWS):
            raise DesignError(
                f"runs is {shortened(repr(runs))}; give a number from {max(sizes)}, the most levels of a factor, to "
                f"{min(math.prod(sizes), _MOST_SUBSET_ROWS)}"
            )
        subset = balanced_subset(sizes, runs, Draws(seed, "subset"))
        rows = list(subset.rows)
        distinct = len(set(rows))
        about = {
            "method": "balanced",
            "runs": str(runs),
            "fraction": f"{runs}/{math.prod(sizes)}",
            "distinct": str(distinct),
            "pair_imbalance": f"{subset.imbalance:.6g}",
        }
    treatments = [tuple(one.values[i] for one, i in zip(levels, row, strict=True)) for row in rows]
    return arranged(
        "fractional",
        seed,
        columns_of(checked),
        in_columns(checked, treatments),
        arguments={**about, **factor_lines(checked)},
        replications=replications,
        blocks=blocks,
    )
