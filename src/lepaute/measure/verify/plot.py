"""The picture of a verification: what was predicted and what was measured, side by side, or over each other."""

import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lepaute.kit.later import later, pandas
from lepaute.kit.picture import (
    APART,
    GREEN,
    MEASURED,
    PREDICTED,
    RULE,
    SOFT,
    bare,
    entitle,
    new_figure,
    plain_decades,
    shown_once,
    write_picture,
)
from lepaute.measure.verify.comparison import decision_of, sentence
from lepaute.measure.verify.naming import panels_of, varied_columns

if TYPE_CHECKING:
    from matplotlib import lines, patches
    from matplotlib.figure import Figure
else:
    patches = later("matplotlib.patches")
    lines = later("matplotlib.lines")

DISTURBED, WITHOUT_DRIFT = APART, GREEN
OFFSET = 0.18  # of predictions to the left and runs to the right of their case, in units of the categories
HALF_WIDTH = 0.13  # of an interval, and of the spread of the runs of a case
CASE_INCHES = 0.68  # a case needs for its numbers, side by side with others
GRID_INCHES = 3.2
#: A picture wider than this shows predicted against measured instead.
MAX_INCHES = 24.0
# Smallest reach of the axis of errors, so that an error of 1 % never fills the picture.
MIN_REACH_PERCENT = 8.0


def plot(
    table: "pandas.DataFrame",
    runs: "pandas.DataFrame",
    path: Path | None,
    title: str,
    foot: str,
    *,
    known: bool = False,
) -> "Figure":
    """A column of panels a grid, the cases side by side; of more cases than fit, see `_scatter`. Returns the figure.

    Below each case is what tells it from the others of its grid: N, and block size and algorithms where they vary. Of
    another application than HPL a column is a number of ranks. Above Gflop/s from zero, or durations; below durations
    relative to the measured mean, where the predicted one stands at error_percent and the signs are those of the table.
    table: as of comparison.compare; runs: columns case, time_s, disturbed.
    path: of `picture_files`; title: of the subject, below the finding; foot: what it was made of
    known: the runs were made before they were predicted
    Intervals are those of the predicted duration, turned into rates, so that a run inside one is inside the other.
    """
    panels, is_hpl = panels_of(table), "n" in table
    sizes = Counter(panels)
    widths = [max(GRID_INCHES, CASE_INCHES * size) for size in sizes.values()]
    if sum(widths) > MAX_INCHES:
        return _finished(_scatter(table, path), table, path, title, foot)
    varied = varied_columns(table)
    figure = new_figure((max(7.0, 2.2 + sum(widths)), 7.6 + 0.2 * len(varied)), for_file=path is not None)
    axes = figure.subplots(
        2, len(sizes), squeeze=False, sharey="row", sharex="col", height_ratios=(1.0, 1.1), width_ratios=widths
    )
    reach = _reach_percent(table, runs)
    for column, panel in enumerate(sizes):
        rows = table[[each == panel for each in panels]]
        rows = rows.sort_values(["n", "nb", "variant"] if is_hpl else ["case"]).reset_index(drop=True)
        top, bottom = axes[0][column], axes[1][column]
        top.set_title(panel, fontsize=10)
        bottom.set_xlabel("\n".join(["order of the matrix, N" if is_hpl else "case", *varied.values()]))
        bottom.axhline(0, color=SOFT, lw=0.8, zorder=1)
        for position, row in enumerate(rows.to_dict("records")):
            case_runs = runs[runs["case"] == row["case"]]
            _draw_rates(top, position, row, case_runs)
            _draw_errors(bottom, position, row, case_runs, reach)
        labels = [
            "\n".join([f"{row['n']:,}", *(str(row[key]) for key in varied)])
            if is_hpl
            else row["varied"].replace(", ", "\n")
            for row in rows.to_dict("records")
        ]
        bottom.set_xticks(range(len(rows)), labels, fontsize=8 if varied else None)
        for axis in (top, bottom):
            axis.set_xlim(-0.6, len(rows) - 0.4)
            axis.grid(axis="y", color=RULE, lw=0.8)
            bare(axis)
    axes[0][0].set_ylim(0, None)
    axes[1][0].set_ylim(-1.25 * reach, 1.25 * reach)  # room for the numbers
    axes[0][0].set_ylabel("rate of the solver (Gflop/s)" if is_hpl else "duration (s)", fontsize=9)
    axes[1][0].set_ylabel("duration, off the measured mean (%)", fontsize=9)
    any_drift = any(_has_drift(row) for row in table.to_dict("records"))
    handles = _legend_handles(bool(runs["disturbed"].astype(bool).any()), any_drift, known)
    columns = 1 if len(sizes) == 1 else 2
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False, fontsize=9)
    return _finished(figure, table, path, title, foot)


