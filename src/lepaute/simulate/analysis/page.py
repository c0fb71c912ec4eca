"""An analysis as one page: the efficiencies, the critical path by call and by rank, and who sends to and waits for
whom as heat maps, with all tables."""

from typing import TYPE_CHECKING, Any

import numpy
from markupsafe import Markup

from lepaute.kit.later import later
from lepaute.kit.picture import BLUE, ORANGE, RED, RULE, SOFT, new_figure
from lepaute.kit.report.page import anchor, figure_svg, render
from lepaute.kit.text import counted, percent, ranks_text, seconds, time_unit
from lepaute.simulate.analysis import critical_path as course
from lepaute.simulate.analysis.analysing import Analysis
from lepaute.simulate.analysis.report import AT_RANK, Table, facts_of, tables_of
from lepaute.simulate.trace.report import headline, node_name

if TYPE_CHECKING:
    from matplotlib import colors
    from matplotlib.figure import Figure
else:
    colors = later("matplotlib.colors")

#: Rows of a table; bars, and rows and columns of a heat map.
_MAX_ROWS, _MAX_CALLS, _MAX_BARS, _MAX_CELLS = 200, 12, 64, 64
#: Tables that stand open: the efficiencies, the path and the causes of waiting; others are folded.
_OPEN = ("Efficiencies", "Critical path by what", "Wait states", "Ranks that are waited for")
#: Of a heat map and its scale, which from 50 on is an image, in other colours than those of the page.
_SHADES = 48
_COLOURS = dict.fromkeys((course.MESSAGE, course.COLLECTIVE), RED) | dict.fromkeys((course.SLEEPS, course.BLANK), RULE)
_COLOURS |= {course.COMPUTES: BLUE, course.CALLS: ORANGE, course.NO_CORE: SOFT}


def page(analysis: Analysis, command: str) -> str:
    """The page; command: that makes it again."""
    factors = {"parallel efficiency": analysis.efficiencies.parallel, **analysis.efficiencies.factors}
    tables = [(table.title.startswith(_OPEN), _page_table(table)) for table in tables_of(analysis)]
    trace = analysis.trace
    origin = (("platform", str(trace.metadata.get("platform_sha256") or "")[:12]), ("seed", trace.metadata.get("seed")))
    return render(
        "lepaute.kit.report",
        "evidence.html.j2",
        title=headline(trace),
        facts=f"{counted(len(trace), 'call')} of {ranks_text(len(trace.ranks))}, {seconds(analysis.runtime_s)}",
        answer=analysis.sentence,
        figures=[(percent(value), name) for name, value in factors.items()],
        further=[f"{name}: {text}" for name, text in facts_of(analysis)[1:]],
        beware=analysis.caveats,
        pictures=_pictures(analysis),
        shown=[table for is_open, table in tables if is_open],
        tables=[table for is_open, table in tables if not is_open],
        made_of=[(name, str(value)) for name, value in origin if value not in (None, "")],
        commands=[("This page is made by", command)],
    )


def _page_table(table: Table) -> dict[str, Any]:
    columns, cells = table.shown(_MAX_ROWS)
    return {
        "title": table.title,
        "anchor": anchor(table.title),
        "columns": columns,
        "rows": [[str(cell).replace("  ", "\u2003") for cell in row] for row in cells],
    }


def _pictures(analysis: Analysis) -> list[dict[str, Any]]:
    path_alt = f"Critical path by call and by rank. {analysis.sentence}."
    pictures: list[dict[str, Any]] = [
        {
            "title": "The critical path: what the run took as long as",
            "svg": Markup(figure_svg(_path_figure(analysis), path_alt)),
            "caption": "What is shortened here shortens the run. Above: by kernel and call; below: computing and calls "
            "by the rank that they are on. Blue: computing; yellow: calls; orange: messages and collective operations, "
            "from the rank that was late to the one that waited; grey: waiting for a core, or nothing recorded.",
        }
    ]
    if (figure := _matrices_figure(analysis)) is not None:
        alt = "Bytes sent and time waited by pairs of ranks, as heat maps; the tables below have the numbers."
        pictures.append(
            {
                "title": "Who sends to whom, and who waits for whom",
                "svg": Markup(figure_svg(figure, alt)),
                "caption": "A row is the rank that sends, or waits; a column the one that receives, or is waited for. "
                f"Collective operations have no pairs. Of more than {_MAX_CELLS} ranks neighbours are put together.",
            }
        )
    return pictures


