"""Tests of factors as a data frame."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lepaute.fit.observations.factors import FactorTest

if TYPE_CHECKING:
    import pandas

_TYPES = {
    **dict.fromkeys(("column", "factor", "kernel", "reference", "level"), "string"),
    **dict.fromkeys(("ratio", "low", "high", "p_value", "p_holm"), "float64"),
    "matters": "bool",
    "exchanged": "string",
    **dict.fromkeys(("n", "strata"), "int64"),
    "note": "string",
}


def factor_frame(tests: Sequence[FactorTest]) -> "pandas.DataFrame":
    """A row for each level but the reference: its ratio with the 95 % interval, and what its test says.

    A test that found no level to compare has one row without a level.
    """
    import pandas

    rows = []
    for test in tests:
        of_test = {name: getattr(test, name) for name in _TYPES if hasattr(test, name)}
        effects = [{"level": one.level, "ratio": one.ratio, "low": one.low, "high": one.high} for one in test.effects]
        rows += [of_test | effect for effect in effects or [{}]]
    return pandas.DataFrame(rows, columns=list(_TYPES)).astype(_TYPES)
