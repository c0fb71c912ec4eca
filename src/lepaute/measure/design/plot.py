"""The picture of a design: what is covered, and in which order."""

import math
import random
from collections import Counter
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lepaute.errors import DesignError
from lepaute.kit.later import ticker
from lepaute.kit.picture import BLUE, RED, SOFT, entitle, measured_origin, new_figure, write_picture
from lepaute.kit.text import counted
from lepaute.measure.design.columns import Value
from lepaute.measure.design.table import Design

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_FACTORS = 7
_MAX_TEXT_LEVELS = 30
_MIN_DRAWN = 1e-100  # products and ratios of what is drawn must be numbers


def plot_design(design: Design, path: Path, title: str) -> None:
    """Draws each pair of factors, how often each value occurs, and each factor against the order of execution; of calls
    of dgemm also the product m n k.

    At most seven factors are drawn, those with the most values first left in their order; constant ones are left out
    where others are there. Raises DesignError for a design without rows.
    """
    if not design.rows:
        raise DesignError("the design has no rows; there is nothing to draw")
    drawn, note = _chosen([_Axis(name, design.column(name)) for name in design.columns] + _products(design))
    count = len(drawn)
    side = 2.5 if count > 2 else 3.4
    figure = new_figure((max(side * count + 0.8, 6.0), side * (count + 1) + 0.8), for_file=True)
    grid: Any = figure.subplots(count + 1, count, squeeze=False)
    for row, vertical in enumerate(drawn):
        for column, horizontal in enumerate(drawn):
            axes = grid[row][column]
            if column > row:
                axes.set_visible(False)
            elif column == row:
                _counts(axes, horizontal)
            else:
                _pair(axes, horizontal, vertical)
            # Names and numbers stand at the left and below; a plot inside the picture has none.
            if row == count - 1:
                axes.set_xlabel(_short(horizontal.name, 28), fontsize=8)
            else:
                axes.tick_params(axis="x", labelbottom=False)
            if column == 0 and row:
                axes.set_ylabel(_short(vertical.name, 28), fontsize=8)
            elif column != row:
                axes.tick_params(axis="y", labelleft=False)
    for column, horizontal in enumerate(drawn):
        _order(grid[count][column], horizontal, first=column == 0)
    discs = sum(axis.discrete for axis in drawn) > 1
    area = "; the area of a disc is its number of rows" if discs else ""
    if any(axis.discrete for axis in drawn):
        area += "; points are moved a little within their level"
    seed = f"seed {design.header['seed']}" if "seed" in design.header else "no seed"
    entitle(figure, f"{_short(title, 60)}: {counted(len(design), 'row')}{note}", measured_origin(f"{seed}{area}"))
    write_picture(figure, path)


def _products(design: Design) -> "list[_Axis]":
    if not {"m", "n", "k"} <= set(design.columns):
        return []
    sizes = zip(*(design.column(name) for name in "mnk"), strict=True)
    return [_Axis("m n k", [None if None in triple else math.prod(map(float, triple)) for triple in sizes])]


