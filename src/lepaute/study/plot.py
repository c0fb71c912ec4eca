"""Pictures of answers, SVG inside a page: changes, ranking, tuning, tornado, shares of variance, heat map, front."""

from collections.abc import Mapping, Sequence
from math import isnan, log2
from typing import Any, NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

from lepaute.kit.picture import DEEP, EDGE, GRID, INK, PALE, PANEL, SERIOUS, SOFT
from lepaute.kit.report.page import figure_svg
from lepaute.kit.text import counted, exact_number, signed_percent, significant
from lepaute.study.capacity import Front
from lepaute.study.evaluation import Point, Value, begun, called, label, noun, shown
from lepaute.study.ranking import Ranking
from lepaute.study.sensitivity import Effects
from lepaute.study.sobol import SobolIndices
from lepaute.study.tune import Tuned
from lepaute.study.whatif import WhatIfAnswer

WIDTH, ROW, FOOT = 760, 22, 44
#: Points of a ranking that have a row of their own.
MAX_ROWS = 20
#: Comparisons that have a row in a picture.
MAX_CHANGES = 60
#: Letters of the name of a row.
MAX_LETTERS = 46
#: From this ratio on, or one over it, changes are drawn on a logarithmic axis.
LARGE_RATIO = 3.0
#: Points on a front that have their name beside them.
MAX_NAMES = 12
#: Columns of a heat map in which the values are written; as many fill the width.
MAX_CELLS, WIDEST_CELLS = 16, 8
#: Points that are less likely on a front are drawn without their intervals.
MIN_CROSSED = 0.05
#: Of cells, and of what is written in them: the same in any mode, so none of those of pictures.
PALEST, DARKEST, IN_CELL = "#e9f1fa", "#1f5fa7", "#1c2431"
_STYLE: Any = {
    "svg.fonttype": "none",
    "font.size": 11.0,
    "lines.markersize": 4.5,
    "axes.axisbelow": True,
    "axes.labelcolor": SOFT,
    "grid.color": GRID,
    "xtick.bottom": False,
    "ytick.left": False,
    **dict.fromkeys(("axes.spines.left", "axes.spines.right", "axes.spines.top", "axes.spines.bottom"), False),
    **dict.fromkeys(("figure.constrained_layout.h_pad", "figure.constrained_layout.w_pad"), 0.1),
}
_ZERO: Any = {"color": SOFT, "lw": 1.0, "ls": (0, (2, 3))}


class Picture(NamedTuple):
    """An SVG element of a page, with a caption that says what it shows and how to read it."""

    caption: str
    svg: str


def _figure(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH / 72, height / 72), dpi=72, layout="constrained")
    FigureCanvasSVG(figure)
    return figure, figure.subplots()


def _picture(figure: Figure, alt: str, caption: str) -> Picture:
    """alt: what there is to see, for those who do not see it."""
    return Picture(caption, figure_svg(figure, alt))


def _rows(names: Sequence[str], bold: Sequence[bool], right: Sequence[str] = ()) -> tuple[Figure, Axes]:
    """Named rows over a common axis, row i at height i; right: texts behind them."""
    figure, axes = _figure(ROW * len(names) + FOOT)
    places = range(len(names))
    axes.set_yticks(places, [name if len(name) <= MAX_LETTERS else f"{name[: MAX_LETTERS - 1]}…" for name in names])
    for text, strong in zip(axes.get_yticklabels(), bold, strict=True):
        text.set_fontweight("bold" if strong else "normal")
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="x")
    if right:
        behind = axes.secondary_yaxis("right")
        behind.set_yticks(places, right, color=SOFT)
        behind.tick_params(right=False)
        behind.spines["right"].set_visible(False)
    return figure, axes


