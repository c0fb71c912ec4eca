"""Pictures as SVG inside a page: points, lines, bars, bands.

Written here rather than by Matplotlib: a page has up to six pictures of forty subjects, which take Matplotlib half a
minute and 18 MB, and this less than a second and 1 MB; texts stay texts of the page, in its font and legible at any
width; no script is needed. Colours and strokes are classes of the page's style sheet: `dot`, `line`, `band`, ...
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import numpy.typing as npt

from lepaute.kit.text import size_text

Floats = npt.NDArray[np.float64]
WIDTH, HEIGHT = 360, 230
LEFT, RIGHT, TOP, BOTTOM = 52, 16, 8, 38
MAX_TICKS = 5
MAX_NAMES = 4
_MAX_SIZES = 7
SHADES = 20  # of cells


@dataclass(frozen=True, slots=True)
class Axis:
    """From low to high, linear or logarithmic; `label` with its unit; `names`: texts to write at 0, 1, 2, ...

    numbered: whether numbers are written beside it;  of_memory: at powers of two, as 64 KiB
    """

    label: str
    low: float
    high: float
    log: bool = False
    names: tuple[str, ...] = ()
    numbered: bool = True
    of_memory: bool = False

    def place(self, values: Floats) -> Floats:
        """Share of the axis, 0 at low and 1 at high; what is beyond is put at the end."""
        low, high = (math.log10(self.low), math.log10(self.high)) if self.log else (self.low, self.high)
        scaled = np.log10(np.maximum(values, 1e-300)) if self.log else values
        result: Floats = np.clip((scaled - low) / (high - low), 0.0, 1.0)
        return result

    def ticks(self) -> list[tuple[float, str]]:
        """Values to write, with their texts."""
        if not self.numbered:
            return []
        if self.names:
            every = -(-len(self.names) // (MAX_NAMES if max(map(len, self.names)) < 10 else MAX_NAMES - 1))
            return [(float(at), name) for at, name in enumerate(self.names) if at % every == 0]
        if self.of_memory:
            first, last = max(0, math.ceil(math.log2(self.low))), math.floor(math.log2(self.high))
            powers = range(first, last + 1, max(1, -(-(last - first + 1) // _MAX_SIZES)))
            return [(2.0**power, size_text(2.0**power)) for power in powers]
        if self.log:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            if last - first >= 2:
                every = max(1, -(-(last - first + 1) // MAX_TICKS))
                return [
                    (10.0**power, _thousands(10.0**power) if 0 <= power <= 9 else f"1e{power}")
                    for power in range(first, last + 1, every)
                ]
            # Few decades: 1, 2, 5, or steps where even these are too far apart.
            values = [factor * 10.0**power for power in range(first - 1, last + 1) for factor in (1, 2, 5)]
            inside = [value for value in values if self.low <= value <= self.high]
            if len(inside) >= 3:
                return [(value, _thousands(value)) for value in inside]
        # the smallest of 1, 2, 5 times a power of ten that is no smaller
        least = (self.high - self.low) / MAX_TICKS
        scale = 10.0 ** math.floor(math.log10(least))
        step = next(factor * scale for factor in (1.0, 2.0, 5.0, 10.0) if factor * scale >= least * (1 - 1e-9))
        first = math.ceil(self.low / step - 1e-9)
        count = math.floor(self.high / step + 1e-9) - first + 1
        return [((first + at) * step, _thousands(round((first + at) * step, 12), 1e4)) for at in range(count)]


def axis(label: str, values: Floats, *, log: bool = False, include: tuple[float, ...] = (), room: float = 0.05) -> Axis:
    """An axis that holds the values, which may be empty, with a share of room at its ends; `include`: these as well."""
    held = np.concatenate([np.asarray(values, dtype=np.float64), np.array(include, dtype=np.float64)])
    held = held[np.isfinite(held) & (held > 0)] if log else held[np.isfinite(held)]
    low, high = (float(held.min()), float(held.max())) if len(held) else (1.0, 10.0)
    if log:
        room = max(high / low, 1.0) ** 0.04 * 1.05
        return Axis(label, low / room, high * room, log=True)
    room = room * (high - low) or 0.5 * max(abs(high), 1e-9)
    return Axis(label, low - room, high + room)


def _thousands(value: float, least: float = 1e3) -> str:
    """2 k, 500 k, 5 M; as powers of ten are written."""
    for factor, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= max(factor, least):
            return f"{value / factor:g} {letter}"
    return f"{value:g}"


@dataclass(frozen=True, slots=True)
class Layer:
    """Something drawn at (x, y), float64 of shape (n,).

    kind : points, line (through them), bars (from `base` to y), band (from `base` to y along x), rules (vertical, at x)
           cells (squares of side 1, as opaque as `base`, from 0 to 1), or tiles (in column x from row `base` to row y,
           whole numbers from 0, where the frame has this many columns and rows as `grid` says, whatever the axes)
    opacity: of strokes, from 0 to 1
    """

    kind: str
    x: Floats
    y: Floats
    style: str
    base: Floats | None = None
    opacity: float = 1.0
    grid: tuple[int, int] = (1, 1)


@dataclass(frozen=True, slots=True)
class Picture:
    """alt: what there is to see, for those who do not see it; caption: what it shows and how to read it; title: the
    finding, where it is to stand above."""

    alt: str
    caption: str
    x: Axis
    y: Axis
    layers: Sequence[Layer]
    title: str = ""

    def svg(self) -> str:
        """The picture as an element of a page; every text is escaped."""
        parts = [
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(self.alt)}">',
            f'<path class="frame" d="M{LEFT} {TOP}H{WIDTH - RIGHT}V{HEIGHT - BOTTOM}H{LEFT}Z"/>',
            *self._axes(),
            *(self._layer(layer) for layer in self.layers if len(layer.x)),
            "</svg>",
        ]
        return "".join(parts)

    def frame(self) -> str:
        """What is in the frame alone, small, for a line of text."""
        view = f"{LEFT} {TOP} {WIDTH - LEFT - RIGHT} {HEIGHT - TOP - BOTTOM}"
        layers = "".join(self._layer(layer) for layer in self.layers if len(layer.x))
        return f'<svg class="spark" viewBox="{view}" role="img" aria-label="{escape(self.alt)}">{layers}</svg>'

    def _axes(self) -> list[str]:
        bottom = HEIGHT - BOTTOM
        across, up = self.x.ticks(), self.y.ticks()
        x, y = (place(np.array([value for value, _ in ticks])) for place, ticks in ((self._x, across), (self._y, up)))
        grid = "".join([*(f"M{at:.1f} {TOP}V{bottom}" for at in x), *(f"M{LEFT} {at:.1f}H{WIDTH - RIGHT}" for at in y)])
        below = (
            f'<text x="{at:.1f}" y="{bottom + 14}">{escape(text)}</text>'
            for at, (_, text) in zip(x, across, strict=True)
        )
        beside = (
            f'<text x="{LEFT - 5}" y="{at + 3.5:.1f}">{escape(text)}</text>'
            for at, (_, text) in zip(y, up, strict=True)
        )
        parts = [f'<path class="grid" d="{grid}"/>'] if grid else []
        parts += ['<g text-anchor="middle">', *below, '</g><g text-anchor="end">', *beside, "</g>"]
        middle = (TOP + bottom) / 2
        parts.append(
            f'<text class="label" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">'
            f"{escape(self.x.label)}</text>"
        )
        parts.append(
            f'<text class="label" transform="translate(12 {middle}) rotate(-90)" text-anchor="middle">'
            f"{escape(self.y.label)}</text>"
        )
        return parts

    def _layer(self, layer: Layer) -> str:
        if layer.kind == "cells":
            return self._cells(layer)
        if layer.kind == "tiles":
            return self._tiles(layer)
        x, y = self._x(layer.x), self._y(layer.y)
        if layer.kind == "points":
            path = "".join(f"M{a:.1f} {b:.1f}h0" for a, b in zip(x, y, strict=True))
        elif layer.kind == "line":
            path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True))
        elif layer.kind == "rules":
            path = "".join(f"M{a:.1f} {TOP}V{HEIGHT - BOTTOM}" for a in x)
        else:
            base = self._y(layer.base if layer.base is not None else np.zeros(len(x)))
            if layer.kind == "bars":
                path = "".join(f"M{a:.1f} {c:.1f}V{b:.1f}" for a, b, c in zip(x, y, base, strict=True))
            else:  # band: there along the upper edge, back along the lower
                upper = [f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True)]
                back = [f"{a:.1f} {c:.1f}" for a, c in zip(x[::-1], base[::-1], strict=True)]
                path = "M" + "L".join(upper + back) + "Z"
        opacity = "" if layer.opacity == 1.0 else f' stroke-opacity="{layer.opacity:g}"'
        return f'<path class="{layer.style}"{opacity} d="{path}"/>'

    def _tiles(self, layer: Layer) -> str:
        """Strokes one column wide, in numbers of columns and rows: the shortest way to write many."""
        columns, rows = layer.grid
        wide, high = (WIDTH - LEFT - RIGHT) / columns, (HEIGHT - TOP - BOTTOM) / rows
        base = layer.base if layer.base is not None else layer.y - 1
        path = "".join(f"M{a:.0f} {c:.0f}v{b - c:.0f}" for a, b, c in zip(layer.x, layer.y, base, strict=True))
        matrix = f"{wide:.5g} 0 0 {-high:.5g} {LEFT + wide / 2:.5g} {HEIGHT - BOTTOM}"
        return (
            f'<path class="{layer.style}" transform="matrix({matrix})" stroke-width="1" '
            f'stroke-opacity="{layer.opacity:g}" d="{path}"/>'
        )

    def _cells(self, layer: Layer) -> str:
        left, right = self._x(layer.x - 0.5), self._x(layer.x + 0.5)
        bottom, top = self._y(layer.y - 0.5), self._y(layer.y + 0.5)
        shade = np.ceil(SHADES * (layer.base if layer.base is not None else np.ones(len(layer.x)))).astype(int)
        parts = []
        for each in np.unique(shade):
            of_it = np.flatnonzero(shade == each)
            path = "".join(f"M{left[i]:.1f} {top[i]:.1f}H{right[i]:.1f}V{bottom[i]:.1f}H{left[i]:.1f}Z" for i in of_it)
            parts.append(f'<path class="{layer.style}" fill-opacity="{each / SHADES:g}" d="{path}"/>')
        return "".join(parts)

    def _x(self, values: Floats) -> Floats:
        result: Floats = LEFT + self.x.place(values) * (WIDTH - LEFT - RIGHT)
        return result

    def _y(self, values: Floats) -> Floats:
        result: Floats = HEIGHT - BOTTOM - self.y.place(values) * (HEIGHT - TOP - BOTTOM)
        return result
