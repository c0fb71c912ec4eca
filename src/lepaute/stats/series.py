"""A series of a quantity that should not change: dates and values, in order, one value a date."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lepaute.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

#: Fewer values than this say nothing about a change: even two levels wide apart come about by chance too often.
FEWEST = 8


def ordered_series(time_s: Sequence[float], values: Sequence[float]) -> "tuple[Floats, Floats]":
    """(dates, values) by increasing date; the values of equal dates become one, their median, so their order is free.

    time_s : n finite dates in any order; values : n finite numbers > 0 in any one unit
    Raises InputError where the lengths differ, or a number cannot be.
    """
    import numpy as np

    dates, x = np.asarray(time_s, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if dates.ndim != 1 or dates.shape != x.shape:
        raise InputError(f"the series has {dates.size} dates and {x.size} values; give as many dates as values")
    wrong = np.flatnonzero(~(np.isfinite(dates) & np.isfinite(x) & (x > 0)))
    if wrong.size:
        first = int(wrong[0])
        raise InputError(f"value {first} of the series is {x[first]!r} at {dates[first]!r} s; give finite values > 0")
    unique, inverse = np.unique(dates, return_inverse=True)
    if len(unique) == len(dates):
        order = np.argsort(dates)
        return dates[order], x[order]
    return unique, np.array([np.median(x[inverse == i]) for i in range(len(unique))])
