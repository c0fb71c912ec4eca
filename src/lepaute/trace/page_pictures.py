"""Pictures of a trace's page that need no script: time by what it went into, and pairs of ranks."""

from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.kit.text import axis_unit
from lepaute.report.svg import Axis, Layer, Picture
from lepaute.trace import colours
from lepaute.trace.breakdown import OTHER, Breakdown
from lepaute.trace.report import grouped
from lepaute.trace.table import Trace
from lepaute.trace.timeline import binned

BINS = 180
#: Rows and columns of a picture of pairs; more ranks are put together.
MOST_CELLS = 32
#: Of each category of a breakdown, the class whose colour it has.
_PLACES = (
    colours.DGEMM,
    colours.CALL_OVERHEAD,
    colours.WAITING,
    colours.MOVING,
    colours.CONTENDING,
    colours.PROBING,
    colours.OWN_CODE,
    colours.NOTHING,
)


def over_time(trace: Trace, spent: NDArray[Any]) -> Picture:
    """All ranks together; spent: seconds of each row by class."""
    low_s, high_s = float(trace.start_s.min()), float(trace.end_s.max())
    high_s = high_s if high_s > low_s else low_s + 1e-9
    shares = 100.0 * binned(trace.start_s, spent, low_s, high_s, BINS) / len(trace.ranks)
    unit, factor = axis_unit(high_s)
    edges = numpy.linspace(low_s, high_s, BINS + 1) * factor
    order = range(colours.NOTHING)
    return Picture(
        "Shares of the time of all ranks, by what they do, from the beginning to the end",
        "All ranks together in the course of time: what shares of them do what. Empty: nothing recorded.",
        Axis(f"time, {unit}", float(edges[0]), float(edges[-1])),
        Axis("share of the ranks, %", 0.0, 100.0),
        _stacked(edges, shares[:, : colours.NOTHING], order),
    )


def by_rank(breakdown: Breakdown) -> Picture:
    """A column a rank, or a group of ranks."""
    values, labels = grouped(breakdown)
    unit, factor = axis_unit(float(values.sum(axis=1).max()))
    of_groups = "" if len(labels) == len(breakdown.ranks) else "; a column is the mean of neighbouring ranks"
    return Picture(
        "Time of each rank by what it went into",
        f"The time of each rank. Blue: all computing; the other colours as above{of_groups}.",
        Axis("rank", -0.5, len(labels) - 0.5, names=tuple(labels)),
        Axis(f"time, {unit}", 0.0, float(values.sum(axis=1).max()) * factor or 1.0),
        _stacked(numpy.arange(len(labels) + 1) - 0.5, values * factor, _PLACES),
    )


def by_step(breakdown: Breakdown) -> Picture:
    """A column a step."""
    values = breakdown.by_step_s[:, :OTHER]
    most = float(values.sum(axis=1).max())
    unit, factor = axis_unit(most)
    edges = numpy.array([*breakdown.steps, breakdown.steps[-1] + 1]) - 0.5
    return Picture(
        "Time of all ranks in each step by what it went into",
        "The time of all ranks in each step. Blue: all computing; the other colours as above.",
        Axis("step (panel)", float(edges[0]), float(edges[-1])),
        Axis(f"time of all ranks, {unit}", 0.0, most * factor or 1.0),
        _stacked(edges, values * factor, _PLACES[:OTHER]),
    )


def _stacked(edges: NDArray[Any], values: NDArray[Any], places: Any) -> list[Layer]:
    """Columns between the edges, shape (columns, classes), on each other in the colours of their classes."""
    x = numpy.repeat(edges, 2)[1:-1]
    base = numpy.zeros(len(values))
    layers = []
    for place, column in zip(places, values.T, strict=True):
        if column.any():
            top = base + column
            layers.append(Layer("band", x, numpy.repeat(top, 2), f"c{place}", numpy.repeat(base, 2)))
            base = top
    return layers


def pairs_picture(one: NDArray[Any], other: NDArray[Any], amount: NDArray[Any], verb: str, preposition: str) -> Picture:
    """How much of `amount` each pair of ranks has: a row a rank, a column the other; more of it is darker."""
    known = other >= 0
    one, other, amount = one[known], other[known], amount[known]
    ranks = numpy.unique(numpy.concatenate((one, other)))
    groups = min(MOST_CELLS, len(ranks))
    group_of = numpy.arange(len(ranks)) * groups // len(ranks)
    row, column = (group_of[numpy.searchsorted(ranks, each)] for each in (one, other))
    total = numpy.bincount(row * groups + column, weights=amount, minlength=groups**2)
    cells = numpy.flatnonzero(total)
    across, up = (each.astype(numpy.float64) for each in (cells % groups, cells // groups))
    firsts = [int(ranks[group_of == group][0]) for group in range(groups)]
    names = tuple(map(str, firsts))
    together = "" if groups == len(ranks) else "; neighbouring ranks are put together, named by the first"
    return Picture(
        f"Which rank {verb} {preposition} which",
        f"Up: the rank that {verb}; across: the rank {preposition} which it {verb}. Full colour: most{together}.",
        Axis(f"{preposition} rank", -0.5, groups - 0.5, names=names),
        Axis(f"rank that {verb}", -0.5, groups - 0.5, names=names),
        [Layer("cells", across, up, "cell", total[cells] / total.max())],
    )
