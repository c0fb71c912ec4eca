"""`lepaute segment FILE`: at which sizes durations change their line, of OSU's and Intel's benchmarks or of CSV."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lepaute.cli.options import Force
from lepaute.cli.terminal import json_text, note
from lepaute.errors import InputError
from lepaute.kit.outputs import check_outputs
from lepaute.kit.tables import text_table
from lepaute.kit.text import seconds, size_text

if TYPE_CHECKING:
    from lepaute.fit.duration_tables import DurationTable
    from lepaute.fit.segmentation import SegmentedLine
    from lepaute.fit.segmentation.result import Interval, Line


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="output of an OSU or Intel MPI benchmark, or CSV")],
    unit: Annotated[
        str, typer.Option(metavar="UNIT", help="where the file tells none: s, ms, us, ns; of rates MB/s, Gb/s")
    ] = "",
    x: Annotated[str, typer.Option(metavar="COLUMN", help="of CSV: the column of sizes")] = "",
    y: Annotated[str, typer.Option(metavar="COLUMN", help="the column of durations, or of rates")] = "",
    where: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN=VALUE", help="of CSV: only these rows; may be repeated")
    ] = None,
    table: Annotated[str, typer.Option(metavar="NAME", help="of several tables those whose name contains this")] = "",
    breakpoints: Annotated[
        int | None, typer.Option(metavar="N", help="how many; default: as many as the sizes prove")
    ] = None,
    objective: Annotated[
        str, typer.Option(metavar="WHICH", help="log: relative errors, no negative coefficient; weighted, ordinary")
    ] = "log",
    plot: Annotated[Path | None, typer.Option(metavar="FILE.png", help="picture of points and lines")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object, in seconds and bytes")] = False,
    force: Force = False,
) -> None:
    """Find the sizes at which durations change their line (protocols of an MPI library, caches), and each line.

    Says also what the sizes were too few for.
    """
    from lepaute.fit import segment
    from lepaute.fit.duration_tables import SECONDS, read_durations

    check_outputs({"--plot": plot}, inputs=[file], force=force)
    tables = read_durations(file, x=x or None, y=y or None, unit=unit or None, only=_conditions(where or ()))
    chosen = [each for each in tables if table.lower() in each.name.lower()]
    if not chosen:
        raise InputError(f"{file}: no table is named {table!r:.60}; there are {_names(tables)}")
    if plot is not None and len(chosen) > 1:
        raise InputError(f"--plot draws one table; choose it with --table: {_names(chosen)}")
    lines = [
        segment(each.x, each.duration_s, objective=objective, n_breakpoints=breakpoints)  # type: ignore[arg-type]
        for each in chosen
    ]
    if as_json:
        print(json_text({"file": str(file), "tables": list(map(_as_object, chosen, lines))}))
    else:
        print("\n\n".join(map(_text_of, chosen, lines)))
    if plot is not None:
        ((durations, line),) = zip(chosen, lines, strict=True)
        x_label = "size (bytes)" if durations.in_bytes else durations.x_name
        y_label = f"duration ({durations.unit.replace('us', 'µs')})"
        line.plot(plot, x_label=x_label, y_label=y_label, y_unit=SECONDS[durations.unit])
        note(f"wrote {plot}")


def _conditions(texts: Sequence[str]) -> dict[str, str]:
    conditions = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise InputError(f"--where is {text!r:.60}; it is COLUMN=VALUE such as operation=send")
        conditions[name] = value
    return conditions


def _names(tables: "Sequence[DurationTable]") -> str:
    return "; ".join(table.name for table in tables)


def _text_of(table: "DurationTable", line: "SegmentedLine") -> str:
    """What there is, a sentence on the breakpoints, the lines, what each further breakpoint gains, and notes."""
    sizes = sorted(set(table.x.tolist()))
    count = f"{len(table.x)} durations of " if len(table.x) > len(sizes) else ""
    head = f"{table.name}: {count}{len(sizes)} sizes from {_size(table, sizes[0])} to {_size(table, sizes[-1])}"
    parts = [f"{head}, {table.y_name}", "", sentence(table, line), "", _lines(table, line), "", line.table()]
    notes = (*table.notes, *(f"too few: {remark}" for remark in line.notes))
    return "\n".join([*parts, *(["", *notes] if notes else [])])


def sentence(table: "DurationTable", line: "SegmentedLine") -> str:
    """Where the durations change their line, with the intervals."""
    import numpy as np

    off = 100 * float(np.median(np.abs(line.y / line.predict(line.x) - 1)))
    within = f"; half of the durations lie within {off:.2g} % of the line{'s' if line.breakpoints else ''}."
    if not line.breakpoints:
        return f"{_without_breakpoint(table, line)}{within}"
    places = [
        f"{_size(table, place)} (95 %: {_size(table, low)} to {_size(table, high)}; {_jump(line, number, place)})"
        for number, (place, (low, high)) in enumerate(zip(line.breakpoints, line.breakpoint_intervals, strict=True))
    ]
    listed = places[0] if len(places) == 1 else f"{', '.join(places[:-1])} and {places[-1]}"
    return f"The durations change their line after {listed}{within}"


def _jump(line: "SegmentedLine", number: int, place: float) -> str:
    """What the two lines say of the size at which they meet."""
    above = line.segments[number + 1]
    return f"{seconds(float(line.predict([place])[0]))} becomes {seconds(above.intercept + above.slope * place)}"


def _without_breakpoint(table: "DurationTable", line: "SegmentedLine") -> str:
    """That one line holds, only where whatever breakpoint there may be would change little."""
    from lepaute.fit.segmentation.search import likeliest_breakpoint

    likeliest = likeliest_breakpoint(line)
    if likeliest is None:
        return "No breakpoint can be proven with these data"
    if likeliest.is_negligible:
        return f"One line holds for all sizes, within {100 * likeliest.at_most:.2g} %"
    return (
        f"No breakpoint can be proven with these data. The likeliest, after {_size(table, likeliest.place)}, would "
        f"divide the residual by {likeliest.gain:.3g} and change the line by up to {100 * likeliest.differs:.2g} %"
    )


def _lines(table: "DurationTable", line: "SegmentedLine") -> str:
    titles = ["sizes from", "to", "durations", "at size 0", "95 %", "per byte" if table.in_bytes else "slope", "95 %"]
    rows = []
    for number, each in enumerate(line.segments):
        low = each.low if number == 0 else float(table.x[table.x > each.low].min())
        cells = [_size(table, low), _size(table, each.high), str(each.n_points)]
        cells += [_seconds(each.intercept), _interval(each.intercept_interval)]
        cells += [_seconds(each.slope), _interval(each.slope_interval)]
        rows.append([*cells, *(_rates(each) if table.in_bytes else ())])
    return text_table([*titles, "bandwidth", "95 %"] if table.in_bytes else titles, rows, left=())


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


def _as_object(table: "DurationTable", line: "SegmentedLine") -> dict[str, Any]:
    """For JSON: sizes as in the file, durations in seconds; null for an end of an interval that is infinite."""
    return {
        "name": table.name,
        "size_column": table.x_name,
        "duration_column": table.y_name,
        "sizes": len(set(table.x.tolist())),
        "durations": len(table.x),
        "objective": line.objective,
        "likeliest_breakpoint": _likeliest(line),
        "breakpoints": [
            {"size": place, "interval": _finite(interval)}
            for place, interval in zip(line.breakpoints, line.breakpoint_intervals, strict=True)
        ],
        "segments": [
            {
                "low": each.low,
                "high": each.high,
                "durations": each.n_points,
                "intercept_s": each.intercept,
                "intercept_interval_s": _finite(each.intercept_interval),
                "slope_s": each.slope,
                "slope_interval_s": _finite(each.slope_interval),
            }
            for each in line.segments
        ],
        "candidates": [{"breakpoints": list(each.breakpoints), "residual": each.residual} for each in line.candidates],
        "gains": list(line.gains),
        "notes": [*table.notes, *line.notes],
    }


def _likeliest(line: "SegmentedLine") -> dict[str, Any] | None:
    """Where none was proven: what the best one would change."""
    from lepaute.fit.segmentation.search import likeliest_breakpoint

    likeliest = None if line.breakpoints else likeliest_breakpoint(line)
    if likeliest is None:
        return None
    return {
        "size": likeliest.place,
        "gain": likeliest.gain,
        "differs": likeliest.differs,
        "differs_at_most": likeliest.at_most,
        "one_line_holds": likeliest.is_negligible,
    }


def _finite(interval: "Interval") -> list[float | None]:
    return [end if math.isfinite(end) else None for end in interval]