def _intervals(axes: Axes, rows: Sequence[Any], dark: Sequence[bool], low: float, high: float) -> None:
    """A point for each ratio with its interval, as far as that is between low and high."""
    for y, (one, is_dark) in enumerate(zip(rows, dark, strict=True)):
        colour = DEEP if is_dark else PALE
        if one.low is not None and one.high is not None and not isnan(one.low):
            axes.hlines(y, max(one.low, low), min(one.high, high), color=colour, lw=1.6 if is_dark else 1.0)
        axes.plot(min(max(one.ratio, low), high), y, "o", color=colour)
    axes.xaxis.set_major_formatter(_change)


def _change(ratio: float, _: float) -> str:
    """A tick of an axis of ratios: +5 %."""
    return f"{100.0 * round(ratio - 1.0, 12):+.3g} %" if abs(ratio - 1.0) > 1e-12 else "0 %"


@rc_context(_STYLE)
def changes(answer: WhatIfAnswer, response: str) -> Picture | None:
    """A row for each comparison: how much the response changes, with its interval; None if nothing is known."""
    compared = [comparison for comparison in answer.comparisons if response in comparison.differences][:MAX_CHANGES]
    rows = [each.differences[response] for each in compared]
    if not rows:
        return None
    apart = [each.decision(response).is_shown for each in compared]
    most = max(max(abs(log2(row.ratio)), 0.01) for row in rows)
    is_large = most > log2(LARGE_RATIO)
    right = [f"× {significant(row.ratio)}" if is_large else signed_percent(row.ratio - 1.0) for row in rows]
    figure, axes = _rows([answer.name_of(each) for each in compared], apart, right)
    if is_large:
        axes.set_xscale("log", base=2)
    axes.axvline(1.0, **_ZERO)
    # Intervals of two or three runs can be so wide that nothing else is seen.
    _intervals(axes, rows, apart, 2.0 ** (-4.0 * most), 2.0 ** (4.0 * most))
    if is_large:
        axes.xaxis.set_major_formatter(lambda ratio, _: f"× {ratio:.3g}")
    return _picture(
        figure,
        f"the change of {noun(response)} in {len(rows)} comparisons, with intervals",
        f"Against the base, {answer.base_name}; lines: 95 % intervals of one further pair of runs on one machine and "
        "day. Bold: told apart from it.",
    )


@rc_context(_STYLE)
def ranking(found: Ranking) -> Picture:
    """A row for each of the best points: how much worse than the best, with its interval."""
    rows = [one for one, _ in found.rows[:MAX_ROWS]]
    near = [row in found.near for row in rows]
    names = [f"{row.point}{' *' if row.flagged else ''}" for row in rows]
    figure, axes = _rows(names, near, [row.chance for row in rows])
    ends = [1.0, *(value for row in rows for value in (row.ratio, row.low, row.high) if value is not None)]
    # An interval from two or three runs can be so wide that nothing else is seen: the axis ends at twice the worst.
    worst = max(row.ratio for row in rows)
    low, high = max(min(ends), 2.0 - 1.5 * worst, 0.5), min(max(ends), 1.0 + 2.0 * max(worst - 1.0, 0.02))
    _intervals(axes, rows, near, low, high)
    rest = len(found.standings) - len(rows)
    starred = "; *: not comparable, since too much depends on what is outside the fitted ranges"
    more = starred if any(row.flagged for row in rows) else ""
    more += f"; {rest} more are worse still" if rest > 0 else ""
    return _picture(
        figure,
        f"{len(rows)} points, the best first, with the interval of how much worse each is",
        f"{begun(noun(found.response))} against that of the best point at equal seeds: how much worse, and the 95 % "
        "interval for one further machine and day. Bold: the best and what cannot be told from it. Right: the "
        f"probability to be the best{more}.",
    )


