"""`segment_jointly`: several operations whose lines change at the same sizes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lepaute.errors import FitError
from lepaute.fit.segmentation.criterion import fewest_segments_of_least, information_criterion
from lepaute.fit.segmentation.cuts import best_cuts, residual_of
from lepaute.fit.segmentation.lines import lines_of
from lepaute.fit.segmentation.places import breakpoint_intervals
from lepaute.fit.segmentation.points import Objective, Points, points_of
from lepaute.fit.segmentation.result import Partition, SegmentedLine
from lepaute.fit.segmentation.search import LEAST_POINTS, MOST_BREAKPOINTS, checked_numbers, gains_of

#: The noise of each series is known only after the cut: so often it is estimated anew.
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class JointlySegmented:
    """Lines of several series that share their breakpoints.

    series     : of each, in the order given; their candidates and gains are empty
    gains      : as of SegmentedLine, of the sum of the objectives, each over the variance of its noise
    candidates : the best common cut for 0, 1, 2, ... breakpoints; residual is that sum
    """

    breakpoints: tuple[float, ...]
    series: tuple[SegmentedLine, ...]
    gains: tuple[float, ...]
    candidates: tuple[Partition, ...]


def segment_jointly(
    series: Sequence[tuple[Any, Any]],
    *,
    objective: Objective = "log",
    n_breakpoints: int | None = None,
    most_breakpoints: int = MOST_BREAKPOINTS,
    least_points: int = LEAST_POINTS,
) -> JointlySegmented:
    """Cuts several series at the same x, each with lines of its own; options as those of `segment`.

    series : pairs (x, y), each of shape (n,) with its own n and its own x
    The series count by the squares of their residuals over the variance of their noise, which is estimated from the
    cut with most segments and improved in turn with it. A segment holds `least_points` distinct x of every series.
    Raises FitError as `segment` does, and without a series.
    """
    if not series:
        raise FitError("segment_jointly needs at least one pair (x, y)")
    checked_numbers(n_breakpoints if n_breakpoints is not None else most_breakpoints, least_points)
    parts = [points_of(x, y, objective) for x, y in series]
    most = (n_breakpoints if n_breakpoints is not None else most_breakpoints) + 1
    variances = [_variance(part, residual_of(part, (), False), 1) for part in parts]
    candidates: list[tuple[float, ...]] = []
    for _ in range(ROUNDS):
        before = candidates
        cuts_and_residuals = best_cuts(parts, [1.0 / variance for variance in variances], False, least_points, most)
        candidates = [cut for cut, _ in cuts_and_residuals]
        if candidates == before:
            break
        finest = candidates[-1]
        variances = [_variance(part, residual_of(part, finest, False), len(finest) + 1) for part in parts]
    if n_breakpoints is not None and len(candidates) <= n_breakpoints:
        raise FitError(
            f"the series do not allow {n_breakpoints} common breakpoints with {least_points} distinct x of each in "
            "every segment; ask for fewer"
        )
    residuals = np.array(
        [[max(residual_of(part, cut, False), part.least_residual) for part in parts] for cut in candidates]
    )
    criterion = information_criterion(residuals, [len(part) for part in parts], 2)
    partitions = tuple(
        Partition(cut, float(np.sum(left / np.array(variances))), float(value))
        for cut, left, value in zip(candidates, residuals, criterion, strict=True)
    )
    count = n_breakpoints if n_breakpoints is not None else fewest_segments_of_least(criterion) - 1
    chosen = candidates[count]
    fitted = tuple(
        _one(part, pair, chosen, float(left)) for part, pair, left in zip(parts, series, residuals[count], strict=True)
    )
    return JointlySegmented(chosen, fitted, gains_of(partitions, 0.0), partitions)


def _variance(part: Points, residual: float, segments: int) -> float:
    return max(residual, part.least_residual) / max(1, len(part) - 2 * segments)


def _one(part: Points, pair: tuple[Any, Any], chosen: tuple[float, ...], residual: float) -> SegmentedLine:
    breakpoints = tuple(float(part.x[end - 1]) for end in np.searchsorted(part.x, chosen, side="right"))
    intervals = breakpoint_intervals(part, breakpoints, residual, False, LEAST_POINTS)
    return SegmentedLine(
        chosen,
        lines_of(part, chosen, False),
        (),
        intervals,
        (),
        part.objective,
        np.asarray(pair[0], dtype=np.float64),
        np.asarray(pair[1], dtype=np.float64),
    )