def _finished(figure: "Figure", table: "pandas.DataFrame", path: Path | None, title: str, foot: str) -> "Figure":
    """With the finding, which is the first sentence of what is printed, and its file."""
    finding = sentence(table).split("\n")[0]
    entitle(figure, f"{finding}\n{title}", foot)
    if path is not None:
        write_picture(figure, path)
    return shown_once(figure, path)


def _draw_rates(axis: Any, position: int, row: dict[Any, Any], runs: "pandas.DataFrame") -> None:
    """Rates of HPL; durations of what has none."""
    if "flop_count" not in row:
        _draw_prediction(axis, position, row["predicted_time_s"], row["low_s"], row["high_s"])
        _draw_runs(axis, position, list(runs["time_s"]), list(runs["disturbed"]), row["measured_time_s"])
        return
    gigaflop = row["flop_count"] / 1e9
    rates = [gigaflop / time_s for time_s in runs["time_s"]]
    mean = row["predicted_rate_gflops"]
    # An interval so wide that it holds a duration of zero has no highest rate: it ends somewhat above the rest.
    highest = 1.2 * max(mean, *rates) if row["low_s"] <= 0 else gigaflop / row["low_s"]
    _draw_prediction(axis, position, mean, gigaflop / row["high_s"], highest)
    _draw_runs(axis, position, rates, list(runs["disturbed"]), row["measured_rate_gflops"])


def _draw_errors(axis: Any, position: int, row: dict[Any, Any], runs: "pandas.DataFrame", reach: float) -> None:
    measured = float(row["measured_time_s"])

    def percent(time_s: float) -> float:
        return 100 * (time_s - measured) / measured

    _draw_prediction(axis, position, *(percent(row[key]) for key in ("predicted_time_s", "low_s", "high_s")))
    # A disturbed run may last twice as long: it is kept at the edge of the picture rather than shrink all the others.
    values = [percent(time_s) for time_s in runs["time_s"]]
    _draw_runs(axis, position, values, list(runs["disturbed"]), 0.0, edge=1.22 * reach)
    if _has_drift(row):
        without = percent(row["measured_without_drift_s"])
        axis.plot(
            position + OFFSET + HALF_WIDTH, without, "D", ms=5.0, mec=WITHOUT_DRIFT, mfc="white", mew=1.3, zorder=5
        )
    outside = decision_of(row).answer == "against"
    ends = [percent(row[key]) for key in ("predicted_time_s", "low_s", "high_s") if not math.isnan(row[key])]
    below = max(ends) < 0  # then the number goes below too, away from the line of zero
    axis.annotate(
        f"{row['error_percent']:+.1f} %".replace("-", "\N{MINUS SIGN}") + ("\noutside" if outside else ""),
        (position - OFFSET, min(ends) if below else max(ends)),
        xytext=(0, -4 if below else 4),
        textcoords="offset points",
        ha="center",
        va="top" if below else "bottom",
        fontsize=9,
        fontweight="bold" if outside else None,
        color=PREDICTED,
    )


def _draw_prediction(axis: Any, position: int, mean: float, low: float, high: float) -> None:
    left = position - OFFSET - HALF_WIDTH
    if not math.isnan(high - low):
        axis.add_patch(
            patches.Rectangle((left, low), 2 * HALF_WIDTH, high - low, color=PREDICTED, alpha=0.28, lw=0, zorder=2)
        )
    axis.plot([left, left + 2 * HALF_WIDTH], [mean, mean], color=PREDICTED, lw=2.0, zorder=3)


def _draw_runs(
    axis: Any, position: int, values: list[float], disturbed: list[bool], mean: float, edge: float = float("inf")
) -> None:
    """Dots from left to right in the order of the runs, and their mean; beyond `edge`, a triangle at the edge."""
    centre = position + OFFSET
    axis.plot([centre - HALF_WIDTH, centre + HALF_WIDTH], [mean, mean], color=MEASURED, lw=1.4, zorder=3)
    for index, (value, hollow) in enumerate(zip(values, disturbed, strict=True)):
        place = centre + HALF_WIDTH * (2 * (index + 0.5) / len(values) - 1)
        colour, face = (DISTURBED, "white") if hollow else (MEASURED, MEASURED)
        marker = "^" if value > edge else "o"
        axis.plot(place, min(value, edge), marker, ms=4.5, mec=colour, mfc=face, mew=1.1, ls="none", zorder=4)


