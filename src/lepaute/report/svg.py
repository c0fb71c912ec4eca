"""Pictures as SVG inside a page: points, lines, bars, bands.

Written here rather than by Matplotlib: a page has up to six pictures of forty subjects, which take Matplotlib half a
minute and 18 MB, and this less than a second and 1 MB; texts stay texts of the page, in its font and legible at any
width; no script is needed. Colours and strokes are those of the page's style sheet (classes `dot`, `line`, `mark`,
`band`, `bar`, `rule`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from lepaute.report.axes import Axis, Floats

WIDTH, HEIGHT = 360, 230
LEFT, RIGHT, TOP, BOTTOM = 52, 16, 8, 38


@dataclass(frozen=True, slots=True)
class Layer:
    """Something drawn at (x, y), float64 of shape (n,).

    kind : points, line (through them), bars (from `base` to y), band (from `base` to y along x), rules (vertical, at x)
    """

    kind: str
    x: Floats
    y: Floats
    style: str
    base: Floats | None = None


@dataclass(frozen=True, slots=True)
class Picture:
    """alt: what there is to see, for those who do not see it; caption: what it shows and how to read it."""

    alt: str
    caption: str
    x: Axis
    y: Axis
    layers: Sequence[Layer]

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

    def _axes(self) -> list[str]:
        bottom = HEIGHT - BOTTOM
        parts = []
        for value, text in self.x.ticks():
            at = self._x(np.array([value]))[0]
            parts.append(f'<path class="grid" d="M{at:.1f} {TOP}V{bottom}"/>')
            parts.append(f'<text x="{at:.1f}" y="{bottom + 14}" text-anchor="middle">{escape(text)}</text>')
        for value, text in self.y.ticks():
            at = self._y(np.array([value]))[0]
            parts.append(f'<path class="grid" d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}"/>')
            parts.append(f'<text x="{LEFT - 5}" y="{at + 3.5:.1f}" text-anchor="end">{escape(text)}</text>')
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
        return f'<path class="{layer.style}" d="{path}"/>'

    def _x(self, values: Floats) -> Floats:
        result: Floats = LEFT + self.x.place(values) * (WIDTH - LEFT - RIGHT)
        return result

    def _y(self, values: Floats) -> Floats:
        result: Floats = HEIGHT - BOTTOM - self.y.place(values) * (HEIGHT - TOP - BOTTOM)
        return result
