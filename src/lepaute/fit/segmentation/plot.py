"""A picture of a segmentation."""

from pathlib import Path
from typing import Any

import numpy as np

from lepaute.fit.segmentation.result import SegmentedLine
from lepaute.kit.files import whole_file

#: So many points are drawn large.
FEW = 100


def plot_segments(fitted: SegmentedLine, path: Path, x_label: str, y_label: str, y_unit: float = 1.0) -> None:
    """Writes a PNG; see SegmentedLine.plot. Axes are logarithmic where all that they show is above zero."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 6.4), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    upper, lower = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": [3, 1]})
    x, y = fitted.x, fitted.y
    logarithmic = bool(np.any(x > 0))
    positive = x > 0 if logarithmic else np.ones(len(x), dtype=bool)
    between = np.geomspace if logarithmic else np.linspace
    few = len(x) <= FEW
    points: dict[str, Any] = {
        "marker": "o" if few else ".",
        "ls": "",
        "ms": 5 if few else 4,
        "alpha": 1 if few else 0.6,
    }
    points |= {"color": "#7a8794", "zorder": 3 if few else 1}  # few: above the lines, which would hide them
    upper.plot(x[positive], y[positive] / y_unit, label="measured", **points)
    for number, line in enumerate(fitted.segments):
        low = line.low if number == 0 else np.nextafter(line.low, np.inf)
        along = between(max(low, float(x[positive].min())), max(line.high, float(x[positive].min())), 200)
        label = "fitted" if number == 0 else None
        upper.plot(along, fitted.predict(along) / y_unit, color="#c1440e", lw=1.8, label=label)
    predicted = fitted.predict(x)
    with np.errstate(divide="ignore", invalid="ignore"):
        lower.plot(x[positive], 100 * (y[positive] / predicted[positive] - 1), **points)
    lower.axhline(0.0, color="#c1440e", lw=1.2)
    for number, (place, (low, high)) in enumerate(zip(fitted.breakpoints, fitted.breakpoint_intervals, strict=True)):
        for axis in (upper, lower):
            axis.axvspan(low, high, color="#2b6cb0", alpha=0.15, lw=0)
            axis.axvline(place, color="#2b6cb0", lw=1.0, ls="--")
        upper.annotate(
            f"{place:.7g}",
            (place, 0.02 + 0.15 * (number % 3)),  # neighbours at different heights
            xycoords=("data", "axes fraction"),
            rotation=90,
            fontsize=8,
            ha="right",
            va="bottom",
            color="#2b6cb0",
        )
    if logarithmic:
        upper.set_xscale("log")
    if np.all(y > 0):
        upper.set_yscale("log")
    upper.set_ylabel(y_label)
    lower.set_xlabel(x_label)
    lower.set_ylabel("off the line, %")
    upper.legend(frameon=False, loc="upper left")
    for axis in (upper, lower):
        axis.spines[["top", "right"]].set_visible(False)
    with whole_file(path) as temporary:
        figure.savefig(temporary, format="png")