def _matrices_figure(analysis: Analysis) -> "Figure | None":
    pairs, waits, nodes = analysis.pairs, analysis.waits, analysis.nodes
    has_whom = waits.whom >= 0
    time_s = waits.time_s[has_whom]
    unit, factor = time_unit(float(time_s.max(initial=0.0)))
    maps = [
        ("sender", "receiver", "bytes", pairs.sender, pairs.receiver, pairs.size_bytes),
        ("rank that waits", "for rank", unit, waits.rank[has_whom], waits.whom[has_whom], time_s * factor),
    ]
    if nodes is not None and len(numpy.unique(nodes.sender)) > 1:
        grid = (nodes.sender, nodes.receiver, nodes.size_bytes)
        maps.insert(1, ("node of sender", "node of receiver", "bytes", *grid))
    maps = [entry for entry in maps if len(entry[3])]
    if not maps:
        return None
    figure = new_figure((3.7 * len(maps), 3.4), for_file=True)
    shades = colors.LinearSegmentedColormap.from_list("", [colors.to_rgba(BLUE, 0.0), colors.to_rgba(BLUE)], _SHADES)
    for axis, (up, across, unit_of, row, column, amount) in zip(
        figure.subplots(1, len(maps), squeeze=False)[0], maps, strict=True
    ):
        numbers = numpy.unique(numpy.concatenate((row, column)))
        cells = min(_MAX_CELLS, len(numbers))
        cell_of = numpy.arange(len(numbers)) * cells // len(numbers)
        at = [cell_of[numpy.searchsorted(numbers, ends)] for ends in (row, column)]
        matrix = numpy.bincount(at[0] * cells + at[1], weights=amount, minlength=cells**2).reshape(cells, cells)
        power = max(0, int(matrix.max()).bit_length() - 1) // 10 if unit_of == "bytes" else 0  # for round numbers
        label = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")[power] if unit_of == "bytes" else unit_of
        mesh = axis.pcolormesh(matrix / 1024.0**power, cmap=shades, vmin=0.0)
        scale = figure.colorbar(mesh, ax=axis, shrink=0.8)
        scale.ax.tick_params(labelsize=8)
        scale.set_label(label, fontsize=8)
        every = max(1, cells // 8)
        firsts = [int(numbers[cell_of == cell][0]) for cell in range(0, cells, every)]
        names = [node_name(analysis.trace, first) if up.startswith("node") else str(first) for first in firsts]
        for set_ticks in (axis.set_xticks, axis.set_yticks):
            set_ticks(numpy.arange(0, cells, every) + 0.5, names, fontsize=8)
        axis.set_xlabel(across, fontsize=9)
        axis.set_ylabel(up, fontsize=9)
        axis.invert_yaxis()
        axis.set_aspect("equal")
    return figure


def _path_figure(analysis: Analysis) -> "Figure":
    path, trace = analysis.path, analysis.trace
    words = course.activities(path, trace)
    by_call = [(name, time_s) for (name,), time_s in path.seconds_by(words).items()][:_MAX_CALLS]
    unit, factor = time_unit(by_call[0][1] if by_call else 1.0)
    figure = new_figure((9.0, 2.6 + 0.3 * max(len(by_call), 3)), for_file=True)
    calls, ranks = figure.subplots(2, 1, height_ratios=(0.3 * max(len(by_call), 3), 1.9))
    for row, (name, time_s) in enumerate(by_call):
        piece = int(path.piece[numpy.flatnonzero(words == name)[0]])
        calls.barh(row, time_s * factor, 0.7, color=_COLOURS[piece])
        share = percent(time_s / path.length_s)
        calls.text(time_s * factor, row, f"  {share}", va="center", fontsize=8, color=SOFT)
    calls.set_yticks(range(len(by_call)), [name for name, _ in by_call], fontsize=9)
    calls.set_ylim(len(by_call) - 0.4, -0.6)
    calls.margins(x=0.1)
    calls.set_xlabel(f"time on the critical path ({unit})", fontsize=9)
    _draw_ranks(ranks, analysis)
    for axis in (calls, ranks):
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8)
    return figure


def _draw_ranks(axis: Any, analysis: Analysis) -> None:
    """A bar a rank, or a group of neighbouring ranks, by what is on the path there."""
    path, numbers = analysis.path, numpy.array(analysis.trace.ranks or [0])
    bars = min(_MAX_BARS, len(numbers))
    group_of = numpy.arange(len(numbers)) * bars // len(numbers)
    base = numpy.zeros(bars)
    most = max(path.seconds_by(path.rank, where=numpy.isin(path.piece, AT_RANK)).values(), default=1.0)
    unit, factor = time_unit(most)
    for piece in AT_RANK:
        mask = path.piece == piece
        groups = group_of[numpy.searchsorted(numbers, path.rank[mask])]
        height = numpy.bincount(groups, weights=path.duration_s[mask], minlength=bars) * factor
        if height.any():
            axis.bar(range(bars), height, 0.84, bottom=base, color=_COLOURS[piece], label=course.PIECES[piece])
        base += height
    every = max(1, bars // 16)
    firsts = [int(numbers[group_of == group][0]) for group in range(0, bars, every)]
    axis.set_xticks(range(0, bars, every), [str(first) for first in firsts])
    axis.set_xlim(-0.6, bars - 0.4)
    axis.set_xlabel("rank" if bars == len(numbers) else "ranks, named by the first of each group", fontsize=9)
    axis.set_ylabel(f"on the path ({unit})", fontsize=9)