@rc_context(_STYLE)
def tuning(found: Tuned) -> Picture | None:
    """A column for each number of runs that points got before they were dropped, how much worse than the best upwards;
    None for two points or fewer."""
    standings = found.ranking.standings
    if len(standings) < 3:
        return None
    best, near = found.ranking.best, {id(one) for one in found.ranking.near}
    columns = sorted({one.runs for one in standings})
    figure, axes = _figure(300.0 + FOOT)
    worst = max(one.ratio for one in standings)
    lines, named = list[tuple[float, float, float]](), list[tuple[str, tuple[float, float]]]()
    for place, runs in enumerate(columns):
        alike = sorted((one for one in standings if one.runs == runs), key=lambda one: one.ratio)
        for number_, one in enumerate(alike):
            x = place + 0.7 * ((number_ + 0.5) / len(alike) - 0.5)
            colour = DEEP if id(one) in near else SOFT if one.flagged else PALE
            if one.low is not None and one.high is not None:
                axes.vlines(x, one.low, one.high, color=colour, lw=1.6 if id(one) in near else 1.0)
            shape = {"marker": "*", "ms": 13} if one is best else {"marker": "o", "ms": 7 if one.flagged else 5}
            axes.plot(x, one.ratio, ls="", color=colour, mfc=PANEL if one.flagged else colour, mew=1.4, **shape)
            lines.append((x, one.low or one.ratio, one.high or one.ratio))
            if one is best or (id(one) in near and len(near) <= MAX_NAMES):
                named.append((called(one.point), (x, one.ratio)))
    axes.axhline(1.0, **_ZERO)
    if worst > LARGE_RATIO:
        axes.set_yscale("log", base=2)
    least = min(one.ratio if one.low is None else max(one.low, 0.5 * one.ratio) for one in standings)
    axes.set_ylim(least - 0.02 * worst, min(max(one.high or one.ratio for one in standings), 2.0 * worst - 1.0) + 0.02)
    axes.yaxis.set_major_formatter(_change)
    axes.set_xticks(range(len(columns)), [counted(runs, "run") for runs in columns])
    axes.set_xlim(-0.6, len(columns) - 0.1)
    axes.set_ylabel("worse than the best (%)")
    axes.set_xlabel("simulated runs of a point, before it was dropped or the study ended")
    axes.grid(axis="y")
    figure.draw_without_rendering()
    taken = [_box(axes, (x, low), (x, high)) for x, low, high in lines]
    for name, point in named:
        taken.append(_beside(axes.annotate(name, point, (0, 0), textcoords="offset points", color=SOFT), taken))
    unseen = found.points - len(standings) - len(found.ranking.refused)
    rest = f"; {counted(unseen, 'more point')} never simulated" if unseen > 0 else ""
    return _picture(
        figure,
        f"{len(standings)} points by their numbers of runs, and how much worse than the best each is",
        f"Tried: {len(standings)} points with {found.simulations} simulations{rest}. Full colour: what remains, the "
        f"best (star) and {len(near) - 1} that cannot be told from it. Pale: told apart. Hollow, grey: not comparable, "
        "too much being outside the fitted ranges. Lines: 95 % intervals for one further machine and day.",
    )


@rc_context(_STYLE)
def tornado(found: Effects) -> Picture | None:
    """A bar for each factor, from its best to its worst level; None if no factor has an effect of its own."""
    terms = [term for term in found.terms if len(term.factors) == 1 and term.levels]
    terms.sort(key=lambda term: min(level.effect for level in term.levels) - max(level.effect for level in term.levels))
    if not terms:
        return None
    figure, axes = _rows([term.name for term in terms], [term.is_significant for term in terms])
    for y, term in enumerate(terms):
        ordered = sorted(term.levels, key=lambda one: one.effect)
        axes.barh(y, ordered[-1].effect - ordered[0].effect, 0.55, ordered[0].effect, color=PALE)
        for one, side, offset, farthest in ((ordered[0], "right", -6, min), (ordered[-1], "left", 6, max)):
            _whisker(axes, y, one.low, one.high)
            place = farthest(value for value in (one.effect, one.low, one.high) if value is not None)
            text = axes.annotate(shown(one.level), (place, y), (offset, 0), textcoords="offset points", color=SOFT)
            text.set(ha=side, va="center")
    axes.axvline(1.0 if found.logarithm else 0.0, **_ZERO)
    axes.margins(x=0.12)
    axes.xaxis.set_major_formatter(_change if found.logarithm else lambda value, _: f"{value:+.3g}")
    return _picture(
        figure,
        f"effects of {len(terms)} factors on {found.response}, the largest on top",
        f"Of the levels of each factor on {noun(found.response)}, against the mean of all points; thin: the "
        "95 % interval of the mean over machines. Factors in bold stand out from what machines differ by.",
    )


