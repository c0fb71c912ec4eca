"""One test of the prediction region from plain observations, for tests of `region_tests`."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lepaute.errors import InputError
from lepaute.stats.expanding import Floats
from lepaute.stats.prediction_region import region_tests


@dataclass(frozen=True, slots=True)
class RegionTest:
    """One test; fields as in RegionTests, low and high None for p > 1, all None where `missing` is not 0."""

    n: int
    r: int
    p: int
    statistic: float | None
    p_value: float | None
    direction: int
    low: float | None
    high: float | None
    missing: int


def region_test(reference: npt.ArrayLike, new: npt.ArrayLike, confidence: float = 0.9999) -> RegionTest:
    """The test of the mean of `new`, shape (r, p) or (r,), against `reference`, shape (n, p) or (n,).

    Raises InputError for shapes that do not match and for values that are not finite.
    """
    earlier, later = _table(reference, "reference"), _table(new, "new")
    if earlier.shape[1] != later.shape[1]:
        raise InputError(f"the reference has {earlier.shape[1]} variables, the new observations have {later.shape[1]}")
    n, p = earlier.shape
    mean = earlier.mean(axis=0) if n else np.zeros(p)
    centred = earlier - mean
    count = np.array([n], dtype=np.int64)
    found = region_tests(
        later.mean(axis=0)[None], mean[None], (centred.T @ centred)[None], count, count - 1, len(later), confidence
    )

    def known(value: float) -> float | None:
        return None if np.isnan(value) else float(value)

    return RegionTest(
        n,
        len(later),
        p,
        known(found.statistic[0]),
        known(found.p_value[0]),
        int(found.direction[0]),
        known(found.low[0]),
        known(found.high[0]),
        int(found.missing[0]),
    )


def _table(values: npt.ArrayLike, name: str) -> Floats:
    table: Floats = np.asarray(values, dtype=np.float64)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or table.shape[1] == 0:
        raise InputError(f"the {name} observations have the shape {table.shape}; give (observations, variables)")
    if name == "new" and len(table) == 0:
        raise InputError("there are no new observations to test")
    if not np.isfinite(table).all():
        raise InputError(f"there are {name} observations that are not finite; leave them out")
    return table
