"""What a segmentation is: lines between breakpoints, in words and as a picture."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lepaute.kit import picture
from lepaute.kit.later import later, pandas
from lepaute.kit.notebook import table_html
from lepaute.kit.tables import text_table
from lepaute.kit.text import counted, seconds, significant, size_text
from lepaute.measure.fit.numeric import Floats
from lepaute.measure.fit.segmentation.points import (
    LEAST,
    Interval,
    Line,
    Objective,
    fewest_segments_of_least,
    lines_of,
    points_of,
)
from lepaute.stats.decision import Decision
from lepaute.stats.student import NORMAL_975

if TYPE_CHECKING:
    from matplotlib import axes as mpl_axes
else:
    mpl_axes = later("matplotlib.axes")

#: So many points are drawn large.
FEW = 100
#: Two lines whose values differ by less are one for whoever asks for breakpoints.
EQUIVALENT = 0.05
#: Parameters of two lines and their breakpoint.
_PARAMETERS = 5


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
            (s.low, s.high, s.n_points, s.intercept, *s.intercept_interval, s.slope, *s.slope_interval)
            for s in self.segments
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
        """For each number of breakpoints the objective, by what the last one divides it, where they are, and a mark at
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
        self, path: str | Path | None = None, *, x_label: str = "size (bytes)", y_label: str = "duration (s)",
        y_unit: float = 1.0, in_bytes: bool = True, source: str = "", ax: "mpl_axes.Axes | None" = None,
    ) -> Any:  # fmt: skip
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
            figure = picture.new_figure((9.0, 6.6), for_file=path is not None)
            upper, lower = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": [3, 1]})
        else:
            figure, upper, lower = picture.own_figure(ax), ax, None
        _draw_segments(self, upper, lower, x_label, y_label, y_unit, size)
        if ax is None:
            foot = f"{source or 'points'}: {counted(len(self.x), 'duration')}, objective {self.objective}"
            picture.entitle(figure, finding, picture.measured_origin(foot))
            picture.shown_once(figure, target)
        else:
            ax.set_title(finding, loc="left", fontsize=9)
        if target is not None:
            picture.write_picture(figure, target)
        return figure if ax is None else ax

    def finding(self, *, in_bytes: bool = True) -> str:
        """After which sizes the durations change slope or jump: how many breakpoints, and where.

        That one line holds is said only where whatever breakpoint there may be would change little.

        in_bytes : whether x are sizes in bytes, written as 4 KiB
        """
        size = size_text if in_bytes else "{:.7g}".format
        if not self.breakpoints:
            return self._without_breakpoint(size)
        changes = self.changes()
        large, small = ([size(place) for place in changes if (changes[place] >= 1.0) is side] for side in (True, False))
        places = " and ".join(filter(None, (", ".join(large[:-1]), *large[-1:])))
        text = f"{counted(len(large), 'breakpoint')}, after {places}" if large else "No breakpoint of weight"
        if small:
            text += f" (and after {', '.join(small)}, where durations change by less than they scatter)"
        return self.decision.words(text, "", f"{text}, as was asked for; these data do not prove so many")

    def changes(self) -> dict[float, float]:
        """For each breakpoint, by how many times the scatter of durations the line changes without it.

        Root mean square over the sizes of its two segments, one line in their place, over 1.4826 times the median
        absolute residual there; of logarithms with the logarithmic objective. As long as the least is below 1 that
        breakpoint is dropped, and the others are computed without it: of two that carry one jump one stays.
        """
        points = points_of(self.x, self.y, self.objective)
        x, kept, result = points.x, self.breakpoints, dict[float, float]()

        def line(cuts: tuple[float, ...]) -> Floats:
            values = SegmentedLine(cuts, lines_of(points, cuts, self._is_constant), ()).predict(x)
            return np.log(values) if points.logarithmic else values

        scale = x if self.objective == "weighted" else np.ones(len(points))
        scatter = 1.4826 * np.abs(points.value - line(kept)) / scale
        while kept:
            bounds, ratios = (-np.inf, *kept, np.inf), {}
            for number, place in enumerate(kept):
                near = (x > bounds[number]) & (x <= bounds[number + 2])
                change = (line((*kept[:number], *kept[number + 1 :])) - line(kept)) / scale
                ratios[place] = float(np.sqrt(np.mean(change[near] ** 2)) / max(np.median(scatter[near]), LEAST))
            least = min(kept, key=ratios.__getitem__)
            result |= ratios if ratios[least] >= 1.0 else {least: ratios[least]}
            kept = () if ratios[least] >= 1.0 else tuple(place for place in kept if place != least)
        return dict(sorted(result.items()))

    @property
    def _is_constant(self) -> bool:
        return all(line.slope_interval == (0.0, 0.0) for line in self.segments)

    def rejected(self) -> "SegmentedLine | None":
        """The best lines with one breakpoint more than were chosen; None if there is no such fit."""
        more = self.candidates[len(self.breakpoints) + 1 :][:1]
        if not more or not len(self.x):
            return None
        points = points_of(self.x, self.y, self.objective)
        return SegmentedLine(more[0].breakpoints, lines_of(points, more[0].breakpoints, self._is_constant), ())

    @property
    def decision(self) -> Decision:
        """Whether there are breakpoints; if there is none, that one line holds is the contrary."""
        criteria = np.array([cut.criterion for cut in self.candidates])
        proven = fewest_segments_of_least(criteria) - 1 if len(criteria) > 1 else 0
        if not len(criteria):  # of several series together, which chose
            proven = len(self.breakpoints)
        likeliest = None if self.breakpoints else likeliest_breakpoint(self)
        return Decision.of(0 < len(self.breakpoints) <= proven, likeliest is not None and likeliest.is_negligible)

    def jumps(self, *, in_bytes: bool = True) -> list[tuple[str, str]]:
        """Each breakpoint's place, and in words its 95 % interval and what the two lines say there, in seconds."""
        size, changes = size_text if in_bytes else "{:.7g}".format, self.changes()
        found = []
        for number, (place, (low, high)) in enumerate(zip(self.breakpoints, self.breakpoint_intervals, strict=True)):
            above, ratio = self.segments[number + 1], changes[place]
            here, next_s = seconds(float(self.predict([place])[0])), seconds(above.intercept + above.slope * place)
            little = f"; without it lines change by {significant(ratio, 2)} of the scatter" if ratio < 1.0 else ""
            found.append((size(place), f"95 %: {size(low)} to {size(high)}; {here} becomes {next_s}{little}"))
        return found

    def _without_breakpoint(self, size: Callable[[float], str]) -> str:
        likeliest = likeliest_breakpoint(self)
        if likeliest is None:
            return "No breakpoint can be proven with these data"
        if likeliest.is_negligible:
            return (
                f"One line holds for all sizes, within {significant(max(100 * likeliest.differs_at_most, 0.01), 2)} %"
            )
        changed = significant(max(100 * likeliest.differs, 0.01), 2)
        return (
            f"No breakpoint can be proven with these data. The likeliest, after {size(likeliest.size)}, would "
            f"divide the residual by {significant(likeliest.gain)} and change the line by up to {changed} %"
        )