@rc_context(_STYLE)
def shares(found: Effects | SobolIndices) -> Picture:
    """A bar for each term, or two for each factor: its share of the variance."""
    bars: list[tuple[str, float, float | None, float | None, bool]]
    if isinstance(found, SobolIndices):
        indices = []
        for name, total in found.total.items():
            indices += [(f"{name}, with interactions", total), (f"{name}, by itself", found.first[name])]
        indices.append(("machine and day", found.machine))
        bars = [(name, index.value, index.low, index.high, index.low > 0.0) for name, index in indices]
        bars.append(("a run's own noise", found.noise, None, None, False))
        caption = "Sobol indices with 95 % bootstrap intervals."
    else:
        bars = [(term.name, term.share, None, None, term.is_significant) for term in found.terms]
        if found.unexplained > 5e-4:
            bars.append(("interactions of three and more", found.unexplained, None, None, False))
        caption = "Between the points. Bold: p < 0.05 against what machines differ by in it."
    right = [f"{100.0 * max(value, 0.0):.1f} %" for _, value, *_ in bars]
    figure, axes = _rows([name for name, *_ in bars], [strong for *_, strong in bars], right)
    for y, (_, value, low, high, strong) in enumerate(bars):
        axes.barh(y, max(value, 0.0), 0.55, color=PALE if strong else EDGE)
        _whisker(axes, y, low, high, 0.0)
    axes.set_xlim(0.0, min(1.04 * max(0.02, *(high or value for _, value, _, high, _ in bars)), 1.25))
    axes.xaxis.set_major_formatter(lambda value, _: f"{100.0 * value:.3g} %")
    return _picture(figure, f"shares of the variance of {found.response}", caption)


