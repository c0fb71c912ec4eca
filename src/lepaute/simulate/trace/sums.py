"""Sums by keys."""

from typing import Any

import numpy
from numpy.typing import NDArray


def sums_by(amounts: NDArray[Any], *keys: NDArray[Any]) -> dict[tuple[Any, ...], float]:
    """The sum of the amounts of each combination of keys, the largest first; keys: columns as long as the amounts."""
    values, place = numpy.unique(numpy.stack(keys, axis=1), axis=0, return_inverse=True)
    sums = numpy.bincount(place.reshape(-1), weights=amounts, minlength=len(values))
    order = largest_first(sums)
    return dict(zip(map(tuple, values[order].tolist()), sums[order].tolist(), strict=True))


def largest_first(amounts: NDArray[Any]) -> NDArray[Any]:
    """Places in falling order; equal ones stay in theirs."""
    return numpy.argsort(-amounts, kind="stable")
