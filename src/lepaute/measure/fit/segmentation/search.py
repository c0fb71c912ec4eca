"""`segment` and `segment_jointly`: the best affine pieces of one series, or of several with shared cuts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import floor
from typing import Any

import numpy as np

from lepaute.errors import FitError
from lepaute.kit.text import counted, significant
from lepaute.measure.fit.segmentation.points import (
    MIN_FREEDOM,
    Line,
    Objective,
    Points,
    Shape,
    best_cuts,
    breakpoint_intervals,
    fewest_segments_of_least,
    information_criterion,
    lines_of,
    points_of,
    residual_of,
)
from lepaute.measure.fit.segmentation.result import Partition, SegmentedLine

MAX_BREAKPOINTS = 12
#: What a line needs. A longer minimum is a belief about the data, which the criterion does not have.
MIN_POINTS = 2
_ORDINALS = ("first", "second", "third")
#: The noise of each series is known only after the cut: so often it is estimated anew.
ROUNDS = 3
#: Points that are said to be in the order of their sizes: fewest, and the share of steps in one direction.
MIN_IN_ORDER, IN_ORDER = 20, 0.95
#: Standard errors, 1 / sqrt(n), of the correlation of independent points.
MIN_OF_CORRELATION = 3.3


def segment(
    x: Any, y: Any, *, objective: Objective = "log", shape: Shape = "line", n_breakpoints: int | None = None,
    breakpoints: Sequence[float] | None = None, most_breakpoints: int = MAX_BREAKPOINTS, least_points: int = MIN_POINTS,
) -> SegmentedLine:  # fmt: skip
    """Fits affine pieces with jumps to points, the best of all for the number of breakpoints.

    Exact: ordinary and weighted for any number of points, log up to 500 distinct x; beyond these see `best_cuts`.
    Time grows with the square of the number of distinct x, but for log beyond 500.
    Source of the objectives: Cornebize, PhD thesis (2021), section 4.3.2.

    Parameters
    ----------
    x, y : shape (n,), in any units; repeated x count as their median with their number as weight
    objective : squared errors of y: "ordinary"; "weighted" by x^-2, x > 0; "log" of the logarithm of y > 0, the
        coefficients at least 0 and x >= 0
    shape : "line", or "constant" for pieces without slope
    n_breakpoints : how many, or None for the number of the least criterion (`information_criterion`)
    breakpoints : where, if that is known: each the last x of the lower segment
    most_breakpoints : how many are tried, and listed with their gains
    least_points : the fewest distinct x in a segment

    Returns
    -------
    A `SegmentedLine`: segments with intercept and slope in the units of y and y / x, breakpoints with their intervals

    Raises
    ------
    FitError : points that cannot be fitted so, more breakpoints than they allow, breakpoints that do not increase or
        leave a segment without points, and both their number and their places

    Examples
    --------
    >>> import lepaute as lp
    >>> line = lp.fit.segment([1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4, 15, 16, 17, 18], objective="ordinary")
    >>> line.breakpoints
    (4.0,)
    """
    points = points_of(x, y, objective)
    if shape not in ("line", "constant"):
        raise FitError(f"shape is {shape!r}; it is line or constant")
    constant = shape == "constant"
    most = n_breakpoints if n_breakpoints is not None else most_breakpoints
    _checked_numbers(most, least_points)
    if breakpoints is not None:
        if n_breakpoints is not None:
            raise FitError("n_breakpoints and breakpoints are both given; give the number or the places")
        chosen = _given_places(points, breakpoints)
        residual = residual_of(points, chosen, constant)
        candidates: tuple[Partition, ...] = (Partition(chosen, residual, float("nan")),)
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
            count = fewest_segments_of_least(np.array([candidate.criterion for candidate in candidates])) - 1
        chosen = candidates[count].breakpoints
    residual = residual_of(points, chosen, constant)
    lines = lines_of(points, chosen, constant)
    tried = None if n_breakpoints is not None or breakpoints is not None else most_breakpoints
    gains, notes = _gains_of(candidates, points.least_residual), _notes_on(points, candidates, lines, constant, tried)
    intervals = breakpoint_intervals(points, chosen, residual, constant, MIN_POINTS)
    xs, ys = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    fitted = SegmentedLine(chosen, lines, gains, intervals, candidates, objective, xs, ys, notes)
    order = () if breakpoints is not None else _note_on_the_order(fitted, points.least_residual)
    return replace(fitted, notes=(*fitted.notes, *order))


def _note_on_the_order(fitted: SegmentedLine, least_residual: float) -> tuple[str, ...]:
    """Note that points were measured in the order of their sizes, by a machine whose speed lasted from one to the next.

    The criterion takes points for independent: of 200 with a correlation of 0.8 it finds 2.3 breakpoints where there is
    one, and one where the sizes were shuffled. Independent points get the note in one series of 2,000.
    """
    x, y = fitted.x, fitted.y
    rises = float(np.mean(np.diff(x) >= 0)) if len(x) >= MIN_IN_ORDER else 0.5
    if 1.0 - IN_ORDER < rises < IN_ORDER:
        return ()
    values = fitted.predict(x)
    residual = np.log(y / values) if fitted.objective == "log" else y - values
    if fitted.objective == "weighted":
        residual = residual / x
    squares = float(residual @ residual)
    if squares <= 100.0 * least_residual:  # rounding
        return ()
    correlation = float(residual[1:] @ residual[:-1]) / squares
    if correlation * np.sqrt(len(x)) < MIN_OF_CORRELATION:
        return ()
    return (
        f"points next to each other, in the order of their sizes, are correlated ({correlation:.2f}), so a machine "
        "that was slower for a while looks like a breakpoint: measure the sizes in random order",
    )


def _checked_numbers(breakpoints: Any, least_points: Any) -> None:
    for name, number, least in (("the number of breakpoints", breakpoints, 0), ("least_points", least_points, 1)):
        if not isinstance(number, (int, np.integer)) or number < least:
            raise FitError(f"{name} is {number}; it is a whole number, at least {least}")


def _gains_of(candidates: Sequence[Partition], tiny: float) -> tuple[float, ...]:
    """The factor by which each further breakpoint divides the objective; what is below `tiny` counts as that."""
    left = [max(candidate.residual, tiny) for candidate in candidates]
    return tuple(before / after if after > 0 else 1.0 for before, after in zip(left[:-1], left[1:], strict=True))


def _given_places(points: Points, breakpoints: Sequence[float]) -> tuple[float, ...]:
    """Breakpoints that were given, each moved down to the last x that it leaves below.

    Raises FitError if they do not increase, or leave a segment without points.
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


