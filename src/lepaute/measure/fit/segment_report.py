"""Where durations change slope or jump, in words, as a table and as a page."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from lepaute.kit.report.page import figure_svg, records_table, render
from lepaute.kit.text import exact_number, significant, size_text, time_unit, value_and_interval
from lepaute.measure.fit.column_names import SECONDS
from lepaute.measure.fit.duration_tables import DurationTable

if TYPE_CHECKING:
    from lepaute.measure.fit.segmentation import SegmentedLine
    from lepaute.measure.fit.segmentation.points import Interval, Line


def page(table: "DurationTable", line: "SegmentedLine", source: str, command: str) -> str:
    """The page; source: name of the file; command: that makes it again."""
    answer = sentence(table, line)
    figure = line.plot(source=source, **axis_labels(table))
    titles, rows = lines_table(table, line)
    # Each interval by the name of what it is of.
    heads = [f"{titles[at - 1]}, 95 %" if title == "95 % of it" else title for at, title in enumerate(titles)]
    names = ("breakpoints", "objective", "divides it by", "at", "chosen")
    tried = [dict(zip(names, row, strict=True)) for row in line.candidate_rows(in_bytes=table.in_bytes)]
    return render(
        "lepaute.kit.report",
        "evidence.html.j2",
        title=f"Where the durations of {table.name} change slope or jump",
        facts=f"{source}: {origin(table)}",
        answer=answer,
        state=line.decision.state("for", "against"),
        further=[f"{place} ({told})" for place, told in line.jumps(in_bytes=table.in_bytes)],
        beware=[*table.notes, *line.notes],
        pictures=[
            {
                "svg": Markup(figure_svg(figure, f"Durations over sizes, with the fitted lines. {answer}")),
                "caption": f"Above: durations and the fitted {'lines' if line.breakpoints else 'line'}"
                f"{', with the 95 % interval of each breakpoint' * bool(line.breakpoints)}"
                f"{'; grey dashed: the best fit with one breakpoint more' * (line.rejected() is not None)}. Below: how "
                "far all are off the fitted lines.",
            }
        ],
        shown=[records_table("The lines", [dict(zip(heads, row, strict=True)) for row in rows])],
        tables=[records_table("What each further breakpoint gains", tried)],
        commands=[("This page is made by", command)],
    )


def sentence(table: "DurationTable", line: "SegmentedLine") -> str:
    """A size that takes longer than a larger one; after which sizes durations change, and how far lines are off."""
    off = 100 * float(np.median(np.abs(line.y / line.predict(line.x) - 1)))
    lines = "lines" if line.breakpoints else "line"
    within = f"; half of the durations lie within {significant(max(off, 0.01), 2)} % of the {lines}."
    slower = _slower_than_a_larger(table, off)
    finding = [line.finding(in_bytes=table.in_bytes)] if line.breakpoints or not slower else []
    if slower is not None:
        size, larger, ratio = slower
        finding.insert(0, f"{_size(table, size)} takes {significant(ratio)} times as long as {_size(table, larger)}")
    return f"{'; '.join(finding)}{within}"


def _slower_than_a_larger(table: "DurationTable", off: float) -> tuple[float, float, float] | None:
    """The size that takes longest beside a larger one, the larger, and the ratio of medians; None below 1.25, or where
    durations scatter so: off, half of them lie within this many per cent of the lines."""
    sizes = np.unique(table.x)
    middle = [float(np.median(table.duration_s[table.x == size])) for size in sizes]
    pairs = [
        (size, sizes[other], middle[place] / middle[other])
        for place, size in enumerate(sizes)
        for other in range(place + 1, len(sizes))
    ]
    worst = max(pairs, key=lambda each: each[2])
    return worst if worst[2] > 1.0 + max(0.25, 0.06 * off) else None


def origin(table: "DurationTable") -> str:
    """Origin of the durations: the table, how many of them, of which sizes."""
    sizes = sorted(set(table.x.tolist()))
    count = f"{len(table.x)} durations of " if len(table.x) > len(sizes) else ""
    span = f"{_size(table, sizes[0])} to {_size(table, sizes[-1])}"
    return f"{table.name}: {count}{len(sizes)} sizes from {span}, {table.y_name}"


def axis_labels(table: "DurationTable") -> dict[str, Any]:
    """Arguments of `SegmentedLine.plot`: labels and units of the axes."""
    return {
        "x_label": "size (bytes)" if table.in_bytes else table.x_name,
        "y_label": f"duration ({table.unit.replace('us', 'µs')})",
        "y_unit": SECONDS[table.unit],
        "in_bytes": table.in_bytes,
    }


def lines_table(table: "DurationTable", line: "SegmentedLine") -> tuple[list[str], list[list[str]]]:
    """Titles and rows: a line each, with its sizes, its coefficients and their intervals, each in one unit."""
    of_zero, intercepts = _coefficients([(part.intercept, part.intercept_interval) for part in line.segments], 5e-13)
    of_slope, slopes = _coefficients([(part.slope, part.slope_interval) for part in line.segments], 1e-15)
    titles = ["sizes from", "to", "durations", f"at size 0, {of_zero}", "95 % of it"]
    titles += [f"{'per byte' if table.in_bytes else 'slope'}, {of_slope}", "95 % of it"]
    titles += ["bandwidth, GB/s", "95 % of it"] if table.in_bytes else []
    rows = []
    for number, each in enumerate(line.segments):
        low = each.low if number == 0 else float(table.x[table.x > each.low].min())
        cells = [_size(table, low), _size(table, each.high), str(each.n_points), *intercepts[number], *slopes[number]]
        rows.append([*cells, *(_rates(each) if table.in_bytes else ())])
    return titles, rows


def _coefficients(values_s: "Sequence[tuple[float, Interval]]", least_s: float) -> tuple[str, list[tuple[str, str]]]:
    """The unit of a column of times, and the column: values and 95 % intervals; what is smaller than `least_s` is 0."""
    unit, factor = time_unit(min([abs(value_s) for value_s, _ in values_s if abs(value_s) >= least_s], default=0.0))
    cells = []
    for value_s, interval in values_s:
        value, low, high = (factor * end * (abs(end) >= least_s) for end in (value_s, *interval))
        figure, bounds = value_and_interval(value, low, high)
        cells.append((figure or "0", bounds or "-"))
    return unit, cells


def _rates(line: "Line") -> tuple[str, str]:
    """10^9 bytes a second; at least that of the largest time per byte, where the least may be none."""
    low, high = line.slope_interval
    rate, least, most = (1e-9 / slope if slope > 1e-15 else math.inf for slope in (line.slope, high, low))
    if math.isfinite(most) or not math.isfinite(least):
        figure, bounds = value_and_interval(rate, least, most)
        return ("-" if math.isinf(rate) else figure), bounds or "-"
    return "-", f"more than {significant(least)}"


def _size(table: "DurationTable", size: float) -> str:
    return size_text(size) if table.in_bytes else exact_number(size, 7)
