"""A segmented table of durations as text, and as a JSON object."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lepaute.fit.segmentation.search import likeliest_breakpoint
from lepaute.kit.tables import text_table
from lepaute.kit.text import seconds, size_text

if TYPE_CHECKING:
    from lepaute.fit.duration_tables import DurationTable
    from lepaute.fit.segmentation import SegmentedLine
    from lepaute.fit.segmentation.result import Interval, Line


def text_of(table: "DurationTable", line: "SegmentedLine") -> str:
    """What there is, a sentence on the breakpoints, the lines, what each further breakpoint gains, and notes."""
    sizes = np.unique(table.x)
    count = f"{len(table.x)} durations of " if len(table.x) > len(sizes) else ""
    head = f"{table.name}: {count}{len(sizes)} sizes from {_size(table, sizes[0])} to {_size(table, sizes[-1])}"
    parts = [f"{head}, {table.y_name}", "", sentence(table, line), "", _lines(table, line), "", line.table()]
    notes = (*table.notes, *(f"too few: {note}" for note in line.notes))
    return "\n".join([*parts, *(["", *notes] if notes else [])])


def sentence(table: "DurationTable", line: "SegmentedLine") -> str:
    """Where the durations change their line, with the intervals."""
    off = 100 * float(np.median(np.abs(line.y / line.predict(line.x) - 1)))
    rest = f"; half of the durations lie within {off:.2g} % of the line{'s' if line.breakpoints else ''}."
    if not line.breakpoints:
        return f"{_without_breakpoint(table, line)}{rest}"
    places = [
        f"{_size(table, place)} (95 %: {_size(table, low)} to {_size(table, high)}; {_jump(line, place)})"
        for place, (low, high) in zip(line.breakpoints, line.breakpoint_intervals, strict=True)
    ]
    listed = places[0] if len(places) == 1 else f"{', '.join(places[:-1])} and {places[-1]}"
    return f"The durations change their line after {listed}{rest}"


def _without_breakpoint(table: "DurationTable", line: "SegmentedLine") -> str:
    """That one line holds, only where whatever breakpoint there may be would change little."""
    likeliest = likeliest_breakpoint(line)
    if likeliest is None:
        return "No breakpoint can be proven with these data"
    if likeliest.is_negligible:
        return f"One line holds for all sizes, within {100 * likeliest.at_most:.2g} %"
    place, differs = _size(table, likeliest.place), 100 * likeliest.differs
    return (
        f"No breakpoint can be proven with these data. The likeliest, after {place}, would divide the residual by "
        f"{likeliest.gain:.3g} and change the line by up to {differs:.2g} %"
    )


def as_object(table: "DurationTable", line: "SegmentedLine") -> dict[str, Any]:
    """For JSON: sizes as in the file, durations in seconds; null for an end of an interval that is infinite."""
    return {
        "name": table.name,
        "size_column": table.x_name,
        "duration_column": table.y_name,
        "sizes": len(np.unique(table.x)),
        "durations": len(table.x),
        "objective": line.objective,
        "likeliest_breakpoint": _likeliest(line),
        "breakpoints": [
            {"size": place, "interval": _finite(interval)}
            for place, interval in zip(line.breakpoints, line.breakpoint_intervals, strict=True)
        ],
        "segments": [
            {
                "low": one.low,
                "high": one.high,
                "durations": one.n_points,
                "intercept_s": one.intercept,
                "intercept_interval_s": _finite(one.intercept_interval),
                "slope_s": one.slope,
                "slope_interval_s": _finite(one.slope_interval),
            }
            for one in line.segments
        ],
        "candidates": [{"breakpoints": list(one.breakpoints), "residual": one.residual} for one in line.candidates],
        "gains": list(line.gains),
        "notes": [*table.notes, *line.notes],
    }


def _likeliest(line: "SegmentedLine") -> dict[str, Any] | None:
    """Where none was proven: what the best one would change."""
    found = None if line.breakpoints else likeliest_breakpoint(line)
    if found is None:
        return None
    return {
        "size": found.place,
        "gain": found.gain,
        "differs": found.differs,
        "differs_at_most": found.at_most,
        "one_line_holds": found.is_negligible,
    }


def axis_labels(table: "DurationTable") -> tuple[str, str]:
    """Labels of the axes, with their units."""
    unit = table.unit.replace("us", "µs")
    return "size (bytes)" if table.in_bytes else table.x_name, f"duration ({unit})"


def _lines(table: "DurationTable", line: "SegmentedLine") -> str:
    rate = ("bandwidth", "95 %") if table.in_bytes else ()
    header = ("sizes from", "to", "durations", "at size 0", "95 %", "per byte" if table.in_bytes else "slope", "95 %")
    rows = []
    for number, one in enumerate(line.segments):
        low = one.low if number == 0 else float(table.x[table.x > one.low].min())
        cells = [_size(table, low), _size(table, one.high), str(one.n_points)]
        cells += [_seconds(one.intercept), _interval(one.intercept_interval)]
        cells += [_seconds(one.slope), _interval(one.slope_interval)]
        rows.append((*cells, *(_rates(one) if rate else ())))
    return text_table((*header, *rate), rows, left=())


def _rates(line: "Line") -> tuple[str, str]:
    low, high = line.slope_interval
    least = _gigabytes(high) if math.isfinite(high) else "0"
    return f"{_gigabytes(line.slope)} GB/s", f"{least} to {_gigabytes(low)}" if math.isfinite(low) else "-"


def _gigabytes(slope_s: float) -> str:
    """10^9 bytes a second of a time per byte; infinite where it takes none."""
    return "∞" if slope_s <= 1e-15 else f"{1e-9 / slope_s:.3g}"


def _jump(line: "SegmentedLine", place: float) -> str:
    """What the two lines say of the size at which they meet."""
    number = line.breakpoints.index(place)
    above = line.segments[number + 1]
    before, after = float(line.predict([place])[0]), above.intercept + above.slope * place
    return f"{seconds(before)} becomes {seconds(after)}"


def _interval(interval: "Interval") -> str:
    return "-" if not all(map(math.isfinite, interval)) else f"{_seconds(interval[0])} to {_seconds(interval[1])}"


def _seconds(value_s: float) -> str:
    """As `seconds`, and picoseconds for times per byte."""
    return seconds(value_s) if value_s == 0 or abs(value_s) >= 1e-9 else f"{value_s * 1e12:.3g} ps"


def _size(table: "DurationTable", size: float) -> str:
    return size_text(size) if table.in_bytes else f"{size:.7g}"


def _finite(interval: "Interval") -> list[float | None]:
    return [end if math.isfinite(end) else None for end in interval]
