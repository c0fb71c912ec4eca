"""Two libraries on several numbers of ranks: a comparison of each, and where the faster one changes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lepaute.archive import Archive, mpi_campaign
from lepaute.compare.comparison import Comparison, archives
from lepaute.kit.text import exact_size, time_unit
from lepaute.measure.comparison.cases import name_of

#: Rows that a sentence names, and that a picture shows.
MOST_NAMED, MOST_PANELS = 4, 12


def by_ranks(*campaigns: Archive | str | Path, **options: Any) -> tuple[Comparison, ...]:
    """`archives` of each number of ranks of the campaigns, increasing; options: its own.

    P-values are corrected for the rows of all numbers of ranks together.
    """
    opened = [one if isinstance(one, Archive) else Archive.open(one) for one in campaigns]
    numbers = mpi_campaign.facts(opened[0]).all_ranks if opened else ()
    if len(numbers) < 2:
        return (archives(*opened, **options),)
    return tuple(archives(*opened, ranks=ranks, **options) for ranks in numbers)


@dataclass(frozen=True, slots=True)
class Crossing:
    """A row whose faster library is one on some numbers of ranks and the other on others, shown for both.

    left, right: numbers of ranks on which the left, the right library is faster
    """

    operation: str
    form: str
    size_bytes: int
    left: tuple[int, ...]
    right: tuple[int, ...]


def crossings(comparisons: Sequence[Comparison]) -> tuple[Crossing, ...]:
    """The rows whose faster library depends on the number of ranks; comparisons: of the same libraries."""
    rows: dict[tuple[str, str, int], dict[str, list[int]]] = {}
    for each in comparisons:
        for one in each.verdicts:
            faster = rows.setdefault(one.row, {})
            faster.setdefault(one.outcome, []).append(each.ranks)
    return tuple(
        Crossing(*row, tuple(faster["left faster"]), tuple(faster["right faster"]))
        for row, faster in rows.items()
        if {"left faster", "right faster"} <= set(faster)
    )


def crossing_sentence(found: Sequence[Crossing], comparisons: Sequence[Comparison]) -> str:
    """Whether the order of the libraries depends on the number of ranks, in a sentence."""
    left, right = comparisons[0].left, comparisons[0].right
    numbers = ", ".join(str(each.ranks) for each in comparisons)
    if not found:
        return f"in no row is {left} shown to be faster on one of {numbers} ranks, and {right} on another"
    named = [
        f"{name_of(one.operation, one.form)} of {exact_size(one.size_bytes)} ({left} on "
        f"{', '.join(map(str, one.left))} ranks, {right} on {', '.join(map(str, one.right))})"
        for one in found[:MOST_NAMED]
    ]
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return f"the faster library depends on the number of ranks in {', '.join(named)}{more}"


def write_scaling(comparisons: Sequence[Comparison], path: "Path") -> None:
    """A picture of times by the number of ranks, a panel a row, up to MOST_PANELS: every mpirun of both libraries, a
    line through their medians, filled where a difference is shown. comparisons: of `by_ranks`."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    from lepaute.kit.picture import BLUE, RED, bare, entitle, measured_origin, new_figure, plain_decades, write_picture

    rows = list(dict.fromkeys(one.row for each in comparisons for one in each.verdicts))[:MOST_PANELS]
    columns = min(3, max(1, len(rows)))
    lines = max(1, -(-len(rows) // columns))
    figure = new_figure((3.4 * columns + 0.6, 2.7 * lines + 1.0), for_file=True)
    numbers = [each.ranks for each in comparisons]
    for place, row in enumerate(rows):
        axes = figure.add_subplot(lines, columns, place + 1)
        shown = [(each, one) for each in comparisons for one in each.verdicts if one.row == row]
        unit, factor = time_unit(max(max(one.left_s, one.right_s) for _, one in shown))
        for label, colour, apart in ((shown[0][0].left, BLUE, 0.97), (shown[0][0].right, RED, 1.03)):
            times = [factor * (one.left_s if label == each.left else one.right_s) for each, one in shown]
            ranks = [each.ranks for each, _ in shown]
            axes.plot(ranks, times, color=colour, linewidth=1.4, label=label)
            for (each, one), number, time in zip(shown, ranks, times, strict=True):
                shade = colour if one.decision.is_shown else "white"
                axes.plot([number], [time], "o", color=colour, markerfacecolor=shade)
                mine = each.summaries[each.summaries["library"] == label]
                mine = mine[(mine["operation"] == row[0]) & (mine["form"] == row[1]) & (mine["size_bytes"] == row[2])]
                dots = factor * mine[each.value]
                axes.plot([number * apart] * len(dots), dots, ".", color=colour, alpha=0.3, markersize=4)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.xaxis.set_major_locator(FixedLocator(numbers))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        plain_decades(axes.yaxis, axes.get_ylim())
        axes.set_title(f"{name_of(row[0], row[1])} of {exact_size(row[2])}", fontsize=9)
        axes.set_xlabel("ranks", fontsize=8)
        axes.set_ylabel(f"time of a call, {unit}", fontsize=8)
        axes.tick_params(labelsize=8)
        bare(axes)
    if rows:
        figure.axes[0].legend(fontsize=8, frameon=False)
    sentence = crossing_sentence(crossings(comparisons), comparisons)
    foot = (
        "dots: mpiruns; lines: their medians; filled: a difference is shown, corrected for the rows of all numbers of "
        f"ranks · {measured_origin(', '.join(one.file for one in comparisons[0].archives))}"
    )
    entitle(figure, f"{sentence[:1].upper()}{sentence[1:]}", foot)
    write_picture(figure, path)
