"""Whether one line holds for all points, which no found breakpoint does not yet say."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lepaute.fit.segmentation.points import points_of
from lepaute.fit.segmentation.search import segment

if TYPE_CHECKING:
    from lepaute.fit.segmentation.result import SegmentedLine

#: Two lines whose values differ by less are one for whoever asks for breakpoints.
EQUIVALENT = 0.05
_NORMAL_975 = 1.96
#: Of two lines and their breakpoint.
_PARAMETERS = 5


@dataclass(frozen=True, slots=True)
class LikeliestBreakpoint:
    """The best of all breakpoints, where none was proven.

    place   : the last x below it;  gain : the factor by which it divides the residual
    differs : by how much of the one line's values its two lines differ from them at most, at any x that was measured
    at_most : upper end of that, 97.5 %, each x by itself; the place was chosen to make it large, so that it is no less
    """

    place: float
    gain: float
    differs: float
    at_most: float

    @property
    def is_negligible(self) -> bool:
        """Whether one line holds for all x within EQUIVALENT, whatever breakpoint there may be."""
        return self.at_most <= EQUIVALENT


def likeliest_breakpoint(line: "SegmentedLine") -> LikeliestBreakpoint | None:
    """Of a line without breakpoints; None where the points allow none."""
    if len(line.candidates) < 2:
        return None
    (place,) = line.candidates[1].breakpoints
    points = points_of(line.x, line.y, line.objective)
    two = segment(line.x, line.y, objective=points.objective, breakpoints=[place])
    x, fitted = points.x, two.predict(points.x)
    differs = np.abs(fitted / line.predict(x) - 1.0)
    below = x <= place
    count = np.where(below, np.count_nonzero(below), np.count_nonzero(~below))
    # Of a line of n points at its end, 2 / sqrt(n) of the scatter; of two points the scatter itself.
    typical = np.exp(points.value) if points.logarithmic else points.value
    scatter = float(np.sqrt(np.sum((typical / fitted - 1.0) ** 2) / max(len(points) - _PARAMETERS, 1)))
    error = scatter * np.minimum(1.0, 2.0 / np.sqrt(count))
    return LikeliestBreakpoint(
        place, line.gains[0], float(np.max(differs)), float(np.max(differs + _NORMAL_975 * error))
    )