def _draw_segments(
    fitted: SegmentedLine,
    upper: Any,
    lower: Any,
    x_label: str,
    y_label: str,
    y_unit: float,
    size: Callable[[float], str],
) -> None:
    """Draws on one or two axes (lower may be None); size : of a value of x as text; see SegmentedLine.plot."""
    x, y = fitted.x, fitted.y
    logarithmic = bool(np.any(x > 0) and np.all(x >= 0))
    least = float(x[x > 0].min()) if logarithmic else float(x.min())
    at = np.where(x > 0, x, least / 2) if logarithmic else x  # a size of 0 stands left of the least
    between = np.geomspace if logarithmic else np.linspace
    few = len(x) <= FEW
    points: dict[str, Any] = {
        "marker": "o" if few else ".",
        "ls": "",
        "ms": 4.5 if few else 4,
        "alpha": 1 if few else 0.5,
    }
    points |= {"color": picture.MEASURED, "zorder": 3 if few else 1}  # few: above the lines, which would hide them
    upper.plot(at, y / y_unit, label="measured", **points)
    _draw_fits(fitted, upper, lower, least, between, y_unit)
    predicted = fitted.predict(x)
    panels = (upper,) if lower is None else (upper, lower)
    if lower is not None:
        with np.errstate(divide="ignore", invalid="ignore"):
            lower.plot(at, 100 * (y / predicted - 1), **points)
        lower.set_ylabel("off the line (%)")
    for number, (place, (low, high)) in enumerate(zip(fitted.breakpoints, fitted.breakpoint_intervals, strict=True)):
        for axis in panels:
            label = "95 % interval of a breakpoint" if number == 0 else None
            axis.axvspan(low, high, color=picture.PURPLE, alpha=0.22, lw=0, label=label)
            axis.axvline(place, color=picture.PURPLE, lw=1.2, ls="--", label="breakpoint" if number == 0 else None)
        upper.annotate(
            size(place),
            (place, 0.98 - 0.06 * (number % 3)),  # neighbours at different heights
            xycoords=("data", "axes fraction"), xytext=(-4, 0), textcoords="offset points",
            fontsize=9, ha="right", va="top",
        )  # fmt: skip
    if logarithmic:
        upper.set_xscale("log")
        if size is size_text:
            picture.sizes_of_memory(upper.xaxis, (least, float(x.max())))
        if np.any(x == 0):
            upper.xaxis.set_ticks([least / 2], [size(0)], minor=True)
    if np.all(y > 0):
        upper.set_yscale("log")
        picture.plain_decades(upper.yaxis, (float(y.min()) / y_unit, float(y.max()) / y_unit))
    upper.set_ylabel(y_label)
    panels[-1].set_xlabel(x_label)
    upper.legend(frameon=False, loc="upper left", bbox_to_anchor=(0.0, 0.94), fontsize=9)
    for axis in panels:
        axis.grid(axis="y", color=picture.RULE, lw=0.8)
        picture.bare(axis)


