"""Logarithmic axes of pictures with ticks that people read."""

import math
from typing import Any


def plain_decades(axis: Any, ends: tuple[float, float]) -> None:
    """Ticks of a logarithmic axis that are numbers, not powers: evenly spaced on an axis of less than half a decade.

    ends: of the values that it shows, above 0
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    decades = math.log10(ends[1] / ends[0])
    if decades < 0.4:
        axis.set_major_locator(MaxNLocator(7, steps=[1, 2, 2.5, 5, 10]))
    else:
        steps = (1.0,) if decades > 4.0 else (1.0, 2.0, 5.0) if decades > 0.9 else (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
        axis.set_major_locator(LogLocator(subs=steps))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())