@rc_context(_STYLE)
def heat_map(values: Mapping[Point, float], rows: str, columns: str, response: str, best: Point) -> Picture:
    """The smallest value at each pair of levels of two factors, over all others; the best is framed."""
    across = _in_order({point[columns] for point in values})
    down = _in_order({point[rows] for point in values})
    cells = np.full((len(down), len(across)), np.nan)
    for point, value in values.items():
        place = down.index(point[rows]), across.index(point[columns])
        cells[place] = np.fmin(value, cells[place])
    low, high = np.nanmin(cells), np.nanmax(cells)
    norm = LogNorm(low, high) if 0.0 < low < high else None
    figure, axes = _figure(24.0 * len(down) + 1.4 * FOOT)
    colours = LinearSegmentedColormap.from_list("shares", [PALEST, DARKEST])
    axes.pcolormesh(np.ma.masked_invalid(cells), cmap=colours, norm=norm, edgecolors=PANEL, lw=2)
    for (y, x), value in np.ndenumerate(cells):
        if len(across) <= MAX_CELLS and np.isfinite(value):
            colour = "white" if norm is not None and norm(value) > 0.55 else IN_CELL
            axes.text(x + 0.5, y + 0.5, significant(value, 4), ha="center", va="center", color=colour)
    corner = across.index(best[columns]), down.index(best[rows])
    axes.add_patch(Rectangle(corner, 1, 1, fill=False, ec=SERIOUS, lw=1.5, clip_on=False))
    every = -(-len(across) // MAX_CELLS)
    axes.set_xticks(np.arange(0, len(across), every) + 0.5, [shown(one) for one in across[::every]])
    axes.set_yticks(np.arange(len(down)) + 0.5, [shown(one) for one in down])
    axes.set_xlabel(columns, loc="left")
    axes.set_ylabel(rows)
    axes.set_xlim(0, max(len(across), WIDEST_CELLS))
    axes.set_ylim(len(down), 0)
    return _picture(
        figure,
        f"{response} by {rows} and {columns}",
        f"{begun(label(response))}, by {rows} (down) and {columns} (across), the best over all other factors: the "
        "lighter, the less. Framed: the choice. Empty: not simulated, or refused.",
    )


@rc_context(_STYLE)
def pareto(found: Front) -> Picture:
    """Two responses of each point with their intervals; those that may be on the front are marked."""
    x_name, y_name = found.responses[0], found.responses[1]
    figure, axes = _figure(330.0 + FOOT)
    for member in sorted(found.members, key=lambda one: one.probability):
        x, y = member.spreads[x_name], member.spreads[y_name]
        colour, width = (DEEP, 1.6) if member.probability >= 0.5 else (PALE, 1.0)
        if member.probability >= MIN_CROSSED:
            axes.hlines(y.mean, x.low, x.high, color=colour, lw=width)
            axes.vlines(x.mean, y.low, y.high, color=colour, lw=width)
        axes.plot(x.mean, y.mean, "o", color=colour)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: exact_number(value))
    axes.grid()
    axes.set_xlabel(label(x_name))
    axes.set_ylabel(label(y_name))
    figure.draw_without_rendering()
    taken = []
    for one in found.likely:
        x, y = one.spreads[x_name], one.spreads[y_name]
        taken += [_box(axes, (x.low, y.mean), (x.high, y.mean)), _box(axes, (x.mean, y.low), (x.mean, y.high))]
    for one in found.likely:
        sure = "" if one.probability >= 0.95 else f" ({100.0 * one.probability:.0f} %)"
        name = f"{called(one.point) if len(found.likely) <= MAX_NAMES else ''}{sure}".strip()
        place = one.spreads[x_name].mean, one.spreads[y_name].mean
        taken.append(_beside(axes.annotate(name, place, (0, 0), textcoords="offset points", color=SOFT), taken))
    return _picture(
        figure,
        f"{x_name} against {y_name}, and which points are on the front",
        f"{begun(noun(x_name))} and {noun(y_name)} of each configuration. In full colour: on the Pareto front with a "
        "probability of a half or more, which is written where it is below 95 %; with a thin line: of 5 % or more. "
        "Lines are 95 % intervals.",
    )


def _box(axes: Axes, low: tuple[float, float], high: tuple[float, float]) -> Bbox:
    return axes.transData.transform_bbox(Bbox([low, high])).padded(1.0)


def _beside(text: Annotation, taken: Sequence[Bbox]) -> Bbox:
    """Moves the name of a point to the corner where it covers fewest other names and intervals; returns its place."""

    def moved(corner: tuple[str, str]) -> Bbox:
        text.set(va=corner[0], ha=corner[1])
        text.xyann = (6 if corner[1] == "left" else -6, 3 if corner[0] == "bottom" else -4)
        return text.get_window_extent()

    def covered(corner: tuple[str, str]) -> tuple[int, bool]:
        box = moved(corner)
        return box.count_overlaps(taken), not 0 <= box.x0 <= box.x1 <= WIDTH

    return moved(min([(v, h) for v in ("bottom", "top") for h in ("left", "right")], key=covered))


def _whisker(axes: Axes, y: float, low: float | None, high: float | None, least: float | None = None) -> None:
    if low is not None and high is not None:
        ends = [low, high] if least is None else [max(low, least), max(high, least)]
        axes.plot(ends, [y, y], "|-", color=INK, lw=1.2, ms=6)


def _in_order(levels: set[Value]) -> list[Value]:
    """Numbers by size; grids such as 8x16 by their first number; others by name."""

    def key(level: Value) -> tuple[int, float, str]:
        if isinstance(level, int | float):
            return 0, float(level), ""
        words = str(level).split("x")
        return (1, float(words[0]), "") if all(word.isdigit() for word in words) else (2, 0.0, str(level))

    return sorted(levels, key=key)
