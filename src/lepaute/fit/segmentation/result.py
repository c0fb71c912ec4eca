"""What a segmentation is: lines between breakpoints, with intervals of their coefficients and of the places."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lepaute import _core
from lepaute.fit.numeric import Floats, Integers, sandwich
from lepaute.fit.segmentation.points import MOST_CANDIDATES, Objective, Points, fewest_segments_of_least, thinned
from lepaute.kit.later import later
from lepaute.kit.notebook import table_html
from lepaute.kit.picture import (
    MEASURED,
    PREDICTED,
    PURPLE,
    RULE,
    bare,
    entitle,
    measured_origin,
    new_figure,
    own_figure,
    plain_decades,
    shown_once,
    sizes_of_memory,
    write_picture,
)
from lepaute.kit.tables import text_table
from lepaute.kit.text import counted, seconds, significant, size_text
from lepaute.stats.decision import Decision
from lepaute.stats.student import student_quantile

if TYPE_CHECKING:
    import pandas
    from matplotlib import axes as mpl_axes

    from lepaute.fit.segmentation.search import LikeliestBreakpoint
else:
    pandas, mpl_axes = later("pandas"), later("matplotlib.axes")

Interval = tuple[float, float]
#: So many points are drawn large.
FEW = 100
CONFIDENCE = 0.95
#: -2 log(1 - sqrt(0.95)): Hansen (2000), "Sample splitting and threshold estimation", Econometrica 68, table I.
CRITICAL = -2.0 * float(np.log(1.0 - np.sqrt(0.95)))
#: A side with fewer degrees of freedom takes the variance of the whole fit.
ENOUGH_FOR_VARIANCE = 4
#: Places whose sum of squares is above the least by more than so many critical values are not looked at.
MARGIN = 4.0


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
        result: Floats = intercepts[which] + np.array([line.slope for line in self.segments])[which] * values
        return result

    def table(self) -> str:
        """Each further breakpoint with what it gains and where the best cut then is, as lines of text.

        Without numbers that were not asked for and that so few points could not prove.
        """
        return text_table(("breakpoints", "objective", "gain", "at", ""), self.candidate_rows(), left=(3, 4))

    def candidate_rows(self, *, in_bytes: bool = False) -> list[tuple[str, ...]]:
        """Of each number of breakpoints the objective, by what the last one divides it, where they are, and a mark at
        the number that was chosen."""
        rows: list[tuple[str, ...]] = []
        size = size_text if in_bytes else "{:.7g}".format
        for count, cut in enumerate(self.candidates):
            if np.isposinf(cut.criterion) and count > len(self.breakpoints):
                break
            objective = significant(cut.residual, 4) if cut.residual > 1e-12 else "0"
            gain = (
                "-" if count == 0 else "> 1000" if self.gains[count - 1] > 1000 else significant(self.gains[count - 1])
            )
            chosen = "<- chosen" if cut.breakpoints == self.breakpoints else ""
            rows.append((str(count), objective, gain, ", ".join(map(size, cut.breakpoints)), chosen))
        return rows

    def plot(
        self,
        path: str | Path | None = None,
        *,
        x_label: str = "size (bytes)",
        y_label: str = "duration (s)",
        y_unit: float = 1.0,
        in_bytes: bool = True,
        source: str = "",
        ax: "mpl_axes.Axes | None" = None,
    ) -> Any:
        """Draws points, lines and breakpoints, on logarithmic axes where all is above 0, and below relative residuals.

        Parameters
        ----------
        path : of a picture that is written, by its ending a PNG, SVG or PDF, without one PNG and SVG; without a path, a
            notebook shows what is returned
        x_label, y_label : names of the axes, with their units
        y_unit : what y is divided by before it is drawn: 1e-6 for seconds as "duration (µs)"
        in_bytes : whether x are sizes in bytes, written as 4 KiB
        source : where the points are from, for the foot of the picture
        ax : axes of Matplotlib to draw on, without the residuals and the foot

        Returns
        -------
        The figure with both axes; `ax` where that was given

        Examples
        --------
        >>> import lepaute as lp
        >>> line = lp.fit.segment([1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4, 15, 16, 17, 18])
        >>> figure = line.plot("segments.png", source="made up")
        >>> len(figure.axes)
        2
        """
        size, finding = size_text if in_bytes else "{:.7g}".format, self.finding(in_bytes=in_bytes)
        target = None if path is None else Path(path)
        if ax is None:
            figure = new_figure((9.0, 6.6), for_file=path is not None)
            upper, lower = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": [3, 1]})
        else:
            figure, upper, lower = own_figure(ax), ax, None
        _draw_segments(self, upper, lower, x_label, y_label, y_unit, size)
        if ax is None:
            foot = f"{source or 'points'}: {counted(len(self.x), 'duration')}, objective {self.objective}"
            entitle(figure, finding, measured_origin(foot))
            shown_once(figure, target)
        else:
            ax.set_title(finding, loc="left", fontsize=9)
        if target is not None:
            write_picture(figure, target)
        return figure if ax is None else ax

    def finding(self, *, in_bytes: bool = True) -> str:
        """After which sizes the durations change slope or jump: how many breakpoints, and where.

        That one line holds is said only where whatever breakpoint there may be would change little.

        in_bytes : whether x are sizes in bytes, written as 4 KiB
        """
        size = size_text if in_bytes else "{:.7g}".format
        if not self.breakpoints:
            return self._without_breakpoint(size)
        places = [size(place) for place in self.breakpoints]
        listed = places[0] if len(places) == 1 else f"{', '.join(places[:-1])} and {places[-1]}"
        text = f"{counted(len(places), 'breakpoint')}, after {listed}"
        return self.decision.words(text, "", f"{text}, as was asked for; these data do not prove so many")

    @property
    def decision(self) -> Decision:
        """That there are breakpoints; where there is none, that one line holds is the contrary."""
        criteria = np.array([cut.criterion for cut in self.candidates])
        proven = fewest_segments_of_least(criteria) - 1 if len(criteria) > 1 else 0
        if not len(criteria):  # of several series together, which chose
            proven = len(self.breakpoints)
        likeliest = None if self.breakpoints else self._likeliest
        holds = likeliest is not None and likeliest.is_negligible
        return Decision.of(0 < len(self.breakpoints) <= proven, holds)

    @property
    def _likeliest(self) -> "LikeliestBreakpoint | None":
        from lepaute.fit.segmentation.search import likeliest_breakpoint

        return likeliest_breakpoint(self)

    def jumps(self, *, in_bytes: bool = True) -> list[tuple[str, str]]:
        """Of each breakpoint its place, and in words its 95 % interval and what the two lines say there, in seconds."""
        size = size_text if in_bytes else "{:.7g}".format
        found = []
        for number, (place, (low, high)) in enumerate(zip(self.breakpoints, self.breakpoint_intervals, strict=True)):
            above = self.segments[number + 1]
            here, next_s = seconds(float(self.predict([place])[0])), seconds(above.intercept + above.slope * place)
            found.append((size(place), f"95 %: {size(low)} to {size(high)}; {here} becomes {next_s}"))
        return found

    def _without_breakpoint(self, size: Callable[[float], str]) -> str:
        likeliest = self._likeliest
        if likeliest is None:
            return "No breakpoint can be proven with these data"
        if likeliest.is_negligible:
            return f"One line holds for all sizes, within {significant(max(100 * likeliest.at_most, 0.01), 2)} %"
        changed = significant(max(100 * likeliest.differs, 0.01), 2)
        return (
            f"No breakpoint can be proven with these data. The likeliest, after {size(likeliest.place)}, would "
            f"divide the residual by {significant(likeliest.gain)} and change the line by up to {changed} %"
        )


def _draw_segments(
    fitted: SegmentedLine,
    upper: Any,
    lower: Any,
    x_label: str,
    y_label: str,
    y_unit: float,
    size: "Callable[[float], str]",
) -> None:
    """Draws on one or two axes (lower may be None); size : of a value of x as text; see SegmentedLine.plot."""
    x, y = fitted.x, fitted.y
    logarithmic = bool(np.any(x > 0))
    positive = x > 0 if logarithmic else np.ones(len(x), dtype=bool)
    between = np.geomspace if logarithmic else np.linspace
    few = len(x) <= FEW
    points: dict[str, Any] = {
        "marker": "o" if few else ".",
        "ls": "",
        "ms": 4.5 if few else 4,
        "alpha": 1 if few else 0.5,
    }
    points |= {"color": MEASURED, "zorder": 3 if few else 1}  # few: above the lines, which would hide them
    upper.plot(x[positive], y[positive] / y_unit, label="measured", **points)
    for number, line in enumerate(fitted.segments):
        low = line.low if number == 0 else np.nextafter(line.low, np.inf)
        along = between(max(low, float(x[positive].min())), max(line.high, float(x[positive].min())), 200)
        label = "fitted lines" if number == 0 else None
        upper.plot(along, fitted.predict(along) / y_unit, color=PREDICTED, lw=1.8, label=label)
    predicted = fitted.predict(x)
    panels = (upper,) if lower is None else (upper, lower)
    if lower is not None:
        with np.errstate(divide="ignore", invalid="ignore"):
            lower.plot(x[positive], 100 * (y[positive] / predicted[positive] - 1), **points)
        lower.axhline(0.0, color=PREDICTED, lw=1.2)
        lower.set_ylabel("off the line (%)")
    for number, (place, (low, high)) in enumerate(zip(fitted.breakpoints, fitted.breakpoint_intervals, strict=True)):
        for axis in panels:
            label = "95 % interval of a breakpoint" if number == 0 else None
            axis.axvspan(low, high, color=PURPLE, alpha=0.22, lw=0, label=label)
            axis.axvline(place, color=PURPLE, lw=1.2, ls="--", label="breakpoint" if number == 0 else None)
        upper.annotate(
            size(place),
            (place, 0.98 - 0.06 * (number % 3)),  # neighbours at different heights
            xycoords=("data", "axes fraction"),
            xytext=(-4, 0),
            textcoords="offset points",
            fontsize=9,
            ha="right",
            va="top",
        )
    if logarithmic:
        upper.set_xscale("log")
        if size is size_text:
            sizes_of_memory(upper.xaxis, (float(x[positive].min()), float(x.max())))
    if np.all(y > 0):
        upper.set_yscale("log")
        plain_decades(upper.yaxis, (float(y.min()) / y_unit, float(y.max()) / y_unit))
    upper.set_ylabel(y_label)
    panels[-1].set_xlabel(x_label)
    upper.legend(frameon=False, loc="upper left", bbox_to_anchor=(0.0, 0.94), fontsize=9)
    for axis in panels:
        axis.grid(axis="y", color=RULE, lw=0.8)
        bare(axis)


def lines_of(points: Points, breakpoints: tuple[float, ...], constant: bool) -> tuple[Line, ...]:
    """The best line between each two neighbours of `breakpoints`."""
    bounds = [0, *np.searchsorted(points.x, breakpoints, side="right").tolist(), len(points)]
    series = points.series(points.x[-1:])
    lines = []
    for begin, end in zip(bounds[:-1], bounds[1:], strict=True):
        intercept, slope, _ = _core.best_line(series, begin, end, points.logarithmic, constant)
        low = float(points.x[begin] if begin == 0 else points.x[begin - 1])
        about = _intervals(points, slice(begin, end), intercept, slope, constant)
        repeats = int(points.repeats[begin:end].sum())
        lines.append(Line(low, float(points.x[end - 1]), intercept, slope, repeats, *about))
    return tuple(lines)


def _intervals(
    points: Points, part: slice, intercept: float, slope: float, constant: bool
) -> tuple[Interval, Interval]:
    """Intervals of intercept and slope that hold also where the noise is not that of the objective.

    Those of the logarithm come from the line's derivatives, and end at 0, which no coefficient goes below.
    """
    x, weight = points.x[part], points.weight[part]
    everything = (0.0 if points.logarithmic else -np.inf, np.inf)
    free = len(x) - (1 if constant else 2)
    if free < 1:
        return everything, (0.0, 0.0) if constant else everything
    fitted = intercept + slope * x
    by_slope = np.zeros_like(x) if constant else x
    jacobian: Floats = np.column_stack([np.ones_like(x), by_slope])
    residual = points.value[part] - fitted
    if points.logarithmic:
        jacobian = jacobian / fitted[:, None]
        residual = points.value[part] - np.log(fitted)
    active = np.array([True, not constant])
    half = student_quantile(0.5 + CONFIDENCE / 2, free) * np.sqrt(np.diag(sandwich(jacobian, residual, weight, active)))
    bottom = 0.0 if points.logarithmic else -np.inf
    both = [(max(bottom, float(at - by)), float(at + by)) for at, by in zip((intercept, slope), half, strict=True)]
    return both[0], both[1]


def breakpoint_intervals(
    points: Points, breakpoints: tuple[float, ...], residual: float, constant: bool, least: int
) -> tuple[Interval, ...]:
    """95 % interval of each breakpoint, its neighbours held where they are.

    residual : sum of squares of the whole fit
    A place belongs to it where twice the logarithm of its likelihood is no more than the critical value below that of
    the likeliest place; each side has a variance of its own, estimated anew for each place. Exact in the limit for
    small jumps (Hansen 2000, equation 13, with one variance), too wide for large ones: with the true lines and
    variances the likelihood ratio is a martingale in the points on either side, and goes beyond exp(c/2) with
    probability exp(-c/2) at most. The place that was chosen by least squares always belongs to it. The jump lies
    anywhere between a size of the lower segment and the next larger one, so the interval ends at that one.
    """
    if not breakpoints:
        return ()
    edges = _places(points, breakpoints)
    series = points.series(edges)
    by_edge = _Sides(points, edges, constant)
    free = max(1, len(points) - by_edge.coefficients_of_place * (len(breakpoints) + 1))
    variance = max(residual, points.least_residual) / free
    cuts = [0, *(np.searchsorted(edges, breakpoints) + 1).tolist(), len(edges)]
    result = []
    for (low, cut), high in zip(pairwise(cuts[:-1]), cuts[2:], strict=True):
        costs = np.array(_core.split_costs(series, low, high, points.logarithmic, constant, least))
        chosen = cut - low - 1
        # A breakpoint that was given and leaves too few points on one side is compared with no other place.
        near = by_edge.likely(costs, low, high, chosen, variance) if np.isfinite(costs[chosen]) else np.array([chosen])
        inside = near + low
        first, last = min(inside[0], cut - 1), max(inside[-1], cut - 1)
        above = points.x[points.x > edges[last]]
        result.append((float(edges[first]), float(above[0] if len(above) else points.x[-1])))
    return tuple(result)


class _Sides:
    """Sums of squares of the two sides of a place."""

    def __init__(self, points: Points, edges: Floats, constant: bool) -> None:
        self._points = points
        self._series = points.series(points.x[-1:])
        self._end = [0, *np.searchsorted(points.x, edges, side="right").tolist()]
        self._constant = constant
        self._coefficients = 1 if constant else 2
        self.coefficients_of_place = self._coefficients + 1

    def likely(self, costs: Floats, low: int, high: int, chosen: int, variance: float) -> Integers:
        """The places, from `low`, that belong to the interval."""
        widest = max(variance, *self._variances(self._of(low, chosen, high), variance))
        # Further away the mean alone rules a place out, whatever the variances.
        near = np.flatnonzero(costs - np.min(costs) <= MARGIN * CRITICAL * widest)
        sides = np.array([self._of(low, int(place), high) for place in near])  # (places, squares or numbers, sides)
        variances = self._variances(sides.swapaxes(0, 1), variance)
        deviance = np.sum(sides[:, 0] / variances + sides[:, 1] * np.log(variances), axis=1)
        result: Integers = near[deviance <= np.min(deviance) + CRITICAL].astype(np.int64)
        return result

    def _of(self, low: int, place: int, high: int) -> Floats:
        """Sums of squares of the sides of a place, and their numbers of points; shape (2, 2)."""
        begin, middle, end = self._end[low], self._end[low + place + 1], self._end[high]
        squares = [
            _core.best_line(self._series, one, other, self._points.logarithmic, self._constant)[2]
            for one, other in ((begin, middle), (middle, end))
        ]
        return np.array([squares, [middle - begin, end - middle]], dtype=np.float64)

    def _variances(self, sides: Floats, whole: float) -> Floats:
        free = sides[1] - self._coefficients
        own = sides[0] / np.maximum(free, 1.0)
        floor = self._points.least_residual / len(self._points)
        result: Floats = np.where(free >= ENOUGH_FOR_VARIANCE, np.maximum(own, floor), whole)
        return result


def _places(points: Points, breakpoints: tuple[float, ...]) -> Floats:
    """The ends of segments that are compared: all x, or of very many some, those that were chosen included."""
    result: Floats = np.union1d(thinned(points.x, MOST_CANDIDATES) if points.logarithmic else points.x, breakpoints)
    return result
