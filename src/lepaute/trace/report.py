"""The breakdown as tables of text and as a picture of stacked bars."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lepaute.kit.files import whole_file
from lepaute.kit.tables import shortened, text_table
from lepaute.kit.text import axis_unit, percent, seconds
from lepaute.trace.breakdown import Breakdown
from lepaute.trace.colours import SHARES
from lepaute.trace.table import CATEGORIES

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_ROWS = 24
MOST_BARS = 128


def breakdown_text(breakdown: Breakdown) -> str:
    """Tables: all ranks together, each rank, each kernel and routine, each step; long ones without their middle."""
    total = breakdown.by_rank_s.sum(axis=0)
    whole = float(total.sum())
    parts = [
        "All ranks together"
        + (
            " (late and transfer from matching sends with receives; transfer includes overhead and contention"
            + (f", and the waiting in {', '.join(breakdown.unknown)})" if breakdown.unknown else ")")
            if breakdown.estimated
            else ""
        ),
        text_table(
            ("where", "time", "share"),
            [
                (_words(name), seconds(float(value)), percent(_share(value, whole)))
                for name, value in zip(CATEGORIES, total, strict=True)
                if value > 1e-9 * whole
            ],
        ),
        "",
        "Each rank, per cent of its time",
        text_table(("rank", "time", *map(_words, CATEGORIES)), shortened(_rank_rows(breakdown), MOST_ROWS)),
        "",
        "Kernels and MPI routines",
        text_table(
            ("call", "calls", "time", "share", "median"),
            shortened(
                [
                    (one.name, one.calls, seconds(one.time_s), percent(one.share), seconds(one.median_s))
                    for one in breakdown.by_name
                ],
                2 * MOST_ROWS,
            ),
        ),
    ]
    if breakdown.steps:
        parts += [
            "",
            "Each step, all ranks together",
            text_table(("step", "time", *map(_words, CATEGORIES[:-1])), shortened(_step_rows(breakdown), MOST_ROWS)),
        ]
    return "\n".join(parts)


def _words(category: str) -> str:
    return category.replace("_", " ")


def _rank_rows(breakdown: Breakdown) -> list[tuple[object, ...]]:
    return [
        (rank, seconds(float(row.sum())), *(percent(_share(value, row.sum())) for value in row))
        for rank, row in zip(breakdown.ranks, breakdown.by_rank_s, strict=True)
    ]


def _step_rows(breakdown: Breakdown) -> list[tuple[object, ...]]:
    return [
        (step, seconds(float(row.sum())), *(seconds(float(value)) for value in row[:-1]))
        for step, row in zip(breakdown.steps, breakdown.by_step_s, strict=True)
    ]


def _share(value: float, whole: float) -> float:
    return float(value) / float(whole) if whole > 0 else 0.0


def breakdown_dict(breakdown: Breakdown) -> dict[str, Any]:
    """The same for JSON; seconds."""

    def named(row: "NDArray[Any]") -> dict[str, float]:
        return dict(zip(CATEGORIES, map(float, row), strict=True))

    return {
        "all": named(breakdown.by_rank_s.sum(axis=0)),
        "ranks": [{"rank": rank, **named(row)} for rank, row in zip(breakdown.ranks, breakdown.by_rank_s, strict=True)],
        "steps": [{"step": step, **named(row)} for step, row in zip(breakdown.steps, breakdown.by_step_s, strict=True)],
        "calls": [
            {"name": one.name, "kind": one.kind, "calls": one.calls, "time_s": one.time_s, "median_s": one.median_s}
            for one in breakdown.by_name
        ],
        "estimated": breakdown.estimated,
    }


def plot_breakdown(breakdown: Breakdown, path: Path, title: str) -> None:
    """Writes a PNG: a stacked bar a rank, and where there are steps a stacked area over them."""
    import numpy
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    by_rank, labels = _grouped(breakdown)
    panels = 2 if len(breakdown.steps) > 1 else 1
    figure = Figure(figsize=(11.0, 3.4 * panels + 1.0), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(panels, 1, squeeze=False)[:, 0]
    unit, factor = axis_unit(by_rank.sum(axis=1).max())
    base = numpy.zeros(len(by_rank))
    for style, values in zip(SHARES, by_rank.T, strict=True):
        axes[0].bar(
            range(len(by_rank)),
            values * factor,
            0.84,
            bottom=base * factor,
            color=style.colour,
            hatch=style.hatch,
            ec="#555555",
            lw=0.4 if len(by_rank) < 40 else 0.0,
        )
        base += values
    every = max(1, len(labels) // 16)
    axes[0].set_xticks(range(0, len(labels), every), labels[::every], fontsize=8)
    axes[0].set_xlim(-0.6, len(labels) - 0.4)
    axes[0].set_xlabel("rank" if len(labels) == len(breakdown.ranks) else "ranks, mean of each group", fontsize=9)
    axes[0].set_ylabel(f"time, {unit}", fontsize=9)
    if panels == 2:
        _draw_steps(axes[1], breakdown)
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    used = breakdown.by_rank_s.sum(axis=0) > 1e-4 * breakdown.by_rank_s.sum()
    if len(breakdown.steps):
        used |= (breakdown.by_step_s > 1e-2 * breakdown.by_step_s.sum(axis=1, keepdims=True)).any(axis=0)
    handles = [
        Patch(fc=style.colour, hatch=style.hatch, ec="#555555", lw=0.6, label=style.label)
        for style, is_used in zip(SHARES, used, strict=True)
        if is_used
    ]
    figure.suptitle(title, fontsize=11)
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=9)
    with whole_file(path) as temporary:
        figure.savefig(temporary, format="png")


def _draw_steps(axis: Any, breakdown: Breakdown) -> None:
    import numpy

    values = breakdown.by_step_s[:, :-1]
    unit, factor = axis_unit(values.sum(axis=1).max())
    edges = numpy.array([*breakdown.steps, breakdown.steps[-1] + 1]) - 0.5
    base = numpy.zeros(len(values))
    for style, column in zip(SHARES, values.T, strict=False):
        axis.stairs(
            (base + column) * factor,
            edges,
            baseline=base * factor,
            fill=True,
            color=style.colour,
            hatch=style.hatch,
            ec="#555555",
            lw=0.3,
        )
        base = base + column
    axis.set_xlim(edges[0], edges[-1])
    axis.set_ylim(0, None)
    axis.set_xlabel("step (panel)", fontsize=9)
    axis.set_ylabel(f"time of these ranks, {unit}", fontsize=9)


def _grouped(breakdown: Breakdown) -> "tuple[NDArray[Any], list[str]]":
    """Bars and their labels: a rank each, or means of consecutive ranks where there are more than MOST_BARS."""
    import numpy

    count = len(breakdown.ranks)
    if count <= MOST_BARS:
        return breakdown.by_rank_s, [str(rank) for rank in breakdown.ranks]
    groups = numpy.array_split(numpy.arange(count), MOST_BARS)
    means = numpy.array([breakdown.by_rank_s[group].mean(axis=0) for group in groups])
    return means, [f"{breakdown.ranks[group[0]]}-{breakdown.ranks[group[-1]]}" for group in groups]
