"""What the points were too few for."""

from collections.abc import Sequence
from math import floor

import numpy as np

from lepaute.fit.segmentation.criterion import LEAST_FREEDOM, fewest_segments_of_least, information_criterion
from lepaute.fit.segmentation.points import Points
from lepaute.fit.segmentation.result import Line, Partition

_ORDINALS = ("first", "second", "third")


def notes_on(
    points: Points, candidates: Sequence[Partition], lines: Sequence[Line], constant: bool, most: int | None
) -> tuple[str, ...]:
    """A sentence for each limit that the points set, each with what would lift it; none where they were enough.

    most : how many breakpoints were tried, where their number was free, else None
    """
    notes = []
    coefficients = 1 if constant else 2
    if most is not None:
        notes += _on_the_number(points, candidates, len(lines) - 1, coefficients, most)
    for line in lines:
        inside = (points.x > line.low) & (points.x <= line.high)
        count = int(np.count_nonzero(inside)) + (line is lines[0])
        if count <= coefficients and len(points) > count:
            notes.append(
                f"the piece up to {line.high:.7g} rests on {_sizes(count)}, which {'it' if constant else 'a line'} "
                "meets whatever they are: measure more sizes there"
            )
    return tuple(notes)


def _on_the_number(
    points: Points, candidates: Sequence[Partition], chosen: int, coefficients: int, most: int
) -> list[str]:
    provable = floor((len(points) + 1 - LEAST_FREEDOM) / (coefficients + 1)) - 1
    if provable < 1:
        needed = 2 * (coefficients + 1) - 1 + int(LEAST_FREEDOM)
        return [f"{_sizes(len(points))} cannot prove a breakpoint: measure {needed} at least"]
    wanted = _of_many_points(points, candidates, coefficients)
    if wanted > chosen:
        place = next(one for one in candidates[chosen + 1].breakpoints if one not in candidates[chosen].breakpoints)
        gain = candidates[chosen].residual / max(candidates[chosen + 1].residual, points.least_residual)
        number = _ORDINALS[chosen] if chosen < len(_ORDINALS) else f"{chosen + 1}th"
        return [
            f"a {number} breakpoint, near {place:.7g}, would divide the residual by {gain:.3g}, which {len(points)} "
            "sizes do not prove: measure more sizes around it"
        ]
    if chosen == provable < most:
        return [f"{_sizes(len(points))} cannot prove more than {chosen} breakpoints: measure more"]
    if chosen == most:
        return [f"no more than {most} breakpoints were tried: raise most_breakpoints"]
    return []


def _of_many_points(points: Points, candidates: Sequence[Partition], coefficients: int) -> int:
    """The number of breakpoints that these residuals would mean if the points were many."""
    n = len(points)
    left = np.array([[max(one.residual, points.least_residual)] for one in candidates])
    segments = np.arange(1, len(left) + 1)
    freedom = n - segments * coefficients - (segments - 1.0)
    criterion = information_criterion(left, [n], coefficients) + n * np.log(np.maximum(freedom, 1.0) / n)
    return fewest_segments_of_least(criterion) - 1


def _sizes(count: int) -> str:
    return f"{count} distinct size{'s' if count != 1 else ''}"
