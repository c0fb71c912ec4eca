"""The factors that a run would have given, by its design: what is absent where it failed before it measured them."""

from typing import TYPE_CHECKING

from lepaute.errors import LepauteError
from lepaute.watch.factors.archived_run import ArchivedRun
from lepaute.watch.factors.memory import BANDWIDTH
from lepaute.watch.factors.performance import FIXED_SIZE, RATE, RATE_AT_SIZE, SENTINEL_RATE
from lepaute.watch.factors.regression import MODEL_FACTORS, TERMS

if TYPE_CHECKING:
    import pandas as pd

_SIZES = ["m", "n", "k"]
_BUFFERS = {"size_bytes", "stride", "element_bytes", "unroll"}


def planned_factors(run: ArchivedRun) -> tuple[str, ...]:
    """The names of the factors; of a run whose design is not known none.

    Of every calibration those of dgemm and of its sentinels; messages, and what the monitor sees, are not known before.
    """
    if run.is_calibration:
        return (RATE, SENTINEL_RATE, *MODEL_FACTORS)
    try:
        design = run.design
    except LepauteError:  # a design that cannot be read says nothing of what was planned
        return ()
    if design is None:
        return ()
    if set(_SIZES) <= set(design.columns):
        return _of_dgemm(design)
    return (BANDWIDTH,) if set(design.columns) >= _BUFFERS else ()


def _of_dgemm(design: "pd.DataFrame") -> tuple[str, ...]:
    kind = next((name for name in ("kernel", "kind") if name in design), None)
    if kind is None:  # products of matrices, triangular solves, ...
        return ()
    rows = design[design[kind].astype(str) == "dgemm"]
    sizes = rows[_SIZES].drop_duplicates()
    if not len(sizes):
        return ()
    fixed = bool((sizes == FIXED_SIZE).all(axis=1).any())
    model = MODEL_FACTORS if len(sizes) > len(TERMS) else ()
    return (RATE, *([RATE_AT_SIZE] if fixed else []), *model)