def _reach_percent(table: "pandas.DataFrame", runs: "pandas.DataFrame") -> float:
    reach = MIN_REACH_PERCENT
    for row in table.to_dict("records"):
        case_runs = runs[(runs["case"] == row["case"]) & ~runs["disturbed"].astype(bool)]
        drawn = (row["measured_without_drift_s"],) if _has_drift(row) else ()
        for time_s in (row["predicted_time_s"], row["low_s"], row["high_s"], *case_runs["time_s"], *drawn):
            if not math.isnan(time_s):
                reach = max(reach, abs(100 * (time_s / row["measured_time_s"] - 1)))
    return 1.1 * reach


def _has_drift(row: dict[Any, Any]) -> bool:
    """Whether what the machine drifted by since its calibration is known of a case."""
    return not math.isnan(row.get("measured_without_drift_s", math.nan))


def _legend_handles(any_disturbed: bool, any_drift: bool, known: bool) -> list[Any]:
    predicted = "predicted" if known else "predicted before the runs"
    handles: list[Any] = [
        patches.Patch(color=PREDICTED, alpha=0.28, lw=0, label=f"{predicted}: 95 % interval for one run"),
        lines.Line2D([], [], color=PREDICTED, lw=2.0, label="predicted mean, with its error"),
        lines.Line2D([], [], color=MEASURED, marker="o", ms=4.5, lw=1.4, label="measured: every run, and their mean"),
    ]
    if any_disturbed:
        label = "run disturbed by other load: not in the mean (triangle: off scale)"
        handles.append(lines.Line2D([], [], mec=DISTURBED, mfc="white", marker="o", ms=4.5, ls="none", label=label))
    if any_drift:
        label = "measured mean, the machine's drift taken out"
        handles.append(lines.Line2D([], [], mec=WITHOUT_DRIFT, mfc="white", marker="D", ms=5.0, ls="none", label=label))
    return handles


MARKERS = "osD^vP*X<>"
MAX_NAMED = 10  # grids of the legend


def _scatter(table: "pandas.DataFrame", path: Path | None) -> "Figure":
    """The predicted duration and its interval over the measured mean, on one scale, a marker a grid."""
    figure = new_figure((8.0, 7.6), for_file=path is not None)
    axis = figure.add_subplot()
    panels = panels_of(table)
    grids = list(dict.fromkeys(panels))
    markers = {grid: MARKERS[place % len(MARKERS)] for place, grid in enumerate(grids)}
    for row, panel in zip(table.to_dict("records"), panels, strict=True):
        _draw_case(axis, row, markers[panel])
    drawn = table[["measured_time_s", "predicted_time_s", "low_s", "high_s"]].to_numpy().ravel()
    positive = [float(value) for value in drawn if value > 0.0]  # NaN is not
    ends = min(positive) / 1.15, max(positive) * 1.15
    axis.plot(ends, ends, color=SOFT, lw=0.9, ls="--", zorder=1)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlim(*ends)
    axis.set_ylim(*ends)
    axis.set_aspect("equal")
    for each in (axis.xaxis, axis.yaxis):
        plain_decades(each, ends)
    axis.grid(color=RULE, lw=0.8)
    bare(axis)
    axis.set_xlabel("measured, mean of the runs (s)")
    axis.set_ylabel("predicted (s)")
    handles: list[Any] = [
        lines.Line2D([], [], color=PREDICTED, alpha=0.45, lw=1.4, label="95 % prediction interval for one run"),
        lines.Line2D([], [], color=SOFT, lw=0.9, ls="--", label="predicted = measured"),
        *(
            lines.Line2D([], [], color=MEASURED, marker=markers[grid], ls="none", ms=5, label=grid)
            for grid in grids[:MAX_NAMED]
        ),
    ]
    if len(grids) > MAX_NAMED:
        handles.append(lines.Line2D([], [], ls="none", label=f"and {len(grids) - MAX_NAMED} more grids"))
    if any(decision_of(row).answer == "against" for row in table.to_dict("records")):
        handles.append(
            lines.Line2D([], [], mec=MEASURED, mfc="white", marker="o", ls="none", ms=5, label="hollow: outside")
        )
    if table["only_disturbed"].any():
        label = "grey: every run disturbed by other load"
        handles.append(lines.Line2D([], [], color=DISTURBED, marker="o", ls="none", ms=5, label=label))
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def _draw_case(axis: Any, row: dict[Any, Any], marker: str) -> None:
    measured, mean = row["measured_time_s"], row["predicted_time_s"]
    if row["low_s"] > 0.0:  # neither without interval, nor where it reaches a duration of zero
        axis.plot([measured] * 2, [row["low_s"], row["high_s"]], color=PREDICTED, alpha=0.45, lw=1.4, zorder=2)
    colour = DISTURBED if row["only_disturbed"] else MEASURED
    face = "white" if decision_of(row).answer == "against" else colour
    axis.plot(measured, mean, marker, ms=4.5, mec=colour, mfc=face, mew=1.0, zorder=3)