class _Axis:
    """One factor on an axis: positions of its values, scale, ticks."""

    def __init__(self, name: str, values: list[Value]) -> None:
        self.name = name
        self.values = values
        present = [value for value in values if value is not None]
        self.levels = sorted(set(present), key=lambda v: (isinstance(v, str), v if isinstance(v, str) else float(v)))
        self.text = any(isinstance(value, str) for value in present)
        self.discrete = self.text or len(self.levels) <= 25
        self.empty_count = len(values) - len(present)
        place = {level: float(i) for i, level in enumerate(self.levels)}
        self.positions = [None if v is None else place[v] if isinstance(v, str) else float(v) for v in values]
        if any(p and not _MIN_DRAWN < abs(p) < 1 / _MIN_DRAWN for p in self.positions):
            raise DesignError(f"{name} has values beyond {_MIN_DRAWN:g} or {1 / _MIN_DRAWN:g}: too wide to draw")
        present_at = [p for p in self.positions if p is not None]
        self.scale = "linear" if self.text else _scale(sorted(set(present_at)) if self.discrete else present_at)

    def set(self, axes: "Axes", which: "Literal['x', 'y']") -> None:
        """Scale, limits and ticks of one axis of a plot ("x" or "y")."""
        axis = axes.xaxis if which == "x" else axes.yaxis
        low, high = self._limits()
        getattr(axes, f"set_{which}scale")(self.scale, **({"linthresh": 1} if self.scale == "symlog" else {}))
        getattr(axes, f"set_{which}lim")(low, high)
        if self.text:
            step = -(-len(self.levels) // _MAX_TEXT_LEVELS)
            names = [_short(str(level)) for level in self.levels[::step]]
            axis.set_ticks(list(range(0, len(self.levels), step)), names)
            if which == "x" and sum(map(len, names)) > 16:
                axes.tick_params(axis="x", labelrotation=90)
        elif len(self.levels) <= 8 and all(len(f"{level:g}") <= 5 for level in self.levels):
            axis.set_ticks([float(level or 0) for level in self.levels], [f"{level:g}" for level in self.levels])
            axis.set_minor_locator(ticker.NullLocator())
        elif self.scale == "linear":
            axis.set_major_locator(ticker.MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
            axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        axes.tick_params(axis=which, labelsize=7)

    def scattered(self) -> list[float | None]:
        """The positions; those of levels are moved a little, so that the rows of a level are seen one by one."""
        if not self.discrete or len(self.levels) < 2:
            return self.positions
        to, back = (math.log, math.exp) if self.scale == "log" else (float, float)
        places = sorted({to(p) for p in self.positions if p is not None})
        width = min(0.5 * min(b - a for a, b in pairwise(places)), 0.2 * (places[-1] - places[0]))
        move = random.Random(1).random  # not a regular sequence, which would look like an order that is not random
        return [None if p is None else back(to(p) + width * (move() - 0.5)) for p in self.positions]

    def _limits(self) -> tuple[float, float]:
        present = [p for p in self.positions if p is not None] or [0.0]
        low, high = min(present), max(present)
        if self.scale == "log":
            room = (high / low) ** (0.12 if self.discrete else 0.06)
            return low / room, high * room
        if self.scale == "symlog":
            return -0.6, high * 2
        room = max((0.12 if self.discrete else 0.06) * (high - low), 0.6 if self.text or low == high else 0.0)
        return low - room, high + room


def _scale(values: list[float]) -> str:
    """Logarithmic where that puts the middle one of the values nearer to the middle of the axis."""
    positive = [value for value in values if value > 0]
    if len(set(positive)) < 3 or min(values) < 0 or max(positive) / min(positive) < 4:
        return "linear"
    if _off_middle(positive) <= _off_middle([math.log(value) for value in positive]):
        return "linear"
    return "log" if min(values) > 0 else "symlog"


def _off_middle(values: list[float]) -> float:
    """How far the median lies from the middle between the ends, as a share of their distance."""
    low, high = min(values), max(values)
    return abs((median(values) - low) / (high - low) - 0.5)


def _chosen(axes: list[_Axis]) -> tuple[list[_Axis], str]:
    varying = [axis for axis in axes if len(axis.levels) > 1] or axes[:1]
    left = [axis.name for axis in axes if axis not in varying]
    if len(varying) > MAX_FACTORS:
        most = sorted(varying, key=lambda axis: -len(axis.levels))[:MAX_FACTORS]
        left += [axis.name for axis in varying if axis not in most]
        varying = [axis for axis in varying if axis in most]
    return varying, f" (not drawn: {_short(', '.join(left), 60)})" if left else ""


def _pair(axes: "Axes", horizontal: _Axis, vertical: _Axis) -> None:
    """Points; where both factors have few levels, discs whose area is the number of rows."""
    discs = horizontal.discrete and vertical.discrete
    across, up = (axis.positions if discs else axis.scattered() for axis in (horizontal, vertical))
    points = [(x, y) for x, y in zip(across, up, strict=True) if x is not None and y is not None]
    horizontal.set(axes, "x")
    vertical.set(axes, "y")
    if not points:
        axes.text(0.5, 0.5, "never together", transform=axes.transAxes, ha="center", fontsize=8, color=SOFT)
        return
    if discs:
        counts = Counter(points)
        most = max(counts.values())
        room = 100 / max(len(horizontal.levels), len(vertical.levels))  # points of the plot a level has, about
        sizes = [max(min(room * 0.7, 14.0) ** 2 * number / most, 1.0) for number in counts.values()]
        axes.scatter([x for x, _ in counts], [y for _, y in counts], s=sizes, color=BLUE, lw=0)
        return
    axes.plot([x for x, _ in points], [y for _, y in points], "o", color=BLUE, **_marks(len(points)))


def _counts(axes: "Axes", factor: _Axis) -> None:
    """How many rows have each level, or fall into each of up to 20 classes of equal width on the axis's scale."""
    present = [position for position in factor.positions if position is not None]
    factor.set(axes, "x")
    if factor.discrete:
        counts = Counter(present)
        axes.vlines(list(counts), 0, list(counts.values()), color=BLUE, lw=min(60 / len(counts), 6))
        axes.set_ylim(0, 1.15 * max(counts.values(), default=1))
    else:
        low, high = min(present), max(present)
        edges = (np.geomspace if factor.scale == "log" else np.linspace)(low, high, 21)
        if factor.scale == "symlog":
            edges = np.concatenate([[0.0], np.geomspace(0.5, high, 20)])
        axes.hist(present, bins=list(map(float, edges)), color=BLUE, rwidth=0.9)
    axes.yaxis.set_major_locator(ticker.MaxNLocator(6, steps=[1, 2, 5, 10], integer=True))
    axes.set_title(
        "rows" + (f" ({factor.empty_count} without it)" if factor.empty_count else ""), fontsize=7, color=SOFT
    )
    axes.tick_params(axis="y", labelsize=7)


def _order(axes: "Axes", factor: _Axis, *, first: bool) -> None:
    """The factor of each row against the row's number, first one on top: a shuffled design shows no pattern."""
    factor.set(axes, "x")
    points = [(x, number) for number, x in enumerate(factor.scattered()) if x is not None]
    axes.plot([x for x, _ in points], [y for _, y in points], "o", color=RED, **_marks(len(points)))
    axes.set_ylim(len(factor.positions) - 0.5, -0.5)
    axes.yaxis.set_major_locator(ticker.MaxNLocator(6, steps=[1, 2, 5, 10], integer=True))
    axes.set_xlabel(_short(factor.name, 28), fontsize=8)
    axes.tick_params(axis="y", labelsize=7)
    if first:
        axes.set_ylabel("order of execution", fontsize=8)
    else:
        axes.tick_params(axis="y", labelleft=False)


def _marks(points: int) -> dict[str, Any]:
    size = 3.0 if points < 300 else 2.0 if points < 2000 else 1.3
    return {"ms": size, "alpha": 0.8 if points < 1000 else 0.5, "mew": 0}


def _short(text: str, most: int = 14) -> str:
    # A dollar sign would begin a formula.
    text = text.replace("$", r"\$")
    return text if len(text) <= most else text[: most - 1] + "…"
