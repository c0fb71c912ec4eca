"""What a segmentation is: lines between breakpoints, with what is known of them."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lepaute.fit.numeric.arrays import Floats
from lepaute.fit.segmentation.points import Objective
from lepaute.kit.notebook import table_html

if TYPE_CHECKING:
    import pandas

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Line:
    """y = intercept + slope * x for low < x <= high (the first segment also holds at and below its low).

    n_points           : how many were measured there, repetitions included
    intercept_interval : 95 %, given the breakpoints; from minus to plus infinity where too few sizes say anything
    slope_interval     : the same
    """

    low: float
    high: float
    intercept: float
    slope: float
    n_points: int
    intercept_interval: Interval = (-np.inf, np.inf)
    slope_interval: Interval = (-np.inf, np.inf)


@dataclass(frozen=True, slots=True)
class Partition:
    """The best cut with one number of breakpoints.

    residual  : the objective: sum of squares, repetitions of a size as their median with their number as weight
    criterion : what the choice of the number rests on: less is better
    """

    breakpoints: tuple[float, ...]
    residual: float
    criterion: float


@dataclass(frozen=True, slots=True)
class SegmentedLine:
    """Affine pieces.

    breakpoints          : upper ends of all segments but the last, increasing; each is a value of x that occurs, and
                           the last that belongs to the lower segment
    segments             : one more than breakpoints
    gains                : gains[i] is the factor by which breakpoint number i + 1 divides the objective, >= 1, also of
                           breakpoints beyond those chosen, as far as they were sought: where these stay near 1, stop
    breakpoint_intervals : 95 %, the next x above as upper end included
    candidates           : the best cut for 0, 1, 2, ... breakpoints, of which one was chosen
    x, y                 : what was fitted, shape (n,)
    notes                : what the points were too few for, a sentence each
    """

    breakpoints: tuple[float, ...]
    segments: tuple[Line, ...]
    gains: tuple[float, ...]
    breakpoint_intervals: tuple[Interval, ...] = ()
    candidates: tuple[Partition, ...] = ()
    objective: Objective = "log"
    x: Floats = field(default_factory=lambda: np.zeros(0), compare=False, repr=False)
    y: Floats = field(default_factory=lambda: np.zeros(0), compare=False, repr=False)
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        places = ", ".join(f"{place:.7g}" for place in self.breakpoints)
        return f"<SegmentedLine of {len(self.x)} points: {f'breakpoints {places}' if places else 'no breakpoint'}>"

    def _repr_html_(self) -> str:
        frame = self.to_frame()
        return table_html(repr(self)[1:-1], [str(name) for name in frame], frame.to_numpy().tolist(), self.notes)

    def to_frame(self) -> "pandas.DataFrame":
        """A row a segment: low, high, n_points, intercept, slope, and the ends of their intervals."""
        import pandas

        names = ("low", "high", "n_points", "intercept", "intercept_low", "intercept_high")
        rows = [
            (one.low, one.high, one.n_points, one.intercept, *one.intercept_interval, one.slope, *one.slope_interval)
            for one in self.segments
        ]
        return pandas.DataFrame(rows, columns=[*names, "slope", "slope_low", "slope_high"])

    def predict(self, x: Any) -> Floats:
        """Fitted values, shape of x; beyond the data the first and the last line go on."""
        values = np.asarray(x, dtype=np.float64)
        which = np.searchsorted(np.array(self.breakpoints), values, side="left")
        intercepts = np.array([line.intercept for line in self.segments])
        slopes = np.array([line.slope for line in self.segments])
        result: Floats = intercepts[which] + slopes[which] * values
        return result

    def table(self) -> str:
        """Each further breakpoint with what it gains and where the best cut then is, as lines of text.

        Without numbers that were not asked for and that so few points could not prove.
        """
        lines = ["breakpoints  objective   gain  at"]
        for count, one in enumerate(self.candidates):
            if np.isposinf(one.criterion) and count > len(self.breakpoints):
                break
            gain = f"{self.gains[count - 1]:.3g}" if count else "-"
            chosen = "  <- chosen" if one.breakpoints == self.breakpoints else ""
            places = ", ".join(f"{place:.7g}" for place in one.breakpoints)
            lines.append(f"{count:11d}  {one.residual:9.4g}  {gain:>5}  {places}{chosen}")
        return "\n".join(lines)

    def plot(self, path: str | Path, *, x_label: str = "size", y_label: str = "duration", y_unit: float = 1.0) -> None:
        """Writes a PNG: points, lines and breakpoints on logarithmic axes, and the relative residuals below.

        y_unit : what y is divided by before it is drawn: 1e-6 for seconds as "duration (µs)"
        """
        from lepaute.fit.segmentation.plot import plot_segments

        plot_segments(self, Path(path), x_label, y_label, y_unit)
