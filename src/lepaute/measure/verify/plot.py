"""The picture of a verification: what was predicted and what was measured, side by side, or over each other."""

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lepaute.kit import picture
from lepaute.kit.later import later, pandas
from lepaute.measure.verify.comparison import decision_of, error_text, finding
from lepaute.measure.verify.naming import panels_of, varied_columns

if TYPE_CHECKING:
    from matplotlib import lines, patches
    from matplotlib.figure import Figure
else:
    patches = later("matplotlib.patches")
    lines = later("matplotlib.lines")

DISTURBED, WITHOUT_DRIFT = picture.APART, picture.GREEN
OFFSET = 0.18  # of predictions to the left and runs to the right of their case, in units of the categories
HALF_WIDTH = 0.13  # of an interval, and of the spread of the runs of a case
#: A case needs for its numbers, side by side with others; for its name, too, where block size or algorithms vary.
CASE_INCHES, NAMED_INCHES = 0.68, 0.78
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
    Intervals are those of the predicted duration, turned into rates, so that a run inside one is inside the other. They
    leave at least half of the height to means and runs: beyond that they are cut, with a triangle at the edge.
    """
    panels, is_hpl, varied = panels_of(table), "n" in table, varied_columns(table)
    sizes = Counter(panels)
    widths = [max(GRID_INCHES, (NAMED_INCHES if varied else CASE_INCHES) * size) for size in sizes.values()]
    if sum(widths) > MAX_INCHES:
        return _finished(_scatter(table, path), table, path, title, foot)
    figure = picture.new_figure((max(7.0, 2.2 + sum(widths)), 7.6 + 0.2 * len(varied)), for_file=path is not None)
    axes = figure.subplots(
        2, len(sizes), squeeze=False, sharey="row", sharex="col", height_ratios=(1.0, 1.1), width_ratios=widths
    )
    reach, most = _reach(table, runs, _percent, MIN_REACH_PERCENT), _reach(table, runs, _rate)
    for column, panel in enumerate(sizes):
        rows = table[[each == panel for each in panels]]
        rows = rows.sort_values(["n", "nb", "variant"] if is_hpl else ["case"]).reset_index(drop=True)
        top, bottom = axes[0][column], axes[1][column]
        top.set_title(panel, fontsize=10)
        bottom.set_xlabel(", ".join(["order of the matrix, N" if is_hpl else "case", *varied.values()]))
        bottom.axhline(0, color=picture.SOFT, lw=0.8, zorder=1)
        for position, row in enumerate(rows.to_dict("records")):
            case_runs = runs[runs["case"] == row["case"]]
            _draw_case_at(top, position, row, case_runs, _rate, most)
            _draw_errors(bottom, position, row, case_runs, reach)
        labels = [
            "\n".join([f"{row['n']:,}", *(str(row[key]) for key in varied)])
            if is_hpl
            else row["varied"].replace(", ", "\n")
            for row in rows.to_dict("records")
        ]
        bottom.set_xticks(range(len(rows)), labels, fontsize=9 if varied else None)
        for axis in (top, bottom):
            axis.set_xlim(-0.6, len(rows) - 0.4)
            axis.grid(axis="y", color=picture.RULE, lw=0.8)
            picture.bare(axis)
    axes[0][0].set_ylim(0, 1.05 * most)
    axes[1][0].set_ylim(-1.25 * reach, 1.25 * reach)  # room for the numbers
    axes[0][0].set_ylabel("rate of the solver (Gflop/s)" if is_hpl else "duration (s)", fontsize=9)
    axes[1][0].set_ylabel("duration, off the measured mean (%)", fontsize=9)
    any_drift = any(_has_drift(row) for row in table.to_dict("records"))
    handles = _legend_handles(bool(runs["disturbed"].astype(bool).any()), any_drift, known)
    columns = 1 if len(sizes) == 1 else 2
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False, fontsize=9)
    return _finished(figure, table, path, title, foot)


def _finished(figure: "Figure", table: "pandas.DataFrame", path: Path | None, title: str, foot: str) -> "Figure":
    """With the finding and its file."""
    picture.entitle(figure, f"{finding(table)}\n{title}", foot)
    if path is not None:
        picture.write_picture(figure, path)
    return picture.shown_once(figure, path)


def _rate(row: dict[Any, Any], time_s: float) -> float:
    """The rate of HPL; the duration of what has none."""
    if "flop_count" not in row:
        return time_s
    return float(row["flop_count"]) / 1e9 / time_s if time_s > 0 else math.inf


def _percent(row: dict[Any, Any], time_s: float) -> float:
    """How far off the measured mean."""
    return 100 * (time_s / float(row["measured_time_s"]) - 1)


def _draw_case_at(
    axis: Any, position: int, row: dict[Any, Any], runs: "pandas.DataFrame", of: Callable[..., float], edge: float
) -> list[float]:
    """Rates or errors of the prediction and the runs; returns those of the prediction and the ends of its interval."""
    mean, *ends = (of(row, row[key]) for key in ("predicted_time_s", "low_s", "high_s"))
    _draw_prediction(axis, position, mean, *sorted(ends), edge=edge)
    values = [of(row, time_s) for time_s in runs["time_s"]]
    # A disturbed run may last twice as long: it is kept at the edge of the picture rather than shrink all the others.
    _draw_runs(axis, position, values, list(runs["disturbed"]), of(row, row["measured_time_s"]), edge=edge)
    return [mean, *ends]


def _draw_errors(axis: Any, position: int, row: dict[Any, Any], runs: "pandas.DataFrame", reach: float) -> None:
    means = _draw_case_at(axis, position, row, runs, _percent, 1.22 * reach)
    if _has_drift(row):
        without = _percent(row, row["measured_without_drift_s"])
        axis.plot(
            position + OFFSET + HALF_WIDTH, without, "D", ms=5.0, mec=WITHOUT_DRIFT, mfc="white", mew=1.3, zorder=5
        )
    outside = decision_of(row).answer == "against"
    ends = [max(-reach, min(end, reach)) for end in means if not math.isnan(end)]
    below = max(ends) < 0  # then the number goes below too, away from the line of zero
    axis.annotate(
        error_text(row["error_percent"]).replace("-", "\N{MINUS SIGN}") + ("\noutside" if outside else ""),
        (position - OFFSET, min(ends) if below else max(ends)),
        xytext=(0, -4 if below else 4),
        textcoords="offset points",
        ha="center",
        va="top" if below else "bottom",
        fontsize=9,
        fontweight="bold" if outside else None,
        color=picture.SERIOUS if outside else picture.PREDICTED,
    )


def _draw_prediction(axis: Any, position: int, mean: float, low: float, high: float, *, edge: float) -> None:
    """A bar, with a triangle where it is cut at `edge`, up or down."""
    begin = position - OFFSET - HALF_WIDTH
    for marker, cut in [("^", edge)] * (high > edge) + [("v", -edge)] * (low < -edge):
        axis.plot(position - OFFSET, cut, marker, color=picture.PREDICTED, ms=5.0, zorder=3)
    low, high = max(low, -edge), min(high, edge)
    if not math.isnan(high - low):
        axis.add_patch(
            patches.Rectangle(
                (begin, low), 2 * HALF_WIDTH, high - low, color=picture.PREDICTED, alpha=0.28, lw=0, zorder=2
            )
        )
    axis.plot([begin, begin + 2 * HALF_WIDTH], [mean, mean], color=picture.PREDICTED, lw=2.0, zorder=3)


def _draw_runs(
    axis: Any, position: int, values: list[float], disturbed: list[bool], mean: float, edge: float = float("inf")
) -> None:
    """Dots from left to right in the order of the runs, and their mean; beyond `edge`, a triangle at the edge."""
    centre = position + OFFSET
    axis.plot([centre - HALF_WIDTH, centre + HALF_WIDTH], [mean, mean], color=picture.MEASURED, lw=1.4, zorder=3)
    for index, (value, hollow) in enumerate(zip(values, disturbed, strict=True)):
        place = centre + HALF_WIDTH * (2 * (index + 0.5) / len(values) - 1)
        colour, face = (DISTURBED, "white") if hollow else (picture.MEASURED, picture.MEASURED)
        marker = "^" if value > edge else "o"
        axis.plot(place, min(value, edge), marker, ms=4.5, mec=colour, mfc=face, mew=1.1, ls="none", zorder=4)


def _reach(table: "pandas.DataFrame", runs: "pandas.DataFrame", of: Callable[..., float], least: float = 0.0) -> float:
    """Up to which value of a row and a duration is drawn: at most twice the largest mean or undisturbed run."""
    means, ends = [least], list[float]()
    for row in table.to_dict("records"):
        case_runs = runs[(runs["case"] == row["case"]) & ~runs["disturbed"].astype(bool)]
        drawn = (row["measured_without_drift_s"],) if _has_drift(row) else ()
        means += [abs(of(row, time_s)) for time_s in (row["predicted_time_s"], *case_runs["time_s"], *drawn)]
        ends += [abs(of(row, row[end])) for end in ("low_s", "high_s")]
    known = [value for value in means if not math.isnan(value)]
    return 1.1 * min(2 * max(known), max([*known, *(end for end in ends if not math.isnan(end))]))


def _has_drift(row: dict[Any, Any]) -> bool:
    """Whether what the machine drifted by since its calibration is known of a case."""
    return not math.isnan(row.get("measured_without_drift_s", math.nan))


def _key(**style: Any) -> "lines.Line2D":
    return lines.Line2D([], [], **style)


def _legend_handles(any_disturbed: bool, any_drift: bool, known: bool) -> list[Any]:
    predicted = "predicted" if known else "predicted before the runs"
    handles: list[Any] = [
        patches.Patch(color=picture.PREDICTED, alpha=0.28, lw=0, label=f"{predicted}: 95 % interval for one run"),
        _key(color=picture.PREDICTED, lw=2.0, label="predicted mean, with its error"),
        _key(color=picture.MEASURED, marker="o", ms=4.5, lw=1.4, label="measured: every run, and their mean"),
    ]
    if any_disturbed:
        label = "run disturbed by other load: not in the mean (triangle: off scale)"
        handles.append(_key(mec=DISTURBED, mfc="white", marker="o", ms=4.5, ls="none", label=label))
    if any_drift:
        label = "measured mean, the machine's drift taken out"
        handles.append(_key(mec=WITHOUT_DRIFT, mfc="white", marker="D", ms=5.0, ls="none", label=label))
    return handles


MARKERS = "osD^vP*X<>"
MAX_NAMED = 10  # grids of the legend


def _scatter(table: "pandas.DataFrame", path: Path | None) -> "Figure":
    """The predicted duration and its interval over the measured mean, on one scale, a marker a grid."""
    figure = picture.new_figure((8.0, 7.6), for_file=path is not None)
    axis = figure.add_subplot()
    panels = panels_of(table)
    grids = list(dict.fromkeys(panels))
    markers = {grid: MARKERS[place % len(MARKERS)] for place, grid in enumerate(grids)}
    for row, panel in zip(table.to_dict("records"), panels, strict=True):
        _draw_case(axis, row, markers[panel])
    drawn = table[["measured_time_s", "predicted_time_s", "low_s", "high_s"]].to_numpy().ravel()
    positive = [float(value) for value in drawn if value > 0.0]  # NaN is not
    ends = min(positive) / 1.15, max(positive) * 1.15
    axis.plot(ends, ends, color=picture.SOFT, lw=0.9, ls="--", zorder=1)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlim(*ends)
    axis.set_ylim(*ends)
    axis.set_aspect("equal")
    for scale in (axis.xaxis, axis.yaxis):
        picture.plain_decades(scale, ends)
    axis.grid(color=picture.RULE, lw=0.8)
    picture.bare(axis)
    axis.set_xlabel("measured, mean of the runs (s)")
    axis.set_ylabel("predicted (s)")
    handles: list[Any] = [
        _key(color=picture.PREDICTED, alpha=0.45, lw=1.4, label="95 % prediction interval for one run"),
        _key(color=picture.SOFT, lw=0.9, ls="--", label="predicted = measured"),
    ]
    named = {grid: markers[grid] for grid in grids[:MAX_NAMED]}
    handles += [_key(color=picture.MEASURED, marker=one, ls="none", ms=5, label=grid) for grid, one in named.items()]
    if len(grids) > MAX_NAMED:
        handles.append(_key(ls="none", label=f"and {len(grids) - MAX_NAMED} more grids"))
    if any(decision_of(row).answer == "against" for row in table.to_dict("records")):
        handles.append(_key(mec=picture.MEASURED, mfc="white", marker="o", ls="none", ms=5, label="hollow: outside"))
    if table["only_disturbed"].any():
        label = "grey: every run disturbed by other load"
        handles.append(_key(color=DISTURBED, marker="o", ls="none", ms=5, label=label))
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def _draw_case(axis: Any, row: dict[Any, Any], marker: str) -> None:
    measured, mean = row["measured_time_s"], row["predicted_time_s"]
    if row["low_s"] > 0.0:  # neither without interval, nor where it reaches a duration of zero
        axis.plot([measured] * 2, [row["low_s"], row["high_s"]], color=picture.PREDICTED, alpha=0.45, lw=1.4, zorder=2)
    colour = DISTURBED if row["only_disturbed"] else picture.MEASURED
    face = "white" if decision_of(row).answer == "against" else colour
    axis.plot(measured, mean, marker, ms=4.5, mec=colour, mfc=face, mew=1.0, zorder=3)