def _draw_fits(
    fitted: SegmentedLine, upper: Any, lower: Any, least: float, between: Callable[..., Floats], y_unit: float
) -> None:
    """The lines that were chosen and, dashed, those that were rejected; least : the least x that is drawn."""
    styles: list[tuple[SegmentedLine, str, dict[str, Any]]] = [
        (fitted, "fitted lines", {"color": picture.PREDICTED, "lw": 1.8})
    ]
    if (rejected := fitted.rejected()) is not None:
        dashed = {"color": picture.APART, "lw": 1.2, "ls": "--", "zorder": 1.5}
        styles.append((rejected, "one breakpoint more: not chosen", dashed))
    for lines, named, style in styles:
        for number, line in enumerate(lines.segments):
            low = line.low if number == 0 else np.nextafter(line.low, np.inf)
            along = between(max(low, least), max(line.high, least), 200)
            upper.plot(along, lines.predict(along) / y_unit, label=named if number == 0 else None, **style)
            if lower is not None:
                lower.plot(along, 100 * (lines.predict(along) / fitted.predict(along) - 1), **style)


@dataclass(frozen=True, slots=True)
class LikeliestBreakpoint:
    """The best of all breakpoints, where none was proven.

    size : the last x below it;  gain : the factor by which it divides the residual
    differs : by how much of the one line's values its two lines differ from them at most, at any x that was measured
    differs_at_most : upper end of that, 97.5 %, each x by itself; the place was chosen to make it large, so that it is
        no less
    """

    size: float
    gain: float
    differs: float
    differs_at_most: float

    @property
    def is_negligible(self) -> bool:
        """Whether one line holds for all x within EQUIVALENT, whatever breakpoint there may be."""
        return self.differs_at_most <= EQUIVALENT


def likeliest_breakpoint(line: "SegmentedLine") -> LikeliestBreakpoint | None:
    """Likeliest breakpoint of a line without breakpoints; None if the points allow none."""
    points, two = points_of(line.x, line.y, line.objective), line.rejected()
    if two is None:
        return None
    ((place,), x, fitted) = two.breakpoints, points.x, two.predict(points.x)
    differs = np.abs(fitted / line.predict(x) - 1.0)
    below = x <= place
    count = np.where(below, np.count_nonzero(below), np.count_nonzero(~below))
    # Of a line of n points at its end, 2 / sqrt(n) of the scatter; of two points the scatter itself.
    typical = np.exp(points.value) if points.logarithmic else points.value
    scatter = float(np.sqrt(np.sum((typical / fitted - 1.0) ** 2) / max(len(points) - _PARAMETERS, 1)))
    error = scatter * np.minimum(1.0, 2.0 / np.sqrt(count))
    return LikeliestBreakpoint(
        place, line.gains[0], float(np.max(differs)), float(np.max(differs + NORMAL_975 * error))
    )