def _candidates(points: Points, constant: bool, least: int, most: int) -> tuple[Partition, ...]:
    cuts = best_cuts([points], [1.0], constant, least, most)
    bounded = np.maximum(np.array([[left] for _, left in cuts]), points.least_residual)
    criterion = information_criterion(bounded, [len(points)], 1 if constant else 2)
    return tuple(Partition(cut, left, float(value)) for (cut, left), value in zip(cuts, criterion, strict=True))


def _notes_on(
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
        count = int(np.count_nonzero((points.x > line.low) & (points.x <= line.high))) + (line is lines[0])
        if count <= coefficients and len(points) > count:
            notes.append(
                f"the piece up to {line.high:.7g} rests on {counted(count, 'distinct size')}, which "
                f"{'it' if constant else 'a line'} meets whatever they are: measure more sizes there"
            )
    return tuple(notes)


def _on_the_number(
    points: Points, candidates: Sequence[Partition], chosen: int, coefficients: int, most: int
) -> list[str]:
    provable = floor((len(points) + 1 - MIN_FREEDOM) / (coefficients + 1)) - 1
    if provable < 1:
        needed = 2 * (coefficients + 1) - 1 + int(MIN_FREEDOM)
        return [f"{counted(len(points), 'distinct size')} cannot prove a breakpoint: measure {needed} at least"]
    # the number of breakpoints that these residuals would mean if the points were many
    n = len(points)
    left = np.array([[max(candidate.residual, points.least_residual)] for candidate in candidates])
    segments = np.arange(1, len(left) + 1)
    freedom = n - segments * coefficients - (segments - 1.0)
    criterion = information_criterion(left, [n], coefficients) + n * np.log(np.maximum(freedom, 1.0) / n)
    if fewest_segments_of_least(criterion) - 1 > chosen:
        place = next(cut for cut in candidates[chosen + 1].breakpoints if cut not in candidates[chosen].breakpoints)
        gain = candidates[chosen].residual / max(candidates[chosen + 1].residual, points.least_residual)
        number = _ORDINALS[chosen] if chosen < len(_ORDINALS) else f"{chosen + 1}th"
        return [
            f"a {number} breakpoint, near {place:.7g}, would divide the residual by {significant(gain)}, which "
            f"{len(points)} sizes do not prove: measure more sizes around it"
        ]
    if chosen == provable < most:
        return [f"{counted(len(points), 'distinct size')} cannot prove more than {chosen} breakpoints: measure more"]
    if chosen == most:
        return [f"no more than {most} breakpoints were tried: raise most_breakpoints"]
    return []


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
    series: Sequence[tuple[Any, Any]], *, objective: Objective = "log", n_breakpoints: int | None = None,
    most_breakpoints: int = MAX_BREAKPOINTS, least_points: int = MIN_POINTS,
) -> JointlySegmented:  # fmt: skip
    """Cuts several series at the same x, each with lines of its own; options as those of `segment`.

    series : pairs (x, y), each of shape (n,) with its own n and its own x
    The series count by the squares of their residuals over the variance of their noise, which is estimated from the
    cut with most segments and improved in turn with it. A segment holds `least_points` distinct x of every series.
    Raises FitError as `segment` does, and without a series.
    """
    if not series:
        raise FitError("segment_jointly needs at least one pair (x, y)")
    _checked_numbers(n_breakpoints if n_breakpoints is not None else most_breakpoints, least_points)
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
    return JointlySegmented(chosen, fitted, _gains_of(partitions, 0.0), partitions)


def _variance(part: Points, residual: float, segments: int) -> float:
    return max(residual, part.least_residual) / max(1, len(part) - 2 * segments)


def _one(part: Points, pair: tuple[Any, Any], chosen: tuple[float, ...], residual: float) -> SegmentedLine:
    breakpoints = tuple(float(part.x[end - 1]) for end in np.searchsorted(part.x, chosen, side="right"))
    return SegmentedLine(
        chosen,
        lines_of(part, chosen, False),
        (),
        breakpoint_intervals(part, breakpoints, residual, False, MIN_POINTS),
        (),
        part.objective,
        np.asarray(pair[0], dtype=np.float64),
        np.asarray(pair[1], dtype=np.float64),
    )
