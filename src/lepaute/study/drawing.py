"""An SVG inside a page: named rows over a common axis, boxes, intervals.

Rows have names as long as configurations are, which the axes of report/svg.py do not take; colours and strokes are
those of its style sheet.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from math import ceil, floor, log10

WIDTH, ROW, TOP, FOOT, RIGHT = 760, 22, 10, 42, 24
#: A letter of a name, about; of the widest ones, in bold.
LETTER = 7.0


@dataclass
class Drawing:
    """An SVG that grows: alt says what there is to see, caption how to read it."""

    alt: str
    caption: str
    height: float
    width: float = WIDTH
    parts: list[str] = field(default_factory=list)

    def text(self, x: float, y: float, words: str, anchor: str = "start", style: str = "", fill: str = "") -> None:
        look = f' class="{style}"' if style else ""
        colour = f' style="fill:{fill}"' if fill else ""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{look}{colour}>{escape(words)}</text>')

    def line(self, x0: float, y0: float, x1: float, y1: float, style: str = "line") -> None:
        self.parts.append(f'<path class="{style}" d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}"/>')

    def whisker(self, x0: float, x1: float, y: float) -> None:
        """An interval across a bar."""
        path = f"M{x0:.1f} {y:.1f}H{x1:.1f}M{x0:.1f} {y - 3:.1f}v6M{x1:.1f} {y - 3:.1f}v6"
        self.parts.append(f'<path style="stroke:#1c2430;stroke-width:1.2" d="{path}"/>')

    def dot(self, x: float, y: float, style: str = "mark") -> None:
        self.parts.append(f'<path class="{style}" d="M{x:.1f} {y:.1f}h0"/>')

    def box(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{height:.1f}" style="fill:{colour}"/>'
        )

    def svg(self) -> str:
        """The element of a page."""
        return (
            f'<svg viewBox="0 0 {self.width:.0f} {self.height:.0f}" role="img" aria-label="{escape(self.alt)}">'
            f"{''.join(self.parts)}</svg>"
        )


def named_rows(
    alt: str,
    caption: str,
    names: Sequence[str],
    span: tuple[float, float],
    label: Callable[[float], str],
    bold: Sequence[bool],
    margin: float = 8.0,
    least_step: float = 0.0,
) -> tuple[Drawing, Callable[[float], float]]:
    """A named row for each, over a common axis; and where a value is on it."""
    low, high = with_room(*span)
    left = min(340.0, 16.0 + LETTER * max(map(len, names)))
    right = WIDTH - RIGHT - 40.0
    picture = Drawing(alt, caption, TOP + ROW * len(names) + FOOT - 12)

    def place(value: float) -> float:
        share = (value - low) / (high - low)
        return left + margin + min(max(share, 0.0), 1.0) * (right - left - 2 * margin)

    bottom = TOP + ROW * len(names)
    for value in ticks(low, high, least_step):
        picture.line(place(value), TOP, place(value), bottom, "grid")
        picture.text(place(value), bottom + 16, label(value), "middle")
    for at, name in enumerate(names):
        most = int((left - 12) / LETTER)
        shown = name if len(name) <= most else f"{name[: most - 1]}…"
        weight = ' style="font-weight:600"' if bold[at] else ""
        y = middle_of(at) + 4
        picture.parts.append(f'<text x="{left - 6:.1f}" y="{y:.1f}" text-anchor="end"{weight}>{escape(shown)}</text>')
    return picture, place


def middle_of(row: int) -> float:
    """The height of a row."""
    return TOP + ROW * (row + 0.5)


def with_room(low: float, high: float) -> tuple[float, float]:
    """A span with some room at both ends, but none below a span that begins at 0."""
    room = 0.04 * (high - low) or 0.02 * max(abs(high), 1e-9)
    return low - (room if low != 0.0 else 0.0), high + room


def ticks(low: float, high: float, least_step: float = 0.0) -> list[float]:
    """Round values from low to high, about five."""
    step = max((high - low) / 5.0, least_step)
    scale = 10.0 ** floor(log10(step))
    step = next(factor * scale for factor in (1.0, 2.0, 5.0, 10.0) if factor * scale >= step * (1 - 1e-9))
    first = ceil(low / step - 1e-9)
    return [round((first + number) * step, 12) for number in range(floor(high / step + 1e-9) - first + 1)]
