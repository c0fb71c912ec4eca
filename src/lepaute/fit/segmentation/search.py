"""`segment`: the best affine pieces of one series."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lepaute.errors import FitError
from lepaute.fit.segmentation.criterion import fewest_segments_of_least, information_criterion
from lepaute.fit.segmentation.cuts import best_cuts, residual_of
from lepaute.fit.segmentation.lines import lines_of
from lepaute.fit.segmentation.notes import notes_on
from lepaute.fit.segmentation.places import breakpoint_intervals
from lepaute.fit.segmentation.points import Objective, Points, Shape, points_of
from lepaute.fit.segmentation.result import Partition, SegmentedLine

MOST_BREAKPOINTS = 12
#: What a line needs. A longer minimum is a belief about the data, which the criterion does not have.
LEAST_POINTS = 2


def segment(
    x: Any,
    y: Any,
    *,
    objective: Objective = "log",
    shape: Shape = "line",
    n_breakpoints: int | None = None,
    breakpoints: Sequence[float] | None = None,
    most_breakpoints: int = MOST_BREAKPOINTS,
    least_points: int = LEAST_POINTS,
) -> SegmentedLine:
    """Fits affine pieces with jumps to points, the best of all for the number of breakpoints.

    x, y             : shape (n,); repeated x count as their median with their number as weight
    objective        : squared errors of y: "ordinary"; "weighted" by x^-2, x > 0; "log" of the logarithm of y > 0, the
                       coefficients at least 0 and x >= 0
    shape            : "line", or "constant" for pieces without slope
    n_breakpoints    : how many, or None for the number of the least criterion (`information_criterion`)
    breakpoints      : where, if that is known: each the last x of the lower segment
    most_breakpoints : how many are tried, and listed with their gains
    least_points     : the fewest distinct x in a segment
    Exact: ordinary and weighted for any number of points, log up to 500 distinct x; beyond these see `cuts.best_cuts`.
    Time grows with the square of the number of distinct x, but for log beyond 500.
    Source of the objectives: Cornebize, PhD thesis (2021), section 4.3.2.
    Raises FitError for points that cannot be fitted so, for more breakpoints than they allow, for breakpoints that do
    not increase or leave a segment without points, and where both their number and their places are given.
    """
    points = points_of(x, y, objective)
    constant = _constant(shape)
    most = n_breakpoints if n_breakpoints is not None else most_breakpoints
    checked_numbers(most, least_points)
    if breakpoints is not None:
        if n_breakpoints is not None:
            raise FitError("n_breakpoints and breakpoints are both given; give the number or the places")
        chosen = given_places(points, breakpoints)
        candidates: tuple[Partition, ...] = (_partition(points, chosen, constant),)
    else:
        least = min(least_points, max(1, len(points) // 2)) if n_breakpoints is None else least_points
        candidates = _candidates(points, constant, least, max(most, most_breakpoints) + 1)
        if n_breakpoints is not None and len(candidates) <= n_breakpoints:
            raise FitError(
                f"{len(points)} distinct x do not allow {n_breakpoints} breakpoints with {least_points} in each "
                "segment; ask for fewer"
            )
        count = n_breakpoints
        if count is None:
            count = fewest_segments_of_least(np.array([one.criterion for one in candidates])) - 1
        chosen = candidates[count].breakpoints
    residual = residual_of(points, chosen, constant)
    lines = lines_of(points, chosen, constant)
    tried = None if n_breakpoints is not None or breakpoints is not None else most_breakpoints
    return SegmentedLine(
        chosen,
        lines,
        gains_of(candidates, points.least_residual),
        breakpoint_intervals(points, chosen, residual, constant, LEAST_POINTS),
        candidates,
        objective,
        np.asarray(x, dtype=np.float64),
        np.asarray(y, dtype=np.float64),
        notes_on(points, candidates, lines, constant, tried),
    )


def checked_numbers(breakpoints: Any, least_points: Any) -> None:
    """Raises FitError unless both are whole numbers, of breakpoints at least 0, of points in a segment at least 1."""
    for name, number, least in (("the number of breakpoints", breakpoints, 0), ("least_points", least_points, 1)):
        if not isinstance(number, (int, np.integer)) or number < least:
            raise FitError(f"{name} is {number}; it is a whole number, at least {least}")


def gains_of(candidates: Sequence[Partition], tiny: float) -> tuple[float, ...]:
    """The factor by which each further breakpoint divides the objective; what is below `tiny` counts as that."""
    left = [max(one.residual, tiny) for one in candidates]
    return tuple(before / after if after > 0 else 1.0 for before, after in zip(left[:-1], left[1:], strict=True))


def given_places(points: Points, breakpoints: Sequence[float]) -> tuple[float, ...]:
    """Breakpoints that were given, each moved down to the last x that it leaves below.

    Raises FitError where they do not increase, or leave a segment without points.
    """
    try:
        given = np.asarray(breakpoints, dtype=np.float64)
    except (TypeError, ValueError):
        raise FitError("breakpoints are places on the axis of x: give numbers") from None
    if given.ndim != 1 or not np.all(np.isfinite(given)) or np.any(np.diff(given) <= 0):
        raise FitError(f"breakpoints are {given.tolist()}; they are a list, finite, and increase")
    at = np.searchsorted(points.x, given, side="right")
    counts = np.diff([0, *at.tolist(), len(points)])
    if np.any(counts < 1):
        empty = int(np.flatnonzero(counts < 1)[0])
        raise FitError(f"segment {empty + 1} of the breakpoints given holds no point; leave one of its ends out")
    return tuple(float(points.x[end - 1]) for end in at)


def _constant(shape: Shape) -> bool:
    if shape not in ("line", "constant"):
        raise FitError(f"shape is {shape!r}; it is line or constant")
    return shape == "constant"


def _partition(points: Points, chosen: tuple[float, ...], constant: bool) -> Partition:
    return Partition(chosen, residual_of(points, chosen, constant), float("nan"))


def _candidates(points: Points, constant: bool, least: int, most: int) -> tuple[Partition, ...]:
    """The best partitions into 1, 2, ... segments, as many as there can be up to `most`."""
    cuts = best_cuts([points], [1.0], constant, least, most)
    bounded = np.maximum(np.array([[left] for _, left in cuts]), points.least_residual)
    criterion = information_criterion(bounded, [len(points)], 1 if constant else 2)
    return tuple(Partition(cut, left, float(value)) for (cut, left), value in zip(cuts, criterion, strict=True))
