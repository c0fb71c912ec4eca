"""The picture of a verification of many cases: predicted against measured, a point a case."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lepaute.kit.files import whole_file
from lepaute.kit.notebook import plain_decades

if TYPE_CHECKING:
    import pandas

MEASURED = "#d1495b"
INTERVAL = "#3b6ea5"
DISTURBED = "#7a7a7a"
MARKERS = "osD^vP*X<>"
MOST_NAMED = 10  # grids of the legend


def scatter(table: "pandas.DataFrame", path: Path, title: str) -> None:
    """Write a PNG: the predicted duration and its interval over the measured mean, on one scale, a marker a grid.

    Filled where the mean is inside the interval, hollow where it is outside, grey where every run was disturbed.
    table: as of comparison.compare
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    figure = Figure(figsize=(8.0, 7.0), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.add_subplot()
    grids = list(dict.fromkeys(zip(table["p"], table["q"], strict=True)))
    markers = {grid: MARKERS[place % len(MARKERS)] for place, grid in enumerate(grids)}
    for row in table.to_dict("records"):
        _draw_case(axis, row, markers[row["p"], row["q"]])
    ends = _ends(table)
    axis.plot(ends, ends, color="#555555", lw=0.9, ls="--", zorder=1)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlim(*ends)
    axis.set_ylim(*ends)
    axis.set_aspect("equal")
    for each in (axis.xaxis, axis.yaxis):
        plain_decades(each, ends)
    axis.grid(color="#e8e8e8", lw=0.8)
    axis.set_axisbelow(True)
    axis.set_xlabel("measured, mean of the runs (s)")
    axis.set_ylabel("predicted (s)")
    handles: list[Any] = [
        Line2D([], [], color=INTERVAL, alpha=0.45, lw=1.4, label="95 % prediction interval for one run"),
        Line2D([], [], color="#555555", lw=0.9, ls="--", label="predicted = measured"),
        *(
            Line2D([], [], color=MEASURED, marker=markers[grid], ls="none", ms=5, label=f"grid {grid[0]} × {grid[1]}")
            for grid in grids[:MOST_NAMED]
        ),
    ]
    if len(grids) > MOST_NAMED:
        handles.append(Line2D([], [], ls="none", label=f"and {len(grids) - MOST_NAMED} more grids"))
    if (table["inside_interval"] == False).any():  # noqa: E712  (None is neither)
        handles.append(Line2D([], [], mec=MEASURED, mfc="white", marker="o", ls="none", ms=5, label="hollow: outside"))
    if table["only_disturbed"].any():
        label = "grey: every run disturbed by other load"
        handles.append(Line2D([], [], color=DISTURBED, marker="o", ls="none", ms=5, label=label))
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    figure.suptitle(title, fontsize=12)
    with whole_file(path) as temporary:
        figure.savefig(temporary, format="png")


def _draw_case(axis: Any, row: dict[Any, Any], marker: str) -> None:
    measured, mean = row["measured_time_s"], row["predicted_time_s"]
    if row["low_s"] > 0.0:  # neither without interval, nor where it reaches a duration of zero
        axis.plot([measured] * 2, [row["low_s"], row["high_s"]], color=INTERVAL, alpha=0.45, lw=1.4, zorder=2)
    colour = DISTURBED if row["only_disturbed"] else MEASURED
    face = "white" if row["inside_interval"] is False else colour
    axis.plot(measured, mean, marker, ms=4.5, mec=colour, mfc=face, mew=1.0, zorder=3)


def _ends(table: "pandas.DataFrame") -> tuple[float, float]:
    """The lowest and highest duration of the picture, s, with some room."""
    drawn = table[["measured_time_s", "predicted_time_s", "low_s", "high_s"]].to_numpy().ravel()
    positive = [float(value) for value in drawn if value > 0.0]  # NaN is not
    return min(positive) / 1.15, max(positive) * 1.15
