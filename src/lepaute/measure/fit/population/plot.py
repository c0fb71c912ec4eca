"""The coefficients of a population in pairs, with the groups of its nodes (Cornebize's thesis, figures 4.4 and 4.5)."""

from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lepaute.kit.picture import SERIES, SOFT, bare, entitle, measured_origin, new_figure, shown_once, write_picture
from lepaute.kit.text import counted, percent, signed_percent, significant
from lepaute.measure.fit.numeric import Floats
from lepaute.measure.fit.population.coefficients import Coefficients
from lepaute.measure.fit.population.generative import Generative, GroupMoments
from lepaute.stats.covariances import unit_means

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Groups are told apart by marker as well as by colour.
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
#: Of a pair of normal coefficients, so much lies within an ellipse of this many standard deviations.
SHARE = 0.95
_RADIUS = sqrt(-2.0 * np.log(1.0 - SHARE))
#: What a term is called in the literature (equation 4.2), and is.
_MEANING = {"mnk": "alpha, time per mnk", "1": "beta, time per call", "sd:mnk": "gamma, sd per mnk"}
#: More points than a picture made of lines should hold; they are a bitmap inside of it.
_MAX_POINTS = 5000
#: Coefficients are drawn in pairs up to this many.
MAX_TERMS = 6


def finding(fitted: Generative, kernel: str) -> str:
    """How much CPUs of the largest group, their days, and groups differ in the first coefficient."""
    first = fitted.groups[0]

    def share(covariance: Floats) -> str:
        return percent(sqrt(covariance[0, 0]) / first.theta[0]) if first.theta[0] > 0.0 else "an unknown share"

    between, own = share(first.covariance_spatial), share(_of_days(fitted, first))
    what = f"Time of {kernel}" if fitted.terms[0] == "mnk" else f"{fitted.terms[0]} of {kernel}"
    days = f"from day to day by {own} on one CPU"
    if fitted.days.common is not None:
        days += f" and by {share(fitted.days.common)} on all together"
    lines = [f"{what} differs by {between} (sd) between CPUs, and {days}"]
    size = f"{counted(len(fitted.group_of_node), 'node')}, {counted(len(fitted.groups), 'group')}"
    apart = [
        f"group {number} ({counted(one.nodes, 'node')}) {signed_percent(float(one.theta[0] / first.theta[0]) - 1)}"
        for number, one in enumerate(fitted.groups)
        if number > 0 and first.theta[0] > 0.0
    ]
    if apart:
        gain = fitted.bic[0] - fitted.bic[len(fitted.groups) - 1]
        size += f" (BIC {significant(gain)} below that of one): against group 0, {', '.join(apart)}"
    lines.append(size)
    return "\n".join(lines)


def plot_population(
    data: Coefficients, fitted: Generative, kernel: str, path: Path | None = None, *, source: str = ""
) -> "Figure":
    """Each pair of coefficients: the days of each CPU, the mean of each, and ellipses of the fitted groups.

    data, fitted : the coefficients, and what `generative` fitted to them
    path : of the picture, as `write_picture`; None: a figure for a notebook
    source : what the foot names as the origin of the coefficients; theirs unless given
    Below the diagonal a small point is a CPU on a day, a large one a CPU's mean. If both are normal, 95 % of the means
    lie within the solid ellipse of their group, and 95 % of the days within the dashed one. On the diagonal stand the
    CPUs by their mean, above it the correlations of the pair. At most MAX_TERMS coefficients, the first ones.
    """
    count = min(len(fitted.terms), MAX_TERMS)
    side = 2.7 if count > 2 else 3.4
    figure = new_figure((max(side * count + 0.6, 7.0), side * count + 1.0), for_file=path is not None)
    grid: Any = figure.subplots(count, count, squeeze=False, sharex="col")
    means = unit_means(data.unit, data.values)
    of_unit = fitted.group_of_node[data.node_of_unit]
    for row in range(count):
        for column in range(count):
            axes = grid[row][column]
            if column > row:
                _correlations(axes, fitted, column, row)
                continue
            if column == row:
                _counts(axes, means[:, row], of_unit, len(fitted.groups))
            else:
                _pair(axes, data, means, of_unit, fitted, column, row)
            _name(axes, fitted.terms, row, column, last=row == count - 1)
    handles, labels = grid[-1][0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)), fontsize=8, frameon=False)
    made = f"{source or data.source}: {len(data.values)} days of {counted(data.units, 'CPU')}"
    drawn = f"large: a CPU's mean, small: a day; {100 * SHARE:.0f} % of means in solid ellipses, of days in dashed"
    left = "" if count == len(fitted.terms) else f", of {len(fitted.terms)} coefficients the first {count}"
    entitle(figure, finding(fitted, kernel), measured_origin(f"{made}{left}; {drawn}"))
    if path is not None:
        write_picture(figure, path)
    return shown_once(figure, path)


