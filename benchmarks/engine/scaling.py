"""How the cost of an event grows with the size of what is simulated."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from engine.cases import Square
from engine.command import NOW, Cost

#: An event on this many ranks is what others are compared with.
REFERENCE_RANKS = 1024
COLOURS = ("#4c78a8", "#b0b0b0")


@dataclass(frozen=True, slots=True)
class Point:
    """One size: user time without start-up, and events (messages, and a turn of each rank in each step)."""

    program: str
    ranks: int
    steps: int
    spent_s: float
    events: float

    @classmethod
    def of(cls, program: str, square: Square, cost: Cost, start_s: float) -> Self | None:
        """None where nothing was measured, or less than the start of the program."""
        if cost.problem or cost.user_s <= start_s:
            return None
        events = cost.messages + square.ranks * square.steps
        return cls(program, square.ranks, square.steps, cost.user_s - start_s, events)

    @property
    def event_ns(self) -> float:
        return 1e9 * self.spent_s / self.events


def exponent(points: Sequence[Point]) -> float:
    """Of user time on events: the slope of a least-squares line of their logarithms; NaN for fewer than three."""
    if len(points) < 3:
        return math.nan
    events, spent_s = ([math.log(getattr(point, name)) for point in points] for name in ("events", "spent_s"))
    return float(numpy.polyfit(events, spent_s, 1)[0])


def flatness(points: Sequence[Point], what: str) -> tuple[float, int]:
    """The dearest event over that of the reference, and how many ranks or steps (`what`) the latter has.

    The reference has REFERENCE_RANKS, or is the size in the middle.
    """
    if not points:
        return math.nan, 0
    ordered = sorted(points, key=lambda point: getattr(point, what))
    known = [point for point in ordered if what == "ranks" and point.ranks == REFERENCE_RANKS]
    reference = known[0] if known else ordered[len(ordered) // 2]
    return max(point.event_ns for point in ordered) / reference.event_ns, int(getattr(reference, what))


def picture(points: Sequence[Point], what: str) -> Figure:
    """Nanoseconds an event over the number of ranks or steps, a line a program."""
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.add_subplot()
    programs = sorted({point.program for point in points}, key=lambda name: name != NOW.name)
    for program, colour in zip(programs, COLOURS, strict=False):
        own = sorted((getattr(point, what), point.event_ns) for point in points if point.program == program)
        label = program if program == NOW.name else f"before ({program})"
        axes.plot(*zip(*own, strict=True), "o-", color=colour, lw=1.2, ms=5, label=label)
    axes.set_xscale("log")
    axes.set_ylim(0.0, 1.15 * max((point.event_ns for point in points), default=1.0))
    sizes = sorted({getattr(point, what) for point in points})
    axes.set_xticks(sizes)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xlabel("ranks (NB = √ranks)" if what == "ranks" else "steps, 1024 ranks")
    axes.set_ylabel("user time an event (ns)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e8e8e8", lw=0.8)
    axes.set_axisbelow(True)
    if programs:
        axes.legend(frameon=False)
    return figure
