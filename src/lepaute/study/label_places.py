"""Where names of points stand in a picture, so that they cover neither each other nor intervals."""

from collections.abc import Sequence
from typing import NamedTuple

from lepaute.study.drawing import LETTER, WIDTH

TEXT_HEIGHT = 12.0


class Box(NamedTuple):
    """Where a text stands."""

    left: float
    right: float
    bottom: float

    def covers(self, other: "Box") -> bool:
        return self.left < other.right and other.left < self.right and abs(self.bottom - other.bottom) < TEXT_HEIGHT

    def is_crossed(self, line: tuple[float, float, float]) -> bool:
        """By a horizontal line: from, to, height."""
        low, high, y = line
        return low < self.right and self.left < high and -2.0 < self.bottom - y < TEXT_HEIGHT


def free_place(
    x: float, y: float, name: str, labels: Sequence[Box], lines: Sequence[tuple[float, float, float]]
) -> Box:
    """A place for the name of a point beside it: the first of four that covers least."""
    width = LETTER * len(name)
    places = [
        Box(left, left + width, bottom)
        for bottom in (y - 6, y + TEXT_HEIGHT + 3)
        for left in (x + 6, x - 6 - width)
        if left >= 0.0 and left + width <= WIDTH
    ]

    def covered(box: Box) -> int:
        return sum(map(box.covers, labels)) + sum(map(box.is_crossed, lines))

    return min(places or [Box(x + 6, x + 6 + width, y - 6)], key=covered)