def _of_days(fitted: Generative, group: GroupMoments) -> Floats:
    """Covariance of the own part of a day of a typical CPU of the group, shape (p, p)."""
    if group.covariance_temporal is not None:
        return group.covariance_temporal
    return fitted.days.individual if fitted.scales is None else fitted.scales.pooled_typical


def _pair(axes: "Axes", data: Coefficients, means: Floats, of_unit: Any, fitted: Generative, x: int, y: int) -> None:
    """The days and means of CPUs, and the ellipses of groups."""
    for number, group in enumerate(fitted.groups):
        colour, marker = SERIES[number % len(SERIES)], _MARKERS[number % len(_MARKERS)]
        days, units = of_unit[data.unit] == number, of_unit == number
        axes.plot(
            data.values[days, x], data.values[days, y], marker, ms=2.0, mew=0, alpha=0.3, color=colour,
            rasterized=len(data.values) > _MAX_POINTS,
        )  # fmt: skip
        name = f"group {number}: {counted(group.nodes, 'node')}, {counted(group.units, 'CPU')}"
        axes.plot(means[units, x], means[units, y], marker, ms=4.5, mec="white", mew=0.5, color=colour, label=name)
        common = 0.0 if fitted.days.common is None else fitted.days.common
        of_day = group.covariance_spatial + _of_days(fitted, group) + common
        for covariance, dashes in ((group.covariance_spatial, "-"), (of_day, "--")):
            axes.plot(*ellipse(group.theta[[x, y]], covariance[np.ix_([x, y], [x, y])]), dashes, color=colour, lw=1.1)


def ellipse(centre: Floats, covariance: Floats) -> Floats:
    """The curve within which SHARE of the pairs of a normal distribution lie, shape (2, points); (2, 0) of a line.

    centre : shape (2,);  covariance : shape (2, 2), positive semi-definite
    """
    scale = np.sqrt(np.diag(covariance))
    if not (scale > 0.0).all():
        return np.zeros((2, 0))  # a coefficient that is the same everywhere
    correlation = float(np.clip(covariance[0, 1] / (scale[0] * scale[1]), -1.0, 1.0))
    angle = np.linspace(0.0, 2.0 * np.pi, 181)
    across = np.cos(angle)
    along = correlation * across + sqrt(1.0 - correlation**2) * np.sin(angle)
    curve: Floats = centre[:, None] + _RADIUS * scale[:, None] * np.array([across, along])
    return curve


def _counts(axes: "Axes", means: Floats, of_unit: Any, groups: int) -> None:
    """How many CPUs have such a mean, the groups on top of each other."""
    parts = [means[of_unit == number] for number in range(groups)]
    low, high = float(means.min()), float(means.max())
    room = (0.5 * abs(low) or 1.0) if low == high else 0.0
    edges = np.linspace(low - room, high + room, 22).tolist()
    axes.hist(parts, bins=edges, stacked=True, color=[SERIES[at % len(SERIES)] for at in range(groups)], rwidth=1.0)


def _correlations(axes: "Axes", fitted: Generative, x: int, y: int) -> None:
    """Between the means of CPUs of a group, and between the days of a CPU; over all groups."""
    units = np.array([group.units for group in fitted.groups], np.float64)
    spatial = np.tensordot(units / units.sum(), np.array([group.covariance_spatial for group in fitted.groups]), 1)
    lines = []
    for what, covariance in (("CPUs", spatial), ("days", fitted.covariance_temporal)):
        spread = sqrt(covariance[x, x] * covariance[y, y])
        told = f"{covariance[x, y] / spread:+.2f}" if spread > 0.0 else "unknown"
        lines.append(f"between {what} {told}")
    axes.set_axis_off()
    text = "correlation\n" + "\n".join(lines)
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", fontsize=9, color=SOFT)


def _name(axes: "Axes", terms: tuple[str, ...], row: int, column: int, *, last: bool) -> None:
    """Names and numbers at the left and below; ticks carry their unit."""
    from matplotlib.ticker import EngFormatter, MaxNLocator

    bare(axes)
    axes.tick_params(labelsize=7)
    # An ellipse of a normal distribution may reach below 0, a standard deviation cannot.
    if terms[column].startswith("sd:"):
        axes.set_xlim(left=max(0.0, axes.get_xlim()[0]))
    if terms[row].startswith("sd:") and row != column:
        axes.set_ylim(bottom=max(0.0, axes.get_ylim()[0]))
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(EngFormatter("s"))
    if last:
        axes.set_xlabel(_MEANING.get(terms[column], terms[column]), fontsize=8)
    else:
        axes.tick_params(axis="x", labelbottom=False)
    if row == column:
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.set_ylabel("CPUs", fontsize=8)
    else:
        axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.yaxis.set_major_formatter(EngFormatter("s"))
        axes.set_ylabel(_MEANING.get(terms[row], terms[row]) if column == 0 else "", fontsize=8)
        axes.tick_params(axis="y", labelleft=column == 0)
