"""Where durations change slope or jump, in words, as a table and as a page."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lepaute.fit.duration_tables import SECONDS, DurationTable
from lepaute.kit.text import seconds, size_text
from lepaute.report.figures import figure_svg
from lepaute.report.page import records_table, render

if TYPE_CHECKING:
    from lepaute.fit.segmentation import SegmentedLine
    from lepaute.fit.segmentation.result import Interval, Line


def page(table: "DurationTable", line: "SegmentedLine", source: str, command: str) -> str:
    """The page; source: name of the file; command: that makes it again."""
    from markupsafe import Markup

    answer = sentence(table, line)
    figure = line.plot(source=source, **axis_labels(table))
    titles, rows = lines_table(table, line)
    # Each interval by the name of what it is of.
    heads = [f"{titles[at - 1]}, 95 %" if title == "95 % of it" else title for at, title in enumerate(titles)]
    return render(
        "lepaute.report",
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
                "caption": "Above: durations and the fitted lines, with the 95 % interval of each breakpoint. Below: "
                "how far the durations are off the lines.",
            }
        ],
        shown=[records_table("The lines", [dict(zip(heads, row, strict=True)) for row in rows])],
        tables=[records_table("What each further breakpoint gains", _candidates(table, line))],
        commands=[("This page is made by", command)],
    )


def _candidates(table: "DurationTable", line: "SegmentedLine") -> list[dict[str, Any]]:
    """As `SegmentedLine.table`."""
    rows = []
    for count, one in enumerate(line.candidates):
        if math.isinf(one.criterion) and count > len(line.breakpoints):
            break
        rows.append(
            {
                "breakpoints": count,
                "objective": one.residual,
                "divides it by": line.gains[count - 1] if count else "–",
                "at": ", ".join(_size(table, place) for place in one.breakpoints) or "–",
                "chosen": one.breakpoints == line.breakpoints,
            }
        )
    return rows


def sentence(table: "DurationTable", line: "SegmentedLine") -> str:
    """A size that takes longer than a larger one; after which sizes the durations change slope or jump, and how far
    they are off the lines."""
    off = 100 * float(np.median(np.abs(line.y / line.predict(line.x) - 1)))
    within = f"; half of the durations lie within {off:.2g} % of the line{'s' if line.breakpoints else ''}."
    slower = _slower_than_a_larger(table)
    finding = [line.finding(in_bytes=table.in_bytes)] if line.breakpoints or not slower else []
    if slower is not None:
        size, larger, ratio = slower
        finding.insert(0, f"{_size(table, size)} takes {ratio:.3g} times as long as {_size(table, larger)}")
    return f"{'; '.join(finding)}{within}"


def _slower_than_a_larger(table: "DurationTable") -> tuple[float, float, float] | None:
    """The size that takes longest beside a larger one, the larger, and the ratio of medians; None below 1.25."""
    sizes = np.unique(table.x)
    middle = [float(np.median(table.duration_s[table.x == size])) for size in sizes]
    pairs = [
        (size, sizes[other], middle[place] / middle[other])
        for place, size in enumerate(sizes)
        for other in range(place + 1, len(sizes))
    ]
    worst = max(pairs, key=lambda each: each[2])
    return worst if worst[2] > 1.25 else None


def origin(table: "DurationTable") -> str:
    """What the durations are of: the table, how many of them, of which sizes."""
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
    """Titles and rows: a line each, with its sizes, its coefficients and their intervals."""
    slope = "per byte" if table.in_bytes else "slope"
    titles = ["sizes from", "to", "durations", "at size 0", "95 % of it", slope, "95 % of it"]
    rows = []
    for number, each in enumerate(line.segments):
        low = each.low if number == 0 else float(table.x[table.x > each.low].min())
        cells = [_size(table, low), _size(table, each.high), str(each.n_points)]
        cells += [_seconds(each.intercept), _interval(each.intercept_interval)]
        cells += [_seconds(each.slope), _interval(each.slope_interval)]
        rows.append([*cells, *(_rates(each) if table.in_bytes else ())])
    return [*titles, "bandwidth", "95 % of it"] if table.in_bytes else titles, rows


def _rates(line: "Line") -> tuple[str, str]:
    low, high = line.slope_interval
    least = _gigabytes(high) if math.isfinite(high) else "0"
    return f"{_gigabytes(line.slope)} GB/s", f"{least} to {_gigabytes(low)}" if math.isfinite(low) else "-"


def _gigabytes(slope_s: float) -> str:
    """10^9 bytes a second of a time per byte; infinite where it takes none."""
    return "∞" if slope_s <= 1e-15 else f"{1e-9 / slope_s:.3g}"


def _interval(interval: "Interval") -> str:
    return "-" if not all(map(math.isfinite, interval)) else f"{_seconds(interval[0])} to {_seconds(interval[1])}"


def _seconds(value_s: float) -> str:
    """As `seconds`, and picoseconds for times per byte."""
    return seconds(value_s) if value_s == 0 or abs(value_s) >= 1e-9 else f"{value_s * 1e12:.3g} ps"


def _size(table: "DurationTable", size: float) -> str:
    return size_text(size) if table.in_bytes else f"{size:.7g}"
